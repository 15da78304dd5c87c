"""Fill a store with plausible events by SQL alone: `python -m benchmarks.generate --dsn DSN`.

Ninety days that end now, eight producers, two hundred tenants. Of the tokens, 97 % are accepted and
their work completed, half a percent come back one to fifty times, some late and therefore refused,
a few are accepted twice. One event in a thousand is inserted twice, at other Kafka offsets. Each
producer numbers its events without gaps, and its heartbeats say so.
"""

from __future__ import annotations

import argparse
import sys
import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from approvaltrail.store.columns import STORED_COLUMNS
from approvaltrail.store.connection import open_store
from approvaltrail.store.migrations import migrate

if TYPE_CHECKING:
    from approvaltrail.store.connection import Store

DAYS: Final = 90
PRODUCERS: Final = 8
EVENTS_PER_TOKEN: Final = 3.05
_HEARTBEAT_SECONDS: Final = 30

# A token's life as (type, µs after its issue, ordinal), then each event's columns.
_EVENTS: Final = """
SELECT
  toUInt64(intDiv(g, 8) + 1) AS sequence,
  fromUnixTimestamp64Micro(toInt64(at) + 900, 'UTC') AS recorded_at,
  toUUID(concat('0190a000-0000-7000-8000-00000000000', toString(g % 8))) AS producer_id,
  concat('service-', toString(g % 2)) AS service,
  concat('pod-', toString(g % 8)) AS instance,
  ID(at, n, ty, k) AS event_id,
  ['issued', 'accepted', 'refused', 'replayed', 'completed'][ty] AS event_type,
  fromUnixTimestamp64Micro(toInt64(at), 'UTC') AS occurred_at,
  multiIf(ty = 4, 'already_used', ty != 3, NULL, k >= 200, 'bad_signature', k >= 100, 'expired',
    ['wrong_tool', 'plan_changed', 'wrong_target', 'expired'][1 + h % 4]) AS reason,
  if(ty = 5, ['succeeded', 'failed'][1 + (h % 20 = 0)], NULL) AS outcome,
  if(ty = 5, ID(accepted_at, n, 2, 0), NULL) AS acceptance_id,
  multiIf(k = 201, NULL, k = 200, concat('claimed-', toString(h % 100000)), nonce) AS nonce,
  multiIf(k = 201, 'none', k = 200, 'claimed', 'verified') AS nonce_trust,
  concat('tenant-', leftPad(toString(toUInt32(floor(200 * pow((t % 65536) / 65536, 2)))), 3, '0'))
    AS tenant,
  concat('tidb_', ['delete_cluster', 'delete_branch', 'create_backup', 'execute', 'create_branch',
    'update_cluster'][1 + bitShiftRight(t, 16) % 6]) AS tool,
  concat('cluster-', toString(bitShiftRight(t, 28) % 50000)) AS target,
  ['delete', 'update', 'create', 'execute'][1 + bitShiftRight(t, 44) % 4] AS action,
  if(k >= 200, NULL, lower(hex(SHA256(toString(n))))) AS plan_hash,
  bitShiftRight(t, 16) % 6 < 3 AS ledgered,
  if(ty = 1, concat('delete cluster-', toString(bitShiftRight(t, 28) % 50000)), NULL)
    AS plan_summary,
  if(k >= 200, NULL, fromUnixTimestamp64Micro(toInt64(issue_at), 'UTC')) AS issued_at,
  if(k >= 200, NULL, fromUnixTimestamp64Micro(toInt64(issue_at) + 600000000, 'UTC')) AS expires_at,
  concat('key-', toString(intDiv(n, 3000000))) AS key_id,
  if(ty = 4, fromUnixTimestamp64Micro(toInt64(accepted_at), 'UTC'), NULL) AS spent_at,
  if(ty = 4, ID(accepted_at, n, 2, 0), NULL) AS spent_claim_id,
  concat('user', toString(if(ty = 4 AND h % 5 = 0, h, bitShiftRight(t, 12)) % 20000), '@corp')
    AS principal,
  'user' AS principal_kind,
  lower(hex(sipHash128(bitShiftRight(t, 12) % 20000))) AS credential_id,
  lower(hex(sipHash128(intDiv(n, 40), bitShiftRight(t, 12) % 4))) AS session_id,
  IPv4NumToString(toUInt32(167772160 + if(ty = 4 AND h % 3 = 0, h, bitShiftRight(t, 8)) % 60000))
    AS peer_address,
  peer_address AS client_address,
  'peer' AS address_source,
  ['cursor', 'claude', 'cline'][1 + t % 3] AS client_name,
  lower(hex(toUInt64(h))) AS request_id,
  lower(hex(sipHash128(h))) AS trace_id,
  toInt32(sipHash64(n) % 12) AS kafka_partition,
  toInt64(g) AS kafka_offset,
  'da98f317481b9f36' AS schema_fingerprint,
  fromUnixTimestamp64Milli(toInt64(intDiv(at, 1000)) + 250, 'UTC') AS stored_at
FROM (
  SELECT *, toUInt64({base:UInt64} + rowNumberInAllBlocks()) AS g FROM (
    SELECT *, sipHash64(n, ty, k) AS h FROM (
      SELECT number AS n, sipHash64(n) AS t, sipHash64(n, 2) % 100000 AS class,
        toUInt64({start:UInt64} + n * {step:UInt64}) AS issue_at,
        toUInt64(issue_at + 2000000 + sipHash64(n, 3) % 20000000
          + if(class % 10 = 0, sipHash64(n, 4) % 240000000, 0)) AS accepted_at,
        base64URLEncode(sipHash128(n)) AS nonce,
        arrayJoin(arrayConcat(
          [(1, issue_at, 0)],
          if(class < 97000, [(2, accepted_at, 0),
            (5, toUInt64(accepted_at + 500000 + sipHash64(n, 5) % 30000000), 0)], []),
          if(class >= 97000 AND class < 99900, [(3, accepted_at, 0)], []),
          if(class >= 500 AND class < 510, [(2, toUInt64(accepted_at + 5000000), 1)], []),
          if(class >= 600 AND class < 800, [(3, toUInt64(accepted_at + 3600000000), 100)], []),
          if(class < 500, arrayMap(
            i -> (4, toUInt64(accepted_at + exp(14 + (sipHash64(n, i, 6) % 1000000) / 80000)), i),
            range(1, 2 + toUInt64(floor(49 * pow((sipHash64(n, 7) % 10000) / 10000, 4))))), []),
          if(class % 333 = 1, [(3, toUInt64(issue_at + 100000), toUInt64(200 + n % 2))], [])
        )) AS event,
        event.1 AS ty, event.2 AS at, event.3 AS k
      FROM numbers({first:UInt64}, {tokens:UInt64})
    )
    WHERE at < {end:UInt64}
    ORDER BY at
  )
)
"""
_ID: Final = (
    "CREATE FUNCTION IF NOT EXISTS ID AS (at, n, ty, k) -> reinterpretAsUUID(bitOr("
    "toUInt128(bitOr(bitShiftLeft(toUInt64(intDiv(at, 1000)), 16), "
    "28672 + sipHash64(toUInt64(n), toUInt64(ty), toUInt64(k), 8) % 4096)), "
    "bitShiftLeft(toUInt128(bitOr(9223372036854775808, "
    "bitAnd(sipHash64(toUInt64(n), toUInt64(ty), toUInt64(k), 9), 4611686018427387903))), 64)))"
)
_HEARTBEATS: Final = """
INSERT INTO heartbeats (producer_id, service, instance, sent_at, started_at, state, last_sequence,
  last_recorded_at, relayed_sequence, gate_state, ledger_probe)
SELECT producer_id, 'service', 'pod', sent, {start:DateTime64(6, 'UTC')}, 'live',
  toUInt64(floor(highest * ((beat + 1) / {beats:UInt64}))) AS reached, sent, reached, 'open', 'ok'
FROM (SELECT producer_id, max(sequence) AS highest FROM events GROUP BY producer_id)
ARRAY JOIN range({beats:UInt64}) AS beat,
  arrayMap(i -> {start:DateTime64(6, 'UTC')} + toIntervalSecond((i + 1) * {seconds:UInt64}),
    range({beats:UInt64})) AS sent
"""


def generate(store: Store, events: int, *, chunk_tokens: int = 200_000) -> int:
    """Insert about this many events, their duplicates and heartbeats; return how many rows."""
    end = datetime.now(UTC).replace(microsecond=0)
    start = end - timedelta(days=DAYS)
    tokens = max(1, int(events / EVENTS_PER_TOKEN))
    names = ", ".join(
        name for name, _ in STORED_COLUMNS if name not in {"attributes", *_TOKEN_DIFFERENCES}
    )
    store.command(_ID)
    for first in range(0, tokens, chunk_tokens):
        parameters = {
            "start": int(start.timestamp()) * 1_000_000,
            "end": int(end.timestamp()) * 1_000_000,
            "step": DAYS * 86_400_000_000 // tokens,
            "base": store.query("SELECT count() FROM events").scalar(),
            "first": first,
            "tokens": min(chunk_tokens, tokens - first),
        }
        store.command(
            f"INSERT INTO events ({names}) {_EVENTS}",
            parameters=parameters,
            settings={"max_threads": 1, "max_insert_threads": 1, "optimize_on_insert": 0},
        )
    _insert_some_twice(store)
    beats = DAYS * 86_400 // _HEARTBEAT_SECONDS
    store.command(
        _HEARTBEATS,
        parameters={"start": start, "beats": beats, "seconds": _HEARTBEAT_SECONDS},
    )
    return int(store.query("SELECT count() FROM events").scalar())


_TOKEN_DIFFERENCES: Final = ("token_tenant", "token_tool", "token_target", "token_plan_hash")


def _insert_some_twice(store: Store) -> None:
    names = ", ".join(name for name, _ in STORED_COLUMNS)
    moved = ", ".join(
        "kafka_offset + 1000000000" if name == "kafka_offset" else name
        for name, _ in STORED_COLUMNS
    )
    store.command(
        f"INSERT INTO events ({names}) SELECT {moved} FROM events "
        "WHERE sipHash64(event_id) % 1000 = 0"
    )


def main() -> int:
    """Parse the command line, fill the store, say how long it took."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dsn", required=True)
    parser.add_argument("--events", type=int, default=2_000_000)
    arguments = parser.parse_args()
    started = time.monotonic()
    with open_store(arguments.dsn, timeout_seconds=600) as store:
        migrate(store)
        rows = generate(store, arguments.events)
    print(f"{rows} rows in {time.monotonic() - started:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
