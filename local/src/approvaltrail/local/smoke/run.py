"""One smoke run from start to verdict."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from approvaltrail.local.data_folder import temporary_folder
from approvaltrail.local.keeper import PartState, PartStatus
from approvaltrail.local.settings import LocalSettings
from approvaltrail.local.signals import StopRequested, stop_on_signals
from approvaltrail.local.smoke.judge import judge
from approvaltrail.local.smoke.play import Play
from approvaltrail.local.smoke.report import SmokeReport
from approvaltrail.local.up import Running, everything_up

Say = Callable[[str], None]
_OURS: Final = ("APPROVALTRAIL_", "KAFKA_", "CLICKHOUSE_", "CONFIRM_", "CONTROL_", "TIDB_MCP_")


def run_smoke(*, events: int, seed: int, keep: Path | None, say: Say) -> SmokeReport:
    """Run the whole way in a folder of its own and judge it.

    Raises:
        KeyboardInterrupt: told to stop; everything started has been stopped.
        LocalError, BrokerError, EngineError, StoreError, ConsumerError: a part cannot run.
    """
    started = time.monotonic()
    with contextlib.ExitStack() as stack:
        folder = keep
        if folder is None:
            folder = stack.enter_context(temporary_folder("approvaltrail-smoke-"))
        try:
            with stop_on_signals(), _only_ours(folder, say) as running:
                play = Play(running=running, events=events, seed=seed, say=say)
                asyncio.run(play.run())
                report = judge(play)
        except StopRequested:
            raise KeyboardInterrupt from None
    report.figures["seconds"] = round(time.monotonic() - started, 2)
    return report


@contextlib.contextmanager
def _only_ours(folder: Path, say: Say) -> Iterator[Running]:
    """Run broker, engine and sink, whatever servers the environment names."""
    asked = LocalSettings.from_environment()
    with _own_environment():
        settings = LocalSettings.from_environment(
            data=folder, jar_cache=asked.jar_cache, offline=asked.offline
        )
        with everything_up(settings, _Watcher(say), command="smoke", dashboard=False) as running:
            yield running


@contextlib.contextmanager
def _own_environment() -> Iterator[None]:
    """Forget every variable that speaks to a part of ours: a run must not depend on them."""
    before = dict(os.environ)
    for name in before:
        if name.upper().startswith(_OURS):
            del os.environ[name]
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


class _Watcher:
    """Tells what matters of the parts on stderr."""

    def __init__(self, say: Say) -> None:
        self._say = say

    def part_changed(self, status: PartStatus) -> None:
        if status.state in {PartState.READY, PartState.RESTARTING}:
            problem = f" ({status.problem})" if status.problem else ""
            self._say(f"{status.name} {status.state.value}{problem}")

    def jar_fetched(self, done: int, total: int, _name: str) -> None:
        if done == total:
            self._say(f"Kafka's jars: {total} in place")
