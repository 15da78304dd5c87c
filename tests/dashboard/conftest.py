"""A story told once, in a real store, and the dashboard's settings for it."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    Page,
    Playwright,
    expect,
    sync_playwright,
)
from tests.dashboard.browsing import ARGUMENTS, CHROMIUM, DESK, Seen, in_profile, served
from tests.dashboard.edges import Edges, tell
from tests.dashboard.hostile import FIELDS, HOSTILE, hostile_texts
from tests.support.services import dsn, missing
from tests.support.stored import store_story
from tests.support.story import Story, an_ordinary_day

from approvaltrail.local.engine import EngineProcess
from approvaltrail.schemas.events import AddressSource, EventType, NonceTrust, RecordedEvent
from approvaltrail.store.connection import Store, open_store
from approvaltrail.store.migrations import migrate


@dataclass(frozen=True)
class Told:
    """A stored story: who may read it, and what happened in it."""

    reader_dsn: str = field(repr=False)
    story: Story
    now: datetime

    @property
    def reuses(self) -> list[RecordedEvent]:
        """What must be on Replays, newest first: found here without the store."""
        accepted: set[str | None] = set()
        found = []
        for event in self.story.events:
            verified = event.nonce_trust is NonceTrust.VERIFIED
            if verified and event.nonce in accepted and event.event_type is not EventType.COMPLETED:
                found.append(event)
            if event.event_type is EventType.ACCEPTED:
                accepted.add(event.nonce)
        return found[::-1]

    def nonce_of(self, **wanted: object) -> str:
        """Return the nonce of the first reuse with these values."""
        return next(
            str(one.nonce)
            for one in reversed(self.reuses)
            if all(getattr(one, name) == value for name, value in wanted.items())
        )


Make = Callable[[], tuple[Store, str]]


@pytest.fixture(scope="session")
def new_store(engine: EngineProcess) -> Iterator[Make]:
    """Make stores with all tables in a database of their own; the reader's DSN comes along."""
    address = engine.address
    opened = []

    def make() -> tuple[Store, str]:
        name = f"dashboard_{uuid.uuid4().hex[:12]}"
        with open_store(dsn(address.url, address.user, address.password, "default")) as root:
            root.command(f"CREATE DATABASE {name}")
        store = open_store(dsn(address.url, address.user, address.password, name))
        migrate(store)
        opened.append((store, name))
        return store, dsn(address.url, address.reader_user, address.reader_password, name)

    yield make
    for store, name in opened:
        store.command(f"DROP DATABASE IF EXISTS {name} SYNC")
        store.close()


@pytest.fixture(scope="session")
def told(new_store: Make) -> Told:
    """Tell of an ordinary day with a stolen token, a lost answer, a double confirm, forgeries."""
    store, reader = new_store()
    now = datetime.now(UTC)
    story = an_ordinary_day(now)
    store_story(store, story.events, now)
    return Told(reader, story, now)


@pytest.fixture(scope="session")
def corners(new_store: Make) -> tuple[Store, str]:
    """Make the store of hostile texts and of instants on which clocks go wrong."""
    return new_store()


@pytest.fixture(scope="session")
def edges(corners: tuple[Store, str]) -> Edges:
    """Store the instants."""
    told = tell()
    store_story(corners[0], told.events, datetime.now(UTC))
    return told


@pytest.fixture(scope="session")
def hostile_story(corners: tuple[Store, str]) -> tuple[str, Story, list[str]]:
    """Store reuses with a hostile text in every field that takes one, until each had its turn."""
    store, reader = corners
    now = datetime.now(UTC)
    story = Story(now - timedelta(minutes=10))
    nonces = []
    for first in range(0, len(HOSTILE), len(FIELDS)):
        texts = hostile_texts(first // len(FIELDS))
        changed = dict(zip(FIELDS, texts, strict=True))
        call = story.call(address_source=AddressSource.UNKNOWN) | changed
        nonce = story.issue(call, summary=texts[0])
        story.after(seconds=1).accept(call, nonce)
        story.after(seconds=1).replay(call, nonce)
        nonces.append(nonce)
    story.instance = HOSTILE[7]
    store_story(store, story.events, now)
    return reader, story, nonces


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stories are told once and looked at later: nobody falls silent meanwhile."""
    monkeypatch.setenv("APPROVALTRAIL_SILENT_AFTER_SECONDS", "86400")
    monkeypatch.setenv("APPROVALTRAIL_STALE_SECONDS", "86400")
    monkeypatch.setenv("APPROVALTRAIL_RECENT_MINUTES", "90")
    for name in ("CLICKHOUSE_READER_DSN", "APPROVALTRAIL_DASHBOARD_TENANT"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def looking_at(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Points the dashboard at a store."""
    return lambda reader: monkeypatch.setenv("APPROVALTRAIL_DASHBOARD_DSN", reader)


@pytest.fixture
def story(told: Told, looking_at: Callable[[str], None]) -> Told:
    """Point the dashboard at the story."""
    looking_at(told.reader_dsn)
    return told


PATIENT = {
    "APPROVALTRAIL_SILENT_AFTER_SECONDS": "86400",
    "APPROVALTRAIL_STALE_SECONDS": "86400",
    "APPROVALTRAIL_RECENT_MINUTES": "90",
}
expect.set_options(timeout=20_000)


@pytest.fixture(scope="module")
def playwright() -> Iterator[Playwright]:
    """Start the driver of the browser, where there is one.

    No longer than for a module: while it runs, no asynchronous test can.
    """
    if not CHROMIUM.exists():
        missing("the browser", FileNotFoundError(f"{CHROMIUM} (Debian's package chromium)"))
    with sync_playwright() as driver:
        yield driver


@pytest.fixture(scope="module")
def chromium(playwright: Playwright) -> Iterator[Browser]:
    """Start the browser, once a module; every visit has a profile of its own."""
    started = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
    yield started
    started.close()


@pytest.fixture(scope="session")
def dashboard(told: Told, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Serve the story."""
    log = tmp_path_factory.mktemp("dashboard") / "log"
    with served(told.reader_dsn, log, **PATIENT) as url:
        yield url


@pytest.fixture(scope="session")
def corner_dashboard(
    corners: tuple[Store, str],
    edges: Edges,
    hostile_story: tuple[str, Story, list[str]],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[str]:
    """Serve the hostile texts and the instants from a machine in Tokyo."""
    log = tmp_path_factory.mktemp("corners") / "log"
    with served(corners[1], log, TZ="Asia/Tokyo", **PATIENT) as url:
        yield url


@pytest.fixture(scope="module")
def profile(chromium: Browser) -> Iterator[BrowserContext]:
    """One profile for a module's ordinary visits: the front end's files are fetched once."""
    context = chromium.new_context(**DESK)
    yield context
    context.close()


@pytest.fixture
def opened(profile: BrowserContext, dashboard: str) -> Iterator[tuple[Page, Seen]]:
    """Open a page before the served story."""
    with in_profile(profile, dashboard) as found:
        yield found
