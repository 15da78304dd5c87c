"""What the server answered its clients: the measure that the store is held to."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from approvaltrail.local.demo.calling import Answer, Calls, Executed, Shown, TurnedDown
from approvaltrail.local.demo.people import Person, Wish
from approvaltrail.schemas.events import EventType, Reason


@dataclass(slots=True)
class Tally:
    """Counts of answers, by the event that each must have left behind."""

    events: Counter[EventType] = field(default_factory=Counter)
    tokens: dict[str, str] = field(default_factory=dict)
    """Every token issued, and its nonce."""
    reuses: Counter[str] = field(default_factory=Counter)
    """By nonce: presentations after the first acceptance."""
    accepted_nonces: set[str] = field(default_factory=set)
    unrecorded: int = 0
    """Refusals that could not be recorded; each is a failure of the run."""

    @property
    def total(self) -> int:
        """How many events the answers amount to."""
        return self.events.total()

    def shown(self, answer: Shown) -> None:
        """Count an issuance."""
        self.events[EventType.ISSUED] += 1
        self.tokens[answer.token] = answer.nonce

    def executed(self, token: str) -> None:
        """Count an acceptance and the completion that follows it."""
        self.events[EventType.ACCEPTED] += 1
        self.events[EventType.COMPLETED] += 1
        nonce = self.tokens[token]
        if nonce in self.accepted_nonces:
            self.reuses[nonce] += 1
        self.accepted_nonces.add(nonce)

    def turned_down(self, answer: TurnedDown, token: str | None, *, accepted_before: bool) -> None:
        """Count a refusal or a replay."""
        if not answer.recorded:
            self.unrecorded += 1
            return
        replayed = answer.code == Reason.ALREADY_USED
        self.events[EventType.REPLAYED if replayed else EventType.REFUSED] += 1
        nonce = self.nonce_of(token)
        if nonce is not None and (replayed or accepted_before):
            self.reuses[nonce] += 1

    def nonce_of(self, token: str | None) -> str | None:
        """Return the nonce of a token that was issued here."""
        return None if token is None else self.tokens.get(token)


class TalliedCalls:
    """Calls, each answer counted."""

    def __init__(self, calls: Calls, tally: Tally) -> None:
        self._calls = calls
        self._tally = tally

    async def preflight(self, wish: Wish, person: Person) -> Answer:
        """Ask what would happen, and count what was answered."""
        answer = await self._calls.preflight(wish, person)
        if isinstance(answer, Shown):
            self._tally.shown(answer)
        elif isinstance(answer, TurnedDown):
            self._tally.turned_down(answer, None, accepted_before=False)
        return answer

    async def confirm(self, wish: Wish, token: str | None, person: Person) -> Answer:
        """Ask for the execution, and count what was answered."""
        accepted_before = self._tally.nonce_of(token) in self._tally.accepted_nonces
        answer = await self._calls.confirm(wish, token, person)
        if isinstance(answer, Executed) and token is not None:
            self._tally.executed(token)
        elif isinstance(answer, TurnedDown):
            self._tally.turned_down(answer, token, accepted_before=accepted_before)
        return answer
