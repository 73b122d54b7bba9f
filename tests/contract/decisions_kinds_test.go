package contract_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"parlour/tiers"
)

// missing lists the pairs of a person and a set of rules, of a place and a set of
// rules, and of a person and a place that stand together in no row. Rows with a
// grant are about the grant.
func (d decisionTable) missing() (out []string) {
	seen := map[string]bool{}
	pair := func(platform, kind, a, b string) string { return fmt.Sprintf("%s: %s: %s, %s", platform, kind, a, b) }
	for _, r := range d.Rows {
		if r.Grant == "" {
			seen[pair(r.On, "rules and person", r.Rules, r.Who)] = true
			seen[pair(r.On, "rules and place", r.Rules, r.Where)] = true
			seen[pair(r.On, "person and place", r.Who, r.Where)] = true
		}
	}
	for platform := range d.Rules {
		rules, people, places := names(d.Rules[platform]), names(d.People[platform]), names(d.Places[platform])
		for kind, sides := range map[string][2][]string{
			"rules and person": {rules, people}, "rules and place": {rules, places}, "person and place": {people, places},
		} {
			for _, a := range sides[0] {
				for _, b := range sides[1] {
					if p := pair(platform, kind, a, b); !seen[p] {
						out = append(out, p)
					}
				}
			}
		}
	}
	return out
}

func names[T any](m map[string]T) []string { return slices.Sorted(maps.Keys(m)) }

// Every person stands with every place and with every set of rules in some row,
// and every set of rules with every place.
func TestTheDecisionTableCoversAllPairs(t *testing.T) {
	t.Parallel()
	table := readDecisions(t)
	require.Equal(t, []string{"discord", "slack"}, names(table.Rules))
	require.Empty(t, table.missing())
	rows := map[decisionRow]bool{}
	for _, r := range table.Rows {
		require.False(t, rows[r], "%+v stands twice", r)
		rows[r] = true
	}
	// The control: rows that alone have a pair are missed when they are gone.
	alone := map[string]int{}
	for i := 0; i < len(table.Rows); i += 29 {
		less := table
		less.Rows = slices.Delete(slices.Clone(table.Rows), i, i+1)
		for _, m := range less.missing() {
			require.Contains(t, m, table.Rows[i].On)
			alone[m]++
		}
	}
	require.Greater(t, len(alone), len(table.Rows)/29/4)
}

// The kinds that have to be among the people, places and rules of each platform,
// by what they are and not by their names.
var (
	personKinds = map[string]map[string]func(somebody) bool{
		"discord": {
			"a member":                             func(s somebody) bool { return s.Member && s.Kind == "" && len(s.Roles) == 0 },
			"a member with roles":                  func(s somebody) bool { return s.Member && s.Kind == "" && len(s.Roles) > 0 },
			"a person who left or never was there": func(s somebody) bool { return !s.Member && s.Kind == "" },
			"a bot":                                func(s somebody) bool { return s.Kind == "bot" },
			"a webhook":                            func(s somebody) bool { return s.Kind == "webhook" },
			"nothing is known":                     func(s somebody) bool { return s.Kind == "unknown" },
			"no id":                                func(s somebody) bool { return s.User == "" },
		},
		"slack": {
			"a member":                       func(s somebody) bool { return s.Member && !s.Restricted && s.Kind == "" },
			"a guest account":                func(s somebody) bool { return s.Member && s.Restricted },
			"of another organisation":        func(s somebody) bool { return s.External && s.Workspace != "" },
			"a bot":                          func(s somebody) bool { return s.Kind == "bot" },
			"a failed look-up":               func(s somebody) bool { return s.Kind == "unknown" && !s.Member },
			"a member of user groups":        func(s somebody) bool { return s.Member && !s.Restricted && len(s.Groups) > 0 },
			"a guest account in user groups": func(s somebody) bool { return s.Restricted && len(s.Groups) > 0 },
			"groups that are not known":      func(s somebody) bool { return s.Member && s.Unasked },
		},
	}
	placeKinds = map[string]map[string]func(somewhere) bool{
		"discord": {
			"a channel":               func(p somewhere) bool { return p.Parent == "" && p.Category == "" && !p.Direct },
			"a thread":                func(p somewhere) bool { return p.Parent != "" && p.Category == "" },
			"a channel in a category": func(p somewhere) bool { return p.Parent == "" && p.Category != "" },
			"a forum post":            func(p somewhere) bool { return p.Parent != "" && p.Category != "" },
			"a direct message":        func(p somewhere) bool { return p.Direct && p.Workspace == "" },
			"not looked up":           func(p somewhere) bool { return p.Most == "guest" },
		},
		"slack": {
			"a channel":        func(p somewhere) bool { return !p.Direct && p.Most == "" },
			"a direct message": func(p somewhere) bool { return p.Direct },
			"a shared channel": func(p somewhere) bool { return p.Most == "guest" && !p.Direct },
		},
	}
	ruleKinds = map[string]map[string]func(tiers.Rule) bool{
		"discord": {
			"owner by id":               func(r tiers.Rule) bool { return r.Tier == tiers.Owner && len(r.Users) > 0 },
			"by id everywhere":          func(r tiers.Rule) bool { return len(r.Users) > 0 && r.Workspace == "" },
			"by id in a guild":          func(r tiers.Rule) bool { return len(r.Users) > 0 && r.Workspace != "" && r.Channels == nil },
			"by id in channels":         func(r tiers.Rule) bool { return len(r.Users) > 0 && len(r.Channels) > 0 },
			"by role":                   func(r tiers.Rule) bool { return len(r.Roles) > 0 && r.Channels == nil && r.Categories == nil },
			"by role in channels":       func(r tiers.Rule) bool { return len(r.Roles) > 0 && len(r.Channels) > 0 },
			"by role in a category":     func(r tiers.Rule) bool { return len(r.Roles) > 0 && len(r.Categories) > 0 },
			"anyone in channels":        func(r tiers.Rule) bool { return r.Anyone && len(r.Channels) > 0 },
			"anyone in a category":      func(r tiers.Rule) bool { return r.Anyone && len(r.Categories) > 0 },
			"anyone as team":            func(r tiers.Rule) bool { return r.Anyone && r.Tier == tiers.Team },
			"until a time that comes":   func(r tiers.Rule) bool { return !r.Until.IsZero() && r.Until.Year() > 2026 },
			"until a time that is past": func(r tiers.Rule) bool { return !r.Until.IsZero() && r.Until.Year() < 2026 },
		},
		"slack": {
			"owner by id":               func(r tiers.Rule) bool { return r.Tier == tiers.Owner && len(r.Users) > 0 },
			"by id":                     func(r tiers.Rule) bool { return len(r.Users) > 0 && r.Channels == nil },
			"by id in channels":         func(r tiers.Rule) bool { return len(r.Users) > 0 && len(r.Channels) > 0 },
			"by user group":             func(r tiers.Rule) bool { return len(r.Groups) > 0 && r.Channels == nil },
			"by user group in channels": func(r tiers.Rule) bool { return len(r.Groups) > 0 && len(r.Channels) > 0 },
			"anyone in channels":        func(r tiers.Rule) bool { return r.Anyone && len(r.Channels) > 0 && !r.External },
			"anyone as team":            func(r tiers.Rule) bool { return r.Anyone && r.Tier == tiers.Team },
			"others too":                func(r tiers.Rule) bool { return r.External },
			"until a time that comes":   func(r tiers.Rule) bool { return !r.Until.IsZero() && r.Until.Year() > 2026 },
			"until a time that is past": func(r tiers.Rule) bool { return !r.Until.IsZero() && r.Until.Year() < 2026 },
		},
	}
)

// The pairs are of whatever the table holds, so it has to hold each kind.
func TestTheDecisionTableHasEachKind(t *testing.T) {
	t.Parallel()
	table := readDecisions(t)
	for platform, books := range table.Rules {
		requireEach(t, platform, personKinds[platform], slices.Collect(maps.Values(table.People[platform])))
		requireEach(t, platform, placeKinds[platform], slices.Collect(maps.Values(table.Places[platform])))
		var rules []tiers.Rule
		var caps []tiers.Cap
		var blocks []tiers.Block
		for _, texts := range books {
			set, _ := written(t, texts)
			rules, caps = append(rules, set.Rules().All()...), append(caps, set.Rules().Caps()...)
			blocks = append(blocks, set.Rules().Blocks()...)
		}
		requireEach(t, platform, ruleKinds[platform], rules)
		requireEach(t, platform, map[string]func(tiers.Cap) bool{
			"a place for guests":        func(c tiers.Cap) bool { return c.Tier == tiers.Guest },
			"a place with a readership": func(c tiers.Cap) bool { return c.Audience == tiers.Team },
		}, caps)
		denials := map[string]func(tiers.Block) bool{"a blocked user": func(b tiers.Block) bool { return len(b.Users) > 0 }}
		if platform == "discord" {
			denials["a blocked role"] = func(b tiers.Block) bool { return len(b.Roles) > 0 }
		} else {
			denials["a blocked user group"] = func(b tiers.Block) bool { return len(b.Groups) > 0 }
		}
		requireEach(t, platform, denials, blocks)
		for _, tier := range []string{"none", "guest", "team", "owner"} {
			require.True(t, slices.ContainsFunc(table.Rows, func(r decisionRow) bool { return r.On == platform && r.Tier == tier }), "%s: %s", platform, tier)
		}
	}
}

func requireEach[T any](t *testing.T, platform string, kinds map[string]func(T) bool, among []T) {
	t.Helper()
	require.NotEmpty(t, kinds, platform)
	for kind, is := range kinds {
		require.True(t, slices.ContainsFunc(among, is), "%s: %s", platform, kind)
	}
}
