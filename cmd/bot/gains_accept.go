package main

import (
	"time"
)

type acceptGainsCmd struct {
	Hash string `arg:"" optional:"" help:"Consent only if what waits is still what was shown with this hash."`
}

// Run consents to what the manifests give beyond what was accepted before, and to
// where the configuration sends what is asked. It prints all of it, and consents
// to exactly the files that it has read.
// Guarded by tests/journeys TestT13WhatIsAcceptedIsWhatWasShown.
func (a *acceptGainsCmd) Run(p *process, c *cli) error {
	h, err := p.open(c)
	if err != nil {
		return err
	}
	consent := consentIn(h.state)
	if err := consent.guard(); err != nil {
		return err // what is written there would not count
	}
	wait, b, err := consent.waiting(h)
	hash := h.set.Texts().Hash()
	if err != nil {
		p.note("warning: %s", err)
		wait = pendingOf(h, hash, []string{"all that the manifests give: what was accepted before cannot be read any more"})
	}
	waits := len(wait.gains) > 0
	if waits && a.Hash != "" && a.Hash != wait.hash {
		return bad("nothing is accepted: what waits by now is another than %s; bot check shows it, and its hash %s", a.Hash, wait.hash)
	}
	if !c.JSON {
		for _, gain := range wait.gains { // before anything is stored
			p.print("waits: %s", gain)
		}
	}
	if waits {
		if err := consent.accept(accepted{Tiers: hash, Runners: b.driven(h.set), Outlets: h.cfg.outlets(), At: time.Now().UTC()}); err != nil {
			return err
		}
	}
	switch {
	case c.JSON:
		return p.json(map[string]any{"accepted": waits, "gains": append([]string{}, wait.gains...), "hash": hash, "waiting_hash": wait.hash})
	case !waits:
		p.print("nothing waits for consent")
	default:
		p.print("accepted: all of it (%s); a bot that serves takes this over at once; runner files and the configuration at its next start", wait.hash)
	}
	return nil
}
