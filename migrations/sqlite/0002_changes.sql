-- What a resource was last brought to (nothing before its create is done), and the delete that ended it or is about to.
ALTER TABLE resource ADD COLUMN applied TEXT;
ALTER TABLE resource ADD COLUMN ended_by BLOB;
UPDATE resource SET applied = parameters WHERE state = 'active';
CREATE INDEX resource_deleted ON resource (team, type, name, created_at DESC, id DESC)
    WHERE ended_by IS NOT NULL AND ended_at IS NOT NULL;

-- Changes: how an update was sent, what the resource is meant to be then, how that comes from what it was meant to be
-- before, and the change's place among those of its resource: the version that it made.
ALTER TABLE request ADD COLUMN patch TEXT;
ALTER TABLE request ADD COLUMN desired TEXT;
ALTER TABLE request ADD COLUMN delta TEXT;
ALTER TABLE request ADD COLUMN turn INTEGER NOT NULL DEFAULT 1;
CREATE INDEX request_change ON request (resource, turn) WHERE action <> 'create';
CREATE INDEX request_change_open ON request (resource, turn) WHERE action <> 'create' AND finished_at IS NULL;
