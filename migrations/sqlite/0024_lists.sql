-- A parameter that is a list is found by each of its values.
CREATE TEMP TABLE listed AS
SELECT sought.id,
       (SELECT group_concat(hex(term), ' ')
          FROM (SELECT DISTINCT substr('p' || member.key || '='
                                       || CASE element.type WHEN 'text' THEN element.value
                                                            -- As it is written there.
                                                            ELSE member.value -> ('$[' || element.key || ']') END,
                                       1, 96) AS term
                  FROM json_each(request.parameters) AS member, json_each(member.value) AS element
                 WHERE member.type = 'array' AND element.atom IS NOT NULL)) AS terms
  FROM request JOIN sought ON sought.request = request.id
 WHERE EXISTS (SELECT 1 FROM json_each(request.parameters) WHERE type = 'array');
DELETE FROM temp.listed WHERE terms IS NULL;
INSERT INTO sought_term (sought_term, rowid, terms)
SELECT 'delete', id, terms FROM sought
 WHERE id IN (SELECT id FROM temp.listed) AND id <= (SELECT upto FROM sought_upto) ORDER BY id;
UPDATE sought SET terms = sought.terms || listed.terms || ' ' FROM temp.listed AS listed WHERE listed.id = sought.id;
INSERT INTO sought_term (rowid, terms)
SELECT id, terms FROM sought
 WHERE id IN (SELECT id FROM temp.listed) AND id <= (SELECT upto FROM sought_upto) ORDER BY id;
DROP TABLE temp.listed;
