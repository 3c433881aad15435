-- Who decides about a request that waits for approval, until when, and what was decided: by whom, when and why. A request that
-- needs none has nothing here.
ALTER TABLE request ADD COLUMN approval_by TEXT CHECK (approval_by IN ('owner', 'administrator'));
ALTER TABLE request ADD COLUMN decide_until INTEGER;
ALTER TABLE request ADD COLUMN verdict TEXT CHECK (verdict IN ('approved', 'rejected', 'timed_out'));
ALTER TABLE request ADD COLUMN decided_by TEXT;
ALTER TABLE request ADD COLUMN decided_at INTEGER;
ALTER TABLE request ADD COLUMN decided_why TEXT;
CREATE INDEX request_undecided ON request (decide_until) WHERE state = 'pending_approval';
