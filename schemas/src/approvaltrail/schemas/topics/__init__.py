"""The Kafka topics, each described in a YAML file beside this one."""

from __future__ import annotations

import functools
from importlib import resources
from typing import Annotated, Final

import yaml
from pydantic import BaseModel, ConfigDict, Field

EVENTS: Final = "approval-events"
DEAD: Final = "approval-events-dead"
HEARTBEATS: Final = "approval-heartbeats"
SEALS: Final = "approval-seals"
REPAIRS: Final = "approval-repairs"
NAMES: Final = (EVENTS, DEAD, HEARTBEATS, SEALS, REPAIRS)


class Topic(BaseModel):
    """One topic: who writes it, what it carries and how it is kept."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    description: str
    owner: str
    """The component that writes it."""
    key: str
    message: str
    partitions: Annotated[int, Field(ge=1)]
    partitions_single_machine: Annotated[int, Field(ge=1)]
    retention_ms: int
    """Milliseconds; -1 keeps everything."""
    cleanup_policy: str
    max_message_bytes: int
    compatibility: str

    def configuration(self) -> dict[str, str]:
        """Return the topic's broker configuration, by Kafka's names."""
        return {
            "retention.ms": str(self.retention_ms),
            "cleanup.policy": self.cleanup_policy,
            "max.message.bytes": str(self.max_message_bytes),
        }


@functools.cache
def topic(name: str) -> Topic:
    """Load one topic's description by name."""
    text = resources.files(__package__).joinpath(f"{name}.yaml").read_text("utf-8")
    return Topic.model_validate(yaml.safe_load(text))


def all_topics() -> tuple[Topic, ...]:
    """Load every topic's description."""
    return tuple(map(topic, NAMES))


def prefixed(name: str, prefix: str) -> str:
    """Return a topic's name on a cluster shared with others, where names carry a prefix."""
    return f"{prefix}{name}"
