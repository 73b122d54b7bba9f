package journal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"parlour/bridge/ask"
)

// entrustedFor is how long an entrusted job waits for somebody to adopt it.
// Until then it counts against its person.
const entrustedFor = 10 * time.Minute

// Adopt makes an entrusted job one of this origin, so that it can be claimed
// here, and gives what is known of it. One that has ended is given with its end,
// however often: whoever asks again reads the same. It is ErrTaken while another
// process works on the job, and ErrUnknown for every job that was not entrusted,
// so that an id from a chat opens nothing.
// Guarded by tests/contract TestJournalOnlyEntrustedJobsAreAdopted.
func (j *Journal) Adopt(ctx context.Context, id string) (Record, error) {
	var got Record
	err := j.write(ctx, func(c change) (err error) {
		got, err = c.adopt(ctx, id)
		return err
	})
	if err != nil {
		return Record{}, fmt.Errorf("adopt job %s: %w", id, err)
	}
	j.signal()
	return got, nil
}

func (c change) adopt(ctx context.Context, id string) (Record, error) {
	record, err := find(ctx, c, "id", id)
	switch {
	case err != nil:
		return Record{}, err
	case !record.Job.Entrusted:
		return Record{}, ErrUnknown
	case record.Job.Origin == entrusted:
		return c.move(ctx, record)
	case record.State == Ended:
		return record, nil
	}
	return Record{}, ErrTaken
}

// move writes the new origin into the row and into the job that it holds.
func (c change) move(ctx context.Context, record Record) (Record, error) {
	return c.moveTo(ctx, record, c.cfg.Origin)
}

func (c change) moveTo(ctx context.Context, record Record, origin string) (Record, error) {
	before := record.Job.Origin
	record.Job.Origin = origin
	stored := record.Job
	stored.Attempt = 0
	text, err := json.Marshal(stored)
	if err != nil {
		return Record{}, err
	}
	moved, err := c.alter(ctx, `UPDATE jobs SET origin = ?2, job = ?3 WHERE id = ?1 AND origin = ?4`, record.Job.ID, origin, string(text), before)
	if err == nil && !moved {
		err = errors.New("it was moved in the same transaction")
	}
	return record, err
}

// release gives a job back whose adopter died over it: whoever comes next with its
// id can still have it answered, within its time and its attempts.
// Guarded by tests/contract TestJournalADeadAdoptersJobCanBeAdoptedAgain.
func (c change) release(ctx context.Context, record Record) error {
	if record.State == Running {
		if err := c.again(ctx, record.Job); err != nil {
			return err
		}
	}
	_, err := c.moveTo(ctx, record, entrusted)
	return err
}

// expire ends the entrusted jobs that nobody came for.
// Guarded by tests/contract TestJournalEntrustedJobsExpire.
func (c change) expire(ctx context.Context) error {
	left, err := all(ctx, c, `state = 'queued' AND origin = 'entrusted' AND accepted < ?`, c.cfg.Now().Add(-entrustedFor).UnixNano())
	if err != nil {
		return err
	}
	for _, record := range left {
		if _, err := c.end(ctx, record.Job.ID, anyAttempt, *ask.EndedBy(record.Job, ask.NotTaken, "")); err != nil {
			return err
		}
	}
	return nil
}
