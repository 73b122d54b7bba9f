package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"parlour/manifests"
)

// consent is the folder in which a serving bot and the operator's terminal tell
// each other to which state of the manifests the operator has consented.
type consent struct{ dir string }

// The files of the folder: the bot writes the one, the command the other.
const (
	standingFile = "standing.json"
	acceptedFile = "accepted.json"
)

func consentIn(state string) consent { return consent{filepath.Join(state, "consent")} }

// standing is what a serving bot goes by. Later states are bounded by it.
type standing struct {
	Under   []manifests.Texts `json:"under"`
	Names   []string          `json:"names"`   // runners that the texts may name
	Runners map[string]string `json:"runners"` // hashes of the runner files that are used
	Outlets map[string]string `json:"outlets"` // of the configuration that are used; nil: that was not looked at
}

// accepted is what the operator has consented to.
type accepted struct {
	Tiers   string            `json:"tiers"`
	Runners map[string]string `json:"runners,omitempty"`
	Outlets map[string]string `json:"outlets,omitempty"`
	At      time.Time         `json:"at"`
}

// standing gives what earlier states have left, and false where no bot has
// served from this state folder.
func (c consent) standing() (s standing, served bool, err error) {
	err = readJSON(filepath.Join(c.dir, standingFile), &s)
	if errors.Is(err, fs.ErrNotExist) {
		return standing{}, false, nil
	}
	if err == nil && len(s.Under) == 0 {
		err = errors.New("it names no state of the manifests")
	}
	return s, err == nil, err
}

// accepted gives the operator's last consent that is not used up yet. One that
// cannot be read is none.
func (c consent) accepted() accepted {
	var a accepted
	if err := readJSON(filepath.Join(c.dir, acceptedFile), &a); err != nil {
		return accepted{}
	}
	return a
}

// keep stores what a serving bot goes by. A consent is used up by it: going back
// to a state that was once accepted needs another one. What it says of runner
// files and outlets, which count from the next start, is kept with the rest; what
// it says of tier files waits for the very state of them. The maps of s take in
// what is kept.
// Guarded by tests/journeys TestT13AConsentIsForOneChange and
// TestT13AConsentToARunnerFileOutlastsChangesOfTheTiers.
func (c consent) keep(s standing) error {
	yes := c.accepted()
	maps.Copy(s.Runners, yes.Runners)
	maps.Copy(s.Outlets, yes.Outlets)
	err := writeJSON(c.dir, standingFile, s)
	switch {
	case err != nil:
		return err
	case len(s.Under) == 1 && yes.Tiers == s.Under[0].Hash():
		return os.Remove(filepath.Join(c.dir, acceptedFile))
	case yes.Runners != nil || yes.Outlets != nil:
		return c.accept(accepted{Tiers: yes.Tiers, At: yes.At})
	}
	return nil
}

func (c consent) accept(a accepted) error { return writeJSON(c.dir, acceptedFile, a) }

// earlier reads the states that bound the manifests. Those that cannot be read
// any more bound everything: only the operator's consent helps.
// Guarded by tests/journeys TestT13WhatWasAcceptedCannotBeReadAnyMore.
func (c consent) earlier(set *manifests.Set) ([]*manifests.Set, standing, error) {
	s, served, err := c.standing()
	if err == nil && !served {
		return nil, standing{}, nil
	}
	var under []*manifests.Set
	for _, texts := range s.Under {
		if err == nil {
			var before *manifests.Set
			before, err = set.Earlier(texts, s.Names)
			under = append(under, before)
		}
	}
	if err == nil {
		return under, s, nil
	}
	if c.accepted().Tiers == set.Texts().Hash() {
		return nil, standing{Runners: s.Runners, Outlets: s.Outlets}, nil
	}
	return nil, s, bad("what was accepted before cannot be read in %s (%w); after reading the manifests, consent to all that they give: bot accept-gains", c.dir, err)
}

// withheld names the runners whose files are new or have changed since the
// operator's consent. They are not used.
// Guarded by tests/journeys TestT13AChangedRunnerFileWaits.
func (c consent) withheld(set *manifests.Set, s standing) (names []string) {
	if s.Under == nil {
		return nil // the first start, or all of it was accepted
	}
	yes := c.accepted().Runners
	for name, hash := range set.RunnerFiles() {
		if s.Runners[name] != hash && yes[name] != hash {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func runnerGains(names []string) (gains []string) {
	for _, name := range names {
		gains = append(gains, "runner "+name+": its file is new or has changed")
	}
	return gains
}

// waiting lists what of the manifests and the configuration waits for consent.
func (c consent) waiting(h *house) ([]string, error) {
	under, s, err := c.earlier(h.set)
	if err != nil {
		return nil, err
	}
	gains := []string{}
	if c.accepted().Tiers != h.set.Texts().Hash() {
		gains = append(gains, manifests.Gained(under, h.set)...)
	}
	return slices.Concat(gains, runnerGains(c.withheld(h.set, s)), outletGains(h.closed)), nil
}

// inForce bounds the manifests by what was accepted, for a command that does not
// serve. It stores nothing, and says what waits.
// Guarded by tests/journeys TestT13AnotherGatewayGetsNoMoreThanWasAccepted.
func (c consent) inForce(set *manifests.Set, log *slog.Logger) (f manifests.Force, without []string, err error) {
	under, s, err := c.earlier(set)
	if err != nil {
		return manifests.Force{}, nil, err
	}
	gains, without := []string{}, c.withheld(set, s)
	if c.accepted().Tiers != set.Texts().Hash() {
		gains = manifests.Gained(under, set)
	}
	if all := append(slices.Clone(gains), runnerGains(without)...); len(all) > 0 {
		log.Warn(sayWaiting(all))
	}
	if len(gains) == 0 {
		under = nil
	}
	return manifests.InForce(set, under...), without, nil
}

// goByConsent puts what is in force in the place of what the files say.
func (h *house) goByConsent(log *slog.Logger) error {
	force, without, err := consentIn(h.state).inForce(h.set, log)
	if err != nil {
		return err
	}
	h.runner = h.runner.With(policies(force, without))
	h.book = rulebook(force, h.runner)
	return nil
}

// asServed is goByConsent for a command that only looks. It gives what waits, and
// stores nothing.
func asServed(h *house, p *process) []string {
	waiting, err := consentIn(h.state).waiting(h)
	if err == nil {
		err = h.goByConsent(slog.New(slog.DiscardHandler))
	}
	if err != nil {
		p.note("warning: %s; what the files say is shown, and no bot serves by it", err)
	}
	return waiting
}

func sayWaiting(gains []string) string {
	return fmt.Sprintf("%d gains wait for your consent (bot accept-gains), first: %s", len(gains), gains[0])
}

func readJSON(file string, to any) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, to)
}

// writeJSON puts a whole file in its place at once.
func writeJSON(dir, name string, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	file, err := os.CreateTemp(dir, "."+name+"-*") // mode 0600
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(file.Name()) }()
	_, err = file.Write(append(text, '\n'))
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	return os.Rename(file.Name(), filepath.Join(dir, name))
}
