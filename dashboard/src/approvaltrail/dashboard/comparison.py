"""What differs between issuance, acceptance and each reuse, and how far each value is trusted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from approvaltrail.dashboard import formats, pieces, words
from approvaltrail.dashboard.markup import Child, Markup, element, long_value
from approvaltrail.dashboard.pieces import Column
from approvaltrail.schemas.events import RecordedEvent
from approvaltrail.store.answers import Reuse, Trail

_FEW: Final = 4
_COLUMNS_SHOWN: Final = 5
"""Of reuses, side by side; the timeline has them all."""

_OF_ONE_CALL: Final = frozenset({"request id", "trace id"})
"""Differ between any two calls, so they keep no two apart."""

_NAMES: Final = frozenset({"principal", "target", "client name", "server"})
"""Read rather than compared, so more of them is shown."""

AUTHENTICATED: Final = "authenticated by the server"
JUDGED: Final = "as the server judged the call"
SIGNED: Final = "signed into the token"
DECLARED: Final = "self-declared, not trusted"
SEEN: Final = "seen by the server"


@dataclass(frozen=True, slots=True)
class Field:
    """One row: what is compared, where it comes from, and why it may be believed."""

    name: str
    value: Callable[[RecordedEvent], str | None]
    trust: str


FIELDS: Final = (
    Field("principal", lambda event: event.principal, AUTHENTICATED),
    Field("principal kind", lambda event: event.principal_kind.value, AUTHENTICATED),
    Field("credential", lambda event: event.credential_id, AUTHENTICATED),
    Field("session", lambda event: event.session_id, AUTHENTICATED),
    Field("tenant", lambda event: event.tenant, JUDGED),
    Field("tool", lambda event: event.tool, JUDGED),
    Field("target", lambda event: event.target, JUDGED),
    Field("action", lambda event: event.action, JUDGED),
    Field("plan hash", lambda event: event.plan_hash, JUDGED),
    Field("token's tenant", lambda event: event.token_tenant or event.tenant, SIGNED),
    Field("token's tool", lambda event: event.token_tool or event.tool, SIGNED),
    Field("token's target", lambda event: event.token_target or event.target, SIGNED),
    Field("client address", lambda event: event.client_address, "its source stands beside it"),
    Field("peer address", lambda event: event.peer_address, SEEN),
    Field("client name", lambda event: event.client_name, DECLARED),
    Field("server", lambda event: f"{event.service} · {event.instance}", SEEN),
    Field("request id", lambda event: event.request_id, DECLARED),
    Field("trace id", lambda event: event.trace_id, DECLARED),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One column: a call, or reuses one after another that differ in nothing."""

    name: str
    event: RecordedEvent
    reuses: tuple[int, ...] = ()
    """Their numbers."""


def build(trail: Trail, *, show_all: bool) -> Markup | None:
    """Build the table, or None where there is nothing to compare."""
    calls = _calls(trail)
    if len(calls) < 2:  # noqa: PLR2004 - one call differs from nothing
        return None
    columns = (
        Column("Field", "at-strong"),
        *(Column(call.name) for call in calls),
        Column("Trust", "at-wide"),
    )
    rows = []
    for field in FIELDS:
        values = [field.value(call.event) for call in calls]
        differs = len(set(values)) > 1
        if differs or show_all:
            cells = [_cell(field, call.event, values) for call in calls]
            trust = element("span", field.trust, class_="at-small")
            rows.append((None, (field.name, *cells, trust)))
    if not rows:
        return pieces.note("No field differs between the calls.")
    table = pieces.table("What differs", columns, rows, broad=len(calls) > _FEW)
    left_out = trail.reuses_total - sum(len(call.reuses) for call in calls)
    more = pieces.note(f"{formats.counted(left_out, 'further reuse')} in the timeline alone.")
    return table + more if left_out > 0 else table


def _calls(trail: Trail) -> Sequence[Call]:
    calls = []
    if trail.issuance is not None:
        calls.append(Call(name="Issued", event=trail.issuance.event))
    if trail.acceptance is not None:
        calls.append(Call(name="Accepted", event=trail.acceptance.event))
    together: list[list[Reuse]] = []
    for reuse in trail.reuses:
        if together and _same(together[-1][-1], reuse):
            together[-1].append(reuse)
        else:
            together.append([reuse])
    return calls + [_call(group) for group in together[:_COLUMNS_SHOWN]]


def _call(group: Sequence[Reuse]) -> Call:
    numbers = tuple(one.number for one in group)
    name = f"Reuse {numbers[0]}" + (f"–{numbers[-1]}" if len(numbers) > 1 else "")
    return Call(name=name, event=group[0].presentation.event, reuses=numbers)


def _same(one: Reuse, other: Reuse) -> bool:
    """Whether the other follows the one and is alike in all that is compared."""
    events = (one.presentation.event, other.presentation.event)
    compared = (field.value for field in FIELDS if field.name not in _OF_ONE_CALL)
    alike = all(value(events[0]) == value(events[1]) for value in compared)
    return alike and other.number == one.number + 1


def _cell(field: Field, event: RecordedEvent, values: list[str | None]) -> Child:
    value = field.value(event)
    usual = next((one for one in values if one is not None), None)
    odd = "at-odd" if value is not None and value != usual else ""
    keep = (10, 8) if field.name in _NAMES else (6, 4)
    shown = long_value(value, keep=keep, class_=odd)
    if field.name == "client address" and value is not None:
        trust = element("div", words.address_trust(event.address_source), class_="at-small")
        return shown + trust
    return shown
