-- An outcome that its platform refuses for good is not delivered and not tried
-- again: ended (delivered = 0) ──> ended (lost = 1). It never becomes both.

-- +goose Up
ALTER TABLE jobs ADD COLUMN lost INTEGER NOT NULL DEFAULT 0
    CHECK (lost IN (0, 1) AND lost + delivered < 2 AND (lost = 0 OR state = 'ended'));

DROP INDEX undelivered;
CREATE INDEX undelivered ON jobs (origin, seq) WHERE state = 'ended' AND delivered = 0 AND lost = 0;

DROP INDEX one_end_per_job;
CREATE UNIQUE INDEX one_end_per_job ON events (job, kind)
    WHERE kind IN ('message/accepted', 'message/decided', 'run/outcome', 'answer/delivered', 'answer/undeliverable');
