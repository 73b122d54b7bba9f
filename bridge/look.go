package bridge

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"parlour/bridge/ask"
	"parlour/tiers"
)

// Looker is a Sender that can also say who somebody is by now, by the ids that
// its platform vouches for. With an error, what could not be learned is zero; it
// may be all of it. What it learns only ever lowers.
type Looker interface {
	Look(ctx context.Context, who tiers.Identity, where tiers.Place) (tiers.Identity, error)
}

const (
	justNow = 5 * time.Second // a message that is no older has just told who its sender is
	longAgo = time.Minute     // what was told before is not relied on any more
	oneLook = 5 * time.Second // one look
)

// lookerOf gives who can look somebody up again on a platform, if any can.
func lookerOf(sender Sender, job ask.Job) Looker {
	if s, ok := sender.(Senders); ok {
		sender = s[job.Identity.Platform]
	}
	looker, _ := sender.(Looker)
	return looker
}

// arrivals are when the messages of the last while were taken in by this process,
// by a clock that nobody sets.
type arrivals struct {
	mu sync.Mutex
	at map[string]time.Time
}

// mostArrivals bounds them. Of a message that is not there any more who sent it
// is looked up again.
const mostArrivals = 10_000

func (a *arrivals) note(message string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	if len(a.at) >= mostArrivals {
		maps.DeleteFunc(a.at, func(_ string, at time.Time) bool { return now.Sub(at) > longAgo })
	}
	if a.at[message] != (time.Time{}) {
		return
	}
	if a.at == nil || len(a.at) >= mostArrivals {
		a.at = map[string]time.Time{}
	}
	a.at[message] = now
}

func (a *arrivals) forget(message string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.at, message)
}

// older says whether what a message has told of its sender may be older than d.
// It is not where this process took it in no longer ago, and the platform does
// not tell otherwise: the two clocks may differ, so the platform's word alone
// makes nothing young.
// Guarded by tests/contract TestTheClockOfTheHostSparesNoLook.
func (a *arrivals) older(job ask.Job, d time.Duration) bool {
	a.mu.Lock()
	at, known := a.at[job.Message]
	a.mu.Unlock()
	age := time.Since(job.At)
	return !known || time.Since(at) > d || age < -d || age > d
}

// hangs says whether a tier hangs on what the platform may take away at any
// time: membership, roles and user groups.
func (b Rulebook) hangs(job ask.Job, on tiers.Tier) bool {
	bare := tiers.Identity{
		Platform: job.Identity.Platform, Workspace: job.Identity.Workspace, User: job.Identity.User, Kind: job.Identity.Kind,
		External: job.Identity.External, Restricted: true,
	}
	return b.Decide(bare, job.Place).Tier < on
}

// Groups gives the user groups of a Slack workspace that any of the rules names,
// and those among them that any block names.
func (b Rulebook) Groups(workspace string) (named, denied []string) {
	for _, rules := range append([]tiers.Rules{b.Rules}, b.Under...) {
		named = append(named, rules.Groups(workspace)...)
		denied = append(denied, rules.Denied(workspace)...)
	}
	return named, denied
}

// sight is who the person of one question is by now.
type sight struct {
	looker Looker
	at     time.Time // of the look; zero: there was none
	who    tiers.Identity
	err    error
}

// look asks the platform. What it tells of somebody else tells nothing.
func (s *sight) look(ctx context.Context, job ask.Job) {
	ctx, cancel := context.WithTimeout(ctx, oneLook)
	defer cancel()
	s.at = time.Now()
	s.who, s.err = s.looker.Look(ctx, job.Identity, job.Place)
	if s.who.User == job.Identity.User && s.who.Platform == job.Identity.Platform {
		return
	}
	s.who = tiers.Identity{}
	if s.err == nil {
		s.err = errors.New("the platform told of somebody else")
	}
}

// lower gives the lower of a decision and what the person is by this sight.
// Where the look has failed that is guest at most, and never more than before.
// Guarded by tests/contract TestALookOnlyLowers and
// TestALookThatFailsGivesGuestAtMost.
func (s *sight) lower(b Rulebook, job ask.Job, d tiers.Decision) tiers.Decision {
	now := b.Decide(s.who, job.Place)
	if least := min(d.Tier, tiers.Guest); s.err != nil && now.Block == "" && now.Tier < least {
		now = d
		now.Tier, now.Audience = least, min(d.Audience, d.Place)
		if job.Place.Direct {
			now.Audience = now.Tier
		}
		now.Why += "; who they are could not be looked up again, so guest at most"
	}
	if now.Tier >= d.Tier {
		return d
	}
	if s.err == nil {
		now.Why += "; looked up again: when they asked they were " + d.Tier.String()
	}
	return now
}

// fresh gives the decision on a question whose run is about to start, by who its
// person is by then. The platform is asked where the tier hangs on its word and
// that is not of just now.
// Guarded by tests/contract TestWhoLostARoleWhileWaitingHasItNotWhenTheRunStarts.
func (w *Worker) fresh(ctx context.Context, book Rulebook, job ask.Job, s *sight, t *trial) tiers.Decision {
	d := job.Decision
	switch {
	case s.looker == nil || !book.hangs(job, d.Tier):
		return d
	case s.at.IsZero() && !w.cfg.Outbox.arrived.older(job, justNow):
		return d
	case s.at.IsZero() || time.Since(s.at) > longAgo:
		s.look(ctx, job)
	}
	now := s.lower(book, job, d)
	log := w.cfg.Log.With("job", job.ID, "tier", now.Tier)
	switch {
	case s.err != nil:
		log.Warn("who asks could not be looked up again before the run", "before", d.Tier, "err", s.err)
		t.note(fmt.Sprintf("who asks could not be looked up again before the run, so the tier is %s: %v", now.Tier, s.err))
	case now.Tier < d.Tier:
		log.Info("who asks has less right than when they asked", "before", d.Tier, "why", now.Why)
		t.note(fmt.Sprintf("looked up again before the run: %s, was %s when they asked", now.Tier, d.Tier))
	}
	return now
}

// note adds a line to the receipt, once.
func (t *trial) note(line string) {
	if !slices.Contains(t.spent.notes, line) {
		t.spent.notes = append(t.spent.notes, line)
	}
}

// errUnseen means that it could not be told whether an answer may be shown.
var errUnseen = errors.New("who asked could not be looked up again")

// shown gives what a person may read of an outcome, by the rules and by who they
// are now. Where the platform does not tell who that is, the delivery is tried
// again once; then an answer that is for more than guests is withheld.
// Guarded by tests/contract TestAnAnswerIsWithheldFromWhomLostTheirRoleMeanwhile.
func (o *Outbox) shown(ctx context.Context, book func() Rulebook, job ask.Job, ended ask.Ended) (ask.Ended, bool, error) {
	s, needs := sight{looker: lookerOf(o.sender, job)}, ended.Receipt.Tier
	if ended.Outcome.Kind == ask.Answered && s.looker != nil && o.arrived.older(job, longAgo) && book().hangs(job, needs) {
		s.look(ctx, job)
	}
	shown, withheld := book().shown(job, ended)
	if s.at.IsZero() || withheld {
		return shown, withheld, nil
	}
	if ctx.Err() != nil {
		return shown, false, ctx.Err()
	}
	now := s.lower(book(), job, tiers.Decision{Tier: needs, Place: job.Place.Most, Why: "the answer was made for " + needs.String()})
	cause := ask.Lowered
	switch {
	case now.Tier >= needs:
		return shown, false, nil
	case s.err != nil && now.Block == "" && !o.failed(job.ID):
		return shown, false, fmt.Errorf("%w: %v", errUnseen, s.err) // not its type: a look that is refused for good refuses no answer
	case s.err != nil && now.Block == "":
		cause = ask.Unchecked
	case now.Tier == tiers.None:
		cause = ask.NotAllowed
	}
	job.Decision = now
	return *ask.EndedBy(job, cause, now.Why), true, nil
}

// failed says whether a delivery of this outcome has failed already.
func (o *Outbox) failed(job string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	l := o.late[job]
	return l != nil && l.failures > 0
}
