-- Searching among requests: by what is likely to be asked for, newest first.
CREATE INDEX request_of_name ON request (name, created_at DESC, id DESC);
CREATE INDEX request_of_offering ON request (offering, created_at DESC, id DESC);
CREATE INDEX request_of_requester ON request (requested_by, created_at DESC, id DESC);
CREATE INDEX request_finished ON request (finished_at) WHERE finished_at IS NOT NULL;
-- Most requests are creates that succeed; the others are few, and so is what is not at its end.
CREATE INDEX request_open ON request (created_at DESC, id DESC) WHERE finished_at IS NULL;
CREATE INDEX request_ended_otherwise ON request (state, created_at DESC, id DESC)
 WHERE state IN ('failed', 'canceled', 'rejected');
CREATE INDEX request_of_action ON request (action, created_at DESC, id DESC) WHERE action <> 'create';
-- What was sent for a thing that was there already is found with the request that made it.
CREATE INDEX submission_existing ON submission (request) WHERE outcome = 'existing';
CREATE INDEX submission_existing_correlation ON submission (correlation_id) WHERE outcome = 'existing';

-- The words by which a request is found: name, ID, requester, correlation ID, labels as key:value, values of parameters;
-- and of each further key that is bound to it the key, the correlation ID and the labels that came with it. In lower case,
-- each on a line, with a line's end before the first and after the last.
CREATE TABLE sought (
    id      INTEGER PRIMARY KEY NOT NULL,
    request BLOB NOT NULL,
    text    TEXT NOT NULL
) STRICT;
CREATE INDEX sought_of_request ON sought (request);
-- Their index by three letters. It is kept a little behind, so that a submission does not wait for it: what is past
-- sought_upto is looked through.
CREATE VIRTUAL TABLE sought_trigram USING fts5 (
    text, content = 'sought', content_rowid = 'id', tokenize = 'trigram case_sensitive 1', detail = none, columnsize = 0
);
CREATE TABLE sought_upto (
    only INTEGER PRIMARY KEY NOT NULL CHECK (only = 1),
    upto INTEGER NOT NULL
) STRICT;
INSERT INTO sought_upto (only, upto) VALUES (1, 0);

INSERT INTO sought (request, text)
SELECT id, lower(char(10) || name || char(10) || substr(hex(id), 1, 8) || '-' || substr(hex(id), 9, 4) || '-'
           || substr(hex(id), 13, 4) || '-' || substr(hex(id), 17, 4) || '-' || substr(hex(id), 21) || char(10)
           || requested_by || char(10) || correlation_id || char(10)
           || coalesce((SELECT group_concat(key || ':' || value, char(10)) FROM json_each(labels)) || char(10), '')
           || coalesce((SELECT group_concat(CASE type WHEN 'true' THEN 'true' WHEN 'false' THEN 'false' ELSE atom END,
                                            char(10)) FROM json_tree(parameters) WHERE atom IS NOT NULL) || char(10), ''))
  FROM request ORDER BY created_at, id;
INSERT INTO sought (request, text)
SELECT request, lower(char(10) || key || char(10) || coalesce(correlation_id || char(10), '')
           || coalesce((SELECT group_concat(key || ':' || value, char(10)) FROM json_each(labels)) || char(10), ''))
  FROM submission WHERE request IS NOT NULL AND outcome IN ('first', 'existing') ORDER BY at, id;
