package main

import (
	"context"
	"errors"
	"time"

	"parlour/manifests"
	"parlour/tiers"
)

type checkCmd struct {
	Origins bool `help:"Print where each tier's order of runners comes from."`
}

// Run checks configuration, secrets and manifests strictly, broken runner files
// and expectations included, and says what is missing for a chat.
func (k *checkCmd) Run(_ context.Context, p *process, c *cli) error {
	warnings, err := p.faultless(c)
	if err != nil {
		return err
	}
	h, err := p.open(c)
	if err != nil {
		return err
	}
	if h.book.Rules.Count(tiers.Owner) == 0 {
		warnings = append(warnings, "tiers/owner.yaml names nobody: the terminal works, a chat would not start without an owner")
	}
	if h.book.Rules.Count(tiers.Guest) == 0 {
		warnings = append(warnings, "tiers/guest.yaml names nobody: nobody can ask as guest from a chat")
	}
	wait, _, err := consentIn(h.state).waiting(h)
	if err != nil {
		warnings = append(warnings, err.Error())
	} else if len(wait.gains) > 0 {
		warnings = append(warnings, wait.String()+"; a bot that serves holds them back")
	}
	for _, rule := range h.set.Rules().All() {
		if !rule.Until.IsZero() && !time.Now().Before(rule.Until) {
			warnings = append(warnings, rule.Origin+": the rule ended at "+rule.Until.UTC().Format(time.RFC3339))
		}
	}
	origins := map[tiers.Tier]string{}
	for _, t := range tiers.All() {
		origins[t] = h.runner.Choose(t, h.runner.Facts()).Origin
	}
	configuration, folder := h.cfg.file, h.cfg.Manifests
	if configuration == "" {
		configuration = "none"
	}
	if folder == "" {
		folder = "the shipped ones"
	}
	if c.JSON {
		return p.json(map[string]any{
			"ok": true, "configuration": configuration, "manifests": folder, "warnings": warnings, "order_origins": origins, "waiting": append([]string{}, wait.gains...), "waiting_hash": wait.hash,
		})
	}
	for _, w := range warnings {
		p.print("warning: %s", w)
	}
	printWaiting(p, wait.gains)
	if k.Origins {
		for _, t := range tiers.All() {
			p.print("%s: order of runners from the %s", t, origins[t])
		}
	}
	p.print("ok: no fault (configuration: %s; manifests: %s)", configuration, folder)
	return nil
}

// faultless gathers the faults of everything that can be checked, so that one
// fault does not hide another.
func (p *process) faultless(c *cli) ([]string, error) {
	var faults manifests.Faults
	gather := func(err error) error {
		var found manifests.Faults
		if err != nil && !errors.As(err, &found) {
			return err
		}
		faults = append(faults, found...)
		return nil
	}
	cfg, err := p.readConfig(c)
	if err := gather(err); err != nil {
		return nil, err
	}
	if _, err := manifests.Check(cfg.Manifests); gather(err) != nil {
		return nil, err
	}
	if set, err := manifests.Load(cfg.Manifests); err == nil {
		state, err := p.stateFolder(cfg)
		if err != nil {
			return nil, err
		}
		if err := gather(cfg.Against(set, state)); err != nil {
			return nil, err
		}
	}
	bad, weak := p.readSecrets(&cfg)
	warnings := []string{}
	for _, w := range weak {
		if !w.unsafe { // those are said at every start
			warnings = append(warnings, w.Fault.String())
		}
	}
	if faults = append(faults, bad...); len(faults) > 0 {
		return nil, faults
	}
	return warnings, nil
}
