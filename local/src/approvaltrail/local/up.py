"""`up`: hold the data folder, start everything in order, stay, and stop everything in reverse."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import structlog

from approvaltrail.consumers.logs import configure_logs
from approvaltrail.local.data_folder import DataFolder, RunFile
from approvaltrail.local.health import SupervisorHealth
from approvaltrail.local.keeper import PartStatus
from approvaltrail.local.parts import Part
from approvaltrail.local.settings import LocalSettings
from approvaltrail.local.signals import StopRequested, stop_on_signals
from approvaltrail.local.stack import Servers, Stack
from approvaltrail.local.supervisor import Supervisor


class Watcher(Protocol):
    """Who is told how the start goes: a terminal, or nobody."""

    def part_changed(self, status: PartStatus) -> None:
        """Take a part's new status; called from several threads, one at a time."""
        ...

    def jar_fetched(self, done: int, total: int, name: str) -> None:
        """Take the progress of fetching Kafka's jars."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """Everything runs."""

    run: RunFile
    servers: Servers
    folder: DataFolder
    supervisor: Supervisor


MoreParts = Callable[[Servers, DataFolder], Sequence[Part]]


@contextlib.contextmanager
def everything_up(
    settings: LocalSettings,
    watcher: Watcher,
    *,
    command: str = "up",
    dashboard: bool = True,
    more_parts: MoreParts | None = None,
) -> Iterator[Running]:
    """Run everything while the block runs; stop all of it, last part first, when it ends.

    Raises:
        AlreadyRunningError: another `up` holds the data folder.
        DataFolderError, BrokerError, EngineError, PartStartError, StoreError, ConsumerError:
            something cannot be started; whatever was started has been stopped again.
    """
    folder = DataFolder(settings.data.absolute())
    with folder.hold(), folder.log("supervisor").open("a", encoding="utf-8") as log:
        configure_logs("supervisor", stream=log)
        supervisor = Supervisor()
        health = SupervisorHealth(supervisor, settings.supervisor_port)
        supervisor.listen(health.observe)
        supervisor.listen(watcher.part_changed)
        stack = Stack(settings, folder, supervisor)
        try:
            stack.fetch_jars(watcher.jar_fetched)
            url = health.start()
            servers = stack.start_servers()
            run = stack.start_programs(servers, dashboard=dashboard)
            run = run.model_copy(update={"supervisor_url": url, "command": command})
            folder.publish(run)
            if more_parts is not None:
                supervisor.start(more_parts(servers, folder))
            structlog.get_logger("approvaltrail.local").info("everything_up", command=command)
            yield Running(run=run, servers=servers, folder=folder, supervisor=supervisor)
        finally:
            supervisor.stop()
            health.stop()


def stay_up(
    settings: LocalSettings,
    watcher: Watcher,
    *,
    command: str = "up",
    more_parts: MoreParts | None = None,
    when_up: Callable[[Running], None],
) -> None:
    """Run everything until Ctrl-C, SIGTERM or SIGHUP; `when_up` is called once it runs."""
    with (
        contextlib.suppress(StopRequested),
        stop_on_signals(),
        everything_up(settings, watcher, command=command, more_parts=more_parts) as running,
    ):
        when_up(running)
        threading.Event().wait()
