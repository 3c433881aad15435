-- What else than a create one team asked for.
CREATE INDEX request_of_team_action ON request (team, action, created_at DESC, id DESC) WHERE action <> 'create';

-- The words of a further key that is bound to a request say so by a term, so that requests are counted by their terms alone.
UPDATE sought SET terms = terms || upper(encode('k=', 'hex')) || ' '
 WHERE EXISTS (SELECT 1 FROM sought AS first WHERE first.request = sought.request AND first.id < sought.id);
