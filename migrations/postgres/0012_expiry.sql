-- When a resource ends, as its offering tells, and from when on somebody is to be told of that; NULL once it was told.
-- lasts_from is when it was made, from which a time to live counts.
ALTER TABLE resource ADD COLUMN lasts_from BIGINT;
ALTER TABLE resource ADD COLUMN expires_at BIGINT;
ALTER TABLE resource ADD COLUMN warn_at BIGINT;
CREATE INDEX resource_warn ON resource (warn_at) WHERE state = 'active' AND warn_at IS NOT NULL;

UPDATE resource SET lasts_from = (SELECT finished_at FROM request WHERE request.id = resource.request)
 WHERE ended_at IS NULL AND state <> 'creating';
