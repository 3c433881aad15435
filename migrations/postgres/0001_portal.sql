-- Times are milliseconds since 1970 in UTC. JSON columns hold canonical JSON (RFC 8785), so that equal values are equal
-- texts. Texts are compared byte by byte, whatever the database's own collation: keys are case-sensitive, and lists and
-- their cursors come in one order everywhere.

-- The moment by which deadlines of runs are reckoned: the database's own, whatever the clock of the server says that
-- asks. STABLE, since it is the same throughout a statement, so that indexes serve.
CREATE FUNCTION keyturn_now(servers_own BIGINT) RETURNS BIGINT LANGUAGE sql STABLE AS
    $$ SELECT floor(extract(epoch FROM statement_timestamp()) * 1000)::BIGINT $$;

CREATE TABLE setting (
    name  TEXT COLLATE "C" PRIMARY KEY,
    value BYTEA NOT NULL
);

CREATE TABLE principal (
    id            UUID PRIMARY KEY,
    name          TEXT COLLATE "C" NOT NULL UNIQUE,
    role          TEXT COLLATE "C" NOT NULL CHECK (role IN ('admin', 'member')),
    password_hash TEXT COLLATE "C",
    created_at    BIGINT NOT NULL
);

CREATE TABLE team (
    name       TEXT COLLATE "C" PRIMARY KEY CHECK (length(name) BETWEEN 1 AND 63),
    created_at BIGINT NOT NULL
);

CREATE TABLE member (
    team      TEXT COLLATE "C" NOT NULL REFERENCES team (name),
    principal UUID NOT NULL REFERENCES principal (id),
    role      TEXT COLLATE "C" NOT NULL CHECK (role IN ('owner', 'member', 'viewer')),
    PRIMARY KEY (team, principal)
);
CREATE INDEX member_of_principal ON member (principal);

CREATE TABLE token (
    id           UUID PRIMARY KEY,
    principal    UUID NOT NULL REFERENCES principal (id),
    label        TEXT COLLATE "C" NOT NULL,
    digest       BYTEA NOT NULL UNIQUE,
    created_at   BIGINT NOT NULL,
    expires_at   BIGINT NOT NULL,
    last_used_at BIGINT,
    revoked_at   BIGINT
);
CREATE INDEX token_of_principal ON token (principal, created_at);

CREATE TABLE session (
    id         TEXT COLLATE "C" PRIMARY KEY,
    data       BYTEA NOT NULL,
    expires_at BIGINT NOT NULL
);
CREATE INDEX session_expiry ON session (expires_at);

-- Schemas as they stood, so that a repeat is understood as its first was.
CREATE TABLE offering_schema (
    digest TEXT COLLATE "C" PRIMARY KEY,
    schema TEXT COLLATE "C" NOT NULL
);

CREATE TABLE request (
    id               UUID PRIMARY KEY,
    team             TEXT COLLATE "C" NOT NULL,
    principal        UUID NOT NULL,
    requested_by     TEXT COLLATE "C" NOT NULL,
    channel          TEXT COLLATE "C" NOT NULL,
    action           TEXT COLLATE "C" NOT NULL,
    offering         TEXT COLLATE "C" NOT NULL,
    offering_version TEXT COLLATE "C" NOT NULL,
    type             TEXT COLLATE "C" NOT NULL,
    name             TEXT COLLATE "C" NOT NULL CHECK (length(name) BETWEEN 1 AND 63),
    resource         UUID NOT NULL,
    parameters       TEXT COLLATE "C" NOT NULL,
    labels           TEXT COLLATE "C" NOT NULL,
    correlation_id   TEXT COLLATE "C" NOT NULL,
    parent_id        UUID,
    state            TEXT COLLATE "C" NOT NULL CHECK (state IN ('pending_approval', 'queued', 'running', 'succeeded', 'failed',
                                                    'canceled', 'rejected', 'unknown')),
    reason           TEXT COLLATE "C",
    attempt          BIGINT NOT NULL DEFAULT 1,
    outputs          TEXT COLLATE "C" NOT NULL DEFAULT '{}',
    secret_names     TEXT COLLATE "C" NOT NULL DEFAULT '[]',
    created_at       BIGINT NOT NULL,
    updated_at       BIGINT NOT NULL,
    finished_at      BIGINT,
    CHECK ((finished_at IS NOT NULL) = (state IN ('succeeded', 'failed', 'canceled', 'rejected')))
);
CREATE INDEX request_newest ON request (created_at DESC, id DESC);
CREATE INDEX request_newest_of_team ON request (team, created_at DESC, id DESC);
CREATE INDEX request_newest_of_principal ON request (principal, created_at DESC, id DESC);
CREATE INDEX request_correlation ON request (correlation_id, created_at DESC, id DESC);
CREATE INDEX request_parent ON request (parent_id) WHERE parent_id IS NOT NULL;

-- One row a life: a name made again after its end has a new one.
CREATE TABLE resource (
    id           UUID PRIMARY KEY,
    team         TEXT COLLATE "C" NOT NULL,
    type         TEXT COLLATE "C" NOT NULL,
    name         TEXT COLLATE "C" NOT NULL CHECK (length(name) BETWEEN 1 AND 63),
    offering     TEXT COLLATE "C" NOT NULL,
    state        TEXT COLLATE "C" NOT NULL CHECK (state IN ('creating', 'active', 'deleting', 'gone')),
    version      BIGINT NOT NULL DEFAULT 1,
    parameters   TEXT COLLATE "C" NOT NULL,
    outputs      TEXT COLLATE "C" NOT NULL DEFAULT '{}',
    secret_names TEXT COLLATE "C" NOT NULL DEFAULT '[]',
    secrets      BYTEA,
    request      UUID NOT NULL,
    created_at   BIGINT NOT NULL,
    updated_at   BIGINT NOT NULL,
    ended_at     BIGINT,
    CHECK ((ended_at IS NOT NULL) = (state = 'gone'))
);
-- The last line of the name rule.
CREATE UNIQUE INDEX resource_name ON resource (team, type, name) WHERE ended_at IS NULL;

-- The guard: one row a key, unique within (team, principal, key); the answer that every repeat gets.
CREATE TABLE claim (
    id               BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    team             TEXT COLLATE "C" NOT NULL,
    principal        UUID NOT NULL,
    key              TEXT COLLATE "C" NOT NULL CHECK (length(key) BETWEEN 1 AND 255),
    fingerprint      BYTEA NOT NULL,
    body_hash        BYTEA NOT NULL,
    key_version      BIGINT NOT NULL,
    schema_digest    TEXT COLLATE "C",
    command          TEXT COLLATE "C",
    request          UUID,
    answer_kind      TEXT COLLATE "C" NOT NULL CHECK (answer_kind IN ('accepted', 'created', 'done', 'no_content')),
    existing         BOOLEAN NOT NULL DEFAULT FALSE,
    location         TEXT COLLATE "C",
    etag             TEXT COLLATE "C",
    body             BYTEA NOT NULL,
    claimed_at       BIGINT NOT NULL,
    repeats          BIGINT NOT NULL DEFAULT 0
);
CREATE UNIQUE INDEX claim_scope ON claim (team, principal, key);
CREATE INDEX claim_request ON claim (request) WHERE request IS NOT NULL;

CREATE TABLE submission (
    id             UUID PRIMARY KEY,
    team           TEXT COLLATE "C" NOT NULL,
    principal      UUID NOT NULL,
    key            TEXT COLLATE "C" NOT NULL,
    request        UUID,
    operation      TEXT COLLATE "C" NOT NULL,
    outcome        TEXT COLLATE "C" NOT NULL,
    problem        TEXT COLLATE "C",
    channel        TEXT COLLATE "C" NOT NULL,
    sent_by        TEXT COLLATE "C" NOT NULL,
    token_label    TEXT COLLATE "C",
    address        TEXT COLLATE "C",
    correlation_id TEXT COLLATE "C",
    labels         TEXT COLLATE "C" NOT NULL DEFAULT '{}',
    at             BIGINT NOT NULL
);
CREATE INDEX submission_of_request ON submission (request, at, id) WHERE request IS NOT NULL;
CREATE INDEX submission_of_key ON submission (team, principal, key);

-- The queue: one row for each request that has work to do. due_at is when a worker may take it: at once or after a
-- back-off when idle, at the end of the lease while somebody holds it.
CREATE TABLE run (
    request  UUID PRIMARY KEY,
    attempt  BIGINT NOT NULL,
    due_at   BIGINT NOT NULL,
    owner    TEXT COLLATE "C",
    fence    BIGINT NOT NULL DEFAULT 0,
    tries    BIGINT NOT NULL DEFAULT 0,
    intent   TEXT COLLATE "C" NOT NULL DEFAULT 'apply' CHECK (intent IN ('apply', 'cancel', 'adopt', 'abandon')),
    touched  BOOLEAN NOT NULL DEFAULT FALSE
);
CREATE INDEX run_due ON run (due_at);
-- What was begun comes before what was not: it may stand half-way, or somebody waits for it to be stopped.
CREATE INDEX run_begun ON run (due_at) WHERE touched OR owner IS NOT NULL;

CREATE TABLE event (
    request UUID NOT NULL,
    seq     BIGINT NOT NULL,
    attempt BIGINT NOT NULL,
    at      BIGINT NOT NULL,
    entry   TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (request, seq)
);

CREATE TABLE audit (
    id      BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    at      BIGINT NOT NULL,
    actor   TEXT COLLATE "C" NOT NULL,
    channel TEXT COLLATE "C" NOT NULL,
    act     TEXT COLLATE "C" NOT NULL,
    team    TEXT COLLATE "C" NOT NULL,
    target  TEXT COLLATE "C" NOT NULL,
    detail  TEXT COLLATE "C" NOT NULL DEFAULT ''
);
CREATE INDEX audit_time ON audit (at);
