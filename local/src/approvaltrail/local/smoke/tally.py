"""What the gate answered, counted where it answered: the measure that the store is held to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from approvaltrail.gate import Caller, Preflight, Refusal
from approvaltrail.local.demo.platform import PlatformError
from approvaltrail.local.demo.tools import CONFIRM, TOKEN, Answer, ToolServer
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

    def preflight(self, answer: Preflight) -> None:
        """Count an issuance."""
        self.events[EventType.ISSUED] += 1
        self.tokens[answer.token] = answer.nonce

    def acceptance(self, token: object) -> None:
        """Count an acceptance and the completion that follows it."""
        self.events[EventType.ACCEPTED] += 1
        self.events[EventType.COMPLETED] += 1
        nonce = self.tokens[str(token)]
        if nonce in self.accepted_nonces:
            self.reuses[nonce] += 1
        self.accepted_nonces.add(nonce)

    def refusal(self, answer: Refusal, token: object, *, accepted_before: bool) -> None:
        """Count a refusal or a replay."""
        if not answer.recorded:
            self.unrecorded += 1
            return
        replayed = answer.code is Reason.ALREADY_USED
        self.events[EventType.REPLAYED if replayed else EventType.REFUSED] += 1
        nonce = self.tokens.get(token) if isinstance(token, str) else None
        if nonce is not None and (replayed or accepted_before):
            self.reuses[nonce] += 1


class TalliedServer(ToolServer):
    """The tool server, with every answer counted."""

    def __init__(self, server: ToolServer, tally: Tally) -> None:
        self._server = server
        self._tally = tally

    async def call(self, tool: str, arguments: Mapping[str, Any], caller: Caller) -> Answer:
        """Run one tool call and count its answer."""
        token = arguments.get(TOKEN)
        nonce = self._tally.tokens.get(token) if isinstance(token, str) else None
        accepted_before = nonce in self._tally.accepted_nonces
        try:
            answer = await self._server.call(tool, arguments, caller)
        except PlatformError:
            self._tally.acceptance(token)
            raise
        if isinstance(answer, Preflight):
            self._tally.preflight(answer)
        elif isinstance(answer, Refusal):
            self._tally.refusal(answer, token, accepted_before=accepted_before)
        elif arguments.get(CONFIRM):
            self._tally.acceptance(token)
        return answer
