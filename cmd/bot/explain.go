package main

import (
	"context"
	"errors"
	"strings"
	"time"

	"parlour/bridge/ask"
	"parlour/guardrail"
	"parlour/runner"
	"parlour/runner/policy"
	"parlour/tiers"
)

type explainCmd struct {
	personFlags
	At string `placeholder:"TIME" help:"Decide as at this time, such as 2030-01-31T18:00:00Z (default: now)."`
}

type explanation struct {
	tiers.Explanation
	Choice     ask.Choice `json:"choice"`
	Policy     string     `json:"policy_line,omitempty"`
	PolicyHash string     `json:"policy_hash,omitempty"`
	Text       string     `json:"text,omitempty"`
	Argv       []string   `json:"argv,omitempty"`
	Env        []string   `json:"env,omitempty"` // names
	Refused    string     `json:"refused,omitempty"`
}

// Run decides offline, exactly as the gate would by these files, and shows what
// it was weighed against and what would run.
func (e *explainCmd) Run(ctx context.Context, p *process, c *cli) error {
	if err := e.check(); err != nil {
		return err
	}
	now := time.Now()
	if e.At != "" {
		var err error
		if now, err = time.Parse(time.RFC3339, e.At); err != nil {
			return bad("--at is %q; right: a time with its zone, such as 2030-01-31T18:00:00Z", e.At)
		}
	}
	h, err := p.open(c)
	if err != nil {
		return err
	}
	who, where := e.ids(tiers.Owner)
	x := explanation{Explanation: h.book.Rules.Explain(who, where, now)}
	if x.Decision.Tier != tiers.None {
		if err := h.preview(ctx, &x); err != nil {
			return err
		}
	}
	if c.JSON {
		return p.json(x)
	}
	x.print(p)
	return nil
}

// preview fills in what a question of the decided tier would run.
func (h *house) preview(ctx context.Context, x *explanation) error {
	plan, err := h.runner.Plan(ctx, x.Decision.Tier, nil)
	x.Choice = plan.Choice
	var none *ask.NoRunnerError
	var refused *policy.RefusedError
	if errors.As(err, &none) || errors.As(err, &refused) {
		x.Refused = err.Error()
		return nil
	}
	if err != nil {
		return err
	}
	x.Policy, x.PolicyHash = plan.Policy.String(), plan.Policy.Hash()
	if x.Text, err = guardrail.Policy(x.Decision.Tier, plan.Policy); err != nil {
		return err
	}
	var shown runner.Preview
	if shown, err = h.runner.Preview(ctx, plan, shownPrompt()); err != nil {
		return err
	}
	x.Argv, x.Env = shown.Argv, shown.Env
	return nil
}

func (x explanation) print(p *process) {
	d := x.Decision
	p.print("tier: %s", d.Tier)
	p.print("why: %s", d.Why)
	p.print("rule: %s", orNone(d.Rule))
	if d.Cap != "" {
		p.print("lowered: %s, %s", d.Person, d.Cap)
	}
	x.weighed(p)
	if d.Tier == tiers.None {
		p.print("nothing would run")
		return
	}
	p.print("who reads along: %s", audience(d.Audience))
	p.print("runner: %s (order from the %s)", orNone(x.Choice.Runner), x.Choice.Origin)
	for _, s := range x.Choice.Skipped {
		p.print("  skipped %s: %s", s.Runner, s.Reason)
	}
	if x.Refused != "" {
		p.print("refused: %s", x.Refused)
		return
	}
	p.print("argv: %q", x.Argv)
	p.print("environment: %s", strings.Join(x.Env, " "))
	p.print("policy: %s", x.Policy)
	p.print("policy hash: %s", x.PolicyHash)
	p.print("\n%s", x.Text)
}

func audience(t tiers.Tier) string {
	if t == tiers.None {
		return "not vouched for; strangers may"
	}
	return "nobody below " + t.String()
}

// weighed prints every rule that has to do with the person or the place, and
// what would bring them to the next tier.
func (x explanation) weighed(p *process) {
	p.print("weighed:")
	for _, f := range x.Findings {
		mark := "lost"
		if f.Won {
			mark = "won "
		}
		p.print("  %s %-5s %-5s %s: %s", mark, f.Kind, f.Tier, f.Origin, f.Why)
	}
	if x.Others > 0 {
		p.print("  others that are about other people and places: %d", x.Others)
	}
	if len(x.Findings) == 0 && x.Others == 0 {
		p.print("  nothing: no rule names anybody on this platform")
	}
	if x.Next != tiers.None {
		p.print("to be %s, any of:", x.Next)
		for _, way := range x.Ways {
			p.print("  - %s", way)
		}
	}
}
