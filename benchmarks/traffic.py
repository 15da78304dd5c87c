"""Events as a busy server records them: tokens issued, accepted, completed, some used again."""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from confluent_kafka import Producer as KafkaProducer

from approvaltrail.schemas.encoding import encode_event, microseconds, producer_stamp, stamp
from approvaltrail.schemas.events import ApprovalEvent
from approvaltrail.schemas.identity import new_producer_id, uuid7
from approvaltrail.schemas.messages import event_headers

EVENTS_PER_SECOND: Final = 500
"""How dense events lie in time."""
PRODUCERS: Final = 4
_TENANTS: Final = 200
_TOOLS: Final = ("tidb_delete_cluster", "tidb_delete_branch", "tidb_create_backup", "tidb_execute")


@dataclass(frozen=True, slots=True)
class Message:
    """An event as Kafka carries it."""

    key: bytes
    value: bytes
    producer_id: str
    sequence: int
    offset: int
    partition: int = 0


def messages(count: int, *, seed: int = 1, start: datetime | None = None) -> Iterator[Message]:
    """Yield events in the order of their time; they end about now unless a start is given."""
    chance = random.Random(seed)
    begun = start or datetime.now(UTC) - timedelta(seconds=count / EVENTS_PER_SECOND)
    ids = [new_producer_id() for _ in range(PRODUCERS)]
    stamps = [producer_stamp(one, "tidb-mcp", f"pod-{place}") for place, one in enumerate(ids)]
    sequences = [0] * PRODUCERS
    accepted_id = ""
    step = timedelta(seconds=1 / EVENTS_PER_SECOND)
    for number, values in enumerate(itertools.islice(_lives(chance), count)):
        at = begun + step * number
        place = number % PRODUCERS
        sequences[place] += 1
        event_id = uuid7(microseconds(at) // 1_000, chance.getrandbits(74))
        match values["event_type"]:
            case "accepted":
                accepted_id = event_id
            case "completed":
                values["acceptance_id"] = accepted_id
        event = ApprovalEvent(
            event_id=event_id,
            occurred_at=at,
            issued_at=at,
            expires_at=at + timedelta(minutes=10),
            **values,
        )
        value = stamp(sequences[place], microseconds(at), stamps[place]) + encode_event(event)
        key = values["nonce"].encode()
        yield Message(key, value, ids[place], sequences[place], number)


def _lives(chance: random.Random) -> Iterator[dict[str, Any]]:
    """Yield the events of one token after another, without times."""
    while True:
        call = _call(chance)
        yield call | {
            "event_type": "issued",
            "plan_summary": f"delete {call['target']}: 3 nodes, 2 backups",
        }
        if chance.random() < 0.03:
            yield call | {"event_type": "refused", "reason": "expired"}
            continue
        yield call | {"event_type": "accepted"}
        yield call | {"event_type": "completed", "outcome": "succeeded"}
        if chance.random() < 0.01:
            yield call | {"event_type": "replayed", "reason": "already_used"}


def _call(chance: random.Random) -> dict[str, Any]:
    who = chance.randrange(5_000)
    address = f"10.{who % 200}.{chance.randrange(4)}.{who % 250}"
    return {
        "nonce": f"{chance.getrandbits(130):022x}"[:22],
        "nonce_trust": "verified",
        "tenant": f"tenant-{int(_TENANTS * chance.random() ** 2):03d}",
        "tool": chance.choice(_TOOLS),
        "target": f"cluster-{chance.randrange(50_000)}",
        "action": "delete",
        "plan_hash": f"{chance.getrandbits(256):064x}",
        "ledgered": True,
        "key_id": "8c5f1a20",
        "principal": f"user{who}@corp.example",
        "principal_kind": "user",
        "credential_id": f"{who:032x}",
        "session_id": f"{who * 977 + chance.randrange(4):016x}",
        "peer_address": address,
        "client_address": address,
        "address_source": "peer",
        "client_name": "agent/1.4.2",
        "request_id": f"{chance.getrandbits(64):016x}",
    }


def send(bootstrap_servers: str, topic: str, sent: Iterable[Message]) -> float:
    """Send events as fast as the broker takes them; return the average size of a value."""
    producer = KafkaProducer(
        {
            "bootstrap.servers": bootstrap_servers,
            "acks": "all",
            "compression.type": "lz4",
            "linger.ms": 20,
            "partitioner": "murmur2_random",
            "queue.buffering.max.messages": 200_000,
        }
    )
    count = size = 0
    for message in sent:
        headers: Any = event_headers(message.producer_id, message.sequence)
        while True:
            try:
                producer.produce(topic, message.value, message.key, headers=headers)
                break
            except BufferError:
                producer.poll(0.05)
        count, size = count + 1, size + len(message.value)
        if count % 1_000 == 0:
            producer.poll(0)
    if producer.flush(60):
        raise TimeoutError("the broker did not take every event within a minute")
    return size / max(1, count)


class PacedSender:
    """Sends fresh events at a fixed rate until told to stop; run it in a thread."""

    def __init__(self, bootstrap_servers: str, topic: str, events_per_second: int) -> None:
        self._servers, self._topic, self._rate = bootstrap_servers, topic, events_per_second
        self.stopped = False

    def run(self) -> None:
        """Send until `stopped`."""
        send(self._servers, self._topic, self._paced())

    def _paced(self) -> Iterator[Message]:
        begun = time.monotonic()
        endless = messages(10**9, seed=2, start=datetime.now(UTC))
        for number, message in enumerate(endless):
            early = begun + number / self._rate - time.monotonic()
            if early > 0:
                time.sleep(early)
            if self.stopped:
                return
            yield message
