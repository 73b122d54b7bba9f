package main

import (
	"time"
)

type acceptGainsCmd struct{}

// Run consents to what the manifests give beyond what was accepted before, and to
// where the configuration sends what is asked. It prints all of it, and consents
// to exactly the files that it has read.
func (*acceptGainsCmd) Run(p *process, c *cli) error {
	h, err := p.open(c)
	if err != nil {
		return err
	}
	gains, err := consentIn(h.state).waiting(h)
	if err != nil {
		p.note("warning: %s", err)
		gains = []string{"all that the manifests give: what was accepted before cannot be read any more"}
	}
	hash := h.set.Texts().Hash()
	if len(gains) > 0 {
		if err := consentIn(h.state).accept(accepted{
			Tiers: hash, Runners: h.set.RunnerFiles(), Outlets: h.cfg.outlets(), At: time.Now().UTC(),
		}); err != nil {
			return err
		}
	}
	if c.JSON {
		return p.json(map[string]any{"accepted": len(gains) > 0, "gains": gains, "hash": hash})
	}
	if len(gains) == 0 {
		p.print("nothing waits for consent")
		return nil
	}
	for _, gain := range gains {
		p.print("accepted: %s", gain)
	}
	p.print("a bot that serves takes this over at once; runner files and the configuration at its next start")
	return nil
}
