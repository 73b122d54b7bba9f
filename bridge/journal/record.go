package journal

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"parlour/bridge/ask"
)

// State is where a job is on its way.
type State string

// The states, in order.
const (
	Queued  State = "queued"
	Running State = "running"
	Ended   State = "ended"
)

// Record is all that the journal knows of one job, but for its events.
type Record struct {
	Job       ask.Job
	State     State
	Ended     *ask.Ended // set when State is Ended
	Delivered bool
	Tries     int // deliveries begun
}

const columns = `job, attempt, state, ended, delivered, tries`

// Job gives one job of any origin, or ErrUnknown.
func (j *Journal) Job(ctx context.Context, id string) (Record, error) {
	record, err := find(ctx, j.reader, "id", id)
	if err != nil {
		return Record{}, fmt.Errorf("look up job %s: %w", id, plain(j.cfg.Dir, err))
	}
	return record, nil
}

// querier is a pool or a transaction.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// find reads one job; column is one of ours, never input.
func find(ctx context.Context, from querier, column, value string) (Record, error) {
	record, err := scan(from.QueryRowContext(ctx, `SELECT `+columns+` FROM jobs WHERE `+column+` = ?`, value))
	if errors.Is(err, sql.ErrNoRows) {
		return Record{}, ErrUnknown
	}
	return record, err
}

// all reads jobs in order of acceptance; where is one of ours, never input.
func all(ctx context.Context, from querier, where string, args ...any) ([]Record, error) {
	rows, err := from.QueryContext(ctx, `SELECT `+columns+` FROM jobs WHERE `+where+` ORDER BY seq`, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var records []Record
	for rows.Next() {
		record, err := scan(rows)
		if err != nil {
			return nil, err
		}
		records = append(records, record)
	}
	return records, rows.Err()
}

func scan(row interface{ Scan(...any) error }) (Record, error) {
	var (
		r       Record
		job     []byte
		end     []byte
		attempt int
	)
	if err := row.Scan(&job, &attempt, &r.State, &end, &r.Delivered, &r.Tries); err != nil {
		return Record{}, err
	}
	if err := json.Unmarshal(job, &r.Job); err != nil {
		return Record{}, fmt.Errorf("read a job: %w", err)
	}
	r.Job.Attempt = attempt
	if end == nil {
		return r, nil
	}
	r.Ended = new(ask.Ended)
	if err := json.Unmarshal(end, r.Ended); err != nil {
		return Record{}, fmt.Errorf("read the end of job %s: %w", r.Job.ID, err)
	}
	return r, nil
}

// Counts says how full the queue is.
type Counts struct {
	Queued      int // all origins
	Running     int // all origins
	Undelivered int // of the serving bot and of this origin: others deliver nothing any more, or their own
}

// Queue counts the jobs that are not done with.
func (j *Journal) Queue(ctx context.Context) (Counts, error) {
	var c Counts
	err := j.reader.QueryRowContext(ctx, `
		SELECT (SELECT count(*) FROM jobs WHERE state = 'queued'),
		       (SELECT count(*) FROM jobs WHERE state = 'running'),
		       (SELECT count(*) FROM jobs WHERE state = 'ended' AND delivered = 0 AND lost = 0 AND origin IN ('serve', ?))`,
		j.cfg.Origin).Scan(&c.Queued, &c.Running, &c.Undelivered)
	if err != nil {
		return Counts{}, fmt.Errorf("count the queue: %w", plain(j.cfg.Dir, err))
	}
	return c, nil
}

// Waiting lists the queued jobs of this origin, oldest first.
func (j *Journal) Waiting(ctx context.Context) ([]ask.Job, error) {
	records, err := all(ctx, j.reader, `state = 'queued' AND origin = ?`, j.cfg.Origin)
	if err != nil {
		return nil, fmt.Errorf("list waiting jobs: %w", plain(j.cfg.Dir, err))
	}
	jobs := make([]ask.Job, 0, len(records))
	for _, record := range records {
		jobs = append(jobs, record.Job)
	}
	return jobs, nil
}
