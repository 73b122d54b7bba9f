package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"parlour/bridge"
	"parlour/manifests"
	"parlour/tiers"
)

type grantCmd struct {
	Platform  string   `required:"" enum:"discord,slack" help:"discord or slack."`
	Workspace string   `required:"" placeholder:"ID" help:"Discord guild or Slack workspace."`
	Channel   []string `sep:"none" placeholder:"ID" help:"Channel with its threads; more by repeating the flag (default: everywhere in the workspace, but never in direct messages)."`
	User      string   `required:"" placeholder:"ID" help:"The person's user id."`
	Tier      string   `required:"" help:"guest or team."`
	For       string   `placeholder:"TIME" help:"How long, such as 90m, 24h or 7d."`
	Until     string   `placeholder:"TIME" help:"Until when, such as 2030-01-31T18:00:00Z."`
	External  bool     `help:"They belong to another organisation (Slack)."`
	Note      string   `placeholder:"TEXT" help:"Why, for yourself; never shown in chat."`
}

// granted is what the command has to say.
type granted struct {
	Grant    tiers.Grant `json:"grant"`
	Revoke   string      `json:"revoke"` // the command that takes it back
	Warnings []string    `json:"warnings"`
}

// Run gives one person a tier until a time. It says what keeps the grant from
// having an effect, but makes it: what stands in the way may go away.
func (g *grantCmd) Run(ctx context.Context, p *process, c *cli) error {
	now := time.Now()
	grant, err := g.read(now)
	if err != nil {
		return err
	}
	h, err := p.open(c)
	if err != nil {
		return err
	}
	force, _, err := h.inForce(h.log)
	if err != nil {
		return err
	}
	j, l, err := ledger(ctx, h.state)
	if err != nil {
		return err
	}
	defer func() { _ = j.Close() }()
	before, err := l.List(ctx)
	if err != nil {
		return err
	}
	if grant, err = l.Make(ctx, grant); err != nil {
		return err
	}
	said := granted{grant, c.again("revoke", strconv.FormatInt(grant.ID, 10)), doubts(rulebook(force, h.runner), before.Holding(now), grant)}
	if served, err := l.Served(ctx); err == nil && !served {
		said.Warnings = append(said.Warnings, "no bot serves from "+h.state+" now; the grant counts for the next one")
	}
	if c.JSON {
		return p.json(said)
	}
	p.print("granted %d: %s, until %s, in %s; take it back: %s", grant.ID, given(grant), utc(grant.Until), span(grant.Until.Sub(now)), said.Revoke)
	for _, w := range said.Warnings {
		p.note("warning: %s", w)
	}
	return nil
}

// read makes the grant that was typed.
// Guarded by tests/journeys TestWhatIsTypedWrongGrantsNothing.
func (g *grantCmd) read(now time.Time) (tiers.Grant, error) {
	tier, err := tiers.Parse(g.Tier)
	if err != nil {
		return tiers.Grant{}, bad("--tier: %w", err)
	}
	platform := tiers.Platform(g.Platform)
	if platform == tiers.Slack && strings.HasPrefix(g.Workspace, "E") {
		return tiers.Grant{}, bad("--workspace %s is an organisation, in which no place is; right: the workspace's own id, such as T0ABC1234", g.Workspace)
	}
	for _, channel := range append([]string{""}, g.Channel...) {
		if err := manifests.CheckIDs(platform, g.Workspace, channel, g.User); err != nil {
			return tiers.Grant{}, badInput{err}
		}
		if platform == tiers.Slack && strings.HasPrefix(channel, "D") {
			return tiers.Grant{}, bad("--channel %s is a direct message, in which no grant holds", channel)
		}
	}
	until, err := end(g.For, g.Until, now)
	if err != nil {
		return tiers.Grant{}, err
	}
	grant := tiers.Grant{
		Tier: tier, Platform: platform, Workspace: g.Workspace, Channels: distinct(g.Channel), User: g.User,
		External: g.External, Made: now, Until: until, Note: g.Note,
	}
	if err := grant.Check(); err != nil {
		return tiers.Grant{}, badInput{err}
	}
	return grant, nil
}

// distinct drops repetitions, and keeps nil nil.
func distinct(ids []string) []string {
	ids = slices.Clone(ids)
	slices.Sort(ids)
	return slices.Compact(ids)
}

// end reads when a grant ends.
func end(span, until string, now time.Time) (time.Time, error) {
	switch {
	case span != "" && until != "":
		return time.Time{}, bad("give --for or --until, not both")
	case span == "" && until == "":
		return time.Time{}, bad("a grant has an end: --for 24h, or --until 2030-01-31T18:00:00Z")
	case until != "":
		at, err := time.Parse(time.RFC3339, until)
		if err != nil {
			return time.Time{}, bad("--until is %q; right: a time with its zone, such as 2030-01-31T18:00:00Z", until)
		}
		return at, nil
	}
	d, err := lasting(span)
	if err != nil {
		return time.Time{}, bad("--for is %q; right: a time such as 90m, 24h or 7d", span)
	}
	return now.Add(d), nil
}

// lasting reads a span of time that may begin with whole days.
func lasting(text string) (time.Duration, error) {
	days, rest, found := strings.Cut(text, "d")
	if !found {
		return time.ParseDuration(text)
	}
	n, err := strconv.ParseUint(days, 10, 16)
	if err != nil || rest == "" {
		return time.Duration(n) * 24 * time.Hour, err
	}
	d, err := time.ParseDuration(rest)
	if err == nil && d < 0 {
		err = fmt.Errorf("%q goes backwards", text)
	}
	return time.Duration(n)*24*time.Hour + d, err
}

// doubts says why a grant may not do what it seems to, by the decisions with and
// without it. Roles and user groups are not asked for: blocks by those are named.
// Guarded by tests/journeys TestAGrantThatDoesNothingIsWarnedOf.
func doubts(book bridge.Rulebook, others []tiers.Grant, g tiers.Grant) []string {
	out := []string{}
	without, with := book.With(others...), book.With(append(slices.Clone(others), g)...)
	who := tiers.Identity{
		Platform: g.Platform, Workspace: g.Workspace, User: g.User, Kind: tiers.Person, Member: !g.External, External: g.External,
		GroupsKnown: g.Platform == tiers.Slack,
	}
	channels, everywhere := g.Channels, g.Channels == nil
	if everywhere {
		channels = []string{"any"} // no limit is about it alone
	}
	for _, channel := range channels {
		at := "in channel " + channel
		if everywhere {
			at = "there"
		}
		where := tiers.Place{Platform: g.Platform, Workspace: g.Workspace, Channel: channel, Most: tiers.Owner}
		before, after := without.Decide(who, where), with.Decide(who, where)
		switch {
		case after.Block != "":
			return append(out, "they are blocked ("+after.Block+"): while that stands the grant gives them nothing")
		case before.Person >= g.Tier:
			out = append(out, fmt.Sprintf("they are %s %s already (%s): the grant changes nothing while that stands", before.Person, at, before.Rule))
		case after.Tier < g.Tier:
			out = append(out, fmt.Sprintf("%s they are %s all the same: %s", at, after.Tier, after.Why))
		}
	}
	return slices.Concat(out, perhapsBlocked(book, g), lowered(book.Rules, g))
}

// perhapsBlocked names the blocks of roles and user groups that the grant may meet.
func perhapsBlocked(book bridge.Rulebook, g tiers.Grant) (out []string) {
	for _, rules := range append([]tiers.Rules{book.Rules}, book.Under...) {
		for _, b := range rules.Blocks() {
			if b.Platform != g.Platform || b.Workspace != g.Workspace {
				continue
			}
			for _, of := range []struct {
				whoever, whether string
				ids              []string
			}{{"whoever has the role ", "they have it", b.Roles}, {"whoever is in user group ", "they are", b.Groups}} {
				said := of.whoever + strings.Join(of.ids, " or ") + " is blocked (" + b.Origin + "); it is not known here whether " + of.whether
				if len(of.ids) > 0 && len(out) < mostDoubts && !slices.Contains(out, said) {
					out = append(out, said)
				}
			}
		}
	}
	return out
}

// mostDoubts bounds how many limits of places are named.
const mostDoubts = 5

// lowered names the limits that the grant may meet in places that its line does
// not tell apart: other channels of the workspace, and categories.
func lowered(rules tiers.Rules, g tiers.Grant) (out []string) {
	for _, limit := range rules.Caps() {
		if limit.Platform != g.Platform || limit.Workspace != g.Workspace || limit.Tier >= g.Tier || len(out) == mostDoubts {
			continue
		}
		places := []string{}
		if g.Channels == nil && len(limit.Channels) > 0 {
			places = append(places, "channels "+strings.Join(limit.Channels, " "))
		}
		if len(limit.Categories) > 0 {
			places = append(places, "categories "+strings.Join(limit.Categories, " "))
		}
		if len(places) > 0 {
			out = append(out, fmt.Sprintf("nobody is more than %s in %s (%s)", limit.Tier, strings.Join(places, " and "), limit.Origin))
		}
	}
	return out
}
