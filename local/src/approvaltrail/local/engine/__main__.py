"""Run the engine: `python -m approvaltrail.local.engine --data DIR --port N`.

Exit codes: 0 stopped, 3 the folder is in use, 4 the port is taken, 1 anything else.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from approvaltrail.local.engine.errors import EngineFolderInUseError, EnginePortTakenError
from approvaltrail.local.engine.exit_codes import FOLDER_IN_USE, PORT_TAKEN
from approvaltrail.local.engine.server import serve

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Serve until told to stop; return the exit code."""
    parser = argparse.ArgumentParser(prog="approvaltrail.local.engine", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="the engine's folder")
    parser.add_argument("--port", type=int, default=0, help="0 picks a free one")
    parser.add_argument("--log-level", choices=["debug", "info", "warning"], default="info")
    arguments = parser.parse_args(argv)
    _log_json_to_stderr(arguments.log_level)
    log = structlog.get_logger("approvaltrail.engine")
    try:
        serve(arguments.data, arguments.port)
    except EngineFolderInUseError as error:
        log.error("engine_refused", error=str(error))  # noqa: TRY400 - the message says it all
        return FOLDER_IN_USE
    except EnginePortTakenError as error:
        log.error("engine_refused", error=str(error))  # noqa: TRY400 - the message says it all
        return PORT_TAKEN
    return 0


def _log_json_to_stderr(level: str) -> None:
    structlog.configure(
        processors=[
            structlog.stdlib.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING)


if __name__ == "__main__":
    code = main()
    # Threads of statements that were cut off must not hold the process.
    sys.stderr.flush()
    os._exit(code)
