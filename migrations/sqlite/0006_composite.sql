-- Which step of its parent a request is, where its parent is made of steps.
ALTER TABLE request ADD COLUMN step TEXT;
-- Descendants are found from their root down, in the order in which they were asked for.
DROP INDEX request_parent;
CREATE INDEX request_children ON request (parent_id, created_at, id) WHERE parent_id IS NOT NULL;
