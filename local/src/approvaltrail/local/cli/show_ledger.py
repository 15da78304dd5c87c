"""The ledger as the store knows it: what became of each nonce, claims, servers, outages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from approvaltrail.dashboard.words import REASONS
from approvaltrail.local.cli.output import say, table
from approvaltrail.local.cli.text import cell
from approvaltrail.local.cli.times import gap, iso
from approvaltrail.store.answers import (
    Completeness,
    Fate,
    LedgerBalance,
    LedgerClaims,
    LedgerOutage,
    ProducerCondition,
)

FATES: Final = {
    Fate.ACCEPTED: "accepted",
    Fate.SPENT_UNRECORDED: "spent, acceptance not stored",
    Fate.EXPIRED: "expired unspent",
    Fate.OUTSTANDING: "outstanding",
    Fate.EXPIRY_UNKNOWN: "unspent, expiry not known",
    Fate.ACCEPTED_UNISSUED: "accepted, issuance not stored",
}
_ALARMING: Final = (Fate.SPENT_UNRECORDED, Fate.EXPIRY_UNKNOWN)
_OUTAGES_SHOWN: Final = 50


def show(
    balance: LedgerBalance,
    claims: LedgerClaims,
    outages: Sequence[LedgerOutage],
    completeness: Completeness,
) -> None:
    """Print the balance, which has to close, then claims, probes and outages."""
    _balance(balance)
    last = "no claim is stored"
    if claims.last_claim_at is not None:
        last = f"the last at {iso(claims.last_claim_at)}"
    say(f"{claims.claims} nonces spent in the ledger in this range; {last}")
    if claims.unledgered_acceptances:
        say(f"{claims.unledgered_acceptances} acceptances by tools that spend no nonce")
    if balance.accepted_unissued:
        say(f"▲ {balance.accepted_unissued} nonces {FATES[Fate.ACCEPTED_UNISSUED]}")
    _probes(completeness)
    _outages(outages)
    say("next: approvaltrail ledger reconcile compares the ledger's own claims with the record")


def _balance(balance: LedgerBalance) -> None:
    if not balance.issued:
        say("No nonce was issued in this range.")
        return
    fates = {fate: n for fate, n in balance.fates.items() if n or fate not in _ALARMING}
    said = " + ".join(f"{n} {FATES[fate]}" for fate, n in fates.items())
    say(f"{balance.issued} distinct nonces issued = {said}")
    left = [f"{balance.fates[one]} {FATES[one]}" for one in _ALARMING if balance.fates[one]]
    if left:
        say(f"▲ it closes only with a remainder: {', '.join(left)}")
    else:
        say("✔ it closes: every nonce issued has one fate, and none is left over")


def _probes(completeness: Completeness) -> None:
    alive = {ProducerCondition.LIVE, ProducerCondition.SILENT}
    servers = [one for one in completeness.producers if one.condition in alive]
    if servers:
        table(
            ("server", "ledger", "looked at (UTC)", "gate"),
            (
                (
                    cell(f"{one.service} · {one.instance}"),
                    cell(one.ledger_probe.value),
                    cell(iso(one.ledger_probe_at) if one.ledger_probe_at else "–"),
                    cell(
                        one.gate_state.value + (f": {one.gate_reason}" if one.gate_reason else "")
                    ),
                )
                for one in servers
            ),
        )


def _outages(outages: Sequence[LedgerOutage]) -> None:
    if not outages:
        say("no outage: no server refused because its ledger could not be asked")
        return
    table(
        ("outage of", "cause", "first refusal (UTC)", "last refusal (UTC)", "lasted", "refusals"),
        (
            (
                cell(f"{one.service} · {one.instance}"),
                cell(REASONS[one.reason]),
                cell(iso(one.first)),
                cell(iso(one.last)),
                cell(gap(one.last - one.first)),
                cell(one.refusals),
            )
            for one in outages[:_OUTAGES_SHOWN]
        ),
    )
    if len(outages) > _OUTAGES_SHOWN:
        say(f"the latest {_OUTAGES_SHOWN} of {len(outages)} outages")
