-- The true values of a request's secret parameters, sealed. In its parameters, and wherever else they are kept, stands what
-- stands for them.
ALTER TABLE request ADD COLUMN hidden BYTEA;
CREATE INDEX request_hidden ON request (resource) WHERE hidden IS NOT NULL;
CREATE INDEX request_hidden_seal ON request (substr(hidden, 1, 6)) WHERE hidden IS NOT NULL;
