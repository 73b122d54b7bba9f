package main

import (
	"context"
	"errors"
	"io"

	"parlour/bridge/ask"
	"parlour/guardrail"
	"parlour/tiers"
)

type guardrailCmd struct {
	Tier string `required:"" placeholder:"TIER" help:"guest, team or owner."`
	For  string `default:"sandbox" enum:"sandbox,core" help:"sandbox: the text for the agent inside; core: the text by which an agent outside hands a question on."`
}

// Run prints the text byte for byte, so that it can be hashed and compared.
func (g *guardrailCmd) Run(ctx context.Context, p *process, c *cli) error {
	tier, err := tiers.Parse(g.Tier)
	if err != nil {
		return bad("--tier: %w", err)
	}
	h, err := p.open(c)
	if err != nil {
		return err
	}
	if wait := served(h, p); len(wait.gains) > 0 {
		p.note("warning: %s", wait)
	}
	if g.For == "core" {
		return h.printDelegation(ctx, p, c, tier)
	}
	plan, err := h.runner.Plan(ctx, tier, nil)
	if err != nil {
		return noRunner(p, err)
	}
	text, err := guardrail.Policy(tier, plan.Policy)
	if err != nil {
		return err
	}
	if c.JSON {
		return p.json(map[string]any{
			"tier": tier, "runner": plan.Choice.Runner, "text": text,
			"policy_line": plan.Policy.String(), "policy_hash": plan.Policy.Hash(),
		})
	}
	_, err = io.WriteString(p.stdout, text)
	return err
}

// noRunner prints why no runner is there, with the reason for each.
func noRunner(p *process, err error) error {
	var none *ask.NoRunnerError
	if !errors.As(err, &none) {
		return err
	}
	p.note("%s", ask.Sentence(ask.NoRunner))
	for _, s := range none.Choice.Skipped {
		p.note("  %s: %s", s.Runner, s.Reason)
	}
	return silent(exitFailed)
}
