"""Tokens that nobody issued: how many are accepted, fail oddly, or reach the ledger. None may.

`python -m benchmarks.token_mutations --count N --seed S --json` changes genuine tokens (bits, cuts,
spellings, fields, keys, versions, joins), presents each to a gate, and prints
`{"tried", "accepted", "unexpected_errors", "ledger_calls"}`. Exits with 1 if any but the first is
not 0. The same seed tries the same tokens.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import random
import sys
from collections.abc import Callable, Iterator
from typing import Any, Final

from pydantic import SecretStr
from rich.console import Console
from rich.progress import track

from approvaltrail.gate import Caller, Gate, GateSettings, MemoryLedger, Plan, Refusal
from approvaltrail.gate.ledger import AlreadySpent, Answer, Claim, PredatesLedger
from approvaltrail.gate.testing import ManualClock
from approvaltrail.gate.tools import TOOLS
from approvaltrail.schemas import ApprovalEvent, Reason, Recorded
from benchmarks.harness import arguments

SECRETS: Final = tuple(f"secret number {number} of mutations alone, long" for number in range(3))
BASE64URL: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
ODD: Final = ("", " ", "\n", "\0", "=", "+", "/", ".", "%2E", "é", "\u2024", "\U0001f600", "\ud800")
EXPECTED: Final = frozenset(
    {Reason.MISSING_TOKEN, Reason.MALFORMED_TOKEN, Reason.BAD_SIGNATURE, Reason.UNKNOWN_KEY}
)
Mutation = Callable[[random.Random, str, str], Any]


class CountingLedger(MemoryLedger):
    """Counts every question that concerns a nonce."""

    calls = 0

    def claim(self, claim: Claim) -> Answer:
        """Count, then claim."""
        self.calls += 1
        return super().claim(claim)

    def is_spent(self, nonce: str, issued_at: Any) -> AlreadySpent | PredatesLedger | None:
        """Count, then look."""
        self.calls += 1
        return super().is_spent(nonce, issued_at)


class Forgetful:
    """A recorder that keeps nothing, so that a million events cost no memory."""

    async def record(self, event: ApprovalEvent) -> Recorded:
        """Record nothing."""
        return self.record_sync(event)

    def record_sync(self, event: ApprovalEvent) -> Recorded:
        """Record nothing."""
        return Recorded(producer_id=event.event_id, sequence=1, recorded_at=event.occurred_at)

    def check(self) -> None:
        """Take every event."""

    def count_unrecorded(self, event: ApprovalEvent) -> None:
        """Count nothing."""

    def report_scrubbed(self, values: int) -> None:
        """Count nothing."""


def plans() -> list[Plan]:
    """Return one plan a tool."""
    return [
        Plan(
            tool=tool.name,
            target=f"prod-{number}",
            action=tool.action,
            summary=tool.action,
            details={"nodes": number},
            reversible=tool.reversible,
        )
        for number, tool in enumerate(TOOLS.values())
    ]


def parts(token: str) -> tuple[str, str, str]:
    """Return version, payload and MAC."""
    version, payload, mac = token.split(".")
    return version, payload, mac


def payload_of(token: str) -> dict[str, Any]:
    """Return a genuine token's payload."""
    text = parts(token)[1]
    values: dict[str, Any] = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    return values


def encoded(data: bytes) -> str:
    """Return canonical base64url."""
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def signed(payload: bytes, secret: str, version: str = "at1") -> str:
    """Sign a payload as the format says, with whatever key."""
    body = f"{version}.{encoded(payload)}"
    return f"{body}.{encoded(hmac.digest(secret.encode(), body.encode(), 'sha256'))}"


def bit_flip(chance: random.Random, token: str, _: str) -> Any:
    """Flip one to three bits of the text."""
    data = bytearray(token.encode())
    for _flip in range(chance.randint(1, 3)):
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    return data.decode("latin-1")


def decoded_bit_flip(chance: random.Random, token: str, _: str) -> Any:
    """Flip a bit of the payload's or the MAC's bytes, well encoded again."""
    version, payload, mac = parts(token)
    text = payload if chance.random() < 0.5 else mac
    data = bytearray(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    return ".".join(
        (version, *((encoded(data), mac) if text == payload else (payload, encoded(data))))
    )


def truncation(chance: random.Random, token: str, _: str) -> Any:
    """Cut at either end, or out of the middle."""
    start, end = sorted((chance.randrange(len(token)), chance.randrange(len(token) + 1)))
    return chance.choice((token[start:], token[:end], token[:start] + token[end:]))


def spelling(chance: random.Random, token: str, _: str) -> Any:
    """Spell the same bytes otherwise."""
    version, payload, mac = parts(token)
    place = chance.randrange(len(token) + 1)
    return chance.choice(
        (
            f"{token}{'=' * chance.randint(1, 3)}",
            f"{version}.{payload}=.{mac}",
            token.replace("-", "+").replace("_", "/") + chance.choice(ODD),
            token[:-1] + chance.choice(BASE64URL),
            f"{version}.{payload[:-1]}{chance.choice(BASE64URL)}.{mac}",
            token[:place] + chance.choice(ODD) + token[place:],
            token.swapcase(),
            token.encode(),
            f"{version}.{base64.urlsafe_b64encode(payload.encode()).decode()}.{mac}",
            f"Bearer {token}",
            json.dumps(token),
        )
    )


def reserialised(chance: random.Random, token: str, _: str) -> Any:
    """Write the same payload as other JSON, under the genuine MAC."""
    version, _, mac = parts(token)
    values = payload_of(token)
    items = list(values.items())
    chance.shuffle(items)
    text = chance.choice(
        (
            json.dumps(values),
            json.dumps(dict(items), separators=(",", ":")),
            json.dumps(values, indent=chance.randint(0, 3)),
            json.dumps({**values, "extra": chance.random()}, separators=(",", ":")),
            json.dumps([values]),
        )
    )
    return f"{version}.{encoded(text.encode())}.{mac}"


def field_swap(chance: random.Random, token: str, other: str) -> Any:
    """Change or take over a field, under either genuine MAC."""
    values, others = payload_of(token), payload_of(other)
    name = chance.choice(sorted(values))
    values[name] = chance.choice(
        (others[name], None, "", 0, True, [], {}, -1, 2**63, chance.random(), "x" * 300)
    )
    if chance.random() < 0.2:
        del values[chance.choice(sorted(values))]
    text = json.dumps(values, sort_keys=True, separators=(",", ":"))
    return f"at1.{encoded(text.encode())}.{chance.choice((parts(token)[2], parts(other)[2]))}"


def other_key(chance: random.Random, token: str, other: str) -> Any:
    """Sign with a key that the gate does not hold, or with none."""
    payload = base64.urlsafe_b64decode(parts(token)[1] + "==")
    key = chance.choice(("", "x", SECRETS[2], parts(other)[2], str(chance.random())))
    plain = encoded(hashlib.sha256(payload + key.encode()).digest())
    return chance.choice((signed(payload, key), f"at1.{parts(token)[1]}.{plain}"))


def other_version(chance: random.Random, token: str, _: str) -> Any:
    """Give another version, under the genuine MAC or a MAC of our own key over it."""
    version = chance.choice(("at0", "at2", "AT1", "at1\0", "", "at", "at11", "a\uff541"))
    payload = base64.urlsafe_b64decode(parts(token)[1] + "==")
    genuine = f"{version}.{parts(token)[1]}.{parts(token)[2]}"
    return chance.choice((genuine, signed(payload, SECRETS[0], version)))


def joined(chance: random.Random, token: str, other: str) -> Any:
    """Join two tokens, or parts of them."""
    one, two = parts(token), parts(other)
    return chance.choice(
        (
            token + other,
            f"{token}{chance.choice(ODD)}{other}",
            ".".join((one[0], two[1], one[2])),
            ".".join((one[0], one[1] + two[1], one[2])),
            ".".join((one[0], one[1], two[1], one[2])),
            ".".join((one[0], one[1], one[2] + two[2])),
            ".".join((one[0], one[2], one[1])),
            ".".join(one[1:]),
        )
    )


MUTATIONS: Final[tuple[Mutation, ...]] = (
    bit_flip,
    decoded_bit_flip,
    truncation,
    spelling,
    reserialised,
    field_swap,
    other_key,
    other_version,
    joined,
)


class Trial:
    """A gate, genuine tokens of it, and the count of what must not happen."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        clock = ManualClock()
        self.ledger = CountingLedger(clock=clock)
        settings = GateSettings.model_construct(
            confirm_secret_previous=SecretStr(SECRETS[1]), writable=False
        )
        keys = settings.model_copy(update={"confirm_secret": SecretStr(SECRETS[0])})
        self.gate = Gate(
            keys,
            recorder=Forgetful(),
            ledger=self.ledger,
            clock=clock,
            random=self.chance.randbytes,
            caller=lambda: Caller(tenant="acme"),
        )
        self.issued = [(plan, self.gate.preflight_sync(plan.tool, plan).token) for plan in plans()]
        self.genuine = {token for _, token in self.issued}
        self.tried = self.accepted = self.unexpected_errors = 0

    def mutants(self) -> Iterator[tuple[Plan, Any]]:
        """Yield, for ever, a plan and what is presented for it; never a genuine token."""
        while True:
            (plan, token), (_, other) = self.chance.sample(self.issued, 2)
            mutant = self.chance.choice(MUTATIONS)(self.chance, token, other)
            if not (isinstance(mutant, str) and mutant in self.genuine):
                yield plan, mutant

    def present(self, plan: Plan, mutant: Any) -> None:
        """Present one mutant and count what came of it."""
        self.tried += 1
        try:
            answer = self.gate.confirm_sync(plan.tool, plan, mutant, lambda _: None)
        except Exception:  # noqa: BLE001 - whatever it is, it was not expected
            self.unexpected_errors += 1
            return
        if not isinstance(answer, Refusal):
            self.accepted += 1
        elif answer.code not in EXPECTED:
            self.unexpected_errors += 1

    def result(self) -> dict[str, int]:
        """Return the counts."""
        return {
            "tried": self.tried,
            "accepted": self.accepted,
            "unexpected_errors": self.unexpected_errors,
            "ledger_calls": self.ledger.calls,
        }


def run(count: int, seed: int, *, quiet: bool = True) -> dict[str, int]:
    """Try so many mutants and return the counts."""
    trial = Trial(seed)
    mutants = trial.mutants()
    steps = track(range(count), "presenting mutants", console=Console(stderr=True), disable=quiet)
    for _ in steps:
        trial.present(*next(mutants))
    return trial.result()


def main() -> int:
    """Try, print, and say by the exit code whether all was refused."""
    chosen = arguments(__doc__, count=100_000, seed=1)
    result = run(chosen.count, chosen.seed, quiet=chosen.json)
    print(json.dumps(result))
    return int(any(value for name, value in result.items() if name != "tried"))


if __name__ == "__main__":
    sys.exit(main())
