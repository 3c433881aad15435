-- Where teams want to be told of what happens to their requests; team '-' is the whole portal. `secrets` is sealed.
CREATE TABLE notification (
    id              BLOB PRIMARY KEY NOT NULL,
    team            TEXT NOT NULL,
    label           TEXT NOT NULL,
    url             TEXT NOT NULL,
    events          TEXT NOT NULL,
    secrets         BLOB NOT NULL,
    old_until       INTEGER,
    created_by      TEXT NOT NULL,
    created_at      INTEGER NOT NULL,
    updated_at      INTEGER NOT NULL,
    given_up        INTEGER NOT NULL DEFAULT 0,
    disabled_at     INTEGER,
    disabled_reason TEXT,
    removed_at      INTEGER
) STRICT;
CREATE INDEX notification_of_team ON notification (team, created_at DESC, id DESC) WHERE removed_at IS NULL;
CREATE INDEX notification_removed ON notification (removed_at) WHERE removed_at IS NOT NULL;
CREATE INDEX notification_seal ON notification (substr(secrets, 1, 6));

-- What is to be told, written with the change that it tells of. due_at is when a server may take it: at once or after a
-- wait when idle, at the end of the lease while one sends it. since is when the time began over which it is tried.
CREATE TABLE notification_delivery (
    id           BLOB PRIMARY KEY NOT NULL,
    notification BLOB NOT NULL,
    event        TEXT NOT NULL,
    request      BLOB,
    data         TEXT NOT NULL,
    state        TEXT NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'delivered', 'given_up')),
    since        INTEGER NOT NULL,
    due_at       INTEGER NOT NULL,
    owner        TEXT,
    fence        INTEGER NOT NULL DEFAULT 0,
    tries        INTEGER NOT NULL DEFAULT 0,
    attempts     TEXT NOT NULL DEFAULT '[]',
    created_at   INTEGER NOT NULL,
    CHECK (owner IS NULL OR state = 'waiting')
) STRICT;
CREATE INDEX notification_delivery_due ON notification_delivery (due_at) WHERE state = 'waiting';
CREATE INDEX notification_delivery_under_way ON notification_delivery (notification, due_at) WHERE owner IS NOT NULL;
CREATE INDEX notification_delivery_newest ON notification_delivery (notification, created_at DESC, id DESC);
CREATE INDEX notification_delivery_over ON notification_delivery (since);
