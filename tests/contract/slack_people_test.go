package contract_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"parlour/bridge/ask"
	slackfake "parlour/tests/fakes/slack"
)

// tierOf asks as somebody and gives what the receipt says.
func (r *slackRig) tierOf(p slackfake.Post) string {
	r.t.Helper()
	if p.Text == "" {
		p.Text = "<@U0BOT00001> who am I"
	}
	ts := r.fake.Say(p)
	r.until("it is answered", func() bool { return len(r.inThread(ts)) == 1 })
	text := r.inThread(ts)[0].Text
	for _, tier := range []string{"guest", "team", "owner"} {
		if slackContains([]string{text}, "— "+tier+" · fake") {
			return tier
		}
	}
	require.Contains(r.t, text, ask.Sentence(ask.NotAllowed))
	return "none"
}

func TestSlackTiersAreTheSameInEveryWayIn(t *testing.T) {
	t.Parallel()
	r := slackServe(t, answers("an answer"))
	require.Equal(t, "team", r.tierOf(slackfake.Post{Channel: slackHall, User: slackTeam}))
	require.Equal(t, "team", r.tierOf(slackfake.Post{Channel: slackOther, User: slackTeam}))
	require.Equal(t, "team", r.tierOf(slackfake.Post{Channel: slackDM, User: slackTeam}))
	root := r.fake.Say(slackMention("a thread"))
	ts := r.fake.Say(slackfake.Post{Channel: slackHall, User: slackTeam, Thread: root, Text: "<@U0BOT00001> in a thread"})
	r.until("both are answered", func() bool { return len(r.inThread(root)) == 2 })
	require.NotEmpty(t, ts)
	require.True(t, slackContains([]string{r.inThread(root)[0].Text, r.inThread(root)[1].Text}, "— team · fake"))
	require.Equal(t, "guest", r.tierOf(slackfake.Post{Channel: slackHall, User: slackGuest}))
	require.Equal(t, "none", r.tierOf(slackfake.Post{Channel: slackOther, User: slackGuest}))
}

func TestSlackStrangersAreRefused(t *testing.T) {
	t.Parallel()
	for name, u := range map[string]slackfake.User{
		"a stranger":                       {Team: "T0OTHER01", Stranger: true},
		"a foreign workspace":              {Team: "T0OTHER01"},
		"a stranger who claims our team":   {Stranger: true},
		"a deleted account":                {Deleted: true},
		"a foreign member of another grid": {Team: "T0OTHER01", EnterpriseID: "E0OTHER01", EnterpriseTeams: []string{"T0HOME001"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := slackServe(t, answers("an answer"))
			u.ID = slackPeer
			r.fake.AddUser(u)
			require.Equal(t, "none", r.tierOf(slackfake.Post{Channel: slackShared, User: slackPeer}))
			require.Equal(t, "none", r.tierOf(slackfake.Post{Channel: slackDM, User: slackPeer}))
			require.Zero(t, r.runs())
		})
	}
}

func TestSlackBotAccountsAreNeverAnswered(t *testing.T) {
	t.Parallel()
	r := slackServe(t, answers("an answer"))
	r.fake.AddUser(slackfake.User{ID: "U0ROBOT001", Bot: true})
	r.fake.Say(slackfake.Post{Channel: slackHall, User: "U0ROBOT001", Text: "<@U0BOT00001> beep"})
	r.settled()
	require.Len(t, r.fake.Answers(), 1)
	require.Contains(t, r.log.String(), "posts of this bot are never answered")
}

// Slack Connect people of another workspace are told by two sources; what they
// tell differently is less right.
func TestSlackSourcesThatDisagreeGiveLessRight(t *testing.T) {
	t.Parallel()
	r := slackServe(t, answers("an answer"))
	e := slackInner(r.fake, "app_mention", slackHall, slackTeam, "<@U0BOT00001> q")
	e["user_team"] = "T0OTHER01"
	r.fake.Send(r.fake.Event(e))
	require.Contains(t, r.answers(1)[0].Text, ask.Sentence(ask.NotAllowed))
	require.Zero(t, r.runs())
}

func TestSlackSharedChannelsAndGuestAccountsGetAtMostGuest(t *testing.T) {
	t.Parallel()
	r := slackServe(t, answers("an answer"))
	require.Equal(t, "guest", r.tierOf(slackfake.Post{Channel: slackShared, User: slackTeam}), "others read along")
	require.Equal(t, "team", r.tierOf(slackfake.Post{Channel: slackHall, User: slackTeam}))
	for _, u := range []slackfake.User{{Restricted: true}, {UltraRestricted: true}} {
		r := slackServe(t, answers("an answer"))
		u.ID = slackTeam
		r.fake.AddUser(u)
		require.Equal(t, "team", r.tierOf(slackfake.Post{Channel: slackHall, User: slackTeam}), "who is listed by id is what the list says (A20)")
		u.ID = slackGuest
		r.fake.AddUser(u)
		require.Equal(t, "guest", r.tierOf(slackfake.Post{Channel: slackHall, User: slackGuest}))
	}
}

func TestSlackGridMembersAreOfTheirWorkspace(t *testing.T) {
	t.Parallel()
	fake := slackFake(t, slackfake.Config{Enterprise: "E0HOME001"})
	r := slackBot(t, fake, t.TempDir(), answers("an answer")).serve()
	fake.AddUser(slackfake.User{ID: slackGrid, Team: "T0SISTER1", EnterpriseID: "E0HOME001", EnterpriseTeams: []string{"T0SISTER1", "T0HOME001"}})
	require.Equal(t, "guest", r.tierOf(slackfake.Post{Channel: slackHall, User: slackGrid}))
	fake.AddUser(slackfake.User{ID: "W0ELSE0001", Team: "T0SISTER1", EnterpriseID: "E0HOME001", EnterpriseTeams: []string{"T0SISTER1"}})
	require.Equal(t, "none", r.tierOf(slackfake.Post{Channel: slackHall, User: "W0ELSE0001"}))
}

func TestSlackFailedLookupNeverRaisesATierAndIsNotRemembered(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]slackfake.Fault{
		"refused": {Code: "user_not_found"}, "limited": {RetryAfter: "30"}, "broken": {Status: 500}, "silent": {Hang: true},
		"an empty answer": {Body: `{"ok":true}`}, "an answer that says nothing": {Body: `{}`},
	} {
		t.Run(name, func(t *testing.T) {
			r := slackServe(t, answers("an answer"))
			r.fake.Fail("users.info", fault)
			ts := r.fake.Say(slackfake.Post{Channel: slackHall, User: slackTeam, Text: "<@U0BOT00001> q"})
			r.until("it is refused", func() bool { return len(r.inThread(ts)) == 1 })
			require.Contains(t, r.inThread(ts)[0].Text, "Slack did not tell me who you are")
			require.Contains(t, r.inThread(ts)[0].Text, ask.Sentence(ask.NotAllowed))
			require.Zero(t, r.runs())
			require.Contains(t, r.log.String(), "treated as unknown")
			require.Equal(t, "team", r.tierOf(slackfake.Post{Channel: slackHall, User: slackTeam}), "the next message is looked up anew")
		})
	}
}

func TestSlackRefusesInWordsOnlyOnce(t *testing.T) {
	t.Parallel()
	r := slackServe(t, answers("an answer"))
	flood := slackfake.Post{Channel: slackOther, User: slackGuest, Text: "<@U0BOT00001> please"}
	var posts []string
	for range 5 {
		posts = append(posts, r.fake.Say(flood))
	}
	r.until("each has a visible end", func() bool { return len(r.fake.Reactions()) == 4 && len(r.fake.Answers()) == 1 })
	for _, reaction := range r.fake.Reactions() {
		require.Equal(t, "no_entry_sign", reaction.Name)
		require.Contains(t, posts, reaction.TS)
	}
	require.Zero(t, r.runs())
	require.Len(t, r.jobs(), 5)
}

// The same message of a shared channel comes once for each workspace, and one
// gesture may come as two messages (A22, F04, F05).
func TestSlackOneMessageIsOneQuestionHoweverItComes(t *testing.T) {
	t.Parallel()
	r := slackServe(t, answers("an answer"))
	fake := r.fake
	_, events := fake.Write(slackfake.Post{Channel: slackShared, User: slackTeam, Text: "<@U0BOT00001> q", ClientID: "c-1"})
	for _, inner := range events { // both kinds of event, each from both workspaces
		fake.Send(fake.Event(inner))
		foreign := fake.Event(inner)
		foreign["team_id"], inner["team"] = "T0OTHER01", "T0OTHER01"
		fake.Send(foreign)
	}
	for range 9 { // new event ids for the same post
		fake.Send(fake.Event(events[0]))
	}
	again := map[string]any{}
	for k, v := range events[0] {
		again[k] = v
	}
	again["ts"], again["event_ts"] = fake.NextTS(), fake.NextTS() // the same gesture at another time
	fake.Send(fake.Event(again))
	require.Contains(t, r.answers(1)[0].Text, "— guest", "the tier is of the sender's own workspace, and of the shared channel")
	r.settled()
	require.Equal(t, []string{"q", "are you there"}, r.questions())
	require.Len(t, r.jobs(), 2)
	copied := map[string]any{}
	for k, v := range events[0] {
		copied[k] = v
	}
	copied["ts"], copied["user"] = fake.NextTS(), slackGuest // another's client id stops nobody
	fake.Send(fake.Event(copied))
	r.until("the other person is answered too", func() bool { return r.runs() == 3 })
}

func TestSlackRightsThatAreTakenAwayAreNotUsed(t *testing.T) {
	t.Parallel()
	r := slackServe(t, answers("an answer"))
	require.Equal(t, "team", r.tierOf(slackfake.Post{Channel: slackHall, User: slackTeam}))
	r.fake.AddUser(slackfake.User{ID: slackTeam, Team: "T0OTHER01", Stranger: true})
	e := slackInner(r.fake, "app_mention", slackHall, slackTeam, "<@U0BOT00001> q")
	e["user_team"] = "T0OTHER01" // the event itself is never remembered
	r.fake.Send(r.fake.Event(e))
	require.Contains(t, r.answers(2)[1].Text, ask.Sentence(ask.NotAllowed))
}
