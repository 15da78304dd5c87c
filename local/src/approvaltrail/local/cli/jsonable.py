"""Answers as JSON: the same names as in the answers, times as ISO 8601 in UTC, spans in seconds."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from enum import Enum
from pathlib import Path
from typing import Any

from pydantic import BaseModel


def jsonable(value: Any) -> Any:  # noqa: PLR0911 - one a kind of value
    """Turn dataclasses, models, enums, times and containers into what JSON can say."""
    match value:
        case Enum():
            return value.value
        case datetime():
            return value.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
        case timedelta():
            return value.total_seconds()
        case BaseModel():
            return {name: jsonable(getattr(value, name)) for name in type(value).model_fields}
        case Mapping():
            return {str(jsonable(key)): jsonable(one) for key, one in value.items()}
        case list() | tuple() | set() | frozenset():
            return [jsonable(one) for one in value]
        case Path():
            return str(value)
        case _ if dataclasses.is_dataclass(value) and not isinstance(value, type):
            fields = dataclasses.fields(value)
            return {field.name: jsonable(getattr(value, field.name)) for field in fields}
        case _:
            return value


def dumps(value: Any) -> str:
    """Return JSON in ASCII: hostile characters stand as escapes and cannot reach a terminal."""
    return json.dumps(jsonable(value), ensure_ascii=True, allow_nan=False)
