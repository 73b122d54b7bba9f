package journal

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"parlour/bridge/ask"
)

// next is the head of a lane whose lane is free and whose person may start one
// more, of the person who has waited longest since being served. The count of
// running jobs is over all origins; the queue is of this origin only.
const next = `
	UPDATE jobs SET state = 'running', attempt = attempt + 1 WHERE seq = (
		SELECT q.seq FROM jobs q LEFT JOIN persons p ON p.person = q.person
		WHERE q.state = 'queued' AND q.origin = ?1
		AND q.seq = (SELECT min(h.seq) FROM jobs h WHERE h.state = 'queued' AND h.origin = ?1 AND h.lane = q.lane)
		AND NOT EXISTS (SELECT 1 FROM jobs r WHERE r.state = 'running' AND r.lane = q.lane)
		AND (SELECT count(*) FROM jobs r WHERE r.state = 'running' AND r.person = q.person) < ?2
		ORDER BY coalesce(p.served, 0), q.seq LIMIT 1)
	RETURNING ` + columns

const served = `
	INSERT INTO persons (person, served) VALUES (?, (SELECT coalesce(max(served), 0) + 1 FROM persons))
	ON CONFLICT (person) DO UPDATE SET served = excluded.served`

// Claim takes the next job of this origin for a run, or gives nil. Lanes keep
// their order and run one job at a time, a person runs at most running jobs at
// a time, and the person least recently served goes first.
// Guarded by tests/contract TestJournalOnePersonCannotFillTheQueue and
// TestOneRunningPerLaneHoldsWithoutTheCode.
func (j *Journal) Claim(ctx context.Context, running int) (*ask.Job, error) {
	var job *ask.Job
	err := j.write(ctx, func(c change) error {
		got, err := scan(c.QueryRowContext(ctx, next, j.cfg.Origin, running))
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		job = &got.Job
		_, err = c.ExecContext(ctx, served, job.Person)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("claim a job: %w", err)
	}
	return job, nil
}
