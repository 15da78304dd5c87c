"""Structured logs: one JSON object a line on standard error, without anything like a token.

The standard library's loggers (aiokafka, uvicorn) go through the same processors, so that every
line of a process can be parsed.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import MutableMapping
from typing import Any, TextIO

import structlog

from approvaltrail.consumers.kafka_trouble import KafkaTroubleFilter
from approvaltrail.schemas.token_shape import without_tokens

_QUIET = ("urllib3.connectionpool", "clickhouse_connect", "aiokafka.consumer.group_coordinator")
"""Libraries whose messages repeat addresses and statements, or tell each rebalance as an error."""
_DEPTH = 4


def configure_logs(component: str, level: str = "info", stream: TextIO | None = None) -> None:
    """Send structlog's and the standard library's events to one stream as JSON lines."""
    before: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        _named(component),
    ]
    structlog.configure(
        processors=[*before, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(_formatter(before))
    handler.addFilter(KafkaTroubleFilter())
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level.upper())
    for name in _QUIET:
        logging.getLogger(name).setLevel(logging.CRITICAL)
    logging.getLogger("aiokafka").setLevel(max(logging.WARNING, root.level))


def _formatter(before: list[Any]) -> logging.Formatter:
    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=before,
        processors=[
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            structlog.processors.format_exc_info,
            scrub,
            structlog.processors.JSONRenderer(default=str, ensure_ascii=False),
        ],
    )


def _named(component: str) -> Any:
    def add(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> Any:
        event.setdefault("component", component)
        return event

    return add


def scrub(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Replace whatever looks like a token in every text of a log event."""
    for key, value in event.items():
        event[key] = _scrubbed(value, _DEPTH)
    return event


def _scrubbed(value: Any, depth: int) -> Any:
    if isinstance(value, str):
        return without_tokens(value)
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if depth and isinstance(value, dict):
        return {str(key): _scrubbed(item, depth - 1) for key, item in value.items()}
    if depth and isinstance(value, (list, tuple, set, frozenset)):
        return [_scrubbed(item, depth - 1) for item in value]
    return without_tokens(str(value))
