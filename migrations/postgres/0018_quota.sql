-- The most that a team's resources may cost together; NULL where there is no limit.
ALTER TABLE team ADD COLUMN quota BIGINT CHECK (quota >= 0);
-- What a life takes up of it as long as it holds its name, as its offering told when the name was claimed.
ALTER TABLE resource ADD COLUMN cost BIGINT NOT NULL DEFAULT 1 CHECK (cost >= 0);
-- With the cost among what the name rule's index holds, a team's use is summed up out of that alone.
DROP INDEX resource_name;
CREATE UNIQUE INDEX resource_name ON resource (team, type, name) INCLUDE (cost) WHERE ended_at IS NULL;
