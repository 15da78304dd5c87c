"""The contract of every ledger, on each of them."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta

import pytest
from tests.gate.places import AnyLedger, LedgerPlace

from approvaltrail.gate.ledger import (
    AlreadySpent,
    Claim,
    Claimed,
    ClaimsListing,
    Forgotten,
    Ledger,
    PredatesLedger,
    Retention,
    SpentNonce,
)
from approvaltrail.gate.testing import ManualClock
from approvaltrail.schemas.messages import Probe

LIFETIME = timedelta(minutes=10)


@pytest.fixture
def ledger(place: LedgerPlace, clock: ManualClock) -> Iterator[AnyLedger]:
    """Give one ledger of each kind, opened now."""
    made = place.open(clock)
    made.prepare()
    yield made
    made.close()


def claim(nonce: str, at: datetime, claim_id: str = "claim-1") -> Claim:
    """Make a claim of a token that was issued at that instant."""
    return Claim(
        nonce=nonce, claim_id=claim_id, issued_at=at, expires_at=at + LIFETIME, tool="tool"
    )


def test_the_first_claim_wins_and_the_second_learns_of_it(
    ledger: Ledger, clock: ManualClock
) -> None:
    """G7: the second claim is told when, and by which claim, the nonce was spent."""
    start = clock.now()
    clock.advance(seconds=3)
    assert ledger.claim(claim("n1", start)) == Claimed(spent_at=clock.now())
    spent_at = clock.now()
    clock.advance(seconds=40)
    assert ledger.claim(claim("n1", start, "claim-2")) == AlreadySpent(
        spent_at=spent_at, claim_id="claim-1"
    )
    assert isinstance(ledger.claim(claim("n2", start, "claim-3")), Claimed)


def test_ones_own_row_is_no_replay(ledger: Ledger, clock: ManualClock) -> None:
    """A claim repeated under its own id, as after a lost acknowledgement, still holds."""
    first = ledger.claim(claim("n1", clock.now()))
    assert ledger.claim(claim("n1", clock.now())) == first


def test_nonces_differ_by_every_bit(ledger: Ledger, clock: ManualClock) -> None:
    """Nonces are compared as they are: case and trailing spaces tell them apart."""
    for nonce in ("aa", "AA", "aa ", "aá"):
        assert isinstance(ledger.claim(claim(nonce, clock.now())), Claimed)


def test_looking_spends_nothing(ledger: Ledger, clock: ManualClock) -> None:
    """S2: a check tells what a claim would meet, and leaves it so."""
    start = clock.now()
    assert ledger.is_spent("n1", start) is None
    assert isinstance(ledger.claim(claim("n1", start)), Claimed)
    assert ledger.is_spent("n1", start) == AlreadySpent(spent_at=start, claim_id="claim-1")


def test_a_token_older_than_the_ledger_is_refused(ledger: Ledger, clock: ManualClock) -> None:
    """X5: a ledger cannot know what was spent before it was made, and says so."""
    old = clock.now() - timedelta(microseconds=1)
    assert ledger.claim(claim("n1", old)) == PredatesLedger(created_at=ledger.created_at)
    assert ledger.is_spent("n1", old) == PredatesLedger(created_at=ledger.created_at)
    assert isinstance(ledger.claim(claim("n1", clock.now())), Claimed)


@pytest.mark.parametrize(
    ("after_expiry", "kept"),
    [(-1, True), (0, True), (64, True), (65, False), (66, False)],
)
def test_a_nonce_goes_only_when_no_instance_could_accept_it(
    ledger: Ledger, clock: ManualClock, after_expiry: int, *, kept: bool
) -> None:
    """G-14: a spent nonce stays until expiry, allowed skew and grace have passed."""
    start = clock.now()
    ledger.claim(claim("n1", start))
    clock.advance(seconds=LIFETIME.total_seconds() + after_expiry)
    ledger.claim(claim("n2", start, "pruner"))
    assert (ledger.is_spent("n1", start) is not None) is kept


def test_pruning_outlives_two_clocks_apart(clock: ManualClock) -> None:
    """G-14: with the pruner's clock ahead and the acceptor's behind, a kept nonce still answers."""
    with pytest.raises(ValueError, match="grace"):
        Retention(skew=timedelta(seconds=61), grace=timedelta(seconds=60))
    for skew, grace in ((5, 60), (60, 60), (0, 0)):
        retention = Retention(skew=timedelta(seconds=skew), grace=timedelta(seconds=grace))
        pruned_from = clock.now() + retention.skew  # the pruner's clock, ahead
        behind = clock.now() - retention.skew  # the acceptor's
        assert retention.droppable(pruned_from) <= behind


def test_a_clock_that_goes_back_reopens_nothing(ledger: Ledger, clock: ManualClock) -> None:
    """G-14: a pruned nonce stays refused when the clock returns to before its token's expiry."""
    start = clock.now()
    ledger.claim(claim("n1", start))
    clock.advance(minutes=30)
    at = clock.now()
    ledger.claim(claim("n2", at, "pruner"))
    clock.advance(minutes=-29)
    assert isinstance(ledger.claim(claim("n1", start, "again")), Forgotten)
    assert isinstance(ledger.claim(claim("n3", at, "later")), Claimed)


def test_claims_can_be_listed(ledger: AnyLedger, clock: ManualClock) -> None:
    """X4: every claim kept is listed with its id, time, tool and expiry, within a range of time."""
    listing: ClaimsListing = ledger
    start, wanted = clock.now(), set()
    for number in range(5):
        made = claim(f"n{number}", start, f"c{number}")
        ledger.claim(made)
        wanted.add(
            SpentNonce(
                nonce=made.nonce,
                claim_id=made.claim_id,
                spent_at=clock.now(),
                expires_at=made.expires_at,
                tool="tool",
            )
        )
        clock.advance(seconds=1)
    assert set(listing.claims(start, clock.now())) == wanted
    later = start + timedelta(seconds=2)
    assert {c.nonce for c in listing.claims(later, later + timedelta(seconds=2))} == {"n2", "n3"}
    assert listing.pruned_until < start


def test_an_open_ledger_answers_its_probe(ledger: Ledger) -> None:
    """The probe says that the ledger answers."""
    assert ledger.probe() is Probe.OK


def test_of_many_threads_one_claims(ledger: Ledger, clock: ManualClock) -> None:
    """G-15: 32 threads claim one nonce; one wins, all others learn its claim id."""
    at = clock.now()
    with ThreadPoolExecutor(32) as pool:
        answers = list(pool.map(lambda i: ledger.claim(claim("n", at, f"c{i}")), range(32)))
    [winner] = [i for i, answer in enumerate(answers) if isinstance(answer, Claimed)]
    losers = [answer for answer in answers if isinstance(answer, AlreadySpent)]
    assert len(losers) == 31
    assert {loser.claim_id for loser in losers} == {f"c{winner}"}
