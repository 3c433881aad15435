-- Labels and parameters by which a request is found, whole: 'l' or 'p', key, '=' and value, of that the first 96
-- characters, each as hexadecimal digits of its UTF-8, with a blank before and after.
DELETE FROM sought;
ALTER TABLE sought ADD COLUMN terms TEXT COLLATE "C" NOT NULL DEFAULT ' ';

INSERT INTO sought (request, text, terms)
SELECT id, lower(E'\n' || name || E'\n' || id::text || E'\n' || requested_by || E'\n' || correlation_id || E'\n'
           || coalesce((SELECT string_agg(key || ':' || value, E'\n') FROM json_each_text(labels::json)) || E'\n', '')
           || CASE WHEN strpos(parameters, '\u0000') > 0 THEN ''
                   ELSE coalesce((SELECT string_agg(value, E'\n') FROM json_each_text(parameters::json)) || E'\n', '')
              END),
       ' ' || coalesce((SELECT string_agg(upper(encode(convert_to(left('l' || key || '=' || value, 96), 'UTF8'), 'hex')), ' ')
                          FROM json_each_text(labels::json)) || ' ', '')
           || CASE WHEN strpos(parameters, '\u0000') > 0 THEN ''
                   ELSE coalesce((SELECT string_agg(upper(encode(convert_to(left('p' || key || '=' || value, 96), 'UTF8'),
                                                                 'hex')), ' ')
                                    FROM json_each_text(parameters::json) WHERE value IS NOT NULL) || ' ', '')
              END
  FROM request ORDER BY created_at, id;
INSERT INTO sought (request, text, terms)
SELECT request, lower(E'\n' || key || E'\n' || coalesce(correlation_id || E'\n', '')
           || coalesce((SELECT string_agg(each.key || ':' || each.value, E'\n') FROM json_each_text(labels::json) AS each)
                       || E'\n', '')),
       ' ' || coalesce((SELECT string_agg(upper(encode(convert_to(left('l' || each.key || '=' || each.value, 96), 'UTF8'),
                                                       'hex')), ' ')
                          FROM json_each_text(labels::json) AS each) || ' ', '')
  FROM submission WHERE request IS NOT NULL AND outcome IN ('first', 'existing') ORDER BY at, id;
CREATE INDEX sought_term ON sought USING gin (string_to_array(terms, ' '));

-- What went wrong in one team.
CREATE INDEX request_ended_otherwise_of_team ON request (team, state, created_at DESC, id DESC)
 WHERE state IN ('failed', 'canceled', 'rejected');
