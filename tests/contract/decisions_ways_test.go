package contract_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"parlour/tiers"
)

// asked is somebody who asks somewhere, in a world that can be changed.
type asked struct {
	drawn
	grants []tiers.Grant
	who    tiers.Identity
	where  tiers.Place
	now    time.Time
}

func (a asked) rules() tiers.Rules { return a.rulebook().With(a.grants...) }

func (a asked) tier() tiers.Tier { return a.rules().Resolve(a.who, a.where, a.now).Tier }

// follow does what a way lists, as an operator would. Of several ids it takes the
// one with the number n, or the last.
func (a asked) follow(t require.TestingT, way tiers.Way, n int) asked {
	of := func(ids []string) string { return ids[min(n, len(ids)-1)] }
	for _, d := range way.All {
		named := func(origin string) bool { return slices.Contains(d.Rules, origin) }
		switch d.Step {
		case tiers.TakeRole:
			a.who.Roles = append(slices.Clone(a.who.Roles), of(d.IDs))
		case tiers.JoinGroup:
			a.who.Groups = append(slices.Clone(a.who.Groups), of(d.IDs))
		case tiers.TellGroups:
			a.who.GroupsKnown = true
		case tiers.BeMember:
			a.who.Member, a.who.Workspace = true, d.Workspace
		case tiers.AskElsewhere:
			a.where = tiers.Place{Platform: a.where.Platform, Workspace: d.Workspace, Channel: "another", Most: tiers.Owner}
		case tiers.AskDirect:
			a.where = tiers.Place{Platform: a.where.Platform, Workspace: a.where.Workspace, Channel: "direct", Direct: true, Most: tiers.Owner}
			if a.who.Platform == tiers.Discord {
				a.where.Workspace, a.who.Workspace, a.who.Member, a.who.Roles = "", "", false, nil
			}
		case tiers.AskIn:
			at := tiers.Place{Platform: a.where.Platform, Workspace: a.where.Workspace, Channel: "another", Most: tiers.Owner}
			if d.Workspace != "" {
				at.Workspace, a.who.Workspace, a.who.Member, a.who.Roles = d.Workspace, d.Workspace, true, nil
			}
			if n < len(d.IDs) || len(d.Categories) == 0 && len(d.IDs) > 0 {
				at.Channel = of(d.IDs)
			} else if len(d.Categories) > 0 {
				at.Category = d.Categories[min(n-len(d.IDs), len(d.Categories)-1)]
			}
			a.where = at
		case tiers.Unblock:
			a.blocks = slices.DeleteFunc(slices.Clone(a.blocks), func(b tiers.Block) bool { return named(b.Origin) })
		case tiers.Unlimit:
			a.caps = slices.DeleteFunc(slices.Clone(a.caps), func(c tiers.Cap) bool { return named(c.Origin) })
		case tiers.Extend, tiers.Admit, tiers.AddLine:
			a.drawn.rules = slices.Clone(a.drawn.rules)
			for i := range a.drawn.rules {
				x := &a.drawn.rules[i]
				switch {
				case !named(x.Origin):
				case d.Step == tiers.Extend:
					x.Until = a.now.AddDate(1, 0, 0)
				case d.Step == tiers.Admit:
					x.External = true
				default: // nothing is lost by the move
					require.Less(t, x.Tier, d.Line.Tier, way)
					require.Contains(t, []string{"", x.Workspace}, d.Line.Workspace, way)
					x.Users = slices.DeleteFunc(slices.Clone(x.Users), func(id string) bool { return id == a.who.User })
				}
			}
			if d.Step == tiers.AddLine {
				a.drawn.rules = append(a.drawn.rules, *d.Line)
				a.requireOneTier(t)
			}
		case tiers.MakeGrant:
			require.NoError(t, d.Grant.Check())
			a.grants = append(slices.Clone(a.grants), *d.Grant)
		default:
			require.Fail(t, "no such step", "%s", d.Step)
		}
	}
	return a
}

// requireOneTier looks whether a loader takes where the person's id stands: two
// lines for good that overlap are of one tier. Only the last line is new.
func (a asked) requireOneTier(t require.TestingT) {
	added := a.drawn.rules[len(a.drawn.rules)-1]
	for _, x := range a.drawn.rules {
		overlap := x.Workspace == added.Workspace || x.Workspace == "" || added.Workspace == ""
		if x.Platform == added.Platform && slices.Contains(x.Users, a.who.User) && x.Until.IsZero() && overlap {
			require.Equal(t, added.Tier, x.Tier, "%s and the new line", x.Origin)
		}
	}
}

// requireWays follows every way of an explanation, by each id that it names, and
// leaves out each of its steps in turn. It counts the steps in seen.
func (a asked) requireWays(t require.TestingT, seen map[tiers.Step]int) {
	x := a.rules().Explain(a.who, a.where, a.now)
	for _, path := range x.Paths {
		require.True(t, len(path.Ways) > 0 || path.Cannot != "", "%s: no way and no reason", path.Tier)
		require.Greater(t, path.Tier, x.Decision.Tier)
		for _, way := range path.Ways {
			require.Equal(t, path.Tier, way.Tier)
			ids := 1
			for _, d := range way.All {
				seen[d.Step]++
				ids = max(ids, len(d.IDs)+len(d.Categories))
			}
			for n := range ids {
				require.GreaterOrEqual(t, a.follow(t, way, n).tier(), way.Tier, "%s (by number %d)", way, n)
			}
			for i := range way.All {
				less := tiers.Way{All: slices.Delete(slices.Clone(way.All), i, i+1)}
				require.Less(t, a.follow(t, less, 0).tier(), way.Tier, "%s: step %d is not needed", way, i)
			}
		}
	}
	require.Equal(t, x.Decision.Tier < tiers.Owner, len(x.Paths) > 0, "whoever is not owner reads what would make them more, or why nothing does")
}

// TestEveryWayThatIsPrintedGivesWhatItPromises follows the ways of drawn people in
// drawn worlds, and of every row of the decision table.
func TestEveryWayThatIsPrintedGivesWhatItPromises(t *testing.T) {
	t.Parallel()
	seen := map[tiers.Step]int{}
	drawnWays := func(t *rapid.T) {
		d := draw(t)
		d.blocks = append(d.blocks, rapid.SliceOfN(rapid.Custom(anyBlock), 0, 1).Draw(t, "another block")...)
		a := asked{drawn: d, who: anybody(t), now: oneOf(t, "now", someMoments[1:]...)}
		if chance(t, 2, "on slack") == 1 {
			a.who.Platform = tiers.Slack
			a.who.GroupsKnown = oneOf(t, "known", true, false)
			if chance(t, 4, "of another organisation") == 3 {
				a.who.External, a.who.Member = true, false
			}
			for i := range d.rules {
				d.rules[i].Platform = tiers.Slack
			}
			for i := range d.caps {
				d.caps[i].Platform = tiers.Slack
			}
			for i := range d.blocks {
				d.blocks[i].Platform = tiers.Slack
			}
		}
		a.where = anywhere(t, a.who)
		for i := range d.rules {
			d.rules[i].Origin = fmt.Sprintf("rule:%d", i)
		}
		for i := range d.caps {
			d.caps[i].Origin = fmt.Sprintf("cap:%d", i)
		}
		for i := range d.blocks {
			d.blocks[i].Origin = fmt.Sprintf("block:%d", i)
		}
		a.requireWays(t, seen)
	}
	for range 4 {
		often(t, drawnWays)
	}
	table := readDecisions(t)
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for platform, books := range table.Rules {
		for name, texts := range books {
			set, _ := written(t, texts)
			rules := set.Rules()
			for _, row := range table.Rows {
				if row.On != platform || row.Rules != name {
					continue
				}
				at := table.Places[platform][row.Where]
				a := asked{
					drawn: drawn{rules.All(), rules.Caps(), rules.Blocks()}, now: now,
					who: table.People[platform][row.Who].identity(platform, at), where: at.place(platform),
				}
				if row.Grant != "" {
					a.grants = []tiers.Grant{table.Grants[platform][row.Grant].grant(platform, now)}
				}
				a.requireWays(t, seen)
			}
		}
	}
	for _, step := range []tiers.Step{
		tiers.TakeRole, tiers.JoinGroup, tiers.AskIn, tiers.AskElsewhere, tiers.AskDirect, tiers.TellGroups, tiers.BeMember,
		tiers.Unblock, tiers.Unlimit, tiers.Extend, tiers.Admit, tiers.AddLine, tiers.MakeGrant,
	} {
		require.Positive(t, seen[step], step)
	}
}
