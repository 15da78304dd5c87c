"""Overview's state lines, by fixed rules. Every rule that holds gives a line, the worst first.

1. store unreachable: the store does not answer; nothing else can be said.
2. gate closed: a live producer's gate may not issue or accept.
3. pipeline stale: what is stored lies further behind than `stale_seconds`, or a producer is silent.
4. incomplete: numbers were emitted that are neither stored nor dead-lettered.
5. ledger failing: a live producer's last look at its ledger failed.
6. boundary under test: a token was used again within `recent_minutes`, or at least
   `boundary_refusals` presentations were forged or misdirected.
7. quiet: none of these.

An incomplete pipeline never hides an attack: the rules do not know of one another.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from approvaltrail.dashboard import formats, words
from approvaltrail.dashboard.settings import DashboardSettings
from approvaltrail.schemas.events import EventType, Reason
from approvaltrail.schemas.messages import GateState, Probe
from approvaltrail.store.answers import (
    Completeness,
    CompletenessState,
    ProducerCondition,
    ProducerStatus,
    ReusePage,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StateLine:
    """One state that holds: how bad, which icon, what, and the page where to look."""

    tone: str
    icon: str
    text: str
    page: str | None = None
    recent: bool = False
    """What it counts lies within the last `recent_minutes`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recent:
    """What the rules look at."""

    completeness: Completeness
    reuses: ReusePage
    """Of the last `recent_minutes`."""
    refusals: Mapping[Reason, int]
    """Of the same time, by cause."""
    now: datetime


def active_states(recent: Recent, settings: DashboardSettings) -> tuple[StateLine, ...]:
    """Return a line for every rule that holds, the worst first; never none."""
    working = tuple(_working(recent.completeness.producers))
    lines = [
        *_gate_closed(working),
        *_stale(recent, settings),
        *_incomplete(recent.completeness),
        *_ledger_failing(working),
        *_under_test(recent, settings),
    ]
    return tuple(lines) or (_quiet(recent, settings),)


def store_unreachable() -> StateLine:
    """Return the one line of a store that does not answer."""
    what = "Store unreachable: no page can say anything until it answers."
    return StateLine(tone="bad", icon="✖\ufe0e", text=what)


def _working(producers: Iterable[ProducerStatus]) -> Iterable[ProducerStatus]:
    alive = {ProducerCondition.LIVE, ProducerCondition.SILENT}
    return (producer for producer in producers if producer.condition in alive)


def _gate_closed(working: tuple[ProducerStatus, ...]) -> Iterable[StateLine]:
    closed = [one for one in working if one.gate_state is GateState.CLOSED]
    if closed:
        why = "; ".join(sorted({one.gate_reason or "no reason given" for one in closed}))
        servers = formats.counted(len(working), "server")
        what = f"Gate closed on {len(closed)} of {servers}: {why}."
        yield StateLine(tone="bad", icon="■", text=what, page="pipeline")


def _stale(recent: Recent, settings: DashboardSettings) -> Iterable[StateLine]:
    found = recent.completeness
    silent = [one for one in found.producers if one.condition is ProducerCondition.SILENT]
    if silent:
        since = [one.last_heartbeat_at for one in silent if one.last_heartbeat_at is not None]
        last = f"; the longest since {formats.instant(min(since))} UTC" if since else ""
        what = f"Pipeline stale: {formats.counted(len(silent), 'producer')} silent{last}."
        yield StateLine(tone="warn", icon="◐", text=what, page="pipeline")
        return
    behind = None if found.complete_until is None else recent.now - found.complete_until
    nobody = bool(found.producers) and not tuple(_working(found.producers))
    bound = timedelta(seconds=settings.stale_seconds)
    if behind is not None and behind > bound and not nobody:
        what = f"Pipeline stale: what is stored lies {formats.gap(behind)} behind."
        yield StateLine(tone="warn", icon="◐", text=what, page="pipeline")


def _incomplete(found: Completeness) -> Iterable[StateLine]:
    if found.state is CompletenessState.INCOMPLETE:
        why = found.reasons[0] if found.reasons else "events lack"
        what = f"Incomplete: {why}"
        yield StateLine(tone="bad", icon="▲", text=what, page="pipeline")


def _ledger_failing(working: tuple[ProducerStatus, ...]) -> Iterable[StateLine]:
    failing = [one for one in working if one.ledger_probe is Probe.FAILING]
    if failing:
        servers = formats.counted(len(working), "server")
        what = f"Ledger failing on {len(failing)} of {servers}: single-use tools are locked there."
        yield StateLine(tone="bad", icon="■", text=what, page="ledger")


def _under_test(recent: Recent, settings: DashboardSettings) -> Iterable[StateLine]:
    reuses, minutes = recent.reuses, settings.recent_minutes
    if reuses.total:
        again = sum(
            one.presentation.event.event_type is EventType.ACCEPTED for one in reuses.reuses
        )
        seen = "" if len(reuses.reuses) == reuses.total else " of those looked at"
        fate = f"{formats.count(again)} accepted again" if again else "none accepted"
        tokens = formats.counted(reuses.tokens, "token")
        what = (
            f"Boundary under test: {formats.counted(reuses.total, 'reuse')} of {tokens} "
            f"in the last {minutes} min; {fate}{seen}."
        )
        yield StateLine(tone="hot", icon="▲", text=what, page="replays", recent=True)
    wrong = sum(recent.refusals.get(reason, 0) for reason in words.FORGED_OR_MISDIRECTED)
    if wrong >= settings.boundary_refusals:
        what = (
            f"Boundary under test: {formats.counted(wrong, 'forged or misdirected token')} "
            f"refused in the last {minutes} min."
        )
        yield StateLine(tone="hot", icon="▲", text=what, page="refusals", recent=True)


def _quiet(recent: Recent, settings: DashboardSettings) -> StateLine:
    if recent.completeness.state is CompletenessState.NOTHING_RECORDED:
        return StateLine(tone="unknown", icon="○", text="Nothing recorded yet.")
    what = f"Quiet: no token was used again in the last {settings.recent_minutes} min."
    return StateLine(tone="good", icon="✔\ufe0e", text=what)
