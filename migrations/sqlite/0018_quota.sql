-- The most that a team's resources may cost together; NULL where there is no limit.
ALTER TABLE team ADD COLUMN quota INTEGER CHECK (quota >= 0);
-- What a life takes up of it as long as it holds its name, as its offering told when the name was claimed.
ALTER TABLE resource ADD COLUMN cost INTEGER NOT NULL DEFAULT 1 CHECK (cost >= 0);
-- A team's use is summed up out of this alone; the name rule's index cannot hold more than it compares.
CREATE INDEX resource_cost ON resource (team, cost) WHERE ended_at IS NULL;
