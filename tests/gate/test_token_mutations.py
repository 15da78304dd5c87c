"""No token that was changed in any way is accepted, fails oddly, or costs a question."""

from __future__ import annotations

import pytest
from benchmarks.token_mutations import MUTATIONS, Trial, run

TRIED = 20_000


def test_no_mutant_passes() -> None:
    """G2, G5, G-04: of many mutants none is accepted, none breaks, none reaches the ledger."""
    nothing = {"accepted": 0, "unexpected_errors": 0, "ledger_calls": 0}
    assert run(TRIED, seed=20_260_101) == {"tried": TRIED} | nothing


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.__name__)
def test_each_kind_of_mutation_makes_many_different_tokens(mutation: object) -> None:
    """The trial is no formality: every kind of change gives many texts, none of them genuine."""
    trial = Trial(seed=1)
    trial.chance.choice = _first(mutation, trial.chance.choice)  # type: ignore[method-assign,assignment]
    mutants = trial.mutants()
    seen = {repr(next(mutants)[1]) for _ in range(200)}
    assert len(seen) > 60


def test_a_genuine_token_passes_the_same_trial() -> None:
    """The trial would notice: a genuine token, presented the same way, is accepted and asked."""
    trial = Trial(seed=2)
    for plan, token in trial.issued:
        trial.present(plan, token)
    ledgered = sum(trial.gate.tools[plan.tool].ledgered for plan, _ in trial.issued)
    assert (trial.accepted, trial.ledger.calls) == (12, ledgered)


def _first(mutation: object, choice: object) -> object:
    def choose(options: object) -> object:
        return mutation if options is MUTATIONS else choice(options)  # type: ignore[operator]

    return choose
