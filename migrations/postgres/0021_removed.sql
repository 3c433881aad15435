-- What was removed and is asked to be removed once more was there. The notification itself goes with its secrets.
CREATE TABLE removed_notification (
    id         UUID PRIMARY KEY,
    team       TEXT COLLATE "C" NOT NULL,
    removed_at BIGINT NOT NULL
);
INSERT INTO removed_notification (id, team, removed_at)
SELECT id, team, removed_at FROM notification WHERE removed_at IS NOT NULL;
