"""How the gate's one order of steps waits: on an event loop, or in a plain thread.

The orders in `issuing` and `confirming` are written once, as coroutines. Under `SyncEffects` they
never suspend, so `run` drives them to their end without an event loop; threaded servers use that.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Protocol, TypeVar, cast

from approvaltrail.gate.errors import PlanError
from approvaltrail.schemas import ApprovalEvent, EventRecorder

T = TypeVar("T")


class Effects(Protocol):
    """The four ways in which a flow touches the outside."""

    async def record(self, event: ApprovalEvent) -> None:
        """Record the event; a cancellation waits until that is decided."""
        ...

    async def ask(self, question: Callable[[], T], *, blocks: bool) -> T:
        """Ask the ledger."""
        ...

    async def call(self, function: Callable[..., T | Awaitable[T]], *arguments: Any) -> T:
        """Call the embedding server's code."""
        ...

    async def uninterrupted(self, work: Coroutine[Any, Any, T]) -> tuple[T, bool]:
        """Finish the work even if cancelled; say whether a cancellation came meanwhile."""
        ...


class AsyncEffects:
    """Waits on the running event loop."""

    def __init__(self, recorder: EventRecorder) -> None:
        self._recorder = recorder

    async def record(self, event: ApprovalEvent) -> None:
        """Record the event; see `Effects.record`."""
        _, cancelled = await self.uninterrupted(self._record(event))
        if cancelled:
            raise asyncio.CancelledError

    async def _record(self, event: ApprovalEvent) -> None:
        await self._recorder.record(event)

    async def ask(self, question: Callable[[], T], *, blocks: bool) -> T:
        """Ask the ledger, in a thread where it waits for a disk or a network."""
        return await asyncio.to_thread(question) if blocks else question()

    async def call(self, function: Callable[..., T | Awaitable[T]], *arguments: Any) -> T:
        """Call a function, plain or asynchronous."""
        answer = function(*arguments)
        return await answer if inspect.isawaitable(answer) else answer

    async def uninterrupted(self, work: Coroutine[Any, Any, T]) -> tuple[T, bool]:
        """Finish the work in a task of its own, which a cancellation of ours does not reach."""
        task = asyncio.ensure_future(work)
        cancelled = False
        while not task.done():
            try:
                await asyncio.shield(task)
            except asyncio.CancelledError:
                cancelled = True
            except Exception:  # noqa: BLE001 - the task's own error is raised by result() below
                break
        return task.result(), cancelled


class SyncEffects:
    """Waits by blocking the thread."""

    def __init__(self, recorder: EventRecorder) -> None:
        self._recorder = recorder

    async def record(self, event: ApprovalEvent) -> None:
        """Record the event; see `Effects.record`."""
        self._recorder.record_sync(event)

    async def ask(self, question: Callable[[], T], *, blocks: bool) -> T:  # noqa: ARG002 - Effects'
        """Ask the ledger."""
        return question()

    async def call(self, function: Callable[..., T | Awaitable[T]], *arguments: Any) -> T:
        """Call a plain function."""
        answer = function(*arguments)
        if inspect.isawaitable(answer):
            if inspect.iscoroutine(answer):
                answer.close()
            raise PlanError("an asynchronous function was given to a synchronous gate call")
        return answer

    async def uninterrupted(self, work: Coroutine[Any, Any, T]) -> tuple[T, bool]:
        """Do the work: a thread is not cancelled."""
        return await work, False


def run(work: Coroutine[Any, Any, T]) -> T:
    """Drive a coroutine that never suspends to its end."""
    try:
        work.send(None)
    except StopIteration as done:
        return cast("T", done.value)
    work.close()
    raise RuntimeError("a synchronous gate call had to wait for an event loop")
