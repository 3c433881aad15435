-- Where teams want to be told of what happens to their requests; team '-' is the whole portal. `secrets` is sealed.
CREATE TABLE notification (
    id              UUID PRIMARY KEY,
    team            TEXT COLLATE "C" NOT NULL,
    label           TEXT COLLATE "C" NOT NULL,
    url             TEXT COLLATE "C" NOT NULL,
    events          TEXT COLLATE "C" NOT NULL,
    secrets         BYTEA NOT NULL,
    old_until       BIGINT,
    created_by      TEXT COLLATE "C" NOT NULL,
    created_at      BIGINT NOT NULL,
    updated_at      BIGINT NOT NULL,
    given_up        BIGINT NOT NULL DEFAULT 0,
    disabled_at     BIGINT,
    disabled_reason TEXT COLLATE "C",
    removed_at      BIGINT
);
CREATE INDEX notification_of_team ON notification (team, created_at DESC, id DESC) WHERE removed_at IS NULL;
CREATE INDEX notification_removed ON notification (removed_at) WHERE removed_at IS NOT NULL;
CREATE INDEX notification_seal ON notification (substr(secrets, 1, 6));

-- What is to be told, written with the change that it tells of. due_at is when a server may take it: at once or after a
-- wait when idle, at the end of the lease while one sends it. since is when the time began over which it is tried.
CREATE TABLE notification_delivery (
    id           UUID PRIMARY KEY,
    notification UUID NOT NULL,
    event        TEXT COLLATE "C" NOT NULL,
    request      UUID,
    data         TEXT COLLATE "C" NOT NULL,
    state        TEXT COLLATE "C" NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'delivered', 'given_up')),
    since        BIGINT NOT NULL,
    due_at       BIGINT NOT NULL,
    owner        TEXT COLLATE "C",
    fence        BIGINT NOT NULL DEFAULT 0,
    tries        BIGINT NOT NULL DEFAULT 0,
    attempts     TEXT COLLATE "C" NOT NULL DEFAULT '[]',
    created_at   BIGINT NOT NULL,
    CHECK (owner IS NULL OR state = 'waiting')
);
CREATE INDEX notification_delivery_due ON notification_delivery (due_at) WHERE state = 'waiting';
CREATE INDEX notification_delivery_under_way ON notification_delivery (notification, due_at) WHERE owner IS NOT NULL;
CREATE INDEX notification_delivery_newest ON notification_delivery (notification, created_at DESC, id DESC);
CREATE INDEX notification_delivery_over ON notification_delivery (since);
