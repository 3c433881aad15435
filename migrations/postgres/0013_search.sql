-- A team and what never changes of a request are terms too, so that a search for several of them at once is one look: of
-- those that have each, not of all that have one. The rows of further keys have the terms of their request as well.
DROP INDEX sought_term;
UPDATE sought
   SET terms = coalesce((SELECT ' ' || upper(encode(convert_to('t=' || left(team, 94), 'UTF8'), 'hex'))
                                || ' ' || upper(encode(convert_to('o=' || left(offering, 94), 'UTF8'), 'hex'))
                                || ' ' || upper(encode(convert_to('b=' || left(requested_by, 94), 'UTF8'), 'hex'))
                                || ' ' || upper(encode(convert_to('c=' || channel, 'UTF8'), 'hex'))
                           FROM request WHERE request.id = sought.request), '')
               || coalesce((SELECT rtrim(its.terms)
                              FROM (SELECT id, terms FROM sought AS each WHERE each.request = sought.request
                                     ORDER BY length(terms) DESC, id LIMIT 1) AS its
                             WHERE its.id <> sought.id), '')
               || terms;
-- A text of two letters is looked for as three, with each letter of ASCII after it; where another follows, by a term.
UPDATE sought
   SET terms = terms || coalesce((SELECT string_agg(DISTINCT upper(encode(convert_to('2=' || substr(text, place, 2), 'UTF8'),
                                                                          'hex')), ' ') || ' '
                                    FROM generate_series(1, length(text) - 2) AS place
                                   WHERE substr(text, place + 2, 1) > U&'\007F'), '')
 WHERE octet_length(text) <> length(text);
CREATE INDEX sought_term ON sought USING gin (string_to_array(terms, ' '));
