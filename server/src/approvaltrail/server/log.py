"""Logs of the process: JSON lines on standard error, scrubbed, those of libraries included."""

from __future__ import annotations

import logging
import sys
from typing import Final

import structlog

from approvaltrail.gate.scrub import Scrubber

_QUIET: Final = ("httpx", "httpcore", "mcp", "uvicorn.access", "aiokafka")
"""Libraries of which only warnings are logged: their routine lines name callers' requests."""


def configure_logging(scrubber: Scrubber, *, level: str = "INFO") -> None:
    """Send every log of the process through the scrubber, the last step before it is written."""
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelName(level)),
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(sys.stderr)  # standard output belongs to MCP over stdio
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*shared, structlog.stdlib.ExtraAdder()],
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.format_exc_info,
                scrubber,
                structlog.processors.JSONRenderer(ensure_ascii=False, default=str),
            ],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    for logger in logging.root.manager.loggerDict.values():
        if isinstance(logger, logging.Logger):  # a library's own handler would write unscrubbed
            logger.handlers.clear()
            logger.propagate = True
    for name in _QUIET:
        logging.getLogger(name).setLevel(logging.WARNING)
