package journal

import (
	"context"
	"fmt"

	"parlour/bridge/ask"
)

// Delivery is an end that its person has not been shown yet.
type Delivery struct {
	Job   ask.Job
	Ended ask.Ended
	Tries int // deliveries begun; above 0 the answer may already be visible
}

// Undelivered lists what this origin still has to say, oldest first. What is
// not deliverable is not among it.
func (j *Journal) Undelivered(ctx context.Context) ([]Delivery, error) {
	left, err := all(ctx, j.reader, `state = 'ended' AND delivered = 0 AND lost = 0 AND origin = ?`, j.cfg.Origin)
	if err != nil {
		return nil, fmt.Errorf("list undelivered answers: %w", plain(j.cfg.Dir, err))
	}
	list := make([]Delivery, 0, len(left))
	for _, record := range left {
		list = append(list, Delivery{Job: record.Job, Ended: *record.Ended, Tries: record.Tries})
	}
	return list, nil
}

// Tried counts a delivery that is about to begin. Called before each, it lets a
// bot that crashed in the middle know that the answer may already be visible. It
// is false where there is nothing left to deliver.
func (j *Journal) Tried(ctx context.Context, jobID string) (bool, error) {
	var open bool
	err := j.write(ctx, func(c change) (err error) {
		open, err = c.deliver(ctx, jobID, `UPDATE jobs SET tries = tries + 1`)
		return err
	})
	if err != nil {
		return false, fmt.Errorf("count a delivery of job %s: %w", jobID, err)
	}
	return open, nil
}

// Delivered says that the person can see the end. Saying it again is harmless.
func (j *Journal) Delivered(ctx context.Context, jobID string) error {
	err := j.write(ctx, func(c change) error {
		fresh, err := c.deliver(ctx, jobID, `UPDATE jobs SET delivered = 1`)
		if err != nil || !fresh {
			return err
		}
		return c.log(ctx, jobID, ask.EventDelivered, nil)
	})
	if err != nil {
		return fmt.Errorf("mark job %s as delivered: %w", jobID, err)
	}
	return nil
}

// deliver changes an own, ended job. One that is delivered, or not deliverable,
// stays as it is.
func (c change) deliver(ctx context.Context, id, set string) (bool, error) {
	record, err := c.own(ctx, id)
	if err != nil {
		return false, err
	}
	if record.State != Ended {
		return false, fmt.Errorf("it has not ended: it is %s", record.State)
	}
	return c.alter(ctx, set+` WHERE id = ? AND delivered = 0 AND lost = 0`, id)
}
