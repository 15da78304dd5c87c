"""Store a batch of events: pass blocks through, and find what a block was refused for."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import structlog

from approvaltrail.consumers.block import Block, BlockBuilder
from approvaltrail.consumers.errors import BatchAbandonedError
from approvaltrail.consumers.headers import Headers
from approvaltrail.consumers.isolation import ROW_CODES, find_bad, refused_alone
from approvaltrail.consumers.metrics import SinkMetrics
from approvaltrail.consumers.settings import SinkSettings
from approvaltrail.consumers.sorting import Rejected, sort_by_header
from approvaltrail.consumers.window import time_window
from approvaltrail.consumers.writer import StoreWriter, Wanted
from approvaltrail.store.answers import TimeRange
from approvaltrail.store.connection import Store
from approvaltrail.store.errors import StoreError, StoreRefusedError
from approvaltrail.store.writing import insert_events

_LOOK_AFTER_UNKNOWN = 3
"""After so many unknown outcomes the messages are looked at: one may be what kills the store."""
_REFUSED_ALONE_AT_MOST = 100
"""If so many good messages were refused one by one and none taken, the store is at fault."""
_AT_ONCE = 2
"""Blocks of a batch on their way at once: the store parses one of them on one core alone."""
_BLOCK_EVENTS_AT_LEAST = 20_000
"""Below this, what each insert costs by itself outweighs what two at once gain."""
_log = structlog.stdlib.get_logger(__name__)


@dataclass(slots=True)
class _Halving:
    """How a refused block is divided until the refused messages stand alone."""

    rejected: list[Rejected] = field(default_factory=list)
    stored: int = 0

    @property
    def store_is_at_fault(self) -> bool:
        return not self.stored and len(self.rejected) >= _REFUSED_ALONE_AT_MOST


class EventFlush:
    """Stores events by whole blocks, one a header; what cannot be stored is handed back."""

    def __init__(
        self, writer: StoreWriter, headers: Headers, settings: SinkSettings, metrics: SinkMetrics
    ) -> None:
        self._writer = writer
        self._headers = headers
        self._settings = settings
        self._metrics = metrics
        self._builders: dict[bytes, BlockBuilder] = {}

    async def store(self, messages: Sequence[Any], wanted: Wanted) -> list[Rejected]:
        """Store all that can be stored and return the rest with its causes.

        Raises:
            BatchAbandonedError: the store did not take it before the partitions were given away.
        """
        known = self._headers.known
        found = sort_by_header(messages, known)
        rejected = found.rejected + await self._insert_groups(found.by_header, wanted)
        if found.strangers:
            rejected += await self._headers.introduce(found.strangers, wanted)
            met = {header: group for header, group in found.strangers.items() if header in known}
            rejected += await self._insert_groups(met, wanted)
        return rejected

    async def _insert_groups(
        self, groups: Mapping[bytes, Sequence[Any]], wanted: Wanted
    ) -> list[Rejected]:
        rejected: list[Rejected] = []
        for header, group in groups.items():
            rejected += await self._insert_at_once(self._builder(header), group, wanted)
        return rejected

    def _builder(self, header: bytes) -> BlockBuilder:
        if header not in self._builders:
            self._builders[header] = BlockBuilder(self._headers.known[header], header)
        return self._builders[header]

    async def _insert_at_once(
        self, builder: BlockBuilder, messages: Sequence[Any], wanted: Wanted
    ) -> list[Rejected]:
        """Insert a few blocks side by side, and return when the last of them is done or failed."""
        inserts = [self._insert(builder, part, wanted) for part in _parts(messages)]
        # Not a task group: it would leave an insert of the others behind in its thread.
        outcomes = await asyncio.gather(*inserts, return_exceptions=True)
        rejected: list[Rejected] = []
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome
            rejected += outcome
        return rejected

    async def _insert(
        self, builder: BlockBuilder, messages: Sequence[Any], wanted: Wanted
    ) -> list[Rejected]:
        times = self._times()
        block = await asyncio.to_thread(builder.build, messages)
        try:
            await self._until_stored(block, times, wanted, look_first=True)
        except StoreError as error:
            code = error.code if isinstance(error, StoreRefusedError) else None
        else:
            return []
        bad = await self._look(builder, messages, times, code)
        if bad:
            good = _without(messages, bad)
            return bad + (await self._insert(builder, good, wanted) if good else [])
        return await self._insist(builder, block, messages, wanted)

    async def _insist(
        self, builder: BlockBuilder, block: Block, messages: Sequence[Any], wanted: Wanted
    ) -> list[Rejected]:
        """Store messages that decode well: insist while the store is ill, else divide them."""
        while True:
            try:
                await self._until_stored(block, self._times(), wanted, look_first=False)
            except StoreRefusedError as error:
                halving = _Halving()
                await self._halve(builder, messages, error.code, halving, wanted)
                if not halving.store_is_at_fault:
                    return halving.rejected
                self._writer.note(error)
                _log.error("store_refuses_everything", code=error.code, events=len(messages))
                if not wanted():
                    raise BatchAbandonedError(
                        "its partitions were given to somebody else"
                    ) from None
                await asyncio.sleep(self._settings.retry_longest_seconds)
            else:
                return []

    async def _halve(
        self,
        builder: BlockBuilder,
        messages: Sequence[Any],
        code: int | None,
        halving: _Halving,
        wanted: Wanted,
    ) -> None:
        if halving.store_is_at_fault:
            return
        if len(messages) == 1:
            halving.rejected.append(refused_alone(messages[0], builder.single_object, code))
            return
        middle = len(messages) // 2
        for half in (messages[:middle], messages[middle:]):
            block = await asyncio.to_thread(builder.build, half)
            try:
                await self._until_stored(block, self._times(), wanted, look_first=False)
            except StoreRefusedError as error:
                await self._halve(builder, half, error.code, halving, wanted)
            else:
                halving.stored += len(half)

    async def _until_stored(
        self, block: Block, times: TimeRange, wanted: Wanted, *, look_first: bool
    ) -> None:
        def gives_up(error: StoreError, attempt: int) -> bool:
            if isinstance(error, StoreRefusedError):
                return look_first or error.code in ROW_CODES
            return look_first and attempt >= _LOOK_AFTER_UNKNOWN

        write = partial(_write, block=block, times=times)
        await self._writer.until_done(write, wanted=wanted, gives_up=gives_up)

    async def _look(
        self, builder: BlockBuilder, messages: Sequence[Any], times: TimeRange, code: int | None
    ) -> list[Rejected]:
        bad = await asyncio.to_thread(find_bad, messages, builder.single_object, times)
        if code is not None:
            self._metrics.refused_blocks.labels(str(code)).inc()
        _log.warning("block_refused", code=code, events=len(messages), bad=len(bad))
        return bad

    def _times(self) -> TimeRange:
        return time_window(
            retention_days=self._settings.retention_days,
            future_tolerance_seconds=self._settings.future_tolerance_seconds,
        )


def _write(store: Store, *, block: Block, times: TimeRange) -> None:
    insert_events(store, block.data, block.fence, block.contract.fingerprint, times)


def _parts(messages: Sequence[Any]) -> list[Sequence[Any]]:
    """Divide messages, in order, into as many blocks as are worth it."""
    blocks = max(1, min(_AT_ONCE, len(messages) // _BLOCK_EVENTS_AT_LEAST))
    size = -(-len(messages) // blocks)
    return [messages[first : first + size] for first in range(0, len(messages), size)]


def _without(messages: Sequence[Any], bad: Sequence[Rejected]) -> list[Any]:
    left_out = {id(one.message) for one in bad}
    return [message for message in messages if id(message) not in left_out]
