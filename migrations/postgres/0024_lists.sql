-- A parameter that is a list is found by each of its values. JSON with a NUL cannot be taken apart here; text with a backslash
-- before u0000 has two of them.
UPDATE sought SET terms = sought.terms || listed.terms || ' '
  FROM (SELECT request.id,
               string_agg(DISTINCT upper(encode(convert_to(left('p' || member.key || '=' || (element.value #>> '{}'), 96), 'UTF8'),
                                                'hex')), ' ') AS terms
          FROM request
               CROSS JOIN json_each(CASE WHEN strpos(parameters, '\u0000') > 0 AND parameters ~ '(^|[^\\])(\\\\)*\\u0000'
                                         THEN '{}' ELSE parameters END::json) AS member
               CROSS JOIN json_array_elements(CASE json_typeof(member.value) WHEN 'array' THEN member.value ELSE '[]' END)
                          AS element
         WHERE json_typeof(element.value) IN ('string', 'number', 'boolean')
         GROUP BY request.id) AS listed
 WHERE listed.id = sought.request;
