package main

import (
	"fmt"
	"slices"
	"strings"

	"parlour/tiers"
)

// print is the page for the operator.
func (x explanation) print(p *process, c *cli) {
	d := x.InForce
	p.print("who: %s", x.Who)
	p.print("where: %s", x.Where)
	p.print("tier: %s", d.Tier)
	if x.Decision.Tier != d.Tier {
		p.print("by these files: %s; in force: %s, until bot accept-gains", x.Decision.Tier, d.Tier)
	}
	p.print("why: %s", d.Why)
	p.print("rule: %s", orNone(d.Rule))
	if d.Cap != "" {
		p.print("lowered: from %s to %s (%s)", d.Person, d.Tier, d.Cap)
	}
	if len(x.Untold) > 0 {
		p.print("not told: %s", strings.Join(x.Untold, " and "))
	}
	x.weighed(p)
	x.paths(p, c)
	if d.Tier == tiers.None {
		p.print("nothing would run")
		return
	}
	p.print("who reads along: %s", audience(d.Audience, x.direct))
	x.run(p)
}

// run prints what a question would start.
func (x explanation) run(p *process) {
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

func audience(t tiers.Tier, direct bool) string {
	switch {
	case direct:
		return "nobody, in a direct message"
	case t == tiers.None:
		return "strangers may read here (no audience: for this place)"
	}
	return "nobody below " + t.String()
}

// weighed prints every rule that has to do with the person or the place.
func (x explanation) weighed(p *process) {
	if len(x.Waiting) == 0 {
		p.print("the rules:")
	} else {
		p.print("the rules, by these files:")
	}
	for _, f := range x.Findings {
		p.print("  %-20s %-5s %-5s %s: %s", f.Verdict, f.Kind, f.Tier, f.Origin, f.Why)
	}
	switch {
	case x.Others == 1:
		p.print("  1 more rule is about other people or other places")
	case x.Others > 1:
		p.print("  %d more rules are about other people or other places", x.Others)
	case len(x.Findings) == 0:
		p.print("  none: no rule names anybody on this platform")
	}
}

// paths prints what would make the person more.
func (x explanation) paths(p *process, c *cli) {
	lead := "to be"
	for _, path := range x.Paths {
		switch {
		case len(path.Ways) == 0 && path.Cannot != "":
			p.print("cannot be %s: %s", path.Tier, path.Cannot)
			continue
		case len(path.Ways) == 0:
			continue
		}
		note := ""
		if path.Note != "" {
			note = " (" + path.Note + ")"
		}
		if len(path.Ways) == 1 {
			p.print("%s %s%s: %s", lead, path.Tier, note, onThis(c, path.Ways[0]))
		} else {
			p.print("%s %s%s, one of:", lead, path.Tier, note)
			for _, way := range path.Ways {
				p.print("  - %s", onThis(c, way))
			}
		}
		lead = "or straight to"
	}
	if x.served && slices.ContainsFunc(x.Paths, edits) {
		p.print("what is edited counts after bot accept-gains; a grant counts at once")
	}
	x.waits(p)
}

// onThis is the sentence with the flags that lead to this state folder.
func onThis(c *cli, way tiers.Way) string {
	return strings.Replace(way.String(), "bot grant", c.again("grant"), 1)
}

// edits says whether a path leads over a change of the manifests.
func edits(path tiers.Path) bool {
	return slices.ContainsFunc(path.Ways, func(w tiers.Way) bool {
		return slices.ContainsFunc(w.All, func(d tiers.Doing) bool {
			return slices.Contains([]tiers.Step{tiers.Unblock, tiers.Unlimit, tiers.Extend, tiers.Admit, tiers.AddLine}, d.Step)
		})
	})
}

// waits says what waits for consent, of this person's own.
func (x explanation) waits(p *process) {
	if len(x.Waiting) == 0 {
		return
	}
	what := fmt.Sprintf("%d gains wait for bot accept-gains", len(x.Waiting))
	if len(x.Waiting) == 1 {
		what = "1 gain waits for bot accept-gains"
	}
	tail := "; none of them changes what they are here"
	if x.Decision.Tier > x.InForce.Tier {
		tail = ", which accepts them all"
	}
	p.print("%s%s (bot check lists them)", what, tail)
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
