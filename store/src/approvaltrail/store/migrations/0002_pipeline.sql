-- What the pipeline says of itself: heartbeats, seals, dead letters, retired producers.

CREATE TABLE IF NOT EXISTS heartbeats (
  producer_id UUID,
  service LowCardinality(String),
  instance LowCardinality(String),
  sent_at DateTime64(6, 'UTC') CODEC(Delta, ZSTD(1)),
  started_at DateTime64(6, 'UTC'),
  state LowCardinality(String),
  last_sequence UInt64 CODEC(Delta, ZSTD(1)),
  last_recorded_at Nullable(DateTime64(6, 'UTC')),
  relayed_sequence UInt64 CODEC(Delta, ZSTD(1)),
  pending UInt64,
  journal_bytes UInt64,
  journal_limit_bytes UInt64,
  gate_state LowCardinality(String),
  gate_reason LowCardinality(Nullable(String)),
  unrecorded_refusals UInt64,
  scrubbed_values UInt64,
  ledger_probe LowCardinality(String),
  ledger_probe_at Nullable(DateTime64(6, 'UTC')),
  previous_producer_id Nullable(UUID),
  lost_ranges Array(Tuple(first_sequence UInt64, last_sequence UInt64, reason String)),
  stored_at DateTime64(3, 'UTC') DEFAULT now64(3)
) ENGINE = ReplacingMergeTree
PARTITION BY toYYYYMM(sent_at)
ORDER BY (producer_id, sent_at, instance, last_sequence);

-- The newest heartbeat of each producer.
CREATE TABLE IF NOT EXISTS heartbeat_latest AS heartbeats
ENGINE = ReplacingMergeTree(sent_at)
ORDER BY producer_id;

CREATE MATERIALIZED VIEW IF NOT EXISTS heartbeat_latest_from_heartbeats TO heartbeat_latest AS
SELECT * FROM heartbeats;

-- A producer's hours: few rows in which to find when it reached a number, and what it ever lost.
CREATE TABLE IF NOT EXISTS heartbeat_1h (
  producer_id UUID,
  bucket DateTime('UTC'),
  first_sequence SimpleAggregateFunction(min, UInt64),
  last_sequence SimpleAggregateFunction(max, UInt64),
  lost_ranges SimpleAggregateFunction(groupUniqArrayArray, Array(Tuple(UInt64, UInt64, String)))
) ENGINE = AggregatingMergeTree
ORDER BY (producer_id, bucket);

CREATE MATERIALIZED VIEW IF NOT EXISTS heartbeat_1h_from_heartbeats TO heartbeat_1h AS
SELECT producer_id, toStartOfHour(toDateTime(sent_at, 'UTC')) AS bucket,
  min(heartbeats.last_sequence) AS first_sequence,
  max(heartbeats.last_sequence) AS last_sequence,
  groupUniqArrayArray(CAST(heartbeats.lost_ranges, 'Array(Tuple(UInt64, UInt64, String))'))
    AS lost_ranges
FROM heartbeats
GROUP BY producer_id, bucket;

CREATE TABLE IF NOT EXISTS seals (
  producer_id UUID,
  seal_number UInt64,
  first_sequence UInt64,
  last_sequence UInt64,
  merkle_root String,
  previous_seal_digest String,
  sealed_at DateTime64(6, 'UTC'),
  signature Nullable(String),
  signing_key_id LowCardinality(Nullable(String)),
  stored_at DateTime64(3, 'UTC') DEFAULT now64(3)
) ENGINE = ReplacingMergeTree
ORDER BY (producer_id, seal_number, first_sequence, last_sequence, merkle_root,
  previous_seal_digest, sealed_at);

-- By position; of two rows the one that was re-driven last holds.
CREATE TABLE IF NOT EXISTS dead_letters (
  topic LowCardinality(String),
  partition Int32,
  offset Int64,
  cause LowCardinality(String),
  detail String,
  producer_id Nullable(String),
  sequence Nullable(UInt64),
  dead_lettered_at DateTime64(6, 'UTC'),
  redriven_at Nullable(DateTime64(6, 'UTC')),
  version UInt64
) ENGINE = ReplacingMergeTree(version)
ORDER BY (topic, partition, offset);

CREATE TABLE IF NOT EXISTS retired_producers (
  producer_id UUID,
  reason String,
  retired_by String,
  retired_at DateTime64(6, 'UTC')
) ENGINE = ReplacingMergeTree(retired_at)
ORDER BY producer_id;
