-- How many duplicates the guard stopped, by quarter of an hour (every zone's days begin on one), by what answered them and
-- by where they came from. Counted when an arrival is written down or only counted, so that it holds both. It is sparse:
-- a quarter without duplicates has no row; it is kept as long as the history of which it is the sum.
CREATE TABLE duplicate_count (
    slot        INTEGER NOT NULL,
    rule        TEXT NOT NULL,
    channel     TEXT NOT NULL,
    sent_by     TEXT NOT NULL,
    token_label TEXT NOT NULL DEFAULT '',
    count       INTEGER NOT NULL,
    PRIMARY KEY (slot, rule, channel, sent_by, token_label)
) STRICT, WITHOUT ROWID;

-- What was written down before there was a count.
INSERT INTO duplicate_count (slot, rule, channel, sent_by, token_label, count)
SELECT at - at % 900000,
       CASE WHEN problem = 'idempotency-key-expired' THEN 'expired' WHEN problem = 'suspected-duplicate' THEN 'asked'
            ELSE outcome END AS rule,
       channel, sent_by, coalesce(token_label, ''), count(*)
  FROM submission
 WHERE outcome IN ('replayed', 'waited', 'mismatched')
    OR (outcome = 'refused' AND problem IN ('idempotency-key-expired', 'suspected-duplicate'))
 GROUP BY 1, 2, 3, 4, 5;
-- And what was only counted: nobody knows when, so it counts with the last of its key that was written down.
INSERT INTO duplicate_count (slot, rule, channel, sent_by, token_label, count)
SELECT last.at - last.at % 900000, 'replayed', last.channel, last.sent_by, coalesce(last.token_label, ''),
       sum(claim.repeats - 999)
  FROM claim
  JOIN submission AS last
    ON last.id = (SELECT id FROM submission AS s
                   WHERE s.team = claim.team AND s.principal = claim.principal AND s.key = claim.key
                   ORDER BY s.at DESC, s.id DESC LIMIT 1)
 WHERE claim.repeats > 999
 GROUP BY 1, 3, 4, 5
    ON CONFLICT (slot, rule, channel, sent_by, token_label) DO UPDATE SET count = duplicate_count.count + excluded.count;

-- Duplicates that a first submission with its key turned out to be: they are written with their claim, and counted there.
CREATE INDEX submission_existing_by_time ON submission (at) WHERE outcome = 'existing';
CREATE INDEX request_duplicate_by_time ON request (created_at) WHERE duplicate_of IS NOT NULL;

-- Views of the history that somebody gave a name: the filter as the page's address spells it.
CREATE TABLE saved_view (
    id         BLOB PRIMARY KEY NOT NULL,
    principal  BLOB NOT NULL REFERENCES principal (id),
    page       TEXT NOT NULL,
    name       TEXT NOT NULL CHECK (length(name) BETWEEN 1 AND 80),
    filter     TEXT NOT NULL,
    team       TEXT REFERENCES team (name),
    created_at INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX saved_view_name ON saved_view (principal, page, name);
CREATE INDEX saved_view_of_team ON saved_view (team, page, name) WHERE team IS NOT NULL;
