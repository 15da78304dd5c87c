-- Who and what is busiest, by the day, so that a month is ranked from few rows.

-- 20,000 callers overflow the dictionary of a LowCardinality column, which is then slower to read
-- than plain text.
ALTER TABLE events MODIFY COLUMN principal Nullable(String) CODEC(ZSTD(1));

-- Tenants and tools are few, so that sets of sequence numbers stay few as well.
CREATE TABLE IF NOT EXISTS busiest_1d (
  kind LowCardinality(String),
  bucket DateTime('UTC'),
  name String CODEC(ZSTD(1)),
  producer_id UUID CODEC(ZSTD(1)),
  epoch UInt32 CODEC(ZSTD(1)),
  sequences AggregateFunction(groupBitmap, UInt32)
) ENGINE = AggregatingMergeTree
PARTITION BY toYYYYMM(bucket)
ORDER BY (kind, bucket, name, producer_id, epoch)
SETTINGS index_granularity = 1024;

CREATE MATERIALIZED VIEW IF NOT EXISTS busiest_1d_tenants TO busiest_1d AS
SELECT 'tenant' AS kind, toStartOfDay(toDateTime(occurred_at, 'UTC')) AS bucket,
  assumeNotNull(tenant) AS name, producer_id, toUInt32(intDiv(sequence, 4294967296)) AS epoch,
  groupBitmapState(toUInt32(sequence % 4294967296)) AS sequences
FROM events
WHERE isNotNull(tenant)
GROUP BY bucket, name, producer_id, epoch;

CREATE MATERIALIZED VIEW IF NOT EXISTS busiest_1d_tools TO busiest_1d AS
SELECT 'tool' AS kind, toStartOfDay(toDateTime(occurred_at, 'UTC')) AS bucket,
  toString(tool) AS name, producer_id, toUInt32(intDiv(sequence, 4294967296)) AS epoch,
  groupBitmapState(toUInt32(sequence % 4294967296)) AS sequences
FROM events
GROUP BY bucket, name, producer_id, epoch;

-- Callers are many, and each has few events a day: with a set for each producer there would be
-- nearly as many rows as events. A caller's day is the set of its events, eight bytes each.
CREATE TABLE IF NOT EXISTS callers_1d (
  bucket DateTime('UTC'),
  principal String CODEC(ZSTD(1)),
  event_hashes SimpleAggregateFunction(groupUniqArrayArray, Array(UInt64)) CODEC(NONE)
) ENGINE = AggregatingMergeTree
PARTITION BY toYYYYMM(bucket)
ORDER BY (bucket, principal)
SETTINGS index_granularity = 1024;

CREATE MATERIALIZED VIEW IF NOT EXISTS callers_1d_from_events TO callers_1d AS
SELECT toStartOfDay(toDateTime(occurred_at, 'UTC')) AS bucket,
  assumeNotNull(events.principal) AS principal, groupUniqArray(sipHash64(event_id)) AS event_hashes
FROM events
WHERE isNotNull(events.principal)
GROUP BY bucket, principal;

-- What was stored before the views were there. What both tell of counts once.
INSERT INTO busiest_1d
SELECT 'tenant', toStartOfDay(toDateTime(occurred_at, 'UTC')) AS bucket, assumeNotNull(tenant) AS name,
  producer_id, toUInt32(intDiv(sequence, 4294967296)) AS epoch,
  groupBitmapState(toUInt32(sequence % 4294967296))
FROM events
WHERE isNotNull(tenant)
GROUP BY bucket, name, producer_id, epoch;

INSERT INTO busiest_1d
SELECT 'tool', toStartOfDay(toDateTime(occurred_at, 'UTC')) AS bucket, toString(tool) AS name,
  producer_id, toUInt32(intDiv(sequence, 4294967296)) AS epoch,
  groupBitmapState(toUInt32(sequence % 4294967296))
FROM events
GROUP BY bucket, name, producer_id, epoch;

INSERT INTO callers_1d
SELECT toStartOfDay(toDateTime(occurred_at, 'UTC')) AS bucket,
  assumeNotNull(events.principal) AS principal, groupUniqArray(sipHash64(event_id))
FROM events
WHERE isNotNull(events.principal)
GROUP BY bucket, principal;
