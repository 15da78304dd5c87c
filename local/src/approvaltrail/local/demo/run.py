"""`approvaltrail demo`: everything up, a server with traffic, and where to look."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, Protocol

from approvaltrail.local.broker.ports import free_ports
from approvaltrail.local.data_folder import DataFolder, temporary_folder
from approvaltrail.local.parts import Part, ProgramPart
from approvaltrail.local.settings import LocalSettings
from approvaltrail.local.stack import HOST, Servers
from approvaltrail.local.up import Running, Watcher, stay_up
from approvaltrail.store.answers import ReuseFilter, TenantScope, TimeRange
from approvaltrail.store.connection import open_store
from approvaltrail.store.errors import StoreError
from approvaltrail.store.queries import Queries

_FIRST_REUSE_SECONDS: Final = 60.0
_LOOK_EVERY_SECONDS: Final = 0.2


class Display(Watcher, Protocol):
    """Who is told of parts, and of where to look."""

    def note(self, text: str) -> None:
        """Take a line."""
        ...


def run_demo(
    *,
    data: Path | None,
    dashboard_port: int | None,
    seed: int,
    display: Display,
    say: Callable[[str], None],
) -> None:
    """Run the demonstration until Ctrl-C; without a folder, nothing is left behind."""
    started_at = datetime.now(UTC)
    with contextlib.ExitStack() as stack:
        if data is None:
            data = stack.enter_context(temporary_folder("approvaltrail-demo-"))
        settings = LocalSettings.from_environment(data=data, dashboard_port=dashboard_port)

        def server(servers: Servers, folder: DataFolder) -> Sequence[Part]:
            return [_server(servers, folder, settings, seed)]

        def tell(running: Running) -> None:
            display.note("waiting for the first reuse to reach the store")
            nonce = _first_reuse(running, started_at)
            _tell(running, nonce, display, say)

        stay_up(settings, display, command="demo", more_parts=server, when_up=tell)


def _server(servers: Servers, folder: DataFolder, settings: LocalSettings, seed: int) -> Part:
    (port,) = free_ports(1)
    return ProgramPart(
        "demo-server",
        "approvaltrail.local.demo.server",
        arguments=["--data", str(folder.root), "--port", str(port), "--seed", str(seed)],
        environment={
            "APPROVALTRAIL_KAFKA_BOOTSTRAP_SERVERS": servers.kafka_bootstrap_servers,
            "APPROVALTRAIL_JOURNAL_DIR": str(folder.journals),
            "APPROVALTRAIL_JOURNAL_ALLOWED_FILE_SYSTEMS": "tmpfs,ramfs",
            "APPROVALTRAIL_TOPIC_PREFIX": settings.topic_prefix,
            "APPROVALTRAIL_HEARTBEAT_SECONDS": "2",
        },
        log=folder.log("demo-server"),
        ready_url=f"http://{HOST}:{port}/readyz",
        address=f"http://{HOST}:{port}",
    )


def _first_reuse(running: Running, started_at: datetime) -> str | None:
    """Wait until the store shows a reuse; return its nonce, or None when that takes too long."""
    deadline = time.monotonic() + _FIRST_REUSE_SECONDS
    with open_store(running.servers.reader_dsn) as store:
        queries = Queries(store)
        while time.monotonic() < deadline:
            later = datetime.now(UTC) + timedelta(minutes=1)
            around = TimeRange(started_at, later)
            with contextlib.suppress(StoreError):
                everybody = TenantScope.everything()
                page = queries.reuses(around, everybody, ReuseFilter(), 1, 0)
                if page.reuses:
                    return page.reuses[0].presentation.event.nonce
            time.sleep(_LOOK_EVERY_SECONDS)
    return None


def _tell(
    running: Running, nonce: str | None, display: Display, say: Callable[[str], None]
) -> None:
    say(f"{running.run.dashboard_url}")
    if nonce is None:
        display.note(
            "no reuse has reached the store yet: `approvaltrail doctor "
            f"--data {running.folder.root}` looks for what keeps it"
        )
    else:
        say(
            "Open Replays: a token has just come back after it was spent; choose its row to see "
            "who was shown the preflight, who spent it, and what differs."
        )
        display.note(f"or here: approvaltrail trail {nonce} --data {running.folder.root}")
    display.note(f"logs in {running.folder.logs}; Ctrl-C stops everything")
