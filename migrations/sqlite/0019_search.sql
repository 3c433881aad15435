-- What else than a create one team asked for.
CREATE INDEX request_of_team_action ON request (team, action, created_at DESC, id DESC) WHERE action <> 'create';
