package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"parlour/tiers"
)

type tiersCmd struct{}

// line is one rule, grant, limit or block as the command shows it.
type line struct {
	Kind       string         `json:"kind"` // rule, grant, place, block, waiting
	Tier       tiers.Tier     `json:"tier"`
	Platform   tiers.Platform `json:"platform"`
	Workspace  string         `json:"workspace,omitempty"`
	Channels   []string       `json:"channels,omitempty"`
	Categories []string       `json:"categories,omitempty"`
	Users      []string       `json:"users,omitempty"`
	Roles      []string       `json:"roles,omitempty"`
	Groups     []string       `json:"groups,omitempty"`
	Anyone     bool           `json:"anyone,omitempty"`
	External   bool           `json:"external,omitempty"`
	Audience   string         `json:"audience,omitempty"`
	Until      *time.Time     `json:"until,omitempty"`
	Ended      bool           `json:"ended,omitempty"`
	Origin     string         `json:"origin"`
	What       string         `json:"what,omitempty"` // of the files waits for consent
}

// Run lists the rules in the order in which they are tried.
func (t *tiersCmd) Run(ctx context.Context, p *process, c *cli) error {
	h, err := p.open(c)
	if err != nil {
		return err
	}
	now := time.Now()
	all := append(list(h.set.Rules(), now), listGrants(peekGrants(ctx, p, h.state), now)...)
	waiting := asServed(h, p)
	if c.JSON {
		for _, gain := range waiting {
			all = append(all, line{Kind: "waiting", What: gain})
		}
		return p.json(all)
	}
	for _, block := range []struct{ kind, heading string }{
		{"block", "blocked, whatever else names them:"}, {"rule", ""}, {"grant", "granted for a time:"}, {"place", "places in which nobody is more than"},
	} {
		printRules(p, all, block.kind, block.heading)
	}
	printWaiting(p, waiting)
	return nil
}

func list(rules tiers.Rules, now time.Time) []line {
	all := []line{}
	for _, b := range rules.Blocks() {
		all = append(all, line{Kind: "block", Platform: b.Platform, Workspace: b.Workspace, Users: b.Users, Roles: b.Roles, Groups: b.Groups, Origin: b.Origin})
	}
	for _, r := range rules.All() {
		one := line{
			Kind: "rule", Tier: r.Tier, Platform: r.Platform, Workspace: r.Workspace, Channels: r.Channels, Categories: r.Categories,
			Users: r.Users, Roles: r.Roles, Groups: r.Groups, Anyone: r.Anyone, External: r.External, Origin: r.Origin,
		}
		if !r.Until.IsZero() {
			one.Until, one.Ended = &r.Until, !now.Before(r.Until)
		}
		all = append(all, one)
	}
	for _, c := range rules.Caps() {
		one := line{
			Kind: "place", Tier: c.Tier, Platform: c.Platform, Workspace: c.Workspace, Channels: c.Channels, Categories: c.Categories, Origin: c.Origin,
		}
		if c.Audience != tiers.None {
			one.Audience = c.Audience.String()
		}
		all = append(all, one)
	}
	return all
}

// listGrants lists the grants that hold.
func listGrants(grants []tiers.Grant, now time.Time) (all []line) {
	for _, g := range grants {
		if g.Holds(now) {
			all = append(all, line{
				Kind: "grant", Tier: g.Tier, Platform: g.Platform, Workspace: g.Workspace, Channels: g.Channels, Users: []string{g.User},
				External: g.External, Until: &g.Until, Origin: "grant " + strconv.FormatInt(g.ID, 10),
			})
		}
	}
	return all
}

func printRules(p *process, all []line, kind, heading string) {
	if kind == "rule" {
		for i := len(tiers.All()) - 1; i >= 0; i-- {
			t := tiers.All()[i]
			p.print("%s:", t)
			none := true
			for _, l := range all {
				if l.Kind == kind && l.Tier == t {
					none = false
					p.print("  %s", l)
				}
			}
			if none {
				p.print("  nobody")
			}
		}
		return
	}
	for _, l := range all {
		if l.Kind != kind {
			continue
		}
		if heading != "" {
			p.print("%s", heading)
			heading = ""
		}
		p.print("  %s", l)
	}
}

// String gives one line: who, where, how long, and where it stands.
func (l line) String() string {
	var who []string
	if l.Kind == "place" || l.Kind == "grant" {
		who = append(who, l.Tier.String())
	}
	if len(l.Users) > 0 {
		who = append(who, "users "+strings.Join(l.Users, " "))
	}
	if len(l.Roles) > 0 {
		who = append(who, "roles "+strings.Join(l.Roles, " "))
	}
	if len(l.Groups) > 0 {
		who = append(who, "user groups "+strings.Join(l.Groups, " "))
	}
	if l.Anyone {
		who = append(who, "anyone")
	}
	if l.External {
		who = append(who, "people of other organisations too")
	}
	text := fmt.Sprintf("%s: %s; %s", l.Platform, strings.Join(who, ", "), l.where())
	if l.Audience != "" {
		text += "; all who read there are " + l.Audience
	}
	if l.Until != nil {
		text += "; until " + l.Until.UTC().Format(time.RFC3339)
		if l.Ended {
			text += ", which is over"
		}
	}
	return text + " (" + l.Origin + ")"
}

func (l line) where() string {
	var where []string
	if l.Workspace != "" {
		where = append(where, "in "+l.Workspace)
	}
	if len(l.Channels) > 0 {
		where = append(where, "channels "+strings.Join(l.Channels, " "))
	}
	if len(l.Categories) > 0 {
		where = append(where, "categories "+strings.Join(l.Categories, " "))
	}
	if len(where) == 0 {
		return "everywhere"
	}
	return strings.Join(where, ", ")
}
