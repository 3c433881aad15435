-- The end of keys. What is over becomes a tombstone in place: the claim stays, its answer, body and command go. The
-- moment is that at which the key's retention ended, whenever it was swept.
ALTER TABLE claim ADD COLUMN retired_at INTEGER;
-- It was bound to a request that had come to its end before, so its retention counts from the claim itself.
ALTER TABLE claim ADD COLUMN late INTEGER NOT NULL DEFAULT 0;
-- Nothing is left to sweep of a request that has ended, until somebody opens it again.
ALTER TABLE request ADD COLUMN swept INTEGER NOT NULL DEFAULT 0;
CREATE INDEX request_to_sweep ON request (finished_at) WHERE finished_at IS NOT NULL AND NOT swept;
CREATE INDEX claim_of_itself ON claim (claimed_at) WHERE retired_at IS NULL AND (request IS NULL OR late);
CREATE INDEX claim_tombstone ON claim (retired_at) WHERE retired_at IS NOT NULL;

-- The second layer, for offerings with a window in which the same intention is asked about: a hash of the parameters
-- after defaults, and what is known of an earlier request when the question was answered or could not be asked.
ALTER TABLE request ADD COLUMN parameter_hash BLOB;
ALTER TABLE request ADD COLUMN duplicate_of BLOB;
ALTER TABLE request ADD COLUMN duplicate_reason TEXT;
CREATE INDEX request_same ON request (team, offering, parameter_hash, created_at DESC, id DESC)
 WHERE parameter_hash IS NOT NULL;

-- By the head of a seal, which names the version of its key.
CREATE INDEX resource_seal ON resource (substr(secrets, 1, 6)) WHERE secrets IS NOT NULL;
