package contract_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"parlour/manifests"
	"parlour/tiers"
)

// A small world, in which rules often meet the same people and places.
var (
	someUsers      = []string{"111111111111111111", "222222222222222222", "333333333333333333"}
	someRoles      = []string{"800000000000000001", "800000000000000002"}
	someGuilds     = []string{"900000000000000001", "900000000000000002"}
	someChannels   = []string{"700000000000000001", "700000000000000002", "700000000000000003"}
	someCategories = []string{"710000000000000001", "710000000000000002"}
	someEnds       = []time.Time{{}, time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2029, 1, 1, 0, 0, 0, 0, time.UTC)}
	someMoments    = []time.Time{{}, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), someEnds[1], time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)}
)

// chance gives a number below n, each as often as the others: rapid's own numbers
// are mostly small, and rules made of them meet nobody.
func chance(t *rapid.T, n int, name string) (k int) {
	for _, one := range rapid.SliceOfN(rapid.Bool(), 6, 6).Draw(t, name) {
		k *= 2
		if one {
			k++
		}
	}
	return k * n / 64
}

// oneOf gives each with the same chance.
func oneOf[T any](t *rapid.T, name string, of ...T) T { return of[chance(t, len(of), name)] }

func some[T any](t *rapid.T, of []T, name string) (out []T) {
	for range chance(t, 4, name) {
		out = append(out, oneOf(t, name, of...))
	}
	return out
}

// maybe gives a list that is absent, empty or not.
func maybe(t *rapid.T, of []string, name string) []string {
	if chance(t, 4, name+" is absent") < 3 {
		return nil
	}
	return append([]string{}, some(t, of, name)...)
}

// mostly gives the first, so that what is drawn meets, and seldom another.
func mostly[T any](t *rapid.T, name string, first T, others ...T) T {
	if chance(t, 32, name) < 31 {
		return first
	}
	return oneOf(t, "another "+name, others...)
}

func anyRule(t *rapid.T) tiers.Rule {
	return tiers.Rule{
		Tier:      oneOf(t, "tier", tiers.Guest, tiers.Team, tiers.Owner, tiers.None),
		Platform:  mostly(t, "platform", tiers.Discord, tiers.Slack, ""),
		Workspace: mostly(t, "workspace", someGuilds[0], someGuilds[1], ""),
		Channels:  maybe(t, someChannels, "channels"), Categories: maybe(t, someCategories, "categories"),
		Users: some(t, append([]string{""}, someUsers...), "users"), Roles: some(t, append([]string{""}, someRoles...), "roles"),
		Groups: some(t, someRoles, "groups"), Anyone: oneOf(t, "anyone", false, true), External: oneOf(t, "external", false, true),
		Until: mostly(t, "until", time.Time{}, someEnds...), Origin: fmt.Sprintf("x:%d", rapid.Int().Draw(t, "line")),
	}
}

func anyCap(t *rapid.T) tiers.Cap {
	return tiers.Cap{
		Tier: oneOf(t, "cap", tiers.None, tiers.Guest, tiers.Team, tiers.Owner), Platform: mostly(t, "platform", tiers.Discord, tiers.Slack, ""),
		Workspace: mostly(t, "workspace", someGuilds[0], someGuilds[1], ""),
		Channels:  maybe(t, someChannels, "channels"), Categories: maybe(t, someCategories, "categories"),
		Audience: oneOf(t, "audience", tiers.None, tiers.Guest, tiers.Team, tiers.Owner), Origin: "cap",
	}
}

func anyBlock(t *rapid.T) tiers.Block {
	return tiers.Block{
		Platform: mostly(t, "platform", tiers.Discord, tiers.Slack, ""), Workspace: oneOf(t, "workspace", someGuilds[0], someGuilds[1], ""),
		Users: some(t, someUsers, "users"), Roles: some(t, someRoles, "roles"), Groups: some(t, someRoles, "groups"), Origin: "block",
	}
}

func anybody(t *rapid.T) tiers.Identity {
	return tiers.Identity{
		Platform:  mostly(t, "platform", tiers.Discord, tiers.Slack, ""),
		Workspace: mostly(t, "home", someGuilds[0], someGuilds[1], ""),
		User:      mostly(t, "user", oneOf(t, "somebody", someUsers...), ""),
		Kind:      mostly(t, "kind", tiers.Person, tiers.Bot, tiers.UnknownKind, 99),
		Member:    mostly(t, "member", true, false), External: mostly(t, "external", false, true), Restricted: mostly(t, "restricted", false, true),
		Roles: some(t, append([]string{""}, someRoles...), "roles"), Groups: some(t, someRoles, "groups"),
		GroupsKnown: mostly(t, "groups known", true, false),
	}
}

func anywhere(t *rapid.T, who tiers.Identity) tiers.Place {
	return tiers.Place{
		Platform: mostly(t, "place's platform", who.Platform, tiers.Slack, tiers.Discord), Workspace: mostly(t, "workspace", someGuilds[0], someGuilds[1], ""),
		Channel:  mostly(t, "channel", oneOf(t, "a channel", someChannels...), ""),
		Parent:   oneOf(t, "parent", append([]string{"", ""}, someChannels...)...),
		Category: oneOf(t, "category", append([]string{""}, someCategories...)...),
		Direct:   mostly(t, "direct", false, true),
		Most:     mostly(t, "most", tiers.Owner, tiers.Team, tiers.Guest, tiers.None, -1, 9),
	}
}

type drawn struct {
	rules  []tiers.Rule
	caps   []tiers.Cap
	blocks []tiers.Block
}

func draw(t *rapid.T) drawn {
	return drawn{
		rapid.SliceOfN(rapid.Custom(anyRule), 0, 8).Draw(t, "rules"), rapid.SliceOfN(rapid.Custom(anyCap), 0, 3).Draw(t, "caps"),
		rapid.SliceOfN(rapid.Custom(anyBlock), 0, 1).Draw(t, "blocks"),
	}
}

func (d drawn) rulebook() tiers.Rules { return tiers.NewRules(d.rules, d.caps, d.blocks...) }

// often checks a property of some hundreds of drawn worlds, so that each kind of
// meeting happens.
func often(t *testing.T, property func(*rapid.T)) {
	t.Helper()
	for range 5 {
		rapid.Check(t, property)
	}
}

func TestARuleBelowChangesNobodyAbove(t *testing.T) {
	t.Parallel()
	met := 0
	often(t, func(t *rapid.T) {
		d := draw(t)
		who := anybody(t)
		where, now := anywhere(t, who), rapid.SampledFrom(someMoments).Draw(t, "now")
		before := d.rulebook().Resolve(who, where, now)
		below := anyRule(t)
		below.Tier = min(below.Tier, before.Person)
		d.rules = append(d.rules, below)
		if before.Person == tiers.None {
			return
		}
		require.Equal(t, before, d.rulebook().Resolve(who, where, now))
		if tiers.NewRules([]tiers.Rule{below}, nil).Resolve(who, where, now).Person > tiers.None {
			met++
		}
	})
	require.Positive(t, met, "the rule below names the person too")
}

func TestTakingADenialAwayNeverLowers(t *testing.T) {
	t.Parallel()
	unblocked, unlimited := 0, 0
	often(t, func(t *rapid.T) {
		d := draw(t)
		who := anybody(t)
		where, now := anywhere(t, who), rapid.SampledFrom(someMoments).Draw(t, "now")
		before := d.rulebook().Resolve(who, where, now).Tier
		if len(d.blocks) > 0 {
			d.blocks = d.blocks[1:]
			after := d.rulebook().Resolve(who, where, now).Tier
			require.GreaterOrEqual(t, after, before, "a block less")
			if after > before {
				unblocked++
			}
			before = after
		}
		if len(d.caps) > 0 {
			d.caps = d.caps[1:]
			after := d.rulebook().Resolve(who, where, now).Tier
			require.GreaterOrEqual(t, after, before, "a limit less")
			if after > before {
				unlimited++
			}
		}
	})
	require.Positive(t, unblocked, "a block made a difference")
	require.Positive(t, unlimited, "a limit made a difference")
}

// Whatever comes in, a decision comes out, and none is more than what the ids
// that are listed, the place and the kind of sender allow.
func TestDecidingIsTotalAndBounded(t *testing.T) {
	t.Parallel()
	came := map[string]int{}
	often(t, func(t *rapid.T) {
		d := draw(t)
		who := anybody(t)
		where, now := anywhere(t, who), rapid.SampledFrom(someMoments).Draw(t, "now")
		rules := d.rulebook()
		got := rules.Resolve(who, where, now)
		require.NotEmpty(t, got.Why)
		came[got.Tier.String()]++
		came["blocked"] += min(1, len(got.Block))
		came["limited"] += min(1, len(got.Cap))
		require.Equal(t, got, rules.Explain(who, where, now).Decision)
		require.LessOrEqual(t, got.Tier, got.Person)
		require.LessOrEqual(t, got.Audience, max(tiers.None, where.Most))
		if where.Most > tiers.None && where.Most <= tiers.Owner {
			require.LessOrEqual(t, got.Tier, where.Most)
		} else {
			require.Equal(t, tiers.None, got.Tier)
		}
		if who.Kind != tiers.Person || who.User == "" || who.Platform == "" {
			require.Equal(t, tiers.None, got.Tier)
		}
		if who.External {
			require.LessOrEqual(t, got.Tier, tiers.Guest)
		}
		require.Equal(t, tiers.None, tiers.Rules{}.Resolve(who, where, now).Tier, "no rules, nobody")
	})
	for _, what := range []string{"none", "guest", "team", "owner", "blocked", "limited"} {
		require.Positive(t, came[what], what)
	}
}

// TestRolesAndGroupsNeverGiveOwner looks at owner rules by every part but a user
// id: they give nothing at all.
func TestRolesAndGroupsNeverGiveOwner(t *testing.T) {
	t.Parallel()
	met := 0
	often(t, func(t *rapid.T) {
		d := draw(t)
		for i := range d.rules {
			d.rules[i].Users = nil
		}
		who := anybody(t)
		where := anywhere(t, who)
		require.Less(t, d.rulebook().Resolve(who, where, time.Time{}).Tier, tiers.Owner)
		for i := range d.rules {
			if d.rules[i].Tier == tiers.Owner {
				d.rules[i].Tier = tiers.Team
			}
		}
		if d.rulebook().Resolve(who, where, time.Time{}).Tier == tiers.Team {
			met++
		}
	})
	require.Positive(t, met, "a role or a group gives something")
	who := tiers.Identity{
		Platform: tiers.Discord, Workspace: someGuilds[0], User: someUsers[0], Kind: tiers.Person, Member: true, Roles: someRoles, Groups: someRoles,
	}
	where := tiers.Place{Platform: tiers.Discord, Workspace: someGuilds[0], Channel: someChannels[0], Most: tiers.Owner}
	rule := tiers.Rule{Tier: tiers.Owner, Platform: tiers.Discord, Workspace: someGuilds[0], Channels: someChannels, Roles: someRoles, Groups: someRoles, Anyone: true}
	require.Equal(t, tiers.None, tiers.NewRules([]tiers.Rule{rule}, nil).Resolve(who, where, time.Time{}).Tier)
	who.Platform, where.Platform, rule.Platform = tiers.Slack, tiers.Slack, tiers.Slack
	require.Equal(t, tiers.None, tiers.NewRules([]tiers.Rule{rule}, nil).Resolve(who, where, time.Time{}).Tier)
	rule.Tier = tiers.Team
	require.Equal(t, tiers.Team, tiers.NewRules([]tiers.Rule{rule}, nil).Resolve(who, where, time.Time{}).Tier, "the control")
}

// What a caller does with its lists afterwards changes no rule.
func TestRulesAreTheirOwn(t *testing.T) {
	t.Parallel()
	users := []string{someUsers[0]}
	rules := tiers.NewRules([]tiers.Rule{{Tier: tiers.Guest, Platform: tiers.Discord, Users: users}}, nil)
	users[0] = someUsers[1]
	rules.All()[0].Users[0] = someUsers[2]
	for i, want := range []tiers.Tier{tiers.Guest, tiers.None, tiers.None} {
		who := tiers.Identity{Platform: tiers.Discord, User: someUsers[i], Kind: tiers.Person}
		require.Equal(t, want, rules.Resolve(who, tiers.Place{Platform: tiers.Discord, Channel: "c", Direct: true, Most: tiers.Owner}, time.Time{}).Tier)
	}
}

// entry is one line of a tier file, in the section match, places or block. The
// zero entry is none.
type entry struct{ section, tier, text string }

// anyEntry draws the line of one id, if any. Each id has one, so that it is in
// one tier, as the loader wants.
func anyEntry(t *rapid.T, id string) entry {
	name, about, _ := strings.Cut(id, " ")
	in := func(tier, format string, args ...any) entry {
		if tier == "" {
			return entry{}
		}
		return entry{"match", tier, fmt.Sprintf(format, args...)}
	}
	tier := rapid.SampledFrom([]string{"", "guest", "team"}).Draw(t, id)
	blocked := rapid.IntRange(0, 3).Draw(t, id+" blocked") == 0
	switch {
	case about == "user":
		tier = rapid.SampledFrom([]string{"", "guest", "team", "owner"}).Draw(t, id+" or owner")
		return in(tier, "{%susers: [%q]%s}", anyScope(t, id, false), name, anyEnd(t, tier))
	case about == "role":
		return in(tier, "{%sroles: [%q]%s}", anyScope(t, id, true), name, anyEnd(t, tier))
	case about == "anyone":
		return in(tier, "{guild: %q, channels: [%q], anyone: true}", someGuilds[0], name)
	case about == "place" && tier != "":
		audience := ""
		if tier == "team" && rapid.Bool().Draw(t, id+" audience") {
			audience = ", audience: team"
		}
		return entry{"places", tier, fmt.Sprintf("{guild: %q, channels: [%q]%s}", someGuilds[0], name, audience)}
	case about == "blocked user" && blocked:
		return entry{"block", "guest", fmt.Sprintf("{users: [%q]}", name)}
	case about == "blocked role" && blocked:
		return entry{"block", "guest", fmt.Sprintf("{guild: %q, roles: [%q]}", someGuilds[0], name)}
	}
	return entry{}
}

func anyScope(t *rapid.T, id string, guildToo bool) string {
	if !guildToo && rapid.Bool().Draw(t, id+" everywhere") {
		return ""
	}
	guild := fmt.Sprintf("guild: %q, ", rapid.SampledFrom(someGuilds).Draw(t, id+" guild"))
	switch rapid.IntRange(0, 3).Draw(t, id+" scope") {
	case 1:
		channels := rapid.SliceOfNDistinct(rapid.SampledFrom(someChannels), 1, 2, rapid.ID[string]).Draw(t, id+" channels")
		return guild + `channels: ["` + strings.Join(channels, `", "`) + `"], `
	case 2:
		return guild + fmt.Sprintf("categories: [%q], ", rapid.SampledFrom(someCategories).Draw(t, id+" category"))
	}
	return guild
}

func anyEnd(t *rapid.T, tier string) string {
	end := rapid.SampledFrom(someEnds).Draw(t, "end")
	if tier == "owner" || end.IsZero() {
		return ""
	}
	return ", until: " + end.Format(time.RFC3339)
}

// ids are all that have a line of their own.
func ids() (all []string) {
	for _, user := range someUsers {
		all = append(all, user+" user", user+" blocked user")
	}
	for _, role := range someRoles {
		all = append(all, role+" role", role+" blocked role")
	}
	for _, channel := range someChannels {
		all = append(all, channel+" anyone", channel+" place")
	}
	return all
}

// filesOf writes the lines of all ids into tier files.
func filesOf(entries map[string]entry) map[string]string {
	files := map[string]string{}
	for _, tier := range []string{"owner", "team", "guest"} {
		text := "tier: " + tier + "\n"
		for _, section := range []string{"match", "places", "block"} {
			text += section + ":\n  discord:\n"
			for _, id := range ids() {
				if e := entries[id]; e.section == section && e.tier == tier {
					text += "    - " + e.text + "\n"
				}
			}
		}
		files[tier] = text
	}
	return files
}

// TestEveryWideningIsAGain changes the lines of one or two ids, and compares what
// the list of changes says with what the decisions do, over everybody, everywhere
// and at all times of the small world.
func TestEveryWideningIsAGain(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	n, gained, lost := 0, 0, 0
	load := func(t *rapid.T, entries map[string]entry) *manifests.Set {
		n++
		dir := filepath.Join(base, fmt.Sprint(n))
		require.NoError(t, os.MkdirAll(filepath.Join(dir, "tiers"), 0o755))
		for name, text := range filesOf(entries) {
			require.NoError(t, os.WriteFile(filepath.Join(dir, "tiers", name+".yaml"), []byte(text), 0o644))
		}
		set, err := manifests.Load(dir)
		require.NoError(t, err)
		return set
	}
	rapid.Check(t, func(t *rapid.T) {
		entries := map[string]entry{}
		for _, id := range ids() {
			entries[id] = anyEntry(t, id)
		}
		old := load(t, entries)
		for _, id := range rapid.SliceOfN(rapid.SampledFrom(ids()), 1, 2).Draw(t, "changed") {
			entries[id] = anyEntry(t, id)
		}
		now := load(t, entries)
		require.Empty(t, manifests.Diff(old, old))
		changes := manifests.Diff(old, now)
		wider, narrower := compared(old.Rules(), now.Rules())
		if wider != "" {
			require.NotEmpty(t, changes.Gains(), wider)
			gained++
		}
		if narrower != "" {
			require.NotEmpty(t, changes.Losses(), narrower)
			lost++
		}
		require.Len(t, manifests.Diff(now, old).Losses(), len(changes.Gains()), "a gain on the way there is a loss on the way back")
	})
	require.Positive(t, gained, "somebody has more")
	require.Positive(t, lost, "somebody has less")
}

// compared looks at all decisions and gives one that is wider and one that is
// narrower under the second rules.
func compared(old, now tiers.Rules) (wider, narrower string) {
	for _, user := range someUsers {
		for _, roles := range [][]string{nil, someRoles[:1], someRoles[1:]} {
			for _, guild := range append([]string{""}, someGuilds...) {
				for _, channel := range someChannels {
					for _, category := range append([]string{""}, someCategories...) {
						for _, at := range someMoments {
							who := tiers.Identity{Platform: tiers.Discord, Workspace: guild, User: user, Kind: tiers.Person, Member: guild != "", Roles: roles}
							where := tiers.Place{Platform: tiers.Discord, Workspace: guild, Channel: channel, Category: category, Direct: guild == "", Most: tiers.Owner}
							a, b := old.Resolve(who, where, at), now.Resolve(who, where, at)
							told := fmt.Sprintf("%+v %+v %s: %+v, then %+v", who, where, at, a, b)
							if b.Tier > a.Tier || b.Audience > a.Audience && !where.Direct && a.Block == "" {
								wider = told
							}
							if b.Tier < a.Tier {
								narrower = told
							}
						}
					}
				}
			}
		}
	}
	return wider, narrower
}
