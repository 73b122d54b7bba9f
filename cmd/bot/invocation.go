package main

import (
	"context"

	"parlour/bridge/ask"
	"parlour/runner"
	"parlour/tiers"
)

// shownPrompt stands for what differs from question to question.
func shownPrompt() ask.Prompt {
	return ask.Prompt{Policy: "<policy text>", Question: "<question>", Fenced: "<fenced question>"}
}

type invocation struct {
	Tier    tiers.Tier `json:"tier"`
	Runner  string     `json:"runner"`
	Argv    []string   `json:"argv,omitempty"`
	Env     []string   `json:"env,omitempty"`
	Stdin   string     `json:"stdin,omitempty"` // a file with this; empty: it ends at once
	Shell   string     `json:"shell,omitempty"`
	Refused string     `json:"refused,omitempty"`
}

// invocations prints how each tier's runner would be started, in both forms
// from one source. Run by itself the line for a shell has no sandbox.
func (h *house) invocations(ctx context.Context, p *process, c *cli) error {
	all := []invocation{}
	for _, t := range tiers.All() {
		plan, err := h.runner.Plan(ctx, t, nil)
		i := invocation{Tier: t, Runner: plan.Choice.Runner}
		var shown runner.Preview
		if err == nil {
			shown, err = h.runner.Preview(ctx, plan, shownPrompt())
		}
		if err != nil {
			i.Refused = err.Error()
		} else {
			i.Argv, i.Env, i.Stdin = shown.Argv, shown.Env, string(shown.Stdin)
			i.Shell, _ = h.secrets.Redact(runner.ShellLine(shown))
		}
		all = append(all, i)
	}
	if c.JSON {
		return p.json(all)
	}
	for _, i := range all {
		p.print("%s: %s", i.Tier, orNone(i.Runner))
		if i.Refused != "" {
			p.print("  refused: %s", i.Refused)
			continue
		}
		p.print("  argv: %q", i.Argv)
		p.print("  environment: %s", i.Env)
		if i.Stdin != "" {
			p.print("  standard input, a file: %q", i.Stdin)
		}
		p.print("  shell, without a sandbox: %s", i.Shell)
	}
	return nil
}
