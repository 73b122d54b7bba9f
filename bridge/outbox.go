package bridge

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"parlour/bridge/ask"
	"parlour/bridge/journal"
	"parlour/tiers"
)

// Senders delivers each outcome by the platform of its question.
type Senders map[tiers.Platform]Sender

var _ Sender = Senders(nil)

// Deliver hands the outcome to the platform's sender. A platform that is off is
// an error: the outcome stays stored until it is on again.
func (s Senders) Deliver(ctx context.Context, job ask.Job, ended ask.Ended) error {
	sender := s[job.Identity.Platform]
	if sender == nil {
		return fmt.Errorf("the platform %s is off", job.Identity.Platform)
	}
	return sender.Deliver(ctx, job, ended)
}

// Outbox delivers stored outcomes and notes that it did.
type Outbox struct {
	journal *journal.Journal
	sender  Sender
	metrics *Metrics
	log     *slog.Logger
}

// NewOutbox makes an outbox in front of a sender. Metrics may be nil.
func NewOutbox(j *journal.Journal, sender Sender, metrics *Metrics, log *slog.Logger) (*Outbox, error) {
	if j == nil || sender == nil || log == nil {
		return nil, errors.New("outbox: journal, sender and log are required")
	}
	return &Outbox{j, sender, metrics, log}, nil
}

// Flush delivers what was stored but not delivered when the bot died.
func (o *Outbox) Flush(ctx context.Context) error {
	waiting, err := o.journal.Undelivered(ctx)
	if err != nil {
		return err
	}
	for _, d := range waiting {
		o.deliver(ctx, d.Job, d.Ended)
	}
	return nil
}

// deliver hands one outcome out. One that fails stays stored as undelivered and
// is tried again by the next Flush.
func (o *Outbox) deliver(ctx context.Context, job ask.Job, ended ask.Ended) {
	if err := o.journal.Tried(ctx, job.ID); err != nil {
		o.log.Error("note the try", "job", job.ID, "err", err)
	}
	if err := o.sender.Deliver(ctx, job, ended); err != nil {
		o.metrics.undelivered()
		o.log.Error("deliver", "job", job.ID, "err", err)
		return
	}
	if err := o.journal.Delivered(ctx, job.ID); err != nil {
		o.log.Error("note the delivery", "job", job.ID, "err", err)
	}
}
