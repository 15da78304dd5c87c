-- The record, and what is kept beside it so that questions are answered from few rows.
-- Everything may be inserted twice: rows with one identity replace each other, and counts are sets
-- of sequence numbers, whose union forgets repetition.

-- Rows are read whole by key, a few hundred at a time from anywhere: small granules and small
-- compressed blocks halve that, for 4 % more space.
CREATE TABLE IF NOT EXISTS events (
  sequence UInt64 CODEC(Delta, ZSTD(1)),
  recorded_at DateTime64(6, 'UTC') CODEC(Delta, ZSTD(1)),
  producer_id UUID CODEC(ZSTD(1)),
  service LowCardinality(String),
  instance LowCardinality(String),
  event_id UUID CODEC(ZSTD(1)),
  event_type LowCardinality(String),
  occurred_at DateTime64(6, 'UTC') CODEC(Delta, ZSTD(1)),
  reason LowCardinality(Nullable(String)),
  outcome LowCardinality(Nullable(String)),
  acceptance_id Nullable(UUID) CODEC(ZSTD(1)),
  nonce Nullable(String) CODEC(ZSTD(1)),
  nonce_trust LowCardinality(String),
  tenant LowCardinality(Nullable(String)),
  tool LowCardinality(String),
  target Nullable(String) CODEC(ZSTD(1)),
  action LowCardinality(Nullable(String)),
  plan_hash Nullable(String) CODEC(ZSTD(1)),
  ledgered Bool,
  plan_summary Nullable(String) CODEC(ZSTD(1)),
  issued_at Nullable(DateTime64(6, 'UTC')) CODEC(ZSTD(1)),
  expires_at Nullable(DateTime64(6, 'UTC')) CODEC(ZSTD(1)),
  key_id LowCardinality(Nullable(String)),
  token_tenant LowCardinality(Nullable(String)),
  token_tool LowCardinality(Nullable(String)),
  token_target Nullable(String) CODEC(ZSTD(1)),
  token_plan_hash Nullable(String) CODEC(ZSTD(1)),
  spent_at Nullable(DateTime64(6, 'UTC')) CODEC(ZSTD(1)),
  spent_claim_id Nullable(UUID) CODEC(ZSTD(1)),
  principal LowCardinality(Nullable(String)),
  principal_kind LowCardinality(String),
  credential_id Nullable(String) CODEC(ZSTD(1)),
  session_id Nullable(String) CODEC(ZSTD(1)),
  peer_address Nullable(String) CODEC(ZSTD(1)),
  client_address Nullable(String) CODEC(ZSTD(1)),
  address_source LowCardinality(String),
  client_name LowCardinality(Nullable(String)),
  request_id Nullable(String) CODEC(ZSTD(1)),
  trace_id Nullable(String) CODEC(ZSTD(1)),
  attributes Array(Tuple(name String, value String)) CODEC(ZSTD(1)),
  kafka_partition Int32 CODEC(ZSTD(1)),
  kafka_offset Int64 CODEC(Delta, ZSTD(1)),
  schema_fingerprint LowCardinality(String),
  stored_at DateTime64(3, 'UTC') DEFAULT now64(3) CODEC(Delta, ZSTD(1))
) ENGINE = ReplacingMergeTree
PARTITION BY toYYYYMM(occurred_at)
ORDER BY (occurred_at, event_id)
SETTINGS index_granularity = 512, min_compress_block_size = 8192, max_compress_block_size = 65536,
  min_age_to_force_merge_seconds = 86400, min_age_to_force_merge_on_partition_only = 1;

-- From a nonce to its events' keys. The nonce stands here as a 64-bit hash: eight bytes to compare
-- instead of twenty-three. Whoever reads the events themselves compares the nonce once more.
-- Acceptances stand apart, since most look-ups ask for them alone. `known_spent` says that the gate
-- found the nonce spent, whether or not the acceptance is stored.
CREATE TABLE IF NOT EXISTS nonce_trail (
  accepted Bool,
  nonce_hash UInt64 CODEC(NONE),
  occurred_at DateTime64(6, 'UTC') CODEC(ZSTD(1)),
  event_id UUID CODEC(ZSTD(1)),
  event_type LowCardinality(String),
  nonce_trust LowCardinality(String),
  known_spent Bool,
  tenant LowCardinality(Nullable(String))
) ENGINE = ReplacingMergeTree
PRIMARY KEY (accepted, nonce_hash)
ORDER BY (accepted, nonce_hash, occurred_at, event_id)
SETTINGS index_granularity = 256, min_compress_block_size = 8192, max_compress_block_size = 65536;

CREATE MATERIALIZED VIEW IF NOT EXISTS nonce_trail_from_events TO nonce_trail AS
SELECT event_type = 'accepted' AND nonce_trust = 'verified' AS accepted,
  sipHash64(assumeNotNull(nonce)) AS nonce_hash, occurred_at, event_id, event_type, nonce_trust,
  (event_type = 'replayed') OR ifNull(reason = 'already_used', false) AS known_spent, tenant
FROM events
WHERE isNotNull(nonce);

-- Presentations of verified nonces that were turned down, by time: few rows, among which are all
-- reuses except second acceptances.
CREATE TABLE IF NOT EXISTS turned_down (
  occurred_at DateTime64(6, 'UTC') CODEC(Delta, ZSTD(1)),
  event_id UUID CODEC(ZSTD(1)),
  nonce_hash UInt64 CODEC(ZSTD(1)),
  event_type LowCardinality(String),
  known_spent Bool,
  tenant LowCardinality(Nullable(String)),
  tool LowCardinality(String),
  principal LowCardinality(Nullable(String))
) ENGINE = ReplacingMergeTree
PARTITION BY toYYYYMM(occurred_at)
ORDER BY (occurred_at, event_id)
SETTINGS min_age_to_force_merge_seconds = 86400, min_age_to_force_merge_on_partition_only = 1;

CREATE MATERIALIZED VIEW IF NOT EXISTS turned_down_from_events TO turned_down AS
SELECT occurred_at, event_id, sipHash64(assumeNotNull(nonce)) AS nonce_hash, event_type,
  (event_type = 'replayed') OR ifNull(reason = 'already_used', false) AS known_spent,
  tenant, tool, principal
FROM events
WHERE nonce_trust = 'verified' AND event_type IN ('refused', 'replayed') AND isNotNull(nonce);

-- Counts as sets of sequence numbers. Sets of different producers, or of one producer's different
-- epochs (2^32 numbers each), never merge: their numbers mean different events. The tenant is left
-- out: with it, there are nearly as many rows as events, and a tenant's own events are few.
CREATE TABLE IF NOT EXISTS count_5m (
  bucket DateTime('UTC'),
  event_type LowCardinality(String),
  reason LowCardinality(String),
  producer_id UUID,
  epoch UInt32,
  sequences AggregateFunction(groupBitmap, UInt32)
) ENGINE = AggregatingMergeTree
PARTITION BY toYYYYMM(bucket)
ORDER BY (bucket, event_type, reason, producer_id, epoch)
SETTINGS index_granularity = 256;

CREATE MATERIALIZED VIEW IF NOT EXISTS count_5m_from_events TO count_5m AS
SELECT toStartOfFiveMinutes(toDateTime(occurred_at, 'UTC')) AS bucket, event_type,
  ifNull(events.reason, '') AS reason, producer_id,
  toUInt32(intDiv(sequence, 4294967296)) AS epoch,
  groupBitmapState(toUInt32(sequence % 4294967296)) AS sequences
FROM events
GROUP BY bucket, event_type, reason, producer_id, epoch;

CREATE TABLE IF NOT EXISTS count_1h (
  bucket DateTime('UTC'),
  event_type LowCardinality(String),
  reason LowCardinality(String),
  producer_id UUID,
  epoch UInt32,
  sequences AggregateFunction(groupBitmap, UInt32)
) ENGINE = AggregatingMergeTree
PARTITION BY toYYYYMM(bucket)
ORDER BY (bucket, event_type, reason, producer_id, epoch)
SETTINGS index_granularity = 256;

CREATE MATERIALIZED VIEW IF NOT EXISTS count_1h_from_events TO count_1h AS
SELECT toStartOfHour(toDateTime(occurred_at, 'UTC')) AS bucket, event_type,
  ifNull(events.reason, '') AS reason, producer_id,
  toUInt32(intDiv(sequence, 4294967296)) AS epoch,
  groupBitmapState(toUInt32(sequence % 4294967296)) AS sequences
FROM events
GROUP BY bucket, event_type, reason, producer_id, epoch;

CREATE TABLE IF NOT EXISTS count_1d (
  bucket DateTime('UTC'),
  event_type LowCardinality(String),
  reason LowCardinality(String),
  producer_id UUID,
  epoch UInt32,
  sequences AggregateFunction(groupBitmap, UInt32)
) ENGINE = AggregatingMergeTree
PARTITION BY toYYYYMM(bucket)
ORDER BY (bucket, event_type, reason, producer_id, epoch)
SETTINGS index_granularity = 256;

CREATE MATERIALIZED VIEW IF NOT EXISTS count_1d_from_events TO count_1d AS
SELECT toStartOfDay(toDateTime(occurred_at, 'UTC')) AS bucket, event_type,
  ifNull(events.reason, '') AS reason, producer_id,
  toUInt32(intDiv(sequence, 4294967296)) AS epoch,
  groupBitmapState(toUInt32(sequence % 4294967296)) AS sequences
FROM events
GROUP BY bucket, event_type, reason, producer_id, epoch;

-- Which of a producer's numbers are stored, 65,536 to a row, the first being number 1. `pairs` tells
-- a number that stands for two events (a cloned journal): it holds each number with three bits of its
-- event's id, so that two ids make two members seven times in eight. A cloned journal doubles many
-- numbers, so that it is found; how many it doubled is a lower bound.
CREATE TABLE IF NOT EXISTS seq_cover (
  producer_id UUID,
  chunk UInt64,
  sequences AggregateFunction(groupBitmap, UInt32),
  pairs AggregateFunction(groupBitmap, UInt32),
  last_recorded_at SimpleAggregateFunction(max, DateTime64(6, 'UTC')),
  service SimpleAggregateFunction(anyLast, String),
  instance SimpleAggregateFunction(anyLast, String)
) ENGINE = AggregatingMergeTree
ORDER BY (producer_id, chunk);

CREATE MATERIALIZED VIEW IF NOT EXISTS seq_cover_from_events TO seq_cover AS
SELECT producer_id, intDiv(sequence - 1, 65536) AS chunk,
  groupBitmapState(toUInt32((sequence - 1) % 65536)) AS sequences,
  groupBitmapState(toUInt32(bitShiftLeft(toUInt32(sipHash64(event_id) % 8), 16)
    + (sequence - 1) % 65536)) AS pairs,
  max(recorded_at) AS last_recorded_at,
  anyLast(toString(events.service)) AS service,
  anyLast(toString(events.instance)) AS instance
FROM events
GROUP BY producer_id, chunk;
