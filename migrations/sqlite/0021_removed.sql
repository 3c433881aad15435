-- What was removed and is asked to be removed once more was there. The notification itself goes with its secrets.
CREATE TABLE removed_notification (
    id         BLOB PRIMARY KEY NOT NULL,
    team       TEXT NOT NULL,
    removed_at INTEGER NOT NULL
) STRICT;
INSERT INTO removed_notification (id, team, removed_at)
SELECT id, team, removed_at FROM notification WHERE removed_at IS NOT NULL;
