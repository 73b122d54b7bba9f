package main

import (
	"context"
	"errors"
	"slices"
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
	Who               string         `json:"who"`
	Where             string         `json:"where"`
	tiers.Explanation                // by the files
	InForce           tiers.Decision `json:"in_force"`          // as a bot that serves from the state folder decides
	Waiting           []string       `json:"waiting,omitempty"` // for consent
	Untold            []string       `json:"untold,omitempty"`  // flags without which a limit of the place may be missed
	Choice            ask.Choice     `json:"choice"`            // this and what follows is of what is in force
	Policy            string         `json:"policy_line,omitempty"`
	PolicyHash        string         `json:"policy_hash,omitempty"`
	Text              string         `json:"text,omitempty"`
	Argv              []string       `json:"argv,omitempty"`
	Env               []string       `json:"env,omitempty"` // names
	Refused           string         `json:"refused,omitempty"`

	direct, served bool
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
	x := e.weigh(ctx, p, h, now)
	if x.InForce.Tier != tiers.None {
		if err := h.preview(ctx, &x); err != nil {
			return err
		}
	}
	if c.JSON {
		return p.json(x)
	}
	x.print(p, c)
	return nil
}

// weigh decides by the files and as served. A place of which a limit may be missed
// allows what it does for another gateway.
// Guarded by tests/journeys TestExplainAndAcceptAgree.
func (e *explainCmd) weigh(ctx context.Context, p *process, h *house, now time.Time) explanation {
	who, where := e.ids(tiers.Owner)
	granted := peekGrants(ctx, p, h.state)
	rules := h.book.Rules.With(granted...)
	x := explanation{Waiting: asServed(h, p), direct: where.Direct}
	before, err := consentIn(h.state).past()
	x.served = err != nil || !before.first
	x.Who, x.Where = e.said()
	book := h.book.With(granted...)
	told := where
	if most, flags := untold(book, where); most < where.Most {
		where.Most, x.Untold = most, flags
	}
	x.Explanation, x.InForce = rules.Explain(who, where, now), book.DecideAt(who, where, now)
	paths := x.Paths
	if len(x.Untold) > 0 {
		paths = upTo(max(tiers.Team, x.Decision.Tier+1), whole(x, rules.Explain(who, told, now)))
	}
	if x.InForce.Tier < x.Decision.Tier {
		consent := tiers.Way{Tier: x.Decision.Tier, Rule: x.Decision.Rule, All: []tiers.Doing{{Step: tiers.Consent}}}
		paths = append([]tiers.Path{{Tier: x.Decision.Tier, Ways: []tiers.Way{consent}}}, upTo(tiers.Team, paths)...)
	}
	if e.At != "" {
		paths = withoutGrants(paths)
	}
	x.Lead(paths...)
	for _, d := range []*tiers.Decision{&x.Decision, &x.InForce} {
		if d.Cap != "" && d.Place == where.Most {
			d.Cap, d.Why = e.lowered(d.Place)
		}
	}
	return x
}

// whole puts before each way that the place is told whole.
func whole(x explanation, told tiers.Explanation) (paths []tiers.Path) {
	tell := tiers.Doing{Step: tiers.Tell}
	for _, flag := range x.Untold {
		name, _, _ := strings.Cut(flag, " ")
		tell.IDs = append(tell.IDs, name)
	}
	for _, path := range x.Paths {
		if path.Tier <= x.Decision.Place {
			paths = append(paths, path) // no limit is in the way
		}
	}
	if told.Decision.Tier > x.Decision.Tier {
		way := tiers.Way{Tier: told.Decision.Tier, Rule: told.Decision.Rule, All: []tiers.Doing{tell}}
		paths = append(paths, tiers.Path{Tier: told.Decision.Tier, Ways: []tiers.Way{way}})
	}
	for _, path := range told.Paths {
		if path.Tier <= x.Decision.Place {
			continue
		}
		for i := range path.Ways {
			path.Ways[i].All = append([]tiers.Doing{tell}, path.Ways[i].All...)
		}
		paths = append(paths, path)
	}
	return paths
}

func upTo(most tiers.Tier, paths []tiers.Path) []tiers.Path {
	return slices.DeleteFunc(paths, func(p tiers.Path) bool { return p.Tier > most })
}

// withoutGrants leaves out what is made now, where another time is asked about.
func withoutGrants(paths []tiers.Path) []tiers.Path {
	for i := range paths {
		paths[i].Ways = slices.DeleteFunc(paths[i].Ways, func(w tiers.Way) bool {
			return slices.ContainsFunc(w.All, func(d tiers.Doing) bool { return d.Step == tiers.MakeGrant })
		})
	}
	return paths
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
