"""Each refusal is its own class with its own next move, and leaves exactly one event."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
from tests.server.helpers import DELETE, Local, called, confirmation, events_text, token_free

from approvaltrail.gate import LedgerUnavailableError, MemoryLedger
from approvaltrail.gate.testing import ManualClock
from approvaltrail.schemas.messages import Probe
from approvaltrail.server.testing import RunningServer

Show = Callable[[Local], Awaitable[dict]]


async def no_token(local: Local) -> dict:
    """Claim to confirm without ever having seen a preflight."""
    return await local.call(DELETE, clusterId="prod-1", confirm=True, confirmTarget="prod-1")


async def text_for_a_token(local: Local) -> dict:
    """Give some text."""
    both = await local.approve()
    return await local.call(DELETE, **both | {"confirmToken": "yes"})


async def number_for_a_token(local: Local) -> dict:
    """Give what is no text at all."""
    both = await local.approve()
    return await local.call(DELETE, **both | {"confirmToken": 7})


async def forged(local: Local) -> dict:
    """Change the signature."""
    both = await local.approve()
    token = both["confirmToken"]
    other = "A" if token[-5] != "A" else "B"
    return await local.call(DELETE, **both | {"confirmToken": token[:-5] + other + token[-4:]})


async def late(local: Local) -> dict:
    """Wait until the token has expired."""
    both = await local.approve()
    local.clock.advance(minutes=10)
    return await local.call(DELETE, **both)


async def for_another_tool(local: Local) -> dict:
    """Use the token of another tool."""
    both = await local.approve("tidb_create_backup", clusterId="prod-1", displayName="nightly-1")
    both.pop("displayName")
    return await local.call(DELETE, **both)


async def renamed(local: Local) -> dict:
    """Have the cluster renamed in between."""
    both = await local.approve(DELETE, clusterId=next(iter(local.world.clusters)))
    local.rename("prod-9")
    return await local.call(DELETE, **both)


async def gone(local: Local) -> dict:
    """Have the cluster deleted in between."""
    both = await local.approve()
    local.world.clusters.clear()
    return await local.call(DELETE, **both)


async def target_not_repeated(local: Local) -> dict:
    """Repeat another target than the one that was shown."""
    both = await local.approve()
    return await local.call(DELETE, **both | {"confirmTarget": "prod-2"})


async def platform_silent(local: Local) -> dict:
    """Confirm while the platform gives no answer."""
    both = await local.approve()
    local.world.silent = True
    return await local.call(DELETE, **both)


async def arguments_wrong(local: Local) -> dict:
    """Confirm with a sound token and arguments that are none."""
    both = await local.approve()
    both.pop("clusterId")
    return await local.call(DELETE, **both)


async def journal_full(local: Local) -> dict:
    """Confirm while nothing can be recorded."""
    both = await local.approve()
    with local.recorder.unavailable():
        return await local.call(DELETE, **both)


CASES: dict[str, tuple[Show, str, str, bool]] = {
    "no token": (no_token, "missing_token", "run_preflight", False),
    "text": (text_for_a_token, "malformed_token", "run_preflight", False),
    "number": (number_for_a_token, "malformed_token", "run_preflight", False),
    "forged": (forged, "bad_signature", "run_preflight", False),
    "late": (late, "expired", "check_then_preflight", False),
    "another tool": (for_another_tool, "wrong_tool", "stop", False),
    "renamed": (renamed, "wrong_target", "stop", False),
    "gone": (gone, "plan_changed", "read_new_preflight", False),
    "target not repeated": (target_not_repeated, "target_unconfirmed", "correct_arguments", True),
    "platform silent": (platform_silent, "target_silent", "retry_shortly", True),
    "arguments wrong": (arguments_wrong, "invalid_arguments", "correct_arguments", False),
    "journal full": (journal_full, "not_recorded", "retry_shortly", True),
}


@pytest.mark.parametrize("name", sorted(CASES))
async def test_a_refusal_says_what_to_do_next(local: Local, name: str) -> None:
    """G9, S-02: a stable code, the next move, nothing executed, and one event of the refusal."""
    show, code, move, retry_safe = CASES[name]
    answer = await show(local)
    found = (answer["code"], answer["next_move"], answer["nothing_executed"], answer["retry_safe"])
    assert found == (code, move, True, retry_safe)
    assert code in answer["shown"]
    assert local.world.performed == []
    refused = [event for event in local.recorder.events if event.event_type == "refused"]
    assert len(refused) == 1
    assert answer["event_id"] in {None, refused[0].event_id} or code == "not_recorded"


async def test_a_wrong_tenant_is_no_case_for_a_retry(server: RunningServer) -> None:
    """G10: one tenant's token authorises nothing for another, over the same server."""
    async with server.client_for(server.token("acme")) as acme:
        both = confirmation(await called(acme, DELETE, clusterId="prod-1"))
        async with server.client_for(server.token("globex")) as globex:
            answer = await called(globex, DELETE, clusterId="prod-1", **both)
            assert (answer["code"], answer["next_move"]) == ("wrong_tenant", "stop")
        done = await called(acme, DELETE, clusterId="prod-1", **both)
        assert done["executed"]
    refused = server.recorder.events[1]
    assert (refused.tenant, refused.token_tenant) == ("globex", "acme")
    assert refused.principal == "ana@globex.example"


class BrokenLedger(MemoryLedger):
    """A ledger that issues and then cannot be asked."""

    def claim(self, claim: object) -> object:  # type: ignore[override]
        """Fail."""
        raise LedgerUnavailableError("a test made it so")

    def probe(self) -> Probe:
        """Say so."""
        return Probe.FAILING


async def test_a_ledger_outage_locks_the_seven_and_no_other() -> None:
    """G7, G9: ledgered tools refuse with a retry, the others go on with their token."""
    async with Local.open(ledger=BrokenLedger(clock=ManualClock())) as local:
        both = await local.approve()
        answer = await local.call(DELETE, **both)
        assert (answer["code"], answer["retry_safe"]) == ("ledger_unavailable", True)
        rename = {"clusterId": "prod-1", "displayName": "prod-2"}
        both = await local.approve("tidb_update_cluster", **rename)
        assert (await local.call("tidb_update_cluster", **both))["executed"]
        assert local.recorder.events.types == [
            "issued", "refused", "issued", "accepted", "completed",
        ]  # fmt: skip


async def test_a_full_ledger_asks_for_patience() -> None:
    """G-13: at its bound the ledger refuses new claims, and the call may be repeated later."""
    clock = ManualClock()
    async with Local.open(ledger=MemoryLedger(clock=clock, capacity=1)) as local:
        codes = []
        for name in ("nightly-1", "nightly-2"):
            both = await local.approve("tidb_create_backup", clusterId="prod-1", displayName=name)
            codes.append((await local.call("tidb_create_backup", **both)).get("code"))
    assert codes == [None, "ledger_full"]


@pytest.mark.parametrize("confirm", ["maybe", 1, {"x": 1}, "true"])
async def test_a_strange_confirm_does_not_slip_past_the_record(
    local: Local, confirm: object
) -> None:
    """S-02: whatever does not plainly say no is an attempt, and is recorded as one."""
    answer = await local.call(DELETE, clusterId="prod-1", confirm=confirm)
    assert answer["code"] == "missing_token"
    assert local.recorder.events.reasons == ["missing_token"]


@pytest.mark.parametrize("confirm", ["no", "FALSE", "0", -1, [], {}, "\x00", 2, "maybe"])
async def test_a_strange_confirm_executes_nothing_whatever_its_token(
    local: Local, confirm: object
) -> None:
    """S-02: with a good token too it is a recorded refusal, and the token stays good."""
    both = await local.approve(DELETE, clusterId="prod-1")
    answer = await local.call(DELETE, **{**both, "confirm": confirm})
    assert (answer["code"], answer["nothing_executed"]) == ("invalid_arguments", True)
    assert local.recorder.events.types == ["issued", "refused"]
    assert (await local.call(DELETE, **both))["executed"]


async def test_a_failed_look_up_issues_nothing(local: Local) -> None:
    """G4: a preflight that cannot find out is an error, never a placeholder."""
    local.world.silent = True
    answer = await local.call(DELETE, clusterId="prod-1")
    assert (answer["code"], answer["retry_safe"]) == ("target_silent", True)
    assert "confirmToken" not in answer
    assert local.recorder.events.types == []


async def test_what_does_not_exist_is_a_fact(local: Local) -> None:
    """G4: an absent target is answered as such, the same every time, and nothing is issued."""
    answers = [await local.call(DELETE, clusterId="no-such") for _ in range(2)]
    assert answers[0] == answers[1]
    assert (answers[0]["code"], answers[0]["retry_safe"]) == ("not_found", False)
    assert local.recorder.events.types == []


async def test_a_plan_beyond_its_bound_is_refused_before_a_token_is_issued(local: Local) -> None:
    """S-07: the statement's bound is named, and nothing is issued."""
    answer = await local.call(
        "tidb_execute", clusterId="prod-1", database="shop", sql="SELECT 1" + " " * 40_000
    )
    assert answer["code"] == "invalid_arguments"
    assert "sql: string_too_long" in answer["text"]
    assert local.recorder.events.types == []


async def test_no_answer_repeats_what_was_sent(local: Local) -> None:
    """S-11: arguments of a wrong kind, or by a wrong name, come back by name alone."""
    token = (await local.approve())["confirmToken"]
    answer = await local.call(DELETE, clusterId=["canary-value"], **{token: "canary-value"})
    assert answer["code"] == "invalid_arguments"
    assert "canary-value" not in answer["shown"]
    assert token_free(answer["shown"] + events_text(local.recorder), token)


async def test_an_unknown_tool_is_named_as_such(local: Local) -> None:
    """A call of what is not there executes nothing and records nothing."""
    answer = await local.call("tidb_drop_everything", confirm=True)
    assert (answer["code"], answer["next_move"]) == ("unknown_tool", "stop")
