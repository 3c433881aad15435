-- Times are milliseconds since 1970 in UTC. IDs are the 16 bytes of a UUID. JSON columns hold canonical JSON (RFC 8785),
-- so that equal values are equal texts.

CREATE TABLE setting (
    name  TEXT PRIMARY KEY NOT NULL,
    value BLOB NOT NULL
) STRICT;

CREATE TABLE principal (
    id            BLOB PRIMARY KEY NOT NULL,
    name          TEXT NOT NULL UNIQUE,
    role          TEXT NOT NULL CHECK (role IN ('admin', 'member')),
    password_hash TEXT,
    created_at    INTEGER NOT NULL
) STRICT;

CREATE TABLE team (
    name       TEXT PRIMARY KEY NOT NULL CHECK (length(name) BETWEEN 1 AND 63),
    created_at INTEGER NOT NULL
) STRICT;

CREATE TABLE member (
    team      TEXT NOT NULL REFERENCES team (name),
    principal BLOB NOT NULL REFERENCES principal (id),
    role      TEXT NOT NULL CHECK (role IN ('owner', 'member', 'viewer')),
    PRIMARY KEY (team, principal)
) STRICT, WITHOUT ROWID;
CREATE INDEX member_of_principal ON member (principal);

CREATE TABLE token (
    id           BLOB PRIMARY KEY NOT NULL,
    principal    BLOB NOT NULL REFERENCES principal (id),
    label        TEXT NOT NULL,
    digest       BLOB NOT NULL UNIQUE,
    created_at   INTEGER NOT NULL,
    expires_at   INTEGER NOT NULL,
    last_used_at INTEGER,
    revoked_at   INTEGER
) STRICT;
CREATE INDEX token_of_principal ON token (principal, created_at);

CREATE TABLE session (
    id         TEXT PRIMARY KEY NOT NULL,
    data       BLOB NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX session_expiry ON session (expires_at);

-- Schemas as they stood, so that a repeat is understood as its first was.
CREATE TABLE offering_schema (
    digest TEXT PRIMARY KEY NOT NULL,
    schema TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE request (
    id               BLOB PRIMARY KEY NOT NULL,
    team             TEXT NOT NULL,
    principal        BLOB NOT NULL,
    requested_by     TEXT NOT NULL,
    channel          TEXT NOT NULL,
    action           TEXT NOT NULL,
    offering         TEXT NOT NULL,
    offering_version TEXT NOT NULL,
    type             TEXT NOT NULL,
    name             TEXT NOT NULL CHECK (length(name) BETWEEN 1 AND 63),
    resource         BLOB NOT NULL,
    parameters       TEXT NOT NULL,
    labels           TEXT NOT NULL,
    correlation_id   TEXT NOT NULL,
    parent_id        BLOB,
    state            TEXT NOT NULL CHECK (state IN ('pending_approval', 'queued', 'running', 'succeeded', 'failed',
                                                    'canceled', 'rejected', 'unknown')),
    reason           TEXT,
    attempt          INTEGER NOT NULL DEFAULT 1,
    outputs          TEXT NOT NULL DEFAULT '{}',
    secret_names     TEXT NOT NULL DEFAULT '[]',
    created_at       INTEGER NOT NULL,
    updated_at       INTEGER NOT NULL,
    finished_at      INTEGER,
    CHECK ((finished_at IS NOT NULL) = (state IN ('succeeded', 'failed', 'canceled', 'rejected')))
) STRICT;
CREATE INDEX request_newest ON request (created_at DESC, id DESC);
CREATE INDEX request_newest_of_team ON request (team, created_at DESC, id DESC);
CREATE INDEX request_newest_of_principal ON request (principal, created_at DESC, id DESC);
CREATE INDEX request_correlation ON request (correlation_id, created_at DESC, id DESC);
CREATE INDEX request_parent ON request (parent_id) WHERE parent_id IS NOT NULL;

-- One row a life: a name made again after its end has a new one.
CREATE TABLE resource (
    id           BLOB PRIMARY KEY NOT NULL,
    team         TEXT NOT NULL,
    type         TEXT NOT NULL,
    name         TEXT NOT NULL CHECK (length(name) BETWEEN 1 AND 63),
    offering     TEXT NOT NULL,
    state        TEXT NOT NULL CHECK (state IN ('creating', 'active', 'deleting', 'gone')),
    version      INTEGER NOT NULL DEFAULT 1,
    parameters   TEXT NOT NULL,
    outputs      TEXT NOT NULL DEFAULT '{}',
    secret_names TEXT NOT NULL DEFAULT '[]',
    secrets      BLOB,
    request      BLOB NOT NULL,
    created_at   INTEGER NOT NULL,
    updated_at   INTEGER NOT NULL,
    ended_at     INTEGER,
    CHECK ((ended_at IS NOT NULL) = (state = 'gone'))
) STRICT;
-- The last line of the name rule.
CREATE UNIQUE INDEX resource_name ON resource (team, type, name) WHERE ended_at IS NULL;

-- The guard: one row a key, unique within (team, principal, key); the answer that every repeat gets.
CREATE TABLE claim (
    id               INTEGER PRIMARY KEY NOT NULL,
    team             TEXT NOT NULL,
    principal        BLOB NOT NULL,
    key              TEXT NOT NULL CHECK (length(key) BETWEEN 1 AND 255),
    fingerprint      BLOB NOT NULL,
    body_hash        BLOB NOT NULL,
    key_version      INTEGER NOT NULL,
    schema_digest    TEXT,
    command          TEXT,
    request          BLOB,
    answer_kind      TEXT NOT NULL CHECK (answer_kind IN ('accepted', 'created', 'done', 'no_content')),
    existing         INTEGER NOT NULL DEFAULT 0,
    location         TEXT,
    etag             TEXT,
    body             BLOB NOT NULL,
    claimed_at       INTEGER NOT NULL,
    repeats          INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE UNIQUE INDEX claim_scope ON claim (team, principal, key);
CREATE INDEX claim_request ON claim (request) WHERE request IS NOT NULL;

CREATE TABLE submission (
    id             BLOB PRIMARY KEY NOT NULL,
    team           TEXT NOT NULL,
    principal      BLOB NOT NULL,
    key            TEXT NOT NULL,
    request        BLOB,
    operation      TEXT NOT NULL,
    outcome        TEXT NOT NULL,
    problem        TEXT,
    channel        TEXT NOT NULL,
    sent_by        TEXT NOT NULL,
    token_label    TEXT,
    address        TEXT,
    correlation_id TEXT,
    labels         TEXT NOT NULL DEFAULT '{}',
    at             INTEGER NOT NULL
) STRICT;
CREATE INDEX submission_of_request ON submission (request, at, id) WHERE request IS NOT NULL;
CREATE INDEX submission_of_key ON submission (team, principal, key);

-- The queue: one row for each request that has work to do. due_at is when a worker may take it: at once or after a
-- back-off when idle, at the end of the lease while somebody holds it.
CREATE TABLE run (
    request  BLOB PRIMARY KEY NOT NULL,
    attempt  INTEGER NOT NULL,
    due_at   INTEGER NOT NULL,
    owner    TEXT,
    fence    INTEGER NOT NULL DEFAULT 0,
    tries    INTEGER NOT NULL DEFAULT 0,
    intent   TEXT NOT NULL DEFAULT 'apply' CHECK (intent IN ('apply', 'cancel', 'adopt', 'abandon')),
    touched  INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;
CREATE INDEX run_due ON run (due_at);
-- What was begun comes before what was not: it may stand half-way, or somebody waits for it to be stopped.
CREATE INDEX run_begun ON run (due_at) WHERE touched = 1 OR owner IS NOT NULL;

CREATE TABLE event (
    request BLOB NOT NULL,
    seq     INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    at      INTEGER NOT NULL,
    entry   TEXT NOT NULL,
    PRIMARY KEY (request, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE audit (
    id      INTEGER PRIMARY KEY NOT NULL,
    at      INTEGER NOT NULL,
    actor   TEXT NOT NULL,
    channel TEXT NOT NULL,
    act     TEXT NOT NULL,
    team    TEXT NOT NULL,
    target  TEXT NOT NULL,
    detail  TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE INDEX audit_time ON audit (at);
