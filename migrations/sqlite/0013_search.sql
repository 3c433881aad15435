-- A team and what never changes of a request are terms too, so that a search for several of them at once is one look: of
-- those that have each, not of all that have one. The rows of further keys have the terms of their request as well.
UPDATE sought
   SET terms = coalesce((SELECT ' ' || hex('t=' || substr(team, 1, 94)) || ' ' || hex('o=' || substr(offering, 1, 94)) || ' '
                                || hex('b=' || substr(requested_by, 1, 94)) || ' ' || hex('c=' || channel)
                           FROM request WHERE request.id = sought.request), '')
               || coalesce((SELECT rtrim(its.terms)
                              FROM (SELECT id, terms FROM sought AS each WHERE each.request = sought.request
                                     ORDER BY length(terms) DESC, id LIMIT 1) AS its
                             WHERE its.id <> sought.id), '')
               || terms;
INSERT INTO sought_term (sought_term) VALUES ('delete-all');
INSERT INTO sought_term (rowid, terms) SELECT id, terms FROM sought WHERE id <= (SELECT upto FROM sought_upto) ORDER BY id;

-- The groups of three letters that there are, out of their index: by them a text of two is found.
CREATE VIRTUAL TABLE sought_three USING fts5vocab ('sought_trigram', 'instance');
