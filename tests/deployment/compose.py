"""docker-compose.yml as the container engine and Kafka's image would read it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
FILE = ROOT / "docker-compose.yml"
BROKERS = ("kafka-1", "kafka-2", "kafka-3")
_NOT_PROPERTIES = frozenset({"KAFKA_HEAP_OPTS", "KAFKA_OPTS", "KAFKA_LOG4J_OPTS"})
_DEFAULTED = re.compile(r"\$\{(\w+):-([^}]*)\}")


def services(file: Path = FILE) -> dict[str, Any]:
    """Return the services, anchors and merges resolved."""
    return yaml.safe_load(file.read_text("utf-8"))["services"]


def environment(service: str, file: Path = FILE) -> dict[str, str]:
    """Return a service's environment where nothing is set outside."""
    found = services(file)[service].get("environment", {})
    return {
        name: _DEFAULTED.sub(lambda match: match[2], str(value)) for name, value in found.items()
    }


def properties(service: str) -> dict[str, str]:
    """Return a broker's properties as its image derives them from the environment."""
    return {
        property_name(name): value
        for name, value in environment(service).items()
        if name.startswith("KAFKA_") and name not in _NOT_PROPERTIES
    }


def property_name(variable: str) -> str:
    """Return the property that a variable sets: `_` is a dot, `___` a dash."""
    dotted = variable.removeprefix("KAFKA_").lower().replace("_", ".")
    return dotted.replace("...", "-").replace("..", "_")
