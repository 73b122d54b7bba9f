package main

import (
	"context"

	"parlour/manifests"
	"parlour/tiers"
)

type checkCmd struct {
	Origins bool `help:"Print where each tier's order of runners comes from."`
}

// Run checks configuration and manifests strictly, broken runner files and
// expectations included, and says what is missing for a chat.
func (k *checkCmd) Run(_ context.Context, p *process, c *cli) error {
	cfg, err := p.config(c)
	if err != nil {
		return err
	}
	if _, err := manifests.Check(cfg.Manifests); err != nil {
		return err
	}
	h, err := p.open(c)
	if err != nil {
		return err
	}
	warnings := []string{}
	if h.book.Rules.Count(tiers.Owner) == 0 {
		warnings = append(warnings, "tiers/owner.yaml names nobody: the terminal works, a chat would not start without an owner")
	}
	if h.book.Rules.Count(tiers.Guest) == 0 {
		warnings = append(warnings, "tiers/guest.yaml names nobody: nobody can ask as guest from a chat")
	}
	origins := map[tiers.Tier]string{}
	for _, t := range tiers.All() {
		origins[t] = h.runner.Choose(t).Origin
	}
	if c.JSON {
		return p.json(map[string]any{"ok": true, "warnings": warnings, "order_origins": origins})
	}
	for _, w := range warnings {
		p.print("warning: %s", w)
	}
	if k.Origins {
		for _, t := range tiers.All() {
			p.print("%s: order of runners from the %s", t, origins[t])
		}
	}
	p.print("ok: configuration and manifests have no fault")
	return nil
}
