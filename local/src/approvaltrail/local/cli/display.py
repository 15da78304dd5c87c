"""What `up` and `demo` show while they run: a table that stays, or plain lines in a pipe."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Final, Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn
from rich.table import Table
from rich.text import Text

from approvaltrail.local.cli.output import console
from approvaltrail.local.cli.text import cell
from approvaltrail.local.keeper import PartState, PartStatus

_STYLES: Final = {
    PartState.WAITING: "bright_black",
    PartState.STARTING: "yellow",
    PartState.READY: "green",
    PartState.RESTARTING: "bold red",
    PartState.STOPPING: "yellow",
    PartState.STOPPED: "bright_black",
}
_SIGNS: Final = {
    PartState.WAITING: "·",
    PartState.STARTING: "…",
    PartState.READY: "✔",
    PartState.RESTARTING: "↻",
    PartState.STOPPING: "…",
    PartState.STOPPED: "■",
}
_TELL_EVERY_JARS: Final = 10
_QUIET_SECONDS: Final = 1.5


class Display:
    """Shows parts on stderr; the answer itself (an address) goes to stdout by other means."""

    def __init__(self) -> None:
        self._console: Console = console(stderr=True)
        self._parts: dict[str, PartStatus] = {}
        self._notes: list[Text] = []
        self._progress = Progress(
            TextColumn("fetching Kafka's jars"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[jar]}", markup=False),
            console=self._console,
        )
        self._task: TaskID | None = None
        self._jars_since: float | None = None
        self._live = Live(
            console=self._console,
            get_renderable=self._shown,
            refresh_per_second=4,
            redirect_stdout=sys.stdout.isatty(),  # a file or a pipe takes the answer itself
        )

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._console.is_terminal:
            self._live.stop()

    def note(self, text: str) -> None:
        """Add a line below the table."""
        line = cell(text)
        self._notes.append(line)
        if not self._console.is_terminal:
            self._console.print(line, soft_wrap=True)

    def part_changed(self, status: PartStatus) -> None:
        """Show a part's new status."""
        self._parts[status.name] = status
        if not self._console.is_terminal:
            words = f"{status.name}: {status.state.value}"
            # Without a scheme: the one address to open is the dashboard's, and stands by itself.
            address = (status.address or "").removeprefix("http://")
            words += f" at {address}" if status.state is PartState.READY and address else ""
            words += f" ({status.problem})" if status.problem else ""
            self._console.print(cell(words), soft_wrap=True)

    def jar_fetched(self, done: int, total: int, name: str) -> None:
        """Show how far the jars are; what lies in the cache already passes in a blink."""
        if self._console.is_terminal:
            if self._task is None:
                self._task = self._progress.add_task("jars", total=total, jar="")
            self._progress.update(self._task, completed=done, jar=name)
            if done == total:
                self._progress.remove_task(self._task)
                self._task = None
        elif self._jars_since is None:
            self._jars_since = time.monotonic()
        elif time.monotonic() - self._jars_since > _QUIET_SECONDS and (
            done % _TELL_EVERY_JARS == 0 or done == total
        ):
            self._console.print(cell(f"Kafka's jars: {done} of {total}"))

    def _shown(self) -> RenderableType:
        shown = Table(box=None, pad_edge=False, header_style="bold")
        for column in ("part", "state", "pid", "address", "restarts", ""):
            shown.add_column(column)
        for status in tuple(self._parts.values()):
            shown.add_row(
                cell(status.name),
                cell(f"{_SIGNS[status.state]} {status.state.value}", _STYLES[status.state]),
                cell(status.pid or ""),
                cell(status.address or ""),
                cell(status.restarts or ""),
                cell(status.problem or ""),
            )
        parts: list[RenderableType] = [shown, *self._notes]
        return Group(self._progress, *parts) if self._task is not None else Group(*parts)
