"""Which schema a message's header stands for: our own by heart, a registry's as they are met.

A schema's id is a registry's to give, so each one is asked for when it is first met. What the
registry gives is held against our own contracts by the fingerprint of the canonical form, which
says that the bytes mean the same. While the registry does not answer, the messages wait: what it
would have said is unknown, and no reason to set anything aside.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

import structlog

from approvaltrail.consumers.backoff import Backoff
from approvaltrail.consumers.errors import BatchAbandonedError
from approvaltrail.consumers.sorting import Rejected
from approvaltrail.schemas.contract import event_contracts, registry_id_of
from approvaltrail.schemas.errors import RegistryError
from approvaltrail.schemas.messages import DeadLetterCause

if TYPE_CHECKING:
    from approvaltrail.schemas.contract import Contract
    from approvaltrail.schemas.registry import Registry

_ASKED_AT_ONCE: Final = 100
"""Unknown ids of one batch that are asked for: honest producers have a handful."""
_UNKNOWN_FOR_SECONDS: Final = 30.0
"""So long an id that the registry did not know is not asked for again."""
_REMEMBERED: Final = 10_000
_log = structlog.stdlib.get_logger(__name__)


class Headers:
    """Knows headers of both framings; `known` gives the contract of each."""

    def __init__(
        self,
        registry: Registry | None,
        *,
        longest_wait_seconds: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._registry = registry
        self._longest_wait_seconds = longest_wait_seconds
        self._clock = clock
        self._known = dict(event_contracts())
        self._foreign: dict[bytes, float] = {}
        self.trouble: str | None = None
        """What keeps the registry from answering, in a sentence; None while it answers."""

    @property
    def known(self) -> Mapping[bytes, Contract]:
        """The contract of each header known by now."""
        return self._known

    async def introduce(
        self, strangers: Mapping[bytes, list[Any]], wanted: Callable[[], bool]
    ) -> list[Rejected]:
        """Make known what the registry says is ours, and reject what is not.

        Raises:
            BatchAbandonedError: the registry did not answer before the partitions went away.
        """
        rejected: list[Rejected] = []
        asked = 0
        for header, messages in strangers.items():
            if self._registry is None:
                why = "in Confluent's framing, and APPROVALTRAIL_SCHEMA_REGISTRY_URL is not set"
                rejected += _all(messages, DeadLetterCause.BAD_FRAMING, f"the value is {why}")
                continue
            if not self._is_foreign(header):
                if asked >= _ASKED_AT_ONCE:
                    detail = f"more than {_ASKED_AT_ONCE} unknown schema ids came at once"
                    rejected += _all(messages, DeadLetterCause.UNKNOWN_SCHEMA, detail)
                    continue
                asked += 1
                await self._ask(self._registry, header, wanted)
            if header not in self._known:
                detail = f"the schema registry's id {registry_id_of(header)} is no known event's"
                rejected += _all(messages, DeadLetterCause.UNKNOWN_SCHEMA, detail)
        return rejected

    async def _ask(self, registry: Registry, header: bytes, wanted: Callable[[], bool]) -> None:
        number = registry_id_of(header)
        backoff = Backoff(longest_seconds=self._longest_wait_seconds)
        while True:
            try:
                found = await registry.contract_of(number)
            except RegistryError as error:
                if self.trouble is None:
                    _log.warning("schema_registry_unavailable", why=str(error))
                self.trouble = str(error)
            else:
                break
            if not wanted():
                raise BatchAbandonedError("its partitions were given to somebody else")
            await asyncio.sleep(backoff.next_seconds())
        self.trouble = None
        ours = found and self._by_fingerprint(found.fingerprint)
        if ours:
            self._known[header] = ours
        else:
            self._remember_foreign(header)
        _log.info("schema_id_met", schema_id=number, contract=ours.name if ours else None)

    def _by_fingerprint(self, fingerprint: str) -> Contract | None:
        known = event_contracts().values()
        return next((one for one in known if one.fingerprint == fingerprint), None)

    def _is_foreign(self, header: bytes) -> bool:
        return self._clock() < self._foreign.get(header, 0.0)

    def _remember_foreign(self, header: bytes) -> None:
        if len(self._foreign) >= _REMEMBERED:
            self._foreign.clear()
        self._foreign[header] = self._clock() + _UNKNOWN_FOR_SECONDS


def _all(messages: list[Any], cause: DeadLetterCause, detail: str) -> list[Rejected]:
    return [Rejected(message, cause, detail) for message in messages]
