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
	tiers.Explanation                // by the files
	InForce           tiers.Decision `json:"in_force"`          // as a bot that serves from the state folder decides
	Waiting           []string       `json:"waiting,omitempty"` // for consent
	Choice            ask.Choice     `json:"choice"`            // this and what follows is of what is in force
	Policy            string         `json:"policy_line,omitempty"`
	PolicyHash        string         `json:"policy_hash,omitempty"`
	Text              string         `json:"text,omitempty"`
	Argv              []string       `json:"argv,omitempty"`
	Env               []string       `json:"env,omitempty"` // names
	Refused           string         `json:"refused,omitempty"`
}

// Run decides offline, by the files and as a bot that serves from the state folder
// does by now, and shows what the files were weighed by and what would run.
// Guarded by tests/journeys TestWhatWaitsIsExplained.
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
	granted := peekGrants(ctx, p, h.state)
	x := explanation{Explanation: h.book.Rules.With(granted...).Explain(who, where, now), Waiting: asServed(h, p)}
	x.InForce = h.book.With(granted...).DecideAt(who, where, now)
	if x.InForce.Tier != tiers.None {
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

// preview fills in what a question of the tier in force would run.
func (h *house) preview(ctx context.Context, x *explanation) error {
	plan, err := h.runner.Plan(ctx, x.InForce.Tier, nil)
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
	if x.Text, err = guardrail.Policy(x.InForce.Tier, plan.Policy); err != nil {
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
	d := x.InForce
	p.print("tier: %s", d.Tier)
	if x.Decision.Tier != d.Tier {
		p.print("by these files: %s; in force: %s, until bot accept-gains", x.Decision.Tier, d.Tier)
	}
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
	if len(x.Waiting) == 0 {
		p.print("weighed:")
	} else {
		p.print("weighed, by these files:")
	}
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
	printWaiting(p, x.Waiting)
}

// mostShown is how many gains a command lists.
const mostShown = 10

// printWaiting lists what the files say and no bot goes by yet.
func printWaiting(p *process, gains []string) {
	if len(gains) == 0 {
		return
	}
	p.print("in these files, and not in force until bot accept-gains:")
	for _, gain := range gains[:min(len(gains), mostShown)] {
		p.print("  - %s", gain)
	}
	if more := len(gains) - mostShown; more > 0 {
		p.print("  - and %d more, which bot check --json lists", more)
	}
}
