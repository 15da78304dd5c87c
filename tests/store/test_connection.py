"""What crosses the seam to the store, and what never does."""

from __future__ import annotations

import logging
import socket
import threading
import traceback
from datetime import UTC, datetime, timedelta, timezone
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.store.blocks import insert
from tests.store.world import world

from approvaltrail.schemas.errors import SettingsError
from approvaltrail.store.answers import TenantScope, TimeRange
from approvaltrail.store.connection import Address, Store, open_store
from approvaltrail.store.errors import (
    InvalidDsnError,
    StoreError,
    StoreRefusedError,
    StoreUnavailableError,
)
from approvaltrail.store.migrations import migrate
from approvaltrail.store.queries import Queries
from approvaltrail.store.settings import StoreSettings

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PASSWORD = "correct-horse-battery"
CANARY = "canary-7f3a"


def whole_text(error: BaseException) -> str:
    """Everything that a log with a traceback would show."""
    return "".join(traceback.format_exception(error))


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(params=["in_process", "http"])
def either(request: pytest.FixtureRequest) -> Iterator[Store]:
    """Open a store in this process, and one behind ClickHouse's HTTP interface."""
    name = "store" if request.param == "in_process" else "database"
    given_one = request.getfixturevalue(name)
    if isinstance(given_one, Store):
        yield given_one
        return
    with open_store(given_one) as opened:
        migrate(opened)
        yield opened


def test_an_error_quotes_no_row(either: Store, caplog: pytest.LogCaptureFixture) -> None:
    """The engine's error text holds the row; ours holds its code alone."""
    with caplog.at_level(logging.DEBUG), pytest.raises(StoreRefusedError) as raised:
        either.query(
            "SELECT toUInt8({text:String}) FROM numbers(1)", {"text": f"{CANARY}-not-a-number"}
        )
    assert raised.value.code == 6
    assert CANARY not in whole_text(raised.value) + caplog.text


def test_an_unreachable_store_is_an_unknown_outcome(caplog: pytest.LogCaptureFixture) -> None:
    """A refused connection is retriable and shows no address, statement, parameter or password."""
    dsn = f"http://writer:{PASSWORD}@127.0.0.1:{free_port()}/trail"
    with (
        open_store(dsn, timeout_seconds=2) as store,
        caplog.at_level(logging.DEBUG),
        pytest.raises(StoreUnavailableError) as raised,
    ):
        store.query("SELECT {text:String}", {"text": CANARY})
    assert raised.value.retriable
    assert not StoreRefusedError.retriable
    shown = whole_text(raised.value) + caplog.text + repr(store)
    for secret in (PASSWORD, CANARY, "param_text", "SELECT%20", "SELECT+", "/?"):
        assert secret not in shown


def test_a_wrong_password_is_refused_without_being_shown(database: str) -> None:
    """Authentication fails with its code, and the password appears nowhere."""
    parts = urlsplit(database)
    dsn = f"http://{parts.username}:{PASSWORD}@127.0.0.1:{parts.port}{parts.path}"
    with open_store(dsn) as store, pytest.raises(StoreRefusedError) as raised:
        store.query("SELECT 1")
    assert raised.value.code == 516
    assert PASSWORD not in whole_text(raised.value)


@pytest.mark.parametrize(
    "dsn",
    [
        f"mysql://u:{PASSWORD}@host/db",
        f"http://u:{PASSWORD}@/db",
        f"http://u:{PASSWORD}@host:port/db",
        "chdb://relative/folder",
        "chdb:///",
        "chdb:///a/folder{1,2}",
        "chdb:///a/folder%3Fb",
        "",
    ],
)
def test_a_dsn_that_cannot_be_read_is_refused(dsn: str) -> None:
    """The error says what a DSN looks like and never repeats this one."""
    with pytest.raises(InvalidDsnError) as raised:
        open_store(dsn)
    assert PASSWORD not in whole_text(raised.value)


@given(st.text(min_size=1).filter(lambda text: text.isprintable()))
def test_a_password_of_any_characters_is_read(password: str) -> None:
    """A quoted password comes out of the DSN as it went in."""
    from urllib.parse import quote

    address = Address.of(f"clickhouses://reader:{quote(password, safe='')}@db.example/trail")
    assert (address.password, address.interface, address.database) == (password, "https", "trail")
    assert repr(address) == repr(Address.of("clickhouses://reader:other@db.example/trail"))


def test_the_password_may_come_from_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`CLICKHOUSE_PASSWORD_FILE` takes the place of the DSN's password, whatever its characters."""
    file = tmp_path / "password"
    file.write_text("p@ss/w:rd\n")
    monkeypatch.setenv("CLICKHOUSE_DSN", "http://writer@db.example:8123/trail")
    monkeypatch.setenv("CLICKHOUSE_PASSWORD_FILE", str(file))
    read = StoreSettings.from_environment()
    address = Address.of(read.dsn())
    assert (address.user, address.password) == ("writer", "p@ss/w:rd")
    assert "p@ss" not in repr(read)


def test_a_missing_dsn_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a DSN the error names the variable."""
    for name in ("CLICKHOUSE_DSN", "APPROVALTRAIL_CLICKHOUSE_DSN"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(SettingsError, match="APPROVALTRAIL_CLICKHOUSE_DSN: is not set"):
        StoreSettings.from_environment()


def test_zone_less_times_are_refused(either: Store) -> None:
    """A zone-less time is refused as a parameter and as a bound of a range (D-15)."""
    naive = datetime(2026, 3, 8, 6, 0)  # noqa: DTZ001 - that is the point
    for value in (naive, [naive], (naive, 1)):
        with pytest.raises(ValueError, match="zone-less"):
            either.query("SELECT {at:String}", {"at": value})
    with pytest.raises(ValueError, match="zone-aware"):
        TimeRange(naive, naive)


@pytest.mark.parametrize("zone", ["America/St_Johns", "UTC"])
def test_an_aware_time_finds_its_row(
    either: Store, zone: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the host's zone and the value's, a time finds the row stored under it (D-15)."""
    import time

    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        event = world(12, tokens=1).events[0]
        insert(either, [event])
        at = event.occurred_at.astimezone(timezone(timedelta(hours=5, minutes=45)))
        found = TimeRange(at, at + timedelta(microseconds=1))
        page = Queries(either).events(found, TenantScope.everything())
        assert [one.event for one in page.events] == [event]
        assert page.events[0].event.occurred_at.tzinfo is UTC
        assert page.events[0].stored_at.tzinfo is not None
    finally:
        monkeypatch.undo()
        time.tzset()


def test_a_store_opened_for_reading_does_not_write(database: str) -> None:
    """`read_only` forbids writing even to a user who may."""
    with open_store(database) as writer:
        migrate(writer)
    with open_store(database, read_only=True) as reader:
        assert reader.query("SELECT count() FROM events").scalar() == 0
        with pytest.raises(StoreError):
            reader.command("DROP TABLE events")
        with pytest.raises(StoreError):
            reader.query("SELECT 1 SETTINGS readonly = 0")


def test_every_query_works_for_a_user_who_may_only_read(
    database: str, reader_database: str
) -> None:
    """The named queries need no right but reading."""
    now = datetime(2026, 4, 1, tzinfo=UTC)
    everything = TenantScope.everything()
    events = world(13, tokens=20).events
    with open_store(database) as writer:
        migrate(writer)
        insert(writer, events)
    with open_store(reader_database) as reader:
        queries = Queries(reader)
        day = TimeRange(now - timedelta(days=3), now)
        assert sum(queries.overview(day, everything).counts.values()) == len(events)
        page = queries.events(day, everything)
        assert page.total == len(events)
        assert queries.reuses(day, everything).total > 0
        assert queries.trail(events[0].nonce, everything).issuance is not None
        queries.neighbours(page.events[0], everything)
        assert queries.completeness(everything, now).producers
        assert queries.dead_letters(everything) == ()


def test_threads_share_a_store(either: Store) -> None:
    """Many threads may ask one store at once."""
    answers: list[int] = []
    guard = threading.Lock()

    def ask(number: int) -> None:
        for _ in range(5):
            got = either.query("SELECT {n:UInt32} + sleepEachRow(0.002)", {"n": number}).scalar()
            with guard:
                answers.append(got)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(answers) == sorted(list(range(6)) * 5)


@pytest.mark.parametrize(
    "text", ["'; DROP TABLE events; --", "{x:String}", "%s \\ ' \" ` \n\t\0", "ünï✓🙂"]
)
def test_values_never_become_statements(either: Store, text: str) -> None:
    """Quotes, braces, backslashes and controls pass as values through every query."""
    everything = TenantScope.everything()
    queries = Queries(either)
    event = world(14, tokens=1).events[0].model_copy(update={"nonce": text, "target": text})
    insert(either, [event])
    around = TimeRange(event.occurred_at, event.occurred_at + timedelta(seconds=1))
    from approvaltrail.store.answers import EventFilter

    for wanted in (EventFilter(nonce=text), EventFilter(target=text), EventFilter(text=text)):
        assert queries.events(around, everything, wanted).total == 1
    assert queries.trail(text, everything).issuance is not None
    assert queries.events(around, TenantScope.only(text)).total == 0


def test_questions_asked_together_are_answered_in_order(store: Store) -> None:
    """However many are asked at once, even within each other, answers come in their order."""

    def ask(number: int) -> int:
        return store.query("SELECT {number:UInt32}", {"number": number}).scalar()

    def several(first: int) -> list[int]:
        return store.together(*(partial(ask, first + more) for more in range(4)))

    answers = store.together(*(partial(several, 10 * number) for number in range(7)))
    assert answers == [[10 * number + more for more in range(4)] for number in range(7)]
    assert store.together() == []


def test_the_error_of_one_question_is_raised(store: Store) -> None:
    """When one of several questions is refused, the error is the engine's, as if asked alone."""
    with pytest.raises(StoreRefusedError):
        store.together(store.ping, lambda: store.query("SELECT nothing"), store.ping)
