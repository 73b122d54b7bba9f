package bridge

import (
	"context"
	"errors"
	"sync"
	"time"

	"parlour/bridge/ask"
	"parlour/bridge/journal"
	"parlour/tiers"
)

// Rulebook is one state of the manifests: rules, bounds and what runs by them,
// as one value, so that a decision never mixes two.
type Rulebook struct {
	Rules tiers.Rules
	// Under are earlier rules that still bound these: nobody has more than the
	// least of them gives.
	Under  []tiers.Rules
	Asking map[tiers.Tier]Asking
	// Delegate runs by the policies of this state. Nil: the worker's own does.
	Delegate Delegate
	// Policies names each tier's policy in this state: what has another name is
	// another policy, and a run under the old one is begun anew.
	Policies map[tiers.Tier]string
}

// Decide gives the tier of a person in a place: the least that any of the rules
// gives.
// Guarded by tests/contract TestT13NobodyHasMoreThanTheRulesUnderneathGive.
func (b Rulebook) Decide(who tiers.Identity, where tiers.Place) tiers.Decision {
	return b.DecideAt(who, where, time.Now())
}

// DecideAt decides as Decide does at that time.
func (b Rulebook) DecideAt(who tiers.Identity, where tiers.Place, now time.Time) tiers.Decision {
	d := b.Rules.Resolve(who, where, now)
	for _, rules := range b.Under {
		least := rules.Resolve(who, where, now)
		audience := min(d.Audience, least.Audience)
		if least.Tier < d.Tier {
			least.Why += "; the manifests of now give " + d.Tier.String() + ", which waits for the operator's consent"
			d = least
		}
		d.Audience = audience
	}
	return d
}

// again gives the lower of the tier at intake and the tier now, so that a right
// that was taken away meanwhile is not used, and one that was given neither.
// Guarded by tests/contract TestTheLowerOfTwoTiersWins.
func (b Rulebook) again(job ask.Job, intake tiers.Decision) tiers.Decision {
	now := b.Decide(job.Identity, job.Place)
	if now.Tier > intake.Tier {
		return intake
	}
	return now
}

// shown gives what a person may read of an outcome now. An answer that was made
// with more right than they have by now is withheld.
func (b Rulebook) shown(job ask.Job, ended ask.Ended) (shown ask.Ended, withheld bool) {
	if ended.Outcome.Kind != ask.Answered {
		return ended, false
	}
	now := b.Decide(job.Identity, job.Place)
	if now.Tier >= ended.Receipt.Tier && now.Tier != tiers.None {
		return ended, false
	}
	cause := ask.Lowered
	if now.Tier == tiers.None {
		cause = ask.NotAllowed
	}
	job.Decision = now
	return *ask.EndedBy(job, cause, now.Why), true
}

// errLost ends a run to which the right is gone.
var errLost = errors.New("the right to this run was taken away")

// held is one run that goes on, and the right by which it does.
type held struct {
	ctx    context.Context
	stop   context.CancelCauseFunc
	job    ask.Job
	intake tiers.Decision
	tier   tiers.Tier
	policy string
}

// lost says whether the right to the run is gone, or what it may do has changed.
func (h *held) lost(b Rulebook) bool {
	return b.again(h.job, h.intake).Tier < h.tier || b.Policies[h.tier] != h.policy
}

// holdings are the runs that go on, each with the right by which it does.
type holdings struct {
	book func() Rulebook

	mu  sync.Mutex
	all map[*held]bool
}

// hold notes a run that is about to begin, and gives its context. The rulebook
// may have changed since the decision; once the run is noted a review sees it, so
// it is looked at after that.
func (g *holdings) hold(ctx context.Context, job ask.Job, intake tiers.Decision, by Rulebook) *held {
	h := &held{job: job, intake: intake, tier: job.Decision.Tier, policy: by.Policies[job.Decision.Tier]}
	h.ctx, h.stop = context.WithCancelCause(ctx)
	g.mu.Lock()
	g.all[h] = true
	g.mu.Unlock()
	if h.lost(g.book()) {
		h.stop(errLost)
	}
	return h
}

// release ends the note, and says whether the right was lost by then.
// Guarded by tests/contract TestT24ARightThatIsLostAsTheRunEndsIsSeen.
func (g *holdings) release(h *held) bool {
	g.mu.Lock()
	delete(g.all, h)
	g.mu.Unlock()
	defer h.stop(nil)
	return errors.Is(context.Cause(h.ctx), errLost) || h.lost(g.book())
}

// review interrupts the runs to which the right is gone.
// Guarded by tests/contract TestT24ARunningQuestionOfWhomWasRevokedIsInterrupted.
func (g *holdings) review() {
	book := g.book()
	g.mu.Lock()
	defer g.mu.Unlock()
	for h := range g.all {
		if h.lost(book) {
			h.stop(errLost)
		}
	}
}

func (w *Worker) delegate(b Rulebook) Delegate {
	if b.Delegate != nil {
		return b.Delegate
	}
	return w.cfg.Delegate
}

// Review says that the rulebook has changed: questions that wait or run without
// a right to it any more are ended. It does not wait for that.
func (w *Worker) Review() {
	select {
	case w.changed <- struct{}{}:
	default: // one is due anyway
	}
}

// review looks at what waits and runs after each change of the rulebook, and from
// time to time, since a right may end by itself.
// Guarded by tests/contract TestT24AGrantThatEndsEndsWhatWaitsAndRuns.
func (w *Worker) review(ctx, runs context.Context) {
	var telling sync.WaitGroup
	defer telling.Wait()
	ticker := time.NewTicker(poll)
	defer ticker.Stop()
	tell := func(job ask.Job, ended ask.Ended) {
		// A platform that hangs does not hold up the next review.
		telling.Go(func() { w.cfg.Outbox.deliver(runs, w.cfg.Book, job, ended) })
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			w.held.review()
			if waiting, err := w.cfg.Journal.Waiting(ctx); err == nil { // else the next time
				w.reviewWaiting(ctx, waiting, tell)
			}
		case <-w.changed:
			w.held.review()
			waiting, err := w.waiting(ctx)
			if err != nil {
				w.cfg.Log.Error("questions that wait are decided when they run", "err", err)
			}
			w.reviewWaiting(ctx, waiting, tell)
		}
	}
}

func (w *Worker) waiting(ctx context.Context) (waiting []ask.Job, err error) {
	err = w.patient(ctx, "list what waits", func() (err error) {
		waiting, err = w.cfg.Journal.Waiting(ctx)
		return err
	})
	return waiting, err
}

// reviewWaiting ends the questions whose people may not ask any more, so that
// nobody waits for what will not come.
// Guarded by tests/contract TestT24AWaitingQuestionOfWhomWasRevokedEndsAtOnce.
func (w *Worker) reviewWaiting(ctx context.Context, waiting []ask.Job, tell func(ask.Job, ask.Ended)) {
	book := w.cfg.Book()
	for _, job := range waiting {
		now := book.again(job, job.Decision)
		if now.Tier != tiers.None {
			continue
		}
		switch err := w.cfg.Journal.Cancel(ctx, job.ID, ask.NotAllowed); {
		case errors.Is(err, journal.ErrEnded):
		case err != nil:
			w.cfg.Log.Error("end a question without a right to it", "job", job.ID, "err", err)
		default:
			ended := *ask.EndedBy(job, ask.NotAllowed, now.Why)
			w.cfg.Outbox.metrics.questionEnded(job, ended)
			tell(job, ended)
		}
	}
}
