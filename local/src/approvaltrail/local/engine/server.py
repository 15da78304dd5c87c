"""The engine's process: a folder, a socket, chDB, and a clean end."""

from __future__ import annotations

import signal
import socket
import threading
from typing import TYPE_CHECKING

import structlog
import uvicorn

from approvaltrail.local.engine.application import application
from approvaltrail.local.engine.errors import EnginePortTakenError
from approvaltrail.local.engine.executor import Executor
from approvaltrail.local.engine.folder import EngineFolder

if TYPE_CHECKING:
    from pathlib import Path

HOST = "127.0.0.1"
"""The only address the engine listens on."""

_FINISH_STATEMENTS_SECONDS = 1
_CLOSE_SECONDS = 0.7


def serve(data: Path, port: int) -> None:
    """Serve `data` until SIGTERM or SIGINT; port 0 picks a free one and `engine.json` names it.

    Raises EngineFolderInUseError or EnginePortTakenError before anything was opened.
    """
    log = structlog.get_logger("approvaltrail.engine")
    folder = EngineFolder(data)
    listener = _listen(port)
    executor = Executor(folder)
    address = folder.write_address(f"http://{HOST}:{listener.getsockname()[1]}")
    config = uvicorn.Config(
        application(executor, address),
        http="h11",
        loop="asyncio",
        lifespan="off",
        log_config=None,
        access_log=False,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=_FINISH_STATEMENTS_SECONDS,
        server_header=False,
    )
    server = uvicorn.Server(config)
    # These hold before uvicorn sets its own, and when it raises the signal again at its end.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: setattr(server, "should_exit", True))
    log.info("engine_started", url=address.url, version=executor.version, pid=address.pid)
    server.run(sockets=[listener])
    _close(executor)
    log.info("engine_stopped", statements_cut_off=executor.busy)


def _listen(port: int) -> socket.socket:
    # asyncio switches Nagle off (40 ms a request) only where the protocol is named.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((HOST, port))
    except OSError as error:
        listener.close()
        raise EnginePortTakenError(
            f"port {port} on {HOST} is taken by another program: "
            "choose another port, or 0 and a free one is picked"
        ) from error
    return listener


def _close(executor: Executor) -> None:
    """Close chDB unless a statement still runs: what was acknowledged is safe without it."""
    if executor.busy:
        return
    closing = threading.Thread(target=executor.close, daemon=True)
    closing.start()
    closing.join(_CLOSE_SECONDS)
