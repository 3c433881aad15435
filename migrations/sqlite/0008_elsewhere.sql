-- Work that goes on elsewhere. A run that waits for it is nobody's: since when it does, whether something happened since
-- it was taken that makes it due at once, and why it is taken back, where it is.
ALTER TABLE run ADD COLUMN waits_since INTEGER;
ALTER TABLE run ADD COLUMN woken INTEGER NOT NULL DEFAULT 0;
ALTER TABLE run ADD COLUMN why TEXT;

-- An errand: what was begun elsewhere in one attempt of a request, made before the call that begins it. Its ID is that of
-- the callback by which it is reported on. What the other side shares with the portal, what the provisioner noted of
-- it, and what was reported last, are sealed.
CREATE TABLE errand (
    id          BLOB PRIMARY KEY NOT NULL,
    request     BLOB NOT NULL,
    attempt     INTEGER NOT NULL,
    operation   TEXT NOT NULL CHECK (operation IN ('apply', 'undo', 'destroy')),
    secret      BLOB NOT NULL,
    note        BLOB,
    state       TEXT CHECK (state IN ('running', 'succeeded', 'failed')),
    sequence    INTEGER,
    outcome     BLOB,
    events      INTEGER NOT NULL DEFAULT 0,
    created_at  INTEGER NOT NULL,
    reported_at INTEGER,
    -- It succeeded after its request had come to another end: something may stand that nobody answers for.
    orphaned_at INTEGER
) STRICT;
CREATE UNIQUE INDEX errand_of_request ON errand (request, attempt, operation);
CREATE INDEX errand_age ON errand (created_at);
CREATE INDEX errand_orphaned ON errand (orphaned_at DESC, id DESC) WHERE orphaned_at IS NOT NULL;

-- Reports on errands, each taken in once: by its source and the ID that the source gave it.
CREATE TABLE callback (
    errand     BLOB NOT NULL,
    event      TEXT NOT NULL CHECK (length(event) BETWEEN 1 AND 255),
    body_hash  BLOB NOT NULL,
    outcome    TEXT NOT NULL,
    sequence   INTEGER NOT NULL,
    at         INTEGER NOT NULL,
    repeats    INTEGER NOT NULL DEFAULT 0,
    mismatches INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (errand, event)
) STRICT, WITHOUT ROWID;
