-- Labels and parameters by which a request is found, whole: 'l' or 'p', key, '=' and value, of that the first 96
-- characters, each as hexadecimal digits of its UTF-8, with a blank before and after.
DELETE FROM sought;
INSERT INTO sought_trigram (sought_trigram) VALUES ('delete-all');
UPDATE sought_upto SET upto = 0;
ALTER TABLE sought ADD COLUMN terms TEXT NOT NULL DEFAULT ' ';
-- Their index is kept a little behind, like the other.
CREATE VIRTUAL TABLE sought_term USING fts5 (
    terms, content = 'sought', content_rowid = 'id', tokenize = 'ascii', detail = none, columnsize = 0
);

INSERT INTO sought (request, text, terms)
SELECT id, lower(char(10) || name || char(10) || substr(hex(id), 1, 8) || '-' || substr(hex(id), 9, 4) || '-'
           || substr(hex(id), 13, 4) || '-' || substr(hex(id), 17, 4) || '-' || substr(hex(id), 21) || char(10)
           || requested_by || char(10) || correlation_id || char(10)
           || coalesce((SELECT group_concat(key || ':' || value, char(10)) FROM json_each(labels)) || char(10), '')
           || coalesce((SELECT group_concat(CASE type WHEN 'true' THEN 'true' WHEN 'false' THEN 'false' ELSE atom END,
                                            char(10)) FROM json_tree(parameters) WHERE atom IS NOT NULL) || char(10), '')),
       ' ' || coalesce((SELECT group_concat(hex(substr('l' || key || '=' || value, 1, 96)), ' ') FROM json_each(labels))
                       || ' ', '')
           || coalesce((SELECT group_concat(hex(substr('p' || key || '='
                                                       || CASE type WHEN 'true' THEN 'true' WHEN 'false' THEN 'false' ELSE atom END,
                                                       1, 96)), ' ')
                          FROM json_each(parameters) WHERE atom IS NOT NULL) || ' ', '')
  FROM request ORDER BY created_at, id;
INSERT INTO sought (request, text, terms)
SELECT request, lower(char(10) || key || char(10) || coalesce(correlation_id || char(10), '')
           || coalesce((SELECT group_concat(key || ':' || value, char(10)) FROM json_each(labels)) || char(10), '')),
       ' ' || coalesce((SELECT group_concat(hex(substr('l' || key || '=' || value, 1, 96)), ' ') FROM json_each(labels))
                       || ' ', '')
  FROM submission WHERE request IS NOT NULL AND outcome IN ('first', 'existing') ORDER BY at, id;

-- What went wrong in one team.
CREATE INDEX request_ended_otherwise_of_team ON request (team, state, created_at DESC, id DESC)
 WHERE state IN ('failed', 'canceled', 'rejected');
