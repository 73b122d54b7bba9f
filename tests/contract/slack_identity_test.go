package contract_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	slackfake "parlour/tests/fakes/slack"
	"parlour/tiers"
)

// People of other organisations are refused by default; where a rule says so they
// are guests, and no rule makes them more.
func TestSlackPeopleOfOtherOrganisationsAreGuestsWhereARuleSaysSo(t *testing.T) {
	t.Parallel()
	r := slackServe(t, answers("an answer"))
	ask := slackfake.Post{Channel: slackShared, User: slackPeer}
	require.Equal(t, "none", r.tierOf(ask), "refused by default")
	rule := tiers.Rule{Tier: tiers.Guest, Platform: tiers.Slack, Workspace: slackfake.HomeTeam, Channels: []string{slackShared}, Anyone: true, External: true}
	r.shelf.put(book(tiers.NewRules(append(slackRules().All(), rule), nil))())
	require.Equal(t, "guest", r.tierOf(ask))
	require.Equal(t, "none", r.tierOf(slackfake.Post{Channel: slackHall, User: slackPeer}), "there only")
	require.Equal(t, "none", r.tierOf(slackfake.Post{Channel: slackDM, User: slackPeer}), "not in a direct message")
	rule.Tier, rule.Anyone, rule.Channels, rule.Users = tiers.Team, false, nil, []string{slackPeer}
	r.shelf.put(book(tiers.NewRules([]tiers.Rule{rule}, nil))())
	require.Equal(t, "guest", r.tierOf(ask), "whatever a rule says")
	rule.Tier = tiers.Owner
	r.shelf.put(book(tiers.NewRules([]tiers.Rule{rule}, nil))())
	require.Equal(t, "guest", r.tierOf(ask), "whatever a rule says")
}

// Slack tells users, channels and messages apart within a workspace only, so the
// workspace is part of whatever stands for one of them.
func TestSlackIdsAreOfTheirWorkspaceInEveryKey(t *testing.T) {
	t.Parallel()
	who := tiers.Identity{Platform: tiers.Slack, Workspace: "T0HOME001", User: "U0SAME001"}
	other := who
	other.Workspace = "T0OTHER01"
	require.NotEqual(t, who.Key(), other.Key(), "limits and fairness")
	discord := tiers.Identity{Platform: tiers.Discord, Workspace: "900000000000000001", User: who.User}
	require.NotEqual(t, who.Key(), discord.Key())
	direct := discord
	direct.Workspace = ""
	require.Equal(t, discord.Key(), direct.Key(), "Discord's ids are the same everywhere")

	// The same post, told in a Grid under the organisation's id, is one question
	// of the bot's workspace.
	fake := slackFake(t, slackfake.Config{Enterprise: "E0HOME001"})
	r := slackBot(t, fake, t.TempDir(), answers("an answer")).serve()
	inner := slackInner(fake, "app_mention", slackHall, slackGuest, "<@U0BOT00001> q")
	for _, team := range []string{"T0HOME001", "E0HOME001"} {
		payload := fake.Event(inner)
		payload["team_id"], payload["enterprise_id"] = team, "E0HOME001"
		fake.Send(payload)
	}
	r.settled()
	r.until("both have run", func() bool { return r.runs() == 2 })
	require.ElementsMatch(t, []string{"q", "are you there"}, r.questions())
	require.Len(t, r.jobs(), 2)
	for _, job := range r.jobs() {
		for _, part := range []string{`"slack:T0HOME001:U0`, `"slack:T0HOME001:C0HALL0001:`} {
			require.Contains(t, string(job.Data), part)
		}
		require.NotContains(t, string(job.Data), "E0HOME001")
	}
	// Rules of one workspace say nothing of the same ids in another.
	rules := tiers.NewRules([]tiers.Rule{{Tier: tiers.Team, Platform: tiers.Slack, Workspace: "T0HOME001", Users: []string{who.User}}}, nil)
	at := tiers.Place{Platform: tiers.Slack, Workspace: "T0OTHER01", Channel: "C0SAME001", Most: tiers.Owner}
	who.Kind, who.Member, other.Kind, other.Member = tiers.Person, true, tiers.Person, true
	require.Equal(t, tiers.None, rules.Resolve(other, at, setClock).Tier)
	at.Workspace = "T0HOME001"
	require.Equal(t, tiers.None, rules.Resolve(other, at, setClock).Tier)
	require.Equal(t, tiers.Team, rules.Resolve(who, at, setClock).Tier, "the control")
}
