package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"reflect"
	"slices"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"parlour/bridge"
	"parlour/manifests"
	"parlour/runner"
	"parlour/tiers"
)

// reload keeps a serving bot on the tier files of now.
type reload struct {
	h        *house
	consent  consent
	live     *manifests.Live
	book     atomic.Pointer[bridge.Rulebook]
	force    manifests.Force
	names    map[tiers.Tier]int // of the policies, see bridge.Rulebook
	withheld []string           // runners whose files wait for consent
	before   bound              // of the start
	agreed   standing           // what is kept beside the states of the tier files
	begun    bool               // the start is over: what is read at a start only waits for the next one
	waits    atomic.Pointer[pending]
	refused  string // the last reason for which a consent did not count
	metrics  *reloads
	changed  func() // the book is another one
}

// newReload begins with the manifests of the start. What they give beyond what was
// accepted before waits. Each later state of the files is decided like a start:
// what would refuse to start changes nothing.
func newReload(h *house, p *process, m *reloads) (*reload, error) {
	r := &reload{h: h, consent: consentIn(h.state), metrics: m, changed: func() {}, names: map[tiers.Tier]int{}}
	var err error
	if r.before, err = r.consent.bound(h.set); err != nil {
		return nil, err
	}
	r.withheld = r.before.withheld(h.set)
	r.agreed = r.agree()
	if r.before.first {
		p.note("the first start with the state folder %s: what the manifests and the configuration say is accepted", h.state)
	}
	var turn manifests.Turn
	r.live, turn = manifests.NewLive(manifests.LiveConfig{
		Allow: r.allow, Consented: func(hash string) bool { return r.accepted().Tiers == hash },
		Turned: r.turned, Unbounded: r.before.open, Keep: r.keep, Now: time.Now,
	}, h.set, r.before.states())
	if turn.Kept != nil {
		return nil, fmt.Errorf("store what was accepted: %w", turn.Kept)
	}
	r.begun = true
	r.open(turn.Force)
	if wait := r.wait(turn); len(wait.gains) > 0 {
		p.note("warning: %s; until then what was accepted before stays in force", wait)
	}
	m.waiting.Set(float64(len(r.waits.Load().gains)))
	return r, nil
}

// allow refuses manifests with which this bot would not serve.
func (r *reload) allow(set *manifests.Set) error {
	if err := r.h.cfg.Against(set, r.h.state); err != nil {
		return err
	}
	if set.Rules().Count(tiers.Owner) == 0 {
		return errors.New("tiers/owner.yaml names nobody: a chat is not served without an owner")
	}
	return nil
}

// wait takes note of what waits after a turn. What of the start was accepted by now
// counts from the next one, and waits no more.
func (r *reload) wait(t manifests.Turn) pending {
	now := bound{past: past{standing: r.agreed}, yes: r.accepted()}
	closed := maps.Clone(r.h.closed)
	maps.DeleteFunc(closed, func(name, _ string) bool { return now.yes.Outlets[name] == r.h.cfg.outlets()[name] })
	held := append(now.runnerGains(r.h.set, now.withheld(r.h.set)), outletGains(closed)...)
	wait := pendingOf(r.h, t.Hash, slices.Concat(t.Gains, held))
	r.waits.Store(&wait)
	return wait
}

// accepted gives the operator's consent, and says why one does not count.
func (r *reload) accepted() accepted {
	yes, err := r.consent.accepted()
	why := ""
	if err != nil {
		why = err.Error()
	}
	if why != "" && why != r.refused {
		r.h.log.Error("a consent is not counted; what waits goes on waiting", "why", why)
	}
	r.refused = why
	return yes
}

// keep stores what the next state and the next start are bounded by. A consent ends
// with it: the tier files' once their state is in force or another one lies there,
// so that going back to a state that was once accepted needs another consent; that
// to runner files and outlets with the next start, which uses it or has others.
// Guarded by tests/journeys TestT13AConsentIsForOneChange,
// TestT13AConsentThatNoBotHasUsedEndsWithTheNextStart and
// TestT13AConsentToARunnerFileOutlastsChangesOfTheTiers.
func (r *reload) keep(under []manifests.Texts) error {
	yes := r.accepted()
	rest := yes
	used := len(under) == 1 && under[0].Hash() == yes.Tiers
	if used || yes.Tiers != "" && r.lies() != yes.Tiers {
		rest.Tiers = ""
	}
	rest.Runners, rest.Outlets = r.later(yes.Runners, r.agreed.Runners), r.later(yes.Outlets, r.agreed.Outlets)
	r.agreed.Under = under
	if err := r.consent.keep(r.agreed); err != nil {
		return err
	}
	return r.consent.retire(yes, rest)
}

// later gives what of a consent counts from the next start.
func (r *reload) later(yes, agreed map[string]string) map[string]string {
	if !r.begun {
		return nil
	}
	yes = maps.Clone(yes)
	maps.DeleteFunc(yes, func(name, to string) bool { return agreed[name] == to })
	return yes
}

// lies gives the hash of the tier files as they lie there now: a consent may be to
// a state that is looked at next.
func (r *reload) lies() string {
	if r.h.cfg.Manifests == "" {
		return r.h.set.Texts().Hash()
	}
	return manifests.TiersIn(r.h.cfg.Manifests).Hash()
}

// agree gives to what the operator has consented of that which is read at a start
// only: what is used, and what stays accepted of that which waits.
func (r *reload) agree() standing {
	before := r.before.standing
	s := standing{Runners: map[string]string{}, Files: manifests.Texts{}, Outlets: map[string]string{}}
	texts := r.h.set.RunnerTexts()
	for name, hash := range r.before.driven(r.h.set) {
		text := texts[name]
		switch {
		case slices.Contains(r.withheld, name):
			hash, text = before.Runners[name], before.Files[name]
		case hash == shippedRunner:
			hash = ""
		}
		if hash != "" {
			s.Runners[name], s.Files[name] = hash, text
		}
	}
	s.Names = slices.Collect(maps.Keys(texts))
	for _, name := range before.Names {
		if !slices.Contains(s.Names, name) {
			s.Names = append(s.Names, name)
		}
	}
	slices.Sort(s.Names)
	for name, to := range r.h.cfg.outlets() {
		if _, waits := r.h.closed[name]; !waits {
			s.Outlets[name] = to
		} else if was, known := before.Outlets[name]; known {
			s.Outlets[name] = was
		}
	}
	return s
}

// open makes what is in force the book, as one value: rules, bounds, and the
// runner with the policies.
// Guarded by tests/contract TestT23ARunUnderAPolicyThatWasNarrowedIsBegunAnew and
// tests/journeys TestAReloadTakesEffectWithoutARestart.
func (r *reload) open(f manifests.Force) {
	for _, t := range tiers.All() {
		before, _ := r.force.Tier(t)
		if now, ok := f.Tier(t); !ok || manifests.Narrows(before, now) {
			r.names[t]++ // a policy that has only grown keeps its name: its runs may go on
		}
	}
	all := policies(f, r.withheld)
	book := rulebook(f, r.h.runner.With(all))
	for t, n := range r.names {
		book.Policies[t] = strconv.Itoa(n)
	}
	r.book.Store(&book)
	if before := policies(r.force, r.withheld); !reflect.DeepEqual(before, all) {
		r.h.engine.Flush() // a box of an old policy would serve nobody any more
	}
	r.force = f
}

// turned takes over a new state of the files.
func (r *reload) turned(t manifests.Turn) {
	log := r.h.log
	defer func() { r.metrics.show(t.Err != nil, len(r.waits.Load().gains)) }() // once it is so
	if t.Err != nil {
		log.Error("the manifests are refused; the last good ones stay in force", "why", sayRefused(t.Err))
		return
	}
	r.open(t.Force)
	r.changed()
	log.Info("the manifests were read again", "losses", len(t.Losses), "gains_waiting", len(t.Gains))
	for _, loss := range t.Losses {
		log.Info("in force: less right", "what", loss)
	}
	wait := r.wait(t)
	for _, gain := range t.Gains {
		log.Warn("a gain waits for consent: "+wait.command, "what", gain)
	}
	if t.Folded {
		log.Warn("so many states of the manifests wait for consent that they are held as one, which may give somebody less than each: bot accept-gains")
	}
	if t.Kept != nil {
		log.Error("store what was accepted; it is tried again", "err", t.Kept)
	}
}

// serve watches the tier files until ctx ends.
func (r *reload) serve(ctx context.Context) {
	if r.h.cfg.Manifests == "" {
		return // the shipped ones are part of the program
	}
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	ask := make(chan struct{}, 1)
	done := make(chan struct{})
	defer func() { <-done }()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		defer close(done)
		for {
			select {
			case <-hangup:
				select {
				case ask <- struct{}{}:
				default:
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	var deaf atomic.Bool
	watch := manifests.Watch{Dir: r.h.cfg.Manifests, Also: r.consent.dir, Ask: ask, Deaf: func(err error) {
		if !deaf.Swap(true) {
			r.h.log.Warn("no word of changes from the kernel; the manifests are looked at every 10 s", "err", err)
		}
	}}
	watch.Serve(ctx, r.live.Look)
}

// String gives one line for health.
func (r *reload) String() string {
	s := r.live.Status()
	text := "read at " + s.Good.UTC().Format(time.RFC3339)
	if s.Refused != nil {
		text = "last good of " + s.Good.UTC().Format(time.RFC3339) + "; refused: " + sayRefused(s.Refused)
	}
	if wait := r.waits.Load(); len(wait.gains) > 0 {
		text += "; " + wait.String()
	}
	return text
}

func sayRefused(err error) string {
	var faults manifests.Faults
	if errors.As(err, &faults) && len(faults) > 0 {
		return fmt.Sprintf("%d faults, first: %s", len(faults), faults[0])
	}
	return err.Error()
}

// rulebook makes the book of what is in force, and of the runner with its policies.
func rulebook(f manifests.Force, by bridge.Delegate) bridge.Rulebook {
	book := bridge.Rulebook{Delegate: by, Asking: map[tiers.Tier]bridge.Asking{}, Policies: map[tiers.Tier]string{}}
	book.Rules, book.Under = f.Rules()
	for _, t := range tiers.All() {
		if tier, ok := f.Tier(t); ok {
			a := tier.Asking
			book.Asking[t] = bridge.Asking{PerMinute: a.PerMinute, Running: a.Running, Waiting: a.Waiting}
		}
	}
	return book
}

// policies gives what each tier may do, without the runners that are withheld.
func policies(f manifests.Force, withheld []string) map[tiers.Tier]runner.TierPolicy {
	all := map[tiers.Tier]runner.TierPolicy{}
	for _, t := range tiers.All() {
		if tier, ok := f.Tier(t); ok {
			list := slices.DeleteFunc(tier.Runners, func(name string) bool { return slices.Contains(withheld, name) })
			all[t] = runner.TierPolicy{Wish: tier.Wish, List: list, Models: tier.Models}
		}
	}
	return all
}
