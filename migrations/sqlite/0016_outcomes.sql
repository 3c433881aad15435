-- A run that a person lets try again though nobody can tell what the earlier ones did: their word counts once. And since when
-- the servers that take a run do not know its offering.
ALTER TABLE run ADD COLUMN insisted INTEGER NOT NULL DEFAULT 0;
ALTER TABLE run ADD COLUMN lacks_since INTEGER;
