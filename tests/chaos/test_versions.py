"""Producers and sinks of different versions beside each other."""

from __future__ import annotations

import copy
import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import fastavro
from tests.consumers.conftest import settings, store, topic
from tests.consumers.parts import Journal, Topic, assert_counted_once, running, stored_ids, until
from tests.consumers.process import SinkProcess

from approvaltrail.consumers.redrive import RedriveFilter, redrive
from approvaltrail.schemas.contract import Contract, contract_of, event_contract, event_contracts
from approvaltrail.schemas.encoding import decode_values
from approvaltrail.schemas.events import EventType, Reason
from approvaltrail.schemas.messages import DeadLetterCause
from approvaltrail.store.answers import TenantScope, TimeRange
from approvaltrail.store.queries import Queries

if TYPE_CHECKING:
    from pathlib import Path

    from approvaltrail.consumers.settings import SinkSettings
    from approvaltrail.store.connection import Store

__all__ = ["settings", "store", "topic"]
NEW_REASON = "withdrawn"
EACH = 30
ALL_PARTITIONS = 9
"""Of events, heartbeats and seals on one machine."""


def next_version() -> Contract:
    """Return a version that knows one reason more: what a newer producer may write with."""
    schema = copy.deepcopy(event_contract().schema)
    (reason,) = [field for field in schema["fields"] if field["name"] == "reason"]
    reason["type"][1]["symbols"].append(NEW_REASON)
    return contract_of("approval_event.v2", schema)


@contextmanager
def released(version: Contract) -> Iterator[None]:
    """Let this process know the version, as its release will."""
    event_contracts()[version.header] = version
    try:
        yield
    finally:
        del event_contracts()[version.header]


def mixed(journal: Journal, version: Contract) -> list[tuple[int, bytes]]:
    """Return events of one journal whose producer was upgraded halfway and taken back again."""
    events = []
    for number in range(2 * EACH):
        sequence, data = journal.record(event_type=EventType.REFUSED, reason=Reason.EXPIRED)
        newer = number % 2
        events.append((sequence, rewritten(data, version) if newer else data))
    return events


def rewritten(data: bytes, version: Contract) -> bytes:
    """Return the event as a producer of that version writes it, with the reason it brought."""
    stream = io.BytesIO()
    stream.write(version.header)
    values = decode_values(data) | {"reason": NEW_REASON}
    fastavro.schemaless_writer(stream, version.parsed, values)
    return stream.getvalue()


async def test_a_sink_that_knows_both_versions_stores_what_either_writes(
    topic: Topic, store: Store, settings: Callable[..., SinkSettings]
) -> None:
    """A newer symbol is stored as it came, and read as the one that the contract keeps for it."""
    journal, version = Journal(), next_version()
    with released(version):
        await topic.send(journal, mixed(journal, version))
        async with running(settings()):
            await until(lambda: len(stored_ids(store)) == 2 * EACH, "both versions are stored")
    assert_counted_once(store, journal)
    reasons = store.query("SELECT reason, count(DISTINCT event_id) FROM events GROUP BY reason")
    assert dict(reasons.rows) == {Reason.EXPIRED.value: EACH, NEW_REASON: EACH}
    now = datetime.now(UTC)
    page = Queries(store).events(
        TimeRange(now - timedelta(hours=1), now + timedelta(hours=1)), TenantScope.everything()
    )
    assert {stored.event.reason for stored in page.events} == {Reason.EXPIRED, Reason.OTHER}
    assert {stored.schema_fingerprint for stored in page.events} == {
        event_contract().fingerprint,
        version.fingerprint,
    }


async def test_a_sink_that_does_not_know_a_version_yet_sets_it_aside_and_goes_on(
    topic: Topic, store: Store, settings: Callable[..., SinkSettings]
) -> None:
    """Events of an unknown schema are dead letters; after the sink's upgrade they are stored."""
    journal, version = Journal(), next_version()
    await topic.send(journal, mixed(journal, version))
    everything = TenantScope.everything()

    def set_aside() -> int:
        return len(Queries(store).dead_letters(everything))

    async with running(settings()):
        await until(lambda: len(stored_ids(store)) == EACH, "what it knows is stored")
        await until(lambda: set_aside() == EACH, "the rest is set aside")
    letters = Queries(store).dead_letters(everything)
    assert {letter.cause for letter in letters} == {DeadLetterCause.UNKNOWN_SCHEMA}
    assert {letter.sequence for letter in letters} == set(range(2, 2 * EACH + 1, 2))
    with released(version):
        async with running(settings()):
            assert (await redrive(settings(), store, RedriveFilter())).sent == EACH
            await until(lambda: len(stored_ids(store)) == 2 * EACH, "all is stored")
    assert_counted_once(store, journal)


async def test_sinks_of_two_versions_in_one_group_lose_nothing_of_either(
    topic: Topic, store: Store, settings: Callable[..., SinkSettings], tmp_path: Path
) -> None:
    """Midway through an upgrade, the older sink sets aside what only the newer one knows."""
    journal, version, chosen = Journal(), next_version(), settings()
    everything = TenantScope.everything()

    def known() -> int:
        return len(stored_ids(store)) + len(Queries(store).dead_letters(everything))

    older = SinkProcess(chosen, tmp_path / "older.log")
    try:
        await until(lambda: older.ready, "the older one works")
        with released(version):
            async with running(chosen) as newer:
                await until(
                    lambda: 0 < int(newer.condition().details["partitions"]) < ALL_PARTITIONS,
                    "both have partitions",
                )
                await topic.send(journal, mixed(journal, version))
                await until(lambda: known() == 2 * EACH, "each is stored or set aside")
                assert older.stop() == 0
                letters = Queries(store).dead_letters(everything)
                assert 0 < len(letters) < EACH, "each sink had some of the newer version"
                assert {letter.cause for letter in letters} == {DeadLetterCause.UNKNOWN_SCHEMA}
                assert (await redrive(chosen, store, RedriveFilter())).sent == len(letters)
                await until(lambda: len(stored_ids(store)) == 2 * EACH, "all is stored")
    finally:
        older.stop()
    assert_counted_once(store, journal)
