"""Store heartbeats and seals: few and small, so they are decoded one by one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Generic, TypeVar

from approvaltrail.consumers.isolation import ROW_CODES
from approvaltrail.consumers.sorting import Rejected
from approvaltrail.consumers.writer import StoreWriter, Wanted
from approvaltrail.schemas.errors import UndecodableError
from approvaltrail.schemas.messages import DeadLetterCause, Heartbeat, Message, Seal
from approvaltrail.store.connection import Store
from approvaltrail.store.errors import StoreError, StoreRefusedError
from approvaltrail.store.writing import insert_heartbeats, insert_seals

Kind = TypeVar("Kind", bound=Message)


class MessageFlush(Generic[Kind]):
    """Stores messages of one kind; what is none of that kind is handed back."""

    def __init__(
        self,
        writer: StoreWriter,
        kind: type[Kind],
        insert: Callable[[Store, Sequence[Kind]], None],
    ) -> None:
        self._writer = writer
        self._kind = kind
        self._insert = insert

    async def store(self, messages: Sequence[Any], wanted: Wanted) -> list[Rejected]:
        """Store all that can be stored and return the rest with its causes."""
        rejected: list[Rejected] = []
        decoded: list[tuple[Any, Kind]] = []
        for message in messages:
            try:
                decoded.append((message, self._decode(message)))
            except UndecodableError as error:
                rejected.append(Rejected(message, DeadLetterCause(error.cause), str(error)))
        return rejected + await self._store(decoded, wanted)

    def _decode(self, message: Any) -> Kind:
        if not message.value:
            raise UndecodableError("empty", "the message has no value")
        return self._kind.decode(message.value)

    async def _store(self, decoded: list[tuple[Any, Kind]], wanted: Wanted) -> list[Rejected]:
        """Store together; if the store refuses some of them, divide until those stand alone."""
        if not decoded:
            return []
        write = partial(_write, insert=self._insert, rows=[one for _, one in decoded])
        try:
            await self._writer.until_done(write, wanted=wanted, gives_up=_refuses_rows)
        except StoreRefusedError as error:
            if len(decoded) == 1:
                detail = f"the store refused it with code {error.code}"
                cause = DeadLetterCause.REFUSED_BY_STORE
                return [Rejected(decoded[0][0], cause, detail)]
            middle = len(decoded) // 2
            first = await self._store(decoded[:middle], wanted)
            return first + await self._store(decoded[middle:], wanted)
        return []


def heartbeat_flush(writer: StoreWriter) -> MessageFlush[Heartbeat]:
    """Return what stores heartbeats."""
    return MessageFlush(writer, Heartbeat, insert_heartbeats)


def seal_flush(writer: StoreWriter) -> MessageFlush[Seal]:
    """Return what stores seals."""
    return MessageFlush(writer, Seal, insert_seals)


def _write(
    store: Store, *, insert: Callable[[Store, Sequence[Kind]], None], rows: list[Kind]
) -> None:
    insert(store, rows)


def _refuses_rows(error: StoreError, _attempt: int) -> bool:
    return isinstance(error, StoreRefusedError) and error.code in ROW_CODES
