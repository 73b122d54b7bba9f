package contract_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"parlour/tiers"
)

// anyGrant draws a grant of the small world; some are none.
func anyGrant(t *rapid.T) tiers.Grant {
	g := tiers.Grant{
		ID:       rapid.Int64Range(1, 9).Draw(t, "id"),
		Tier:     rapid.SampledFrom([]tiers.Tier{tiers.Guest, tiers.Team, tiers.Team, tiers.Owner, tiers.None, 99}).Draw(t, "tier"),
		Platform: rapid.SampledFrom([]tiers.Platform{tiers.Discord, tiers.Slack}).Draw(t, "platform"),
		User:     rapid.SampledFrom(append([]string{""}, someUsers...)).Draw(t, "user"),
		Channels: maybe(t, someChannels, "channels"), Workspace: rapid.SampledFrom(append([]string{""}, someGuilds...)).Draw(t, "workspace"),
		External: rapid.Bool().Draw(t, "external"), Until: rapid.SampledFrom(someEnds).Draw(t, "until"),
	}
	if rapid.Bool().Draw(t, "sound") {
		g.Tier, g.User, g.Workspace, g.External, g.Until = tiers.Team, someUsers[0], someGuilds[0], false, someEnds[1]
		if len(g.Channels) == 0 || g.Channels[0] == "" {
			g.Channels = nil
		}
	}
	g.Made = g.Until.Add(-time.Hour)
	return g
}

// One more grant changes nothing for anybody but its person, and for them nothing
// to the worse. It makes nobody owner, and an ended one is as none.
func TestAGrantOnlyAddsAndOnlyForItsPerson(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		rules, grants := draw(t).rulebook(), rapid.SliceOfN(rapid.Custom(anyGrant), 0, 3).Draw(t, "grants")
		g, who := anyGrant(t), anybody(t)
		if rapid.Bool().Draw(t, "about its person") {
			who.User, who.Platform, who.Workspace, who.Kind, who.Member = g.User, g.Platform, g.Workspace, tiers.Person, true
		}
		where, now := anywhere(t, who), rapid.SampledFrom(someMoments).Draw(t, "now")
		if rapid.Bool().Draw(t, "at its place") {
			where.Workspace, where.Direct, where.Most = g.Workspace, false, tiers.Owner
			if len(g.Channels) > 0 {
				where.Channel = g.Channels[0]
			}
		}
		before := rules.With(grants...).Resolve(who, where, now)
		with := rules.With(append(grants, g)...)
		after := with.Resolve(who, where, now)
		require.Equal(t, after, with.Explain(who, where, now).Decision)
		require.GreaterOrEqual(t, after.Tier, before.Tier)
		require.GreaterOrEqual(t, after.Person, before.Person)
		require.Equal(t, before.Block, after.Block)
		require.Equal(t, before.Place, after.Place)
		require.Equal(t, before.Audience, after.Audience)
		require.Equal(t, before.Tier == tiers.Owner, after.Tier == tiers.Owner)
		other := who.User != g.User || who.Platform != g.Platform || where.Workspace != g.Workspace
		if other || where.Direct || g.Check() != nil || !g.Holds(now) {
			require.Equal(t, before, after)
		}
		if after.Tier > before.Tier {
			require.LessOrEqual(t, after.Tier, g.Tier)
			require.Equal(t, g.Origin(), after.Rule)
		}
	})
}

// A grant is no answer to what somebody was before it. A clock that goes back a
// little does not take it away.
func TestAGrantDoesNotHoldBeforeItWasMade(t *testing.T) {
	t.Parallel()
	g := someGrant(time.Hour)
	g.Made = setClock.Add(10 * time.Minute)
	who := tiers.Identity{Platform: g.Platform, Workspace: g.Workspace, User: g.User, Kind: tiers.Person, Member: true}
	where := tiers.Place{Platform: g.Platform, Workspace: g.Workspace, Channel: g.Channels[0], Most: tiers.Owner}
	rules := tiers.NewRules(nil, nil).With(g)
	for at, want := range map[time.Duration]tiers.Tier{
		0: tiers.None, 9*time.Minute - 1: tiers.None, 9 * time.Minute: g.Tier, 10 * time.Minute: g.Tier, time.Hour - 1: g.Tier, time.Hour: tiers.None,
	} {
		now := setClock.Add(at)
		require.Equal(t, want, rules.Resolve(who, where, now).Tier, at)
		require.Equal(t, want != tiers.None, g.Holds(now), at)
	}
	require.Contains(t, rules.Explain(who, where, setClock).Findings[0].Why, "the grant was made later")
}

// Grants of one moment take the place of those of another.
func TestGrantsReplaceEarlierOnes(t *testing.T) {
	t.Parallel()
	first, second := someGrant(time.Hour), someGrant(time.Hour)
	second.User = "other"
	who := tiers.Identity{Platform: tiers.Discord, Workspace: "guild", User: "guest", Kind: tiers.Person, Member: true}
	where := tiers.Place{Platform: tiers.Discord, Workspace: "guild", Channel: "hall", Most: tiers.Owner}
	with := tiers.Rules{}.With(first)
	require.Equal(t, tiers.Guest, with.Resolve(who, where, setClock).Tier)
	require.Equal(t, tiers.None, with.With(second).Resolve(who, where, setClock).Tier)
	require.Equal(t, tiers.None, with.With().Resolve(who, where, setClock).Tier)
	require.Equal(t, tiers.Guest, with.Resolve(who, where, setClock).Tier, "rules are immutable")
	require.Empty(t, with.All(), "a grant is no line of a manifest")
}

// What an operator reads about somebody who was granted something names it.
func TestAnExplanationNamesTheGrant(t *testing.T) {
	t.Parallel()
	g := someGrant(time.Hour)
	g.ID = 7
	rules := tiers.Rules{}.With(g)
	who := tiers.Identity{Platform: tiers.Discord, Workspace: "guild", User: "guest", Kind: tiers.Person, Member: true}
	where := tiers.Place{Platform: tiers.Discord, Workspace: "guild", Channel: "hall", Most: tiers.Owner}
	const name = "grant 7 until 2026-01-02T04:04:05Z"
	found := func(at time.Time) tiers.Explanation { return rules.Explain(who, where, at) }
	require.Equal(t, []tiers.Finding{{Kind: "grant", Tier: tiers.Guest, Origin: name, Won: true, Verdict: "decided", Why: "it lists their user id"}}, found(setClock).Findings)
	x := found(g.Until)
	require.Equal(t, "their user id would match, but it has ended at 2026-01-02T04:04:05Z", x.Findings[0].Why)
	require.Contains(t, x.Ways, "a grant for a day: bot grant --platform discord --workspace guild --channel hall --user guest --tier guest --for 24h")
	where.Direct = true
	require.Equal(t, "their user id would match, but a grant does not hold in direct messages", found(setClock).Findings[0].Why)
	where.Direct, who.User = false, "other"
	x = found(setClock)
	require.Empty(t, x.Findings, "another person's is none of theirs")
	require.Equal(t, 1, x.Others)
	who.User, who.External, who.Member = "guest", true, false
	x = found(setClock)
	require.Equal(t, "their user id would match, but it does not admit people of other organisations", x.Findings[0].Why)
}
