package journal

import (
	"context"
	"errors"
	"fmt"

	"parlour/bridge/ask"
)

// Undeliverable ends the delivery of an outcome that its platform refuses for
// good, and keeps why. It is not listed as undelivered any more. Saying it again
// is harmless; an outcome that was delivered stays so.
// Guarded by tests/contract TestJournalUndeliverableIsAnEndOfItsOwn.
func (j *Journal) Undeliverable(ctx context.Context, jobID, why string) error {
	err := errors.New("no reason is given")
	if why != "" {
		err = j.write(ctx, func(c change) error {
			fresh, err := c.deliver(ctx, jobID, `UPDATE jobs SET lost = 1`)
			if err != nil || !fresh {
				return err
			}
			return c.log(ctx, jobID, ask.EventUndeliverable, ask.Undeliverable{Why: why})
		})
	}
	if err != nil {
		return fmt.Errorf("mark job %s as not deliverable: %w", jobID, err)
	}
	return nil
}
