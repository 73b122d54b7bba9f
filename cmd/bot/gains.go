package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"parlour/manifests"
)

// bound is what the manifests of now may not go beyond. The zero bound lets nothing
// through.
type bound struct {
	past
	yes   accepted
	open  bool // nothing bounds the tier files: the first start, or the operator has consented to all that they give
	under []*manifests.Set
}

// bound reads the states that bound the manifests. Those that cannot be read any
// more bound everything: only the operator's consent helps.
// Guarded by tests/journeys TestT13WhatWasAcceptedCannotBeReadAnyMore.
func (c consent) bound(set *manifests.Set) (bound, error) {
	if err := c.guard(); err != nil {
		return bound{}, err
	}
	b := bound{}
	b.yes, _ = c.accepted() // what cannot be read is none; a bot that serves says so
	p, err := c.past()
	for _, texts := range p.Under {
		if err == nil {
			var before *manifests.Set
			before, err = set.Earlier(texts, p.Names)
			b.under = append(b.under, before)
		}
	}
	b.past = p
	b.open = p.first || b.yes.Tiers == set.Texts().Hash()
	switch {
	case err == nil:
		return b, nil
	case b.open:
		b.under = nil
		return b, nil
	}
	return bound{}, bad("what was accepted before cannot be read in %s (%w); after reading the manifests, consent to all that they give: bot accept-gains", c.dir, err)
}

// states are those underneath; none only where nothing bounds the tier files.
// Guarded by TestT13TheZeroBoundLetsNothingThrough.
func (b bound) states() []*manifests.Set {
	switch {
	case b.open:
		return nil
	case len(b.under) == 0:
		return []*manifests.Set{manifests.Nothing()}
	}
	return b.under
}

// withheld names the runners that are driven otherwise than the operator has
// consented to: by a file that is new or has changed, or by the shipped one since
// their own is gone. They are not used. A shipped runner beside which there was no
// file is part of the program, and new with it.
// Guarded by tests/journeys TestT13AChangedRunnerFileWaits,
// TestT13TheShippedRunnerInThePlaceOfAFileThatIsGoneWaits and
// TestT13AfterALossOfWhatWasAcceptedRunnersAreBoundToTheConsent.
func (b bound) withheld(set *manifests.Set) (names []string) {
	if b.first {
		return nil
	}
	for name, now := range b.driven(set) {
		if b.Runners[name] != now && b.yes.Runners[name] != now {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// driven gives the hash of each of the operator's runner files, and which of those
// of before the shipped ones have taken the place of.
func (b bound) driven(set *manifests.Set) map[string]string {
	all := set.RunnerFiles()
	for name := range b.Runners {
		_, err := manifests.Shipped("runners/" + name + ".yaml")
		if _, own := all[name]; !own && err == nil {
			all[name] = shippedRunner
		}
	}
	return all
}

// runnerGains says of runners what waits.
func (b bound) runnerGains(set *manifests.Set, names []string) (gains []string) {
	own := set.RunnerFiles()
	for _, name := range names {
		text := "runner " + name + ": its file is new or has changed"
		if own[name] == "" {
			text = "runner " + name + ": its file is gone, and the shipped runner of this name would be used"
		}
		if what := set.RunnerChanges(name, b.Files[name]); len(what) > 0 {
			text += " (" + strings.Join(what, "; ") + ")"
		}
		gains = append(gains, text)
	}
	return gains
}

// pending is what waits for consent, and the name of exactly that.
type pending struct {
	gains   []string
	hash    string
	command string // what the operator types to consent to exactly this
}

// hashDigits are as many that nobody finds another state with the same hash.
const hashDigits = 16

// pendingOf names what waits, beside all that a consent to it is to. Where the folder
// of the manifests lies makes no difference.
func pendingOf(h *house, tiers string, gains []string) pending {
	told := []string{}
	for _, gain := range gains {
		if h.cfg.Manifests != "" {
			gain = strings.ReplaceAll(gain, h.cfg.Manifests, "")
		}
		told = append(told, gain)
	}
	slices.Sort(told)
	text, _ := json.Marshal([]any{tiers, h.set.RunnerFiles(), h.cfg.outlets(), told}) // strings never fail
	sum := sha256.Sum256(text)
	hash := hex.EncodeToString(sum[:])[:hashDigits]
	return pending{gains, hash, h.again("accept-gains", hash)}
}

func (w pending) String() string {
	return fmt.Sprintf("%d gains wait for your consent (%s), first: %s", len(w.gains), w.command, w.gains[0])
}

// waiting lists what of the manifests and the configuration waits for consent.
func (c consent) waiting(h *house) (pending, bound, error) {
	b, err := c.bound(h.set)
	if err != nil {
		return pending{}, bound{}, err
	}
	gains := manifests.Gained(b.states(), h.set)
	if len(gains) == 0 {
		b.open = true // they go beyond nothing
	}
	gains = slices.Concat([]string{}, gains, b.runnerGains(h.set, b.withheld(h.set)), outletGains(h.closed))
	return pendingOf(h, h.set.Texts().Hash(), gains), b, nil
}

// inForce bounds the manifests by what was accepted, for a command that does not
// serve. It stores nothing, and says what waits.
// Guarded by tests/journeys TestT13AnotherGatewayGetsNoMoreThanWasAccepted.
func (h *house) inForce(log *slog.Logger) (f manifests.Force, without []string, err error) {
	wait, b, err := consentIn(h.state).waiting(h)
	if err != nil {
		return manifests.Force{}, nil, err
	}
	if len(wait.gains) > 0 {
		log.Warn(wait.String())
	}
	return manifests.InForce(h.set, b.states()...), b.withheld(h.set), nil
}

// goByConsent puts what is in force in the place of what the files say.
func (h *house) goByConsent(log *slog.Logger) error {
	force, without, err := h.inForce(log)
	if err == nil {
		h.goBy(force, without)
	}
	return err
}

func (h *house) goBy(force manifests.Force, without []string) {
	h.runner = h.runner.With(policies(force, without))
	h.book = rulebook(force, h.runner)
}

// served is goByConsent for a command that only looks. It gives what waits, and
// stores nothing.
func served(h *house, p *process) pending {
	wait, b, err := consentIn(h.state).waiting(h)
	if err == nil {
		h.goBy(manifests.InForce(h.set, b.states()...), b.withheld(h.set))
	} else {
		p.note("warning: %s; what the files say is shown, and no bot serves by it", err)
	}
	return wait
}

// asServed is served for what shows the gains alone.
func asServed(h *house, p *process) []string { return served(h, p).gains }
