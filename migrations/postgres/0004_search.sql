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
    id      BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    request UUID NOT NULL,
    text    TEXT COLLATE "C" NOT NULL
);
CREATE INDEX sought_of_request ON sought (request);

INSERT INTO sought (request, text)
SELECT id, lower(E'\n' || name || E'\n' || id::text || E'\n' || requested_by || E'\n' || correlation_id || E'\n'
           || coalesce((SELECT string_agg(key || ':' || value, E'\n') FROM json_each_text(labels::json)) || E'\n', '')
           || CASE WHEN strpos(parameters, '\u0000') > 0 THEN ''
                   ELSE coalesce((SELECT string_agg(value, E'\n') FROM json_each_text(parameters::json)) || E'\n', '')
              END)
  FROM request ORDER BY created_at, id;
INSERT INTO sought (request, text)
SELECT request, lower(E'\n' || key || E'\n' || coalesce(correlation_id || E'\n', '')
           || coalesce((SELECT string_agg(each.key || ':' || each.value, E'\n') FROM json_each_text(labels::json) AS each)
                       || E'\n', ''))
  FROM submission WHERE request IS NOT NULL AND outcome IN ('first', 'existing') ORDER BY at, id;

-- Their index by three letters takes an extension that comes with PostgreSQL, and that whoever may make tables in a
-- database of its own may add. Where it cannot be had, words are looked through; it can be made later by hand.
DO $$
BEGIN
    CREATE EXTENSION IF NOT EXISTS pg_trgm;
    CREATE INDEX sought_trigram ON sought USING gin (text gin_trgm_ops);
EXCEPTION WHEN insufficient_privilege OR undefined_file OR undefined_object OR feature_not_supported THEN
    RAISE NOTICE 'pg_trgm cannot be had here (%); words are looked through', SQLERRM;
END
$$;
