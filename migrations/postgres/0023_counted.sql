-- How many arrivals of a key were counted without being written down: those beyond a thousand, and those that came faster
-- than they could be written.
ALTER TABLE claim ADD COLUMN only_counted BIGINT NOT NULL DEFAULT 0;
UPDATE claim SET only_counted = repeats - 999 WHERE repeats > 999;
