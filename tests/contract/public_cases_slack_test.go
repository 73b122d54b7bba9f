package contract_test

import (
	"maps"
	"testing"

	"github.com/stretchr/testify/require"

	"parlour/tests/cases"
	slackfake "parlour/tests/fakes/slack"
)

const caseHome = "tier: team\nmatch: {slack: [{workspace: T0HOME001, channels: [C0HALL0001, C0SHARED01], anyone: true}]}\n"

// serveSlackCase is a bot on Slack with these tier files.
func serveSlackCase(t *testing.T, cfg slackfake.Config, files ...string) *slackRig {
	t.Helper()
	r := slackBot(t, slackFake(t, cfg), t.TempDir(), answers("an answer"))
	r.shelf.put(ruled(t, files...))
	return r.serve()
}

func TestPublicCaseA17(t *testing.T) {
	cases.Public("A17", "errbotio/errbot PR 1006; use-agent-os/agent-os#3050; valon-technologies/gestalt PR 171").In(t)
	t.Parallel()
	for bot, text := range map[string]string{"W0BOT00001": "<@W0BOT00001> hello", slackfake.BotUser: "<@U0BOT00001|bot> hello"} {
		r := serveSlackCase(t, slackfake.Config{BotUser: bot}, "tier: team\nmatch: {slack: [{workspace: T0HOME001, users: [W012A3CDE]}]}\n")
		e := slackInner(r.fake, "app_mention", slackHall, "W012A3CDE", text)
		e["team"] = "T0HOME001"
		r.fake.Send(r.fake.Event(e))
		require.Contains(t, r.answers(1)[0].Text, "— team · fake", text)
		require.Equal(t, []string{"hello"}, r.questions(), "the mention is taken out")
	}
}

func TestPublicCaseA19(t *testing.T) {
	cases.Public("A19", "stacklok/mecatl PR 1294; timescale/tiger-agents-for-work PR 171; paradigmxyz/centaur PR 275").In(t)
	t.Parallel()
	r := serveSlackCase(t, slackfake.Config{},
		"tier: team\nmatch: {slack: [{workspace: T0HOME001, users: [U0EXT0001, U0EXT0002, U0EXT0003, U0TEAM0001]}]}\n",
		"tier: guest\nmatch: {slack: [{workspace: T0HOME001, channels: [C0SHARED01], anyone: true, external: guest}]}\n")
	// Each has the house's domain in the mail address.
	for _, u := range []slackfake.User{
		{ID: "U0EXT0001", Stranger: true, Team: "T0OTHER01"}, {ID: "U0EXT0002", Team: "T0OTHER01"}, {ID: "U0EXT0003", Deleted: true},
	} {
		r.fake.AddUser(u)
	}
	for _, c := range []struct{ what, user, channel, want string }{
		{"a stranger", "U0EXT0001", slackShared, "guest"},
		{"a foreign team without the mark", "U0EXT0002", slackShared, "guest"},
		{"a deleted account", "U0EXT0003", slackShared, "none"},
		// Of the house, and team; but in the shared channel others read along.
		{"somebody of the house", slackTeam, slackHall, "team"},
		{"the same in the shared channel", slackTeam, slackShared, "guest"},
		{"anybody of the house", slackGuest, slackShared, "guest"},
	} {
		require.Equal(t, c.want, r.tierOf(slackfake.Post{Channel: c.channel, User: c.user}), c.what)
	}
}

// A look-up that fails raises nobody; without "external: guest" nobody of another
// organisation is answered.
func TestPublicCaseA19WithoutAnAnswerOfSlack(t *testing.T) {
	cases.Public("A19", "stacklok/mecatl PR 1294; timescale/tiger-agents-for-work PR 171; paradigmxyz/centaur PR 275").In(t)
	t.Parallel()
	r := serveSlackCase(t, slackfake.Config{}, "tier: team\nmatch: {slack: [{workspace: T0HOME001, users: [U0TEAM0001, U0EXT00001]}]}\n", "tier: guest\nmatch: {slack: [{workspace: T0HOME001, channels: [C0SHARED01], anyone: true}]}\n")
	require.Equal(t, "none", r.tierOf(slackfake.Post{Channel: slackShared, User: slackPeer}))
	r.fake.Fail("users.info", slackfake.Fault{Code: "user_not_found"})
	ts := r.fake.Say(slackfake.Post{Channel: slackHall, User: slackTeam, Text: "<@U0BOT00001> who am I"})
	r.until("it is refused", func() bool { return len(r.inThread(ts)) == 1 })
	require.Contains(t, r.inThread(ts)[0].Text, "Slack did not tell me who you are")
	require.Zero(t, r.runs())
}

func TestPublicCaseA20(t *testing.T) {
	cases.Public("A20", "paradigmxyz/centaur PR 95; iterate/iterate PR 167").In(t)
	t.Parallel()
	r := serveSlackCase(t, slackfake.Config{}, "tier: team\nmatch:\n  slack:\n    - {workspace: T0HOME001, channels: [C0HALL0001], anyone: true}\n"+
		"    - {workspace: T0HOME001, users: [U0LISTED01]}\n")
	r.fake.AddUser(slackfake.User{ID: "U0LISTED01", Restricted: true})
	r.fake.AddUser(slackfake.User{ID: "U0SINGLE01", UltraRestricted: true, Restricted: true})
	r.fake.AddUser(slackfake.User{ID: "U0MULTI001", Restricted: true})
	require.Equal(t, "team", r.tierOf(slackfake.Post{Channel: slackHall, User: slackGuest}), "a member of the workspace")
	for _, id := range []string{"U0SINGLE01", "U0MULTI001"} {
		require.Equal(t, "guest", r.tierOf(slackfake.Post{Channel: slackHall, User: id}), id)
	}
	require.Equal(t, "team", r.tierOf(slackfake.Post{Channel: slackHall, User: "U0LISTED01"}), "listed by itself")
}

func TestPublicCaseA22(t *testing.T) {
	cases.Public("A22", "MCPJam/inspector PR 3669; NousResearch/hermes-agent PR 100934").In(t)
	t.Parallel()
	r := serveSlackCase(t, slackfake.Config{}, caseHome, "tier: guest\nmatch: {slack: [{workspace: T0OTHER01, channels: [C0SHARED01], anyone: true}]}\n")
	inner := slackInner(r.fake, "app_mention", slackShared, slackTeam, "<@U0BOT00001> once")
	inner["client_msg_id"] = "11111111-2222-4333-8444-555555555555"
	first, second := maps.Clone(inner), maps.Clone(inner)
	first["team"] = "T0OTHER01"
	r.fake.Send(r.fake.Event(first))
	require.Contains(t, r.answers(1)[0].Text, "— guest · fake", "of the house, in a channel where others read along")
	// The other comes when the first was answered already.
	envelope := r.fake.Event(second)
	envelope["team_id"] = "T0HOME001"
	r.fake.Send(envelope)
	r.settled()
	require.Equal(t, []string{"once", "are you there"}, r.questions(), "one answer")
	require.Len(t, r.jobs(), 2)
}
