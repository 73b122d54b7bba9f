package bridge

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"parlour/bridge/ask"
	"parlour/bridge/journal"
	"parlour/tiers"
)

// Senders delivers each outcome by the platform of its question.
type Senders map[tiers.Platform]Sender

var (
	_ Sender   = Senders(nil)
	_ Reporter = Senders(nil)
)

// errOff means that a platform is not served. It can be on after a restart only.
var errOff = errors.New("it is off")

// Deliver hands the outcome to the platform's sender. A platform that is off is
// an error: the outcome stays stored until it is on again.
func (s Senders) Deliver(ctx context.Context, job ask.Job, ended ask.Ended) error {
	sender := s[job.Identity.Platform]
	if sender == nil {
		return fmt.Errorf("the platform %s: %w", job.Identity.Platform, errOff)
	}
	return sender.Deliver(ctx, job, ended)
}

// Report hands the progress to the platform's sender, if it can show it.
func (s Senders) Report(ctx context.Context, job ask.Job, p ask.Progress) error {
	if reporter, can := s[job.Identity.Platform].(Reporter); can {
		return reporter.Report(ctx, job, p)
	}
	return nil
}

// Outbox delivers stored outcomes and notes that it did. One that a platform
// refuses for good is noted as not deliverable; any other failure is tried again
// while the bot runs, and after its next start.
type Outbox struct {
	journal *journal.Journal
	sender  Sender
	metrics *Metrics
	log     *slog.Logger

	mu   sync.Mutex
	busy map[string]bool  // outcomes that are being delivered
	late map[string]*late // outcomes that wait for their next try
	up   map[tiers.Platform]bool
	at   map[tiers.Platform]bool // platforms on which a pass goes on

	arrived arrivals
}

// NewOutbox makes an outbox in front of a sender. Metrics may be nil.
func NewOutbox(j *journal.Journal, sender Sender, metrics *Metrics, log *slog.Logger) (*Outbox, error) {
	if j == nil || sender == nil || log == nil {
		return nil, errors.New("outbox: journal, sender and log are required")
	}
	return &Outbox{
		journal: j, sender: sender, metrics: metrics, log: log,
		busy: map[string]bool{}, late: map[string]*late{}, up: map[tiers.Platform]bool{}, at: map[tiers.Platform]bool{},
	}, nil
}

// refusal is the error of a sender that knows whether trying again can help.
type refusal interface {
	error
	Permanent() bool
}

func permanent(err error) bool {
	var r refusal
	return errors.As(err, &r) && r.Permanent()
}

// deliver hands one outcome out. It is false where that has to be tried again.
// No outcome is delivered twice at the same time, nor once more after it was.
// An answer is shown to nobody who has lost the right to it by now.
// Guarded by tests/contract TestAnOutcomeIsNeverDeliveredTwiceAtOnce,
// TestWhatAPlatformRefusesForGoodIsTriedOnce and
// TestT24AnAnswerIsWithheldFromWhomWasRevokedBeforeItsDelivery.
func (o *Outbox) deliver(ctx context.Context, book func() Rulebook, job ask.Job, ended ask.Ended) bool {
	if !o.take(job.ID) {
		return true
	}
	defer o.leave(job.ID)
	if open, err := o.journal.Tried(ctx, job.ID); err != nil {
		o.log.Error("note the try", "job", job.ID, "err", err)
	} else if !open {
		o.settle(job.ID)
		return true
	}
	shown, withheld, err := o.shown(ctx, book, job, ended)
	if err == nil {
		err = o.sender.Deliver(ctx, job, shown)
	}
	ctx = context.WithoutCancel(ctx) // what has happened is noted even when the bot stops
	switch {
	case err == nil:
		o.settle(job.ID)
		if withheld {
			o.noteWithheld(ctx, job, shown)
		}
		if err := o.journal.Delivered(ctx, job.ID); err != nil {
			o.log.Error("note the delivery", "job", job.ID, "err", err)
		}
		return true
	case permanent(err):
		o.giveUp(ctx, job, err)
		return true
	}
	o.metrics.deliveryFailed()
	o.later(job, ended, err)
	return false
}

// noteWithheld keeps that the answer, which is stored, was not what was shown.
func (o *Outbox) noteWithheld(ctx context.Context, job ask.Job, shown ask.Ended) {
	o.log.Info("the answer was withheld: its person has lost the right to it", "job", job.ID, "why", shown.Detail)
	if err := o.journal.Append(ctx, job.ID, ask.EventWithheld, ask.Withheld{Cause: shown.Outcome.Cause, Why: shown.Detail}); err != nil {
		o.log.Error("note what was withheld", "job", job.ID, "err", err)
	}
}

// giveUp ends the delivery of an outcome: its person cannot be told.
func (o *Outbox) giveUp(ctx context.Context, job ask.Job, why error) {
	o.settle(job.ID)
	o.metrics.outcomeLost(job)
	o.log.Error("the platform refuses this outcome for good; it is not tried again", "job", job.ID, "err", why)
	if err := o.journal.Undeliverable(ctx, job.ID, why.Error()); err != nil {
		o.log.Error("note what is not deliverable", "job", job.ID, "err", err)
	}
}

func (o *Outbox) take(job string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.busy[job] {
		return false
	}
	o.busy[job] = true
	return true
}

func (o *Outbox) leave(job string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.busy, job)
}

// settle forgets an outcome with which the outbox is done.
func (o *Outbox) settle(job string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.late, job)
}
