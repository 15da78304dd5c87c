-- Acceptances by time, a narrow row each: a list of reuses looks among them for the first acceptance
-- of what was refused in its range, and for second ones. `since` is the earliest at which another
-- event of the same token may stand: its issuance; a token whose issuance is not told lived a day.
CREATE TABLE IF NOT EXISTS acceptances (
  occurred_at DateTime64(6, 'UTC') CODEC(Delta, ZSTD(1)),
  event_id UUID CODEC(ZSTD(1)),
  nonce_hash UInt64 CODEC(NONE),
  since DateTime64(6, 'UTC') CODEC(Delta, ZSTD(1))
) ENGINE = ReplacingMergeTree
PARTITION BY toYYYYMM(occurred_at)
ORDER BY (occurred_at, event_id)
SETTINGS index_granularity = 1024, min_age_to_force_merge_seconds = 86400,
  min_age_to_force_merge_on_partition_only = 1;

CREATE MATERIALIZED VIEW IF NOT EXISTS acceptances_from_events TO acceptances AS
SELECT occurred_at, event_id, sipHash64(assumeNotNull(nonce)) AS nonce_hash,
  least(ifNull(issued_at, occurred_at - INTERVAL 1 DAY), occurred_at) AS since
FROM events
WHERE event_type = 'accepted' AND nonce_trust = 'verified' AND isNotNull(nonce);

-- What was turned down says the same of its token. A refusal may come long after its token's end, so
-- that one whose issuance is not told may belong to an acceptance of any time.
ALTER TABLE turned_down ADD COLUMN IF NOT EXISTS since DateTime64(6, 'UTC') CODEC(ZSTD(1));

ALTER TABLE turned_down_from_events MODIFY QUERY
SELECT occurred_at, event_id, sipHash64(assumeNotNull(nonce)) AS nonce_hash, event_type,
  (event_type = 'replayed') OR ifNull(reason = 'already_used', false) AS known_spent,
  tenant, tool, principal,
  least(ifNull(issued_at, toDateTime64(0, 6, 'UTC')), occurred_at) AS since
FROM events
WHERE nonce_trust = 'verified' AND event_type IN ('refused', 'replayed') AND isNotNull(nonce);

-- What was stored before. What both tell of counts once.
INSERT INTO acceptances
SELECT occurred_at, event_id, sipHash64(assumeNotNull(nonce)),
  least(ifNull(issued_at, occurred_at - INTERVAL 1 DAY), occurred_at)
FROM events
WHERE event_type = 'accepted' AND nonce_trust = 'verified' AND isNotNull(nonce);

INSERT INTO turned_down (occurred_at, event_id, nonce_hash, event_type, known_spent, tenant, tool, principal, since)
SELECT occurred_at, event_id, sipHash64(assumeNotNull(nonce)), event_type,
  (event_type = 'replayed') OR ifNull(reason = 'already_used', false),
  tenant, tool, principal,
  least(ifNull(issued_at, toDateTime64(0, 6, 'UTC')), occurred_at)
FROM events
WHERE nonce_trust = 'verified' AND event_type IN ('refused', 'replayed') AND isNotNull(nonce);
