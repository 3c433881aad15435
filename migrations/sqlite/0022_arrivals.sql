-- Of arrivals that led to a request nobody asks by their key: the claim leads to the request, and that to them. Without
-- them the index stays small and orderly, where keys are random and most arrivals are first or repeated ones.
DROP INDEX submission_of_key;
CREATE INDEX submission_of_key ON submission (team, principal, key) WHERE request IS NULL;
