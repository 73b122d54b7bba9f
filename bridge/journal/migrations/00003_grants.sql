-- A grant gives one person a tier until a time. Its way:
--
--     made ──> ended (until is over)
--       └────> revoked
--
-- Making and revoking are one transaction with the event that tells of it.

-- +goose Up
CREATE TABLE grants (
    id        INTEGER PRIMARY KEY AUTOINCREMENT,  -- an id is never given again
    tier      TEXT    NOT NULL CHECK (tier IN ('guest', 'team')),
    platform  TEXT    NOT NULL CHECK (platform IN ('discord', 'slack')),
    workspace TEXT    NOT NULL CHECK (workspace <> ''),
    channels  TEXT    CHECK (channels LIKE '["%'), -- JSON; NULL: everywhere in the workspace
    user      TEXT    NOT NULL CHECK (user <> ''),
    external  INTEGER NOT NULL CHECK (external IN (0, 1)),
    note      TEXT    NOT NULL,
    made      INTEGER NOT NULL,                   -- nanoseconds since 1970, UTC
    until     INTEGER NOT NULL CHECK (until > made),
    revoked   INTEGER                             -- NULL: not so far
);

-- How often grants have changed: whoever goes by them looks at this number each
-- time, and reads them again where it is another one.
CREATE TABLE grants_changed (times INTEGER NOT NULL);
INSERT INTO grants_changed VALUES (0);
-- +goose StatementBegin
CREATE TRIGGER grant_made AFTER INSERT ON grants BEGIN UPDATE grants_changed SET times = times + 1; END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER grant_changed AFTER UPDATE ON grants BEGIN UPDATE grants_changed SET times = times + 1; END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER grant_gone AFTER DELETE ON grants BEGIN UPDATE grants_changed SET times = times + 1; END;
-- +goose StatementEnd
-- A grant is revoked, once; nothing else about it changes.
-- +goose StatementBegin
CREATE TRIGGER grant_fixed BEFORE UPDATE OF id, tier, platform, workspace, channels, user, external, note, made, until ON grants
BEGIN SELECT RAISE(ABORT, 'a grant does not change'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER grant_revoked_once BEFORE UPDATE OF revoked ON grants WHEN OLD.revoked IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'a grant is revoked once'); END;
-- +goose StatementEnd

-- Events of a grant belong to no job.
CREATE TABLE events_of_all (
    seq  INTEGER PRIMARY KEY AUTOINCREMENT,
    job  TEXT    REFERENCES jobs (id),
    kind TEXT    NOT NULL,
    at   INTEGER NOT NULL, -- nanoseconds since 1970, UTC
    data TEXT,             -- JSON, or nothing
    CHECK ((job IS NULL) = (kind IN ('grant/made', 'grant/revoked')))
);
INSERT INTO events_of_all (seq, job, kind, at, data) SELECT seq, job, kind, at, data FROM events;
DROP TABLE events;
ALTER TABLE events_of_all RENAME TO events;
CREATE INDEX events_by_job ON events (job, seq);
CREATE UNIQUE INDEX one_end_per_job ON events (job, kind)
    WHERE kind IN ('message/accepted', 'message/decided', 'run/outcome', 'answer/delivered', 'answer/undeliverable');
