package main

import (
	"context"
	"errors"
	"strings"

	"parlour/bridge/ask"
	"parlour/guardrail"
	"parlour/manifests"
	"parlour/runner"
	"parlour/runner/policy"
	"parlour/tiers"
)

type explainCmd struct {
	Platform  string `required:"" enum:"discord,slack" help:"discord or slack."`
	Workspace string `placeholder:"ID" help:"Discord guild or Slack workspace; leave it out for a direct message on Discord."`
	Channel   string `required:"" placeholder:"ID" help:"Channel, thread or direct message."`
	Parent    string `placeholder:"ID" help:"The channel that a thread belongs to."`
	User      string `required:"" placeholder:"ID" help:"The person's user id."`
	Direct    bool   `help:"The channel is a direct message."`
	Bot       bool   `help:"The sender is a bot."`
	External  bool   `help:"The sender belongs to another organisation."`
}

type explanation struct {
	Decision   tiers.Decision `json:"decision"`
	Choice     ask.Choice     `json:"choice"`
	Policy     string         `json:"policy_line,omitempty"`
	PolicyHash string         `json:"policy_hash,omitempty"`
	Text       string         `json:"text,omitempty"`
	Argv       []string       `json:"argv,omitempty"`
	Env        []string       `json:"env,omitempty"` // names
	Refused    string         `json:"refused,omitempty"`
}

// Run decides offline, exactly as the gate would, and shows what would run.
func (e *explainCmd) Run(ctx context.Context, p *process, c *cli) error {
	if err := e.check(); err != nil {
		return err
	}
	h, err := p.open(c)
	if err != nil {
		return err
	}
	who, where := e.ids()
	x := explanation{Decision: h.book.Rules.Resolve(who, where)}
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

// check refuses what cannot be ids: a name would be explained as if it were
// somebody.
func (e *explainCmd) check() error {
	platform := tiers.Platform(e.Platform)
	for _, channel := range []string{e.Channel, e.Parent} {
		if err := manifests.CheckIDs(platform, e.Workspace, channel, e.User); err != nil {
			return badInput{err}
		}
	}
	switch {
	case platform == tiers.Slack && e.Workspace == "":
		return bad("--workspace is missing: on Slack an id belongs to a workspace")
	case platform == tiers.Discord && e.Workspace == "" && !e.Direct:
		return bad("--workspace is missing; for a direct message say --direct")
	}
	return nil
}

func (e *explainCmd) ids() (tiers.Identity, tiers.Place) {
	platform, kind := tiers.Platform(e.Platform), tiers.Person
	if e.Bot {
		kind = tiers.Bot
	}
	return tiers.Identity{Platform: platform, Workspace: e.Workspace, User: e.User, Kind: kind, External: e.External},
		tiers.Place{Platform: platform, Workspace: e.Workspace, Channel: e.Channel, Parent: e.Parent, Direct: e.Direct, Most: tiers.Owner}
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
	if d.Tier == tiers.None {
		p.print("nothing would run")
		return
	}
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
