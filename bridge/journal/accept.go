package journal

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/oklog/ulid/v2"

	"parlour/bridge/ask"
)

// Accepted is what became of a message.
type Accepted struct {
	Job       ask.Job
	Duplicate bool       // the message was accepted before; Job and Ended are those of then
	Ended     *ask.Ended // set when it has already ended: refused, busy, or long answered
	Ahead     int        // unended jobs of the same person that came before it
}

// Caps bound what one person may ask, over all origins. The zero Caps admit
// nothing.
type Caps struct {
	Waiting   int // beside the one that runs or is about to
	PerMinute int // admitted within the last minute
}

// Accept makes a message durable: its claim, its job and its first events are
// one transaction, and only after it may the platform be told.
//
// An empty ID, Origin or At is filled in. An entrusted job is not queued for
// this origin, but waits for whoever adopts it. A job with refuse is stored as ended
// so. One that is over the caps is stored as ended with Busy or TooFast.
// Guarded by tests/contract TestJournalWaitingCapIsExact and
// TestJournalMinuteCapIsExact.
func (j *Journal) Accept(ctx context.Context, job ask.Job, caps Caps, refuse *ask.Ended) (Accepted, error) {
	if err := admissible(job, j.cfg.Origin); err != nil {
		return Accepted{}, fmt.Errorf("accept a message: %w", err)
	}
	var got Accepted
	err := j.write(ctx, func(c change) (err error) {
		got, err = c.accept(ctx, job, caps, refuse)
		return err
	})
	if err != nil {
		return Accepted{}, fmt.Errorf("accept a message: %w", err)
	}
	if got.Ended == nil {
		j.signal()
	}
	return got, nil
}

func admissible(job ask.Job, origin string) error {
	switch {
	case job.Message == "":
		return errors.New("the job has no message id")
	case job.Person == "":
		return errors.New("the job has no person")
	case job.Lane == "":
		return errors.New("the job has no lane")
	case job.Origin != "" && job.Origin != origin:
		return fmt.Errorf("the job is of origin %q, this journal of %q", job.Origin, origin)
	}
	return nil
}

func (c change) accept(ctx context.Context, job ask.Job, caps Caps, refuse *ask.Ended) (Accepted, error) {
	now := c.cfg.Now()
	job, err := c.stamp(job, now)
	if err != nil {
		return Accepted{}, err
	}
	ended, err := c.admit(ctx, job, now, caps, refuse)
	if err != nil {
		return Accepted{}, err
	}
	if ended == nil && job.Entrusted {
		job.Origin = entrusted
	}
	fresh, err := c.insert(ctx, job, now, ended)
	if err != nil {
		return Accepted{}, err
	}
	if !fresh {
		then, err := find(ctx, c, "message", job.Message)
		return Accepted{Job: then.Job, Ended: then.Ended, Duplicate: true}, err
	}
	if err := c.tell(ctx, job, ended); err != nil {
		return Accepted{}, err
	}
	got := Accepted{Job: job, Ended: ended}
	if ended == nil {
		err = c.QueryRowContext(ctx, `SELECT count(*) - 1 FROM jobs WHERE state IN ('queued', 'running') AND person = ?`, job.Person).Scan(&got.Ahead)
	}
	return got, err
}

// stamp fills in what the journal gives: id, origin, time. Ids rise within a
// process, also inside one millisecond.
func (c change) stamp(job ask.Job, now time.Time) (ask.Job, error) {
	if job.At.IsZero() {
		job.At = now
	}
	job.At = job.At.UTC().Round(0)
	job.Origin = c.cfg.Origin
	job.Attempt = 0
	if job.ID != "" {
		return job, nil
	}
	id, err := ulid.New(ulid.Timestamp(now), c.ids)
	job.ID = id.String()
	return job, err
}

// admit gives the end of a job that will not be queued. Of a person's jobs, the
// first runs or is about to, so it does not count as waiting: the limit is the
// same whether or not a worker has been quick enough to claim it.
func (c change) admit(ctx context.Context, job ask.Job, now time.Time, caps Caps, refuse *ask.Ended) (*ask.Ended, error) {
	if refuse != nil {
		ended := *refuse
		if ended.Receipt.Job == "" {
			ended.Receipt.Job = job.ID
		}
		return &ended, checkEnd(ended)
	}
	var queued, running, lately int
	err := c.QueryRowContext(ctx, `
		SELECT (SELECT count(*) FROM jobs WHERE state = 'queued' AND person = ?1),
		       (SELECT count(*) FROM jobs WHERE state = 'running' AND person = ?1),
		       (SELECT count(*) FROM jobs WHERE person = ?1 AND accepted > ?2 AND (state != 'ended' OR attempt > 0))`,
		job.Person, now.Add(-time.Minute).UnixNano()).Scan(&queued, &running, &lately)
	if err != nil {
		return nil, err
	}
	cause := ask.NoCause
	switch {
	case queued+min(running, 1) > caps.Waiting:
		cause = ask.Busy
	case lately >= caps.PerMinute:
		cause = ask.TooFast
	default:
		return nil, nil
	}
	return ask.EndedBy(job, cause, ""), nil
}

// insert claims the message. It is false where the message was claimed before.
func (c change) insert(ctx context.Context, job ask.Job, now time.Time, ended *ask.Ended) (bool, error) {
	text, err := json.Marshal(job)
	if err != nil {
		return false, err
	}
	state, end := Queued, sql.NullString{}
	if ended != nil {
		data, err := json.Marshal(ended)
		if err != nil {
			return false, err
		}
		state, end = Ended, sql.NullString{String: string(data), Valid: true}
	}
	return c.alter(ctx, `
		INSERT INTO jobs (id, message, origin, person, lane, job, accepted, state, ended)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (message) DO NOTHING`,
		job.ID, job.Message, job.Origin, job.Person, job.Lane, string(text), now.UnixNano(), string(state), end)
}

// tell writes the first events of a job.
func (c change) tell(ctx context.Context, job ask.Job, ended *ask.Ended) error {
	accepted := ask.Accepted{Message: job.Message, Person: job.Person, Bytes: len(job.Question.Text)}
	if err := c.log(ctx, job.ID, ask.EventAccepted, accepted); err != nil {
		return err
	}
	if err := c.log(ctx, job.ID, ask.EventDecided, job.Decision); err != nil {
		return err
	}
	if ended == nil {
		return nil
	}
	return c.log(ctx, job.ID, ask.EventOutcome, ended)
}
