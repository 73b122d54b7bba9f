package journal

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"parlour/bridge/ask"
)

// most is how many events one call gives at most.
const most = 1000

// Filter selects events.
type Filter struct {
	Job   string // empty: of all jobs, and those of grants
	After int64  // only events with a higher Seq
	Limit int    // 0, or more than 1000: 1000
}

// Events lists events in the order in which they happened. The next page begins
// after the last Seq of this one.
func (j *Journal) Events(ctx context.Context, f Filter) ([]ask.Event, error) {
	if f.Limit <= 0 || f.Limit > most {
		f.Limit = most
	}
	query, args := `SELECT seq, coalesce(job, ''), kind, at, data FROM events WHERE seq > ?`, []any{f.After}
	if f.Job != "" {
		query, args = query+` AND job = ?`, append(args, f.Job)
	}
	rows, err := j.reader.QueryContext(ctx, query+` ORDER BY seq LIMIT ?`, append(args, f.Limit)...)
	if err != nil {
		return nil, fmt.Errorf("list events: %w", plain(j.cfg.Dir, err))
	}
	defer rows.Close()
	var events []ask.Event
	for rows.Next() {
		event, err := scanEvent(rows)
		if err != nil {
			return nil, fmt.Errorf("list events: %w", plain(j.cfg.Dir, err))
		}
		events = append(events, event)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("list events: %w", plain(j.cfg.Dir, err))
	}
	return events, nil
}

func scanEvent(rows *sql.Rows) (ask.Event, error) {
	var (
		event ask.Event
		at    int64
		data  []byte
	)
	err := rows.Scan(&event.Seq, &event.Job, &event.Kind, &at, &data)
	event.At, event.Data = time.Unix(0, at).UTC(), data
	return event, err
}

// Append logs an event of a job of this origin. The kinds that tell of a move
// of the job are refused: only the move itself writes them. A request header is
// refused with ErrStale unless the job is running, so a run that was stopped
// between its claim and its start does not start.
// Guarded by tests/contract TestJournalAppendCannotContradictTheState.
func (j *Journal) Append(ctx context.Context, job, kind string, data any) error {
	switch kind {
	case "", ask.EventAccepted, ask.EventDecided, ask.EventRequeued, ask.EventOutcome, ask.EventDelivered, ask.EventUndeliverable,
		ask.EventGranted, ask.EventRevoked:
		return fmt.Errorf("append to job %s: events of kind %q are written by the journal alone", job, kind)
	}
	err := j.write(ctx, func(c change) error {
		record, err := c.own(ctx, job)
		if err != nil {
			return err
		}
		if kind == ask.EventRequest && record.State != Running {
			return fmt.Errorf("%w: it is %s", ErrStale, record.State)
		}
		return c.log(ctx, job, kind, data)
	})
	if err != nil {
		return fmt.Errorf("append %s to job %s: %w", kind, job, err)
	}
	return nil
}
