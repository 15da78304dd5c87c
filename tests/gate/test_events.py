"""What the gate records, and what it never records."""

from __future__ import annotations

import pytest
from tests.gate.common import DELETE, EXECUTE, OTHER_SECRET, plan, shared_gate, token_free

from approvaltrail.gate import (
    Caller,
    SqliteLedger,
)
from approvaltrail.gate.testing import EventLog, GateUnderTest, plan_of
from approvaltrail.schemas import AddressSource, NonceTrust, Reason


async def test_every_replay_leaves_an_event_tied_to_issuance_and_acceptance(
    gate: GateUnderTest,
) -> None:
    """S-01: three replays leave three events, each with the nonce and the accepting event's id."""
    token = await gate.preflight(DELETE, cluster="prod-7")
    accepted = await gate.confirm(token)
    spent_at = gate.clock.now()
    for _ in range(3):
        gate.clock.advance(seconds=1)
        await gate.confirm(token)
    issued, acceptance, completion, *replays = gate.events
    assert len(replays) == 3
    assert {replay.nonce for replay in replays} == {issued.nonce}
    assert {replay.spent_claim_id for replay in replays} == {acceptance.event_id}
    assert {replay.spent_at for replay in replays} == {spent_at}
    assert accepted.event_id == completion.acceptance_id == acceptance.event_id
    assert len({event.event_id for event in gate.events}) == 6
    assert token_free(list(gate.events), token)


async def test_an_issuance_says_what_was_shown(gate: GateUnderTest) -> None:
    """G11: the issuance carries the call, the plan's hash and summary, and the token's claims."""
    issued = await gate.gate.preflight(DELETE, plan_of(DELETE, cluster="prod-7"))
    event = gate.events[0]
    assert (event.tool, event.target, event.action) == (DELETE, "prod-7", "delete cluster")
    assert (event.nonce, event.nonce_trust) == (issued.nonce, NonceTrust.VERIFIED)
    assert (event.plan_hash, event.plan_summary) == (issued.plan_hash, "delete cluster prod-7")
    assert (event.issued_at, event.expires_at) == (issued.issued_at, issued.expires_at)
    assert (event.key_id, event.ledgered) == (gate.gate.keys.signing.key_id, True)
    assert issued.structured()["confirm_token"] == issued.token
    assert issued.token in issued.text
    assert issued.token not in repr(issued)


async def test_the_summary_of_a_statement_is_not_recorded(gate: GateUnderTest) -> None:
    """P2: `tidb_execute` keeps its summary, which quotes the statement, out of its events."""
    await gate.preflight(EXECUTE, target="prod-7", sql="DROP TABLE t")
    assert gate.events[0].plan_summary is None


async def test_differences_are_recorded_only_where_the_signature_held(gate: GateUnderTest) -> None:
    """X1: what the token says otherwise than the call is in the event, and nothing else is."""
    token = await gate.preflight(DELETE, cluster="prod-7")
    other = plan_of("tidb_delete_branch", branch="b", target="prod-8")
    await gate.confirm(token, plan=other, tenant="other")
    await gate.confirm(token, plan=plan_of(DELETE, cluster="prod-8"))
    await gate.confirm(token, plan=plan_of(DELETE, cluster="prod-7", more=1))
    tenant, target, changed = list(gate.events)[1:]
    assert (tenant.tenant, tenant.token_tenant) == ("other", None)
    assert (tenant.token_tool, tenant.token_target, tenant.token_plan_hash) == (
        DELETE,
        "prod-7",
        None,
    )
    assert (target.token_target, target.target) == ("prod-7", "prod-8")
    assert (changed.token_target, changed.token_tool) == (None, None)
    assert changed.token_plan_hash == gate.events[0].plan_hash != changed.plan_hash


@pytest.mark.parametrize(
    ("token", "code"),
    [
        (None, Reason.MISSING_TOKEN),
        ("", Reason.MISSING_TOKEN),
        ("random text", Reason.MALFORMED_TOKEN),
        ("wrong mac", Reason.BAD_SIGNATURE),
        ("other key", Reason.UNKNOWN_KEY),
        ("expired", Reason.EXPIRED),
    ],
)
async def test_every_invalid_token_leaves_its_own_refusal(token: str | None, code: Reason) -> None:
    """S-02: each kind of invalid token leaves one event with its cause, and none of its bytes."""
    gate = GateUnderTest()
    issued = await gate.preflight(DELETE, cluster="prod-7")
    if token == "wrong mac":
        token = issued.rpartition(".")[0] + "." + "A" * 43
    elif token == "other key":
        other = shared_gate(
            EventLog(),
            SqliteLedger("/nonexistent", clock=gate.clock),
            gate.clock,
            confirm_secret=OTHER_SECRET,
        )
        foreign = await other.preflight(EXECUTE, plan(EXECUTE))
        token = foreign.token
    elif token == "expired":
        token = issued
        gate.clock.advance(minutes=10)
    answer = await gate.gate.confirm(DELETE, plan(), token, gate.executed.append)
    event = gate.events[-1]
    assert (answer.code, event.reason, gate.executed) == (code, code, [])
    assert gate.events.types == ["issued", "refused"]
    trusted = {Reason.EXPIRED: NonceTrust.VERIFIED}
    claimed = {Reason.BAD_SIGNATURE, Reason.UNKNOWN_KEY}
    assert event.nonce_trust is trusted.get(
        code, NonceTrust.CLAIMED if code in claimed else NonceTrust.NONE
    )
    assert answer.event_id == event.event_id
    assert token_free(list(gate.events), issued, token or "")


async def test_a_token_smuggled_into_any_field_is_removed(gate: GateUnderTest) -> None:
    """S-09, S-10: a token in a caller's field is removed; the harmless fields stay."""
    token = await gate.preflight(DELETE, cluster="prod-7")
    for part in (token, token.split(".")[1], token.split(".")[2]):
        await gate.confirm(
            token,
            plan=plan(target=part, summary="delete it"),
            client_name=f"agent {part}",
            session_id="session-1",
            request_id="request-1",
            principal=f"{part}@example.org",
        )
        event = gate.events[-1]
        assert (event.session_id, event.request_id) == ("session-1", "request-1")
        assert event.client_name == "agent [token removed]"
    assert token_free(list(gate.events), token)
    assert gate.events.scrubbed_values == 3 * len(("target", "client_name", "principal"))


async def test_a_token_is_removed_beside_one_of_the_same_payload(gate: GateUnderTest) -> None:
    """S-09: where the token in hand shares a payload with one in a field, no part of it stays."""
    token = await gate.preflight(DELETE, cluster="prod-7")
    for presented in (f"{token}x", token[:-1], token.replace(".", "..")):
        await gate.gate.confirm(
            DELETE,
            plan(target="prod-7"),
            presented,
            gate.executed.append,
            caller=Caller(client_name=f"agent {token}"),
        )
        assert gate.events[-1].client_name == "agent [token removed]"
    assert token_free(list(gate.events), token)


async def test_hostile_calls_are_recorded_whatever_they_hold(gate: GateUnderTest) -> None:
    """G11: nothing that a caller sends makes its own refusal unrecordable."""
    for token in ("\ud800", "a" * 2_000_000, "at1." * 100_000, "\0", 5, {"a": 1}, b"x"):
        answer = await gate.gate.confirm(
            DELETE,
            plan(target="\ud800" * 512),
            token,  # type: ignore[arg-type]
            gate.executed.append,
            confirm_target="\ud800",
            caller=Caller(
                principal="x" * 100_000, client_address="no address", session_id="\udfff"
            ),
        )
        assert answer.code is Reason.MALFORMED_TOKEN
    assert len(gate.events) == 7


async def test_the_caller_stands_in_every_event(gate: GateUnderTest) -> None:
    """G11: who called, from where and by which client is recorded as the server knows it."""
    token = await gate.preflight(DELETE, cluster="prod-7")
    await gate.confirm(token, address="203.0.113.9", session_id="s-1", client_name="agent")
    event = gate.events[1]
    assert event.principal == "test@example.org"
    assert (event.client_address, event.address_source) == ("203.0.113.9", AddressSource.PEER)
    assert (event.session_id, event.client_name) == ("s-1", "agent")
