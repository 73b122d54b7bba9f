-- One row of jobs is one accepted message. Its way:
--
--     accepted ──> queued ──> running ──> ended (delivered = 0) ──> ended (delivered = 1)
--                    │  ▲        │          ▲
--                    │  └────────┘          │
--                    │   the bot died       │
--                    └── stopped, refused, or its asker is gone
--
-- Every move is one transaction with the event that tells of it, so no crash
-- can part the two. The indexes below are the guarantees: they hold even when
-- the code above them is wrong.

-- +goose Up
CREATE TABLE jobs (
    seq       INTEGER PRIMARY KEY AUTOINCREMENT, -- order of acceptance
    id        TEXT    NOT NULL UNIQUE,
    message   TEXT    NOT NULL UNIQUE,           -- the same message is accepted once, for ever
    origin    TEXT    NOT NULL,                  -- the process that may run it
    person    TEXT    NOT NULL,
    lane      TEXT    NOT NULL,
    job       TEXT    NOT NULL,                  -- JSON of ask.Job as it was accepted
    accepted  INTEGER NOT NULL,                  -- nanoseconds since 1970, UTC
    state     TEXT    NOT NULL CHECK (state IN ('queued', 'running', 'ended')),
    attempt   INTEGER NOT NULL DEFAULT 0,        -- fences the finish: a stale worker has an old one
    ended     TEXT,                              -- JSON of ask.Ended
    delivered INTEGER NOT NULL DEFAULT 0 CHECK (delivered IN (0, 1)),
    tries     INTEGER NOT NULL DEFAULT 0,        -- deliveries begun
    CHECK ((state = 'ended') = (ended IS NOT NULL)),
    CHECK (delivered = 0 OR state = 'ended')
);

CREATE UNIQUE INDEX one_running_per_lane ON jobs (lane) WHERE state = 'running';
CREATE INDEX running_by_person ON jobs (person) WHERE state = 'running';
CREATE INDEX queued_by_lane ON jobs (origin, lane, seq) WHERE state = 'queued';
CREATE INDEX queued_by_person ON jobs (person) WHERE state = 'queued';
CREATE INDEX admitted_by_person ON jobs (person, accepted) WHERE state != 'ended' OR attempt > 0;
CREATE INDEX undelivered ON jobs (origin, seq) WHERE state = 'ended' AND delivered = 0;

-- When each person was last served, as a rising number: the clock may jump.
CREATE TABLE persons (
    person TEXT    PRIMARY KEY,
    served INTEGER NOT NULL
);
CREATE INDEX persons_served ON persons (served);

CREATE TABLE events (
    seq  INTEGER PRIMARY KEY AUTOINCREMENT,
    job  TEXT    NOT NULL REFERENCES jobs (id),
    kind TEXT    NOT NULL,
    at   INTEGER NOT NULL, -- nanoseconds since 1970, UTC
    data TEXT              -- JSON, or nothing
);
CREATE INDEX events_by_job ON events (job, seq);
CREATE UNIQUE INDEX one_end_per_job ON events (job, kind)
    WHERE kind IN ('message/accepted', 'message/decided', 'run/outcome', 'answer/delivered');
