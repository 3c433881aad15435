-- Who decides about a request that waits for approval, until when, and what was decided: by whom, when and why. A request that
-- needs none has nothing here.
ALTER TABLE request ADD COLUMN approval_by TEXT COLLATE "C" CHECK (approval_by IN ('owner', 'administrator'));
ALTER TABLE request ADD COLUMN decide_until BIGINT;
ALTER TABLE request ADD COLUMN verdict TEXT COLLATE "C" CHECK (verdict IN ('approved', 'rejected', 'timed_out'));
ALTER TABLE request ADD COLUMN decided_by TEXT COLLATE "C";
ALTER TABLE request ADD COLUMN decided_at BIGINT;
ALTER TABLE request ADD COLUMN decided_why TEXT COLLATE "C";
CREATE INDEX request_undecided ON request (decide_until) WHERE state = 'pending_approval';
