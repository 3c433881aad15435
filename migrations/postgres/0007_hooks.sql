-- Hooks: a team's own doors for outside systems' events. The definition is what its owners say of it, as JSON. A hook that
-- was removed stays as a row, so that its address tells that it is over, but keeps no secret and no delivery.
CREATE TABLE hook (
    id         UUID PRIMARY KEY,
    team       TEXT COLLATE "C" NOT NULL REFERENCES team (name),
    definition TEXT COLLATE "C" NOT NULL,
    version    BIGINT NOT NULL DEFAULT 1,
    created_by TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    removed_at BIGINT
);
CREATE INDEX hook_of_team ON hook (team, created_at DESC, id DESC) WHERE removed_at IS NULL;

-- At most two of a hook count: the current one, which has no end, and the one before it until its end.
CREATE TABLE hook_secret (
    id      UUID PRIMARY KEY,
    hook    UUID NOT NULL REFERENCES hook (id),
    sealed  BYTEA NOT NULL,
    made_at BIGINT NOT NULL,
    ends_at BIGINT
);
CREATE UNIQUE INDEX hook_secret_current ON hook_secret (hook) WHERE ends_at IS NULL;
CREATE INDEX hook_secret_of_hook ON hook_secret (hook, made_at);
CREATE INDEX hook_secret_end ON hook_secret (ends_at) WHERE ends_at IS NOT NULL;
CREATE INDEX hook_secret_seal ON hook_secret (substr(sealed, 1, 6));

-- What arrived lately, headers and payload sealed. The event's identity is no key here: repeats are rows of their own.
CREATE TABLE delivery (
    id       UUID PRIMARY KEY,
    hook     UUID NOT NULL REFERENCES hook (id),
    at       BIGINT NOT NULL,
    event_id TEXT COLLATE "C",
    address  TEXT COLLATE "C",
    outcome  TEXT COLLATE "C" NOT NULL,
    problem  TEXT COLLATE "C",
    detail   TEXT COLLATE "C",
    request  UUID,
    size     BIGINT NOT NULL,
    sealed   BYTEA NOT NULL
);
CREATE INDEX delivery_newest ON delivery (hook, at DESC, id DESC);
CREATE INDEX delivery_time ON delivery (at);
CREATE INDEX delivery_seal ON delivery (substr(sealed, 1, 6));
