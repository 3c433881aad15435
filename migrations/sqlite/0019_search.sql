-- What else than a create one team asked for.
CREATE INDEX request_of_team_action ON request (team, action, created_at DESC, id DESC) WHERE action <> 'create';

-- The words of a further key that is bound to a request say so by a term, so that requests are counted by their terms alone.
CREATE TEMP TABLE further AS
SELECT id FROM sought
 WHERE EXISTS (SELECT 1 FROM sought AS first WHERE first.request = sought.request AND first.id < sought.id);
INSERT INTO sought_term (sought_term, rowid, terms)
SELECT 'delete', id, terms FROM sought
 WHERE id IN (SELECT id FROM temp.further) AND id <= (SELECT upto FROM sought_upto) ORDER BY id;
UPDATE sought SET terms = terms || hex('k=') || ' ' WHERE id IN (SELECT id FROM temp.further);
INSERT INTO sought_term (rowid, terms)
SELECT id, terms FROM sought
 WHERE id IN (SELECT id FROM temp.further) AND id <= (SELECT upto FROM sought_upto) ORDER BY id;
DROP TABLE temp.further;
