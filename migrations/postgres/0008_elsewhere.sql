-- Work that goes on elsewhere. A run that waits for it is nobody's: since when it does, whether something happened since
-- it was taken that makes it due at once, and why it is taken back, where it is.
ALTER TABLE run ADD COLUMN waits_since BIGINT;
ALTER TABLE run ADD COLUMN woken BOOLEAN NOT NULL DEFAULT FALSE;
ALTER TABLE run ADD COLUMN why TEXT COLLATE "C";

-- An errand: what was begun elsewhere in one attempt of a request, made before the call that begins it. Its ID is that of
-- the callback by which it is reported on. What the other side shares with the portal, what the provisioner noted of
-- it, and what was reported last, are sealed.
CREATE TABLE errand (
    id          UUID PRIMARY KEY NOT NULL,
    request     UUID NOT NULL,
    attempt     BIGINT NOT NULL,
    operation   TEXT COLLATE "C" NOT NULL CHECK (operation IN ('apply', 'undo', 'destroy')),
    secret      BYTEA NOT NULL,
    note        BYTEA,
    state       TEXT COLLATE "C" CHECK (state IN ('running', 'succeeded', 'failed')),
    sequence    BIGINT,
    outcome     BYTEA,
    events      BIGINT NOT NULL DEFAULT 0,
    created_at  BIGINT NOT NULL,
    reported_at BIGINT,
    -- It succeeded after its request had come to another end: something may stand that nobody answers for.
    orphaned_at BIGINT
);
CREATE UNIQUE INDEX errand_of_request ON errand (request, attempt, operation);
CREATE INDEX errand_age ON errand (created_at);
CREATE INDEX errand_orphaned ON errand (orphaned_at DESC, id DESC) WHERE orphaned_at IS NOT NULL;

-- Reports on errands, each taken in once: by its source and the ID that the source gave it.
CREATE TABLE callback (
    errand     UUID NOT NULL,
    event      TEXT COLLATE "C" NOT NULL CHECK (length(event) BETWEEN 1 AND 255),
    body_hash  BYTEA NOT NULL,
    outcome    TEXT COLLATE "C" NOT NULL,
    sequence   BIGINT NOT NULL,
    at         BIGINT NOT NULL,
    repeats    BIGINT NOT NULL DEFAULT 0,
    mismatches BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (errand, event)
);
