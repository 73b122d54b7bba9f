package journal

import (
	"context"
	"errors"
	"fmt"

	"parlour/bridge/ask"
)

// anyAttempt ends a job whoever runs it, or nobody.
const anyAttempt = 0

// Finish ends a job that the caller claimed. A worker whose attempt is over, or
// whose job was stopped meanwhile, gets ErrStale and its answer goes nowhere.
// Guarded by tests/contract TestJournalStaleFinishIsRefused.
func (j *Journal) Finish(ctx context.Context, job ask.Job, ended ask.Ended) error {
	err := checkEnd(ended)
	if err == nil && job.Attempt <= anyAttempt {
		err = errors.New("the job was never claimed")
	}
	if err == nil {
		err = j.write(ctx, func(c change) error { return c.finish(ctx, job, ended) })
	}
	if err != nil {
		return fmt.Errorf("finish job %s: %w", job.ID, err)
	}
	j.signal()
	return nil
}

func (c change) finish(ctx context.Context, job ask.Job, ended ask.Ended) error {
	record, err := c.own(ctx, job.ID)
	if err != nil {
		return err
	}
	moved, err := c.end(ctx, job.ID, job.Attempt, ended)
	if err == nil && !moved {
		err = fmt.Errorf("%w: it is %s, attempt %d", ErrStale, record.State, record.Job.Attempt)
	}
	return err
}

// Cancel ends a queued or running job with the fixed sentence of its cause. The
// caller stops the run itself; its Finish is then refused. It is ErrEnded where
// there was nothing left to stop.
// Guarded by tests/contract TestJournalCancelEndsOnce.
func (j *Journal) Cancel(ctx context.Context, jobID string, cause ask.Cause) error {
	if cause == ask.NoCause {
		return fmt.Errorf("cancel job %s: no cause is given", jobID)
	}
	err := j.write(ctx, func(c change) error { return c.cancel(ctx, jobID, cause) })
	if err != nil {
		return fmt.Errorf("cancel job %s: %w", jobID, err)
	}
	j.signal()
	return nil
}

func (c change) cancel(ctx context.Context, id string, cause ask.Cause) error {
	record, err := c.own(ctx, id)
	if err != nil {
		return err
	}
	moved, err := c.end(ctx, id, anyAttempt, *ask.EndedBy(record.Job, cause, ""))
	if err == nil && !moved {
		err = ErrEnded
	}
	return err
}

// checkEnd refuses an end that is none.
func checkEnd(ended ask.Ended) error {
	switch ended.Outcome.Kind {
	case ask.Answered, ask.Refused, ask.Unavailable, ask.Cancelled, ask.Expired:
		return nil
	}
	return fmt.Errorf("%q is not an end", ended.Outcome.Kind)
}
