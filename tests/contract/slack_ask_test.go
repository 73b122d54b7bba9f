package contract_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"parlour/bridge/ask"
	slackfake "parlour/tests/fakes/slack"
)

func TestSlackMentionIsAnsweredInItsThread(t *testing.T) {
	t.Parallel()
	r := slackServe(t, answers("**Yes**, see [the page](https://x.example/a_b)."))
	ts := r.fake.Say(slackMention("is it a &lt;b&gt; &amp; c?"))
	got := r.answers(1)[0]
	require.Equal(t, slackHall, got.Channel)
	require.Equal(t, ts, got.Thread)
	require.Contains(t, got.Text, "*Yes*, see the page (https://x.example/a_b).")
	require.Equal(t, []string{"is it a <b> & c?"}, r.questions())
	r.until("the question is marked as seen", func() bool { return len(r.fake.Reactions()) == 1 })
	require.Equal(t, slackfake.Reaction{Channel: slackHall, TS: ts, Name: "eyes"}, r.fake.Reactions()[0])
	r.settled()
	require.Len(t, r.inThread(ts), 1, "the mention is two events and one question")
	require.Len(t, r.jobs(), 2)
}

func TestSlackPostsAskForNoPreviewAndMentionNobody(t *testing.T) {
	t.Parallel()
	hostile := "<!channel> <!here> <!everyone> <!subteam^S0AAA0001> <@U0OWNER001> @channel @here " +
		"![x](https://evil.example/p.png?d=1) and <https://evil.example/?d=1|docs> [pay](slack://open) &lt;!channel&gt;"
	r := slackServe(t, answers(hostile))
	r.fake.Say(slackMention("q"))
	got := r.answers(1)[0]
	require.NotContains(t, got.Text, "<")
	require.NotContains(t, got.Text, ">")
	require.Contains(t, got.Text, "&lt;!channel&gt; &lt;!here&gt;")
	require.Contains(t, got.Text, "&amp;lt;!channel&amp;gt;", "what was escaped already is shown as it was")
	require.Contains(t, got.Text, "x (https://evil.example/p.png?d=1)")
	require.Contains(t, got.Text, "pay (`slack://open`)")
	for _, call := range r.fake.Calls("chat.postMessage") {
		require.Equal(t, "false", call.Form.Get("unfurl_links"))
		require.Equal(t, "false", call.Form.Get("unfurl_media"))
		require.Equal(t, "false", call.Form.Get("link_names"))
		require.Empty(t, call.Form.Get("parse"))
		require.Empty(t, call.Form.Get("blocks"))
		require.Empty(t, call.Form.Get("reply_broadcast"))
	}
}

func TestSlackDirectMessageNeedsNoMention(t *testing.T) {
	t.Parallel()
	r := slackServe(t, answers("an answer"))
	ts := r.fake.Say(slackfake.Post{Channel: slackDM, User: slackTeam, Text: " /logout"})
	got := r.answers(1)[0]
	require.Equal(t, slackDM, got.Channel)
	require.Equal(t, ts, got.Thread)
	require.Equal(t, []string{"/logout"}, r.questions())
	r.fake.Say(slackfake.Post{Channel: slackDM, User: slackGuest, Text: "and me?"})
	require.Contains(t, r.answers(2)[1].Text, ask.Sentence(ask.NotAllowed), "a rule for anyone does not reach into direct messages")
	require.Equal(t, 1, r.runs())
}

func TestSlackRepliesToTheBotNeedNoMention(t *testing.T) {
	t.Parallel()
	r := slackServe(t, answers("an answer"))
	root := r.fake.Say(slackMention("first"))
	r.answers(1)
	require.NotContains(t, r.inThread(root)[0].Text, "only this one message")
	say := func(user, text string) {
		r.fake.Say(slackfake.Post{Channel: slackHall, User: user, Text: text, Thread: root})
	}
	say(slackGuest, "second")
	second := r.answers(2)[1]
	require.Equal(t, root, second.Thread)
	require.Contains(t, second.Text, "I see only this one message, not the rest of the thread.")
	say(slackTeam, "I think it is broken")              // somebody else, to somebody else
	say(slackGuest, "<@U0TEAM0001> yes, look at it")    // the asker, to somebody else
	say(slackTeam, "<@U0BOT00001|parlour> and for me?") // somebody else, to the bot
	r.answers(3)
	r.fake.Say(slackfake.Post{Channel: slackHall, User: slackGuest, Text: "nobody is addressed"})
	own := r.inThread(root)[0].TS
	r.fake.Send(r.fake.Event(map[string]any{
		"type": "message", "channel_type": "channel", "channel": slackHall, "user": slackTeam, "text": "a reply to the bot's own post",
		"ts": r.fake.NextTS(), "thread_ts": own, "parent_user_id": slackfake.BotUser,
	}))
	r.answers(4)
	r.settled()
	require.Equal(t, []string{"first", "second", "and for me?", "a reply to the bot's own post", "are you there"}, r.questions())
}

func TestSlackReceiptsSayLittle(t *testing.T) {
	t.Parallel()
	r := slackServe(t, answers("an answer"))
	r.fake.Say(slackMention("q"))
	lines := strings.Split(r.answers(1)[0].Text, "\n")
	jobs := r.jobs()
	require.Equal(t, "— guest · fake · sandboxed · "+jobs[0].Job, lines[len(lines)-1])
	r.fake.Say(slackfake.Post{Channel: slackOther, User: slackGuest, Text: "<@U0BOT00001> and here?"})
	text := r.answers(2)[1].Text
	require.Equal(t, ask.Sentence(ask.NotAllowed)+"\n— nothing was run · "+r.jobs()[1].Job, text)
	for _, hidden := range []string{"yaml", "landlock", "/", "skipped", slackGuest} {
		require.NotContains(t, r.fake.Answers()[0].Text, hidden)
		require.NotContains(t, text, hidden)
	}
}

// The mark of each kind of event that is no question, and why it is none.
func TestSlackIgnoresWhatIsNoQuestion(t *testing.T) {
	t.Parallel()
	r := slackServe(t, answers("an answer"))
	fake := r.fake
	post := func(edit func(map[string]any)) map[string]any {
		e := slackInner(fake, "message", slackHall, slackGuest, "<@U0BOT00001> hi")
		edit(e)
		return fake.Event(e)
	}
	set := func(k string, v any) map[string]any { return post(func(e map[string]any) { e[k] = v }) }
	changed := post(func(e map[string]any) {
		e["subtype"] = "message_changed"
		e["message"] = map[string]any{"text": "<@U0BOT00001> hi", "user": slackGuest, "ts": "1.1", "edited": map[string]any{"user": slackGuest}}
		e["previous_message"] = map[string]any{"text": "<@U0BOT00001> ho", "user": slackGuest, "ts": "1.1"}
	})
	elsewhere := set("channel", slackHall)
	elsewhere["team_id"] = "T0OTHER01"
	elsewhere["authorizations"] = []any{map[string]any{"team_id": "T0OTHER01", "user_id": "U0BOT00002", "is_bot": true}}
	nowhere := set("channel", slackHall)
	delete(nowhere, "team_id")
	cases := map[string]map[string]any{
		"own post":                 post(func(e map[string]any) { e["user"], e["bot_id"] = slackfake.BotUser, slackfake.BotID }),
		"bot_message":              post(func(e map[string]any) { e["subtype"], e["bot_id"] = "bot_message", slackfake.BotID; delete(e, "user") }),
		"another bot":              post(func(e map[string]any) { e["user"], e["bot_id"] = "U0OTHERBOT", "B0OTHER001" }),
		"a post with a bot's mark": set("bot_profile", map[string]any{"id": "B0OTHER001"}),
		"a workflow":               set("workflow_id", "Wf0001"),
		"slackbot":                 set("user", "USLACKBOT"),
		"an edit":                  changed,
		"an edited mention":        set("edited", map[string]any{"user": slackGuest, "ts": "2.1"}),
		"a deletion":               post(func(e map[string]any) { e["subtype"], e["deleted_ts"] = "message_deleted", "1.1" }),
		"a join":                   set("subtype", "channel_join"),
		"a topic":                  set("subtype", "channel_topic"),
		"hidden":                   set("hidden", true),
		"no text":                  set("text", "<@U0BOT00001> "),
		"blank text":               set("text", "<@U0BOT00001> \u200b\n"),
		"no user":                  post(func(e map[string]any) { delete(e, "user") }),
		"a name for a user":        set("user", "Olive Owner"),
		"no channel":               post(func(e map[string]any) { delete(e, "channel") }),
		"a time that is none":      set("ts", "../../1"),
		"a thread that is none":    set("thread_ts", "x/y"),
		"text that is a number":    set("text", 7),
		"not addressed":            set("text", "hello all"),
		"a reaction":               fake.Event(map[string]any{"type": "reaction_added", "user": slackGuest}),
		"a limit":                  {"type": "app_rate_limited", "team_id": slackfake.HomeTeam, "minute_rate_limited": 1518467820},
		"an event of tomorrow":     fake.Event(map[string]any{"type": "brand_new", "user": slackGuest}),
		"no event":                 fake.Event(nil),
		"another workspace":        elsewhere,
		"no workspace":             nowhere,
	}
	before := len(fake.Calls("users.info"))
	for _, payload := range cases {
		fake.Send(payload)
	}
	for _, text := range []string{`{`, `[]`, `{"type":"brand_new","envelope_id":"e"}`, ``} {
		fake.SendFrame(text)
	}
	fake.SendEnvelope("slash_commands", map[string]any{"command": "/ask", "text": "x"})
	fake.SendEnvelope("interactive", map[string]any{"type": "block_actions"})
	r.settled()
	require.Equal(t, []string{"are you there"}, r.questions())
	require.Len(t, fake.Answers(), 1)
	require.Len(t, fake.Calls("users.info"), before+1, "nobody is looked up for them")
	require.Len(t, r.jobs(), 1)
	require.Contains(t, r.log.String(), "posts of this bot are never answered", "silence would be the fault")
	require.Contains(t, r.log.String(), "slack holds events back")
	require.NotContains(t, r.log.String(), "level=ERROR")
}

func TestSlackUnderstandsEverySpellingOfAPersonAndAMention(t *testing.T) {
	t.Parallel()
	fake := slackFake(t, slackfake.Config{BotUser: "W0BOT00001"})
	r := slackBot(t, fake, t.TempDir(), answers("an answer")).serve()
	for _, text := range []string{"<@W0BOT00001> one", "<@W0BOT00001|bot> two", "three <@W0BOT00001>", "<@W0BOT00001>: four"} {
		fake.Send(fake.Event(slackInner(fake, "app_mention", slackHall, slackGrid, text)))
		n := r.runs()
		r.until("it is answered", func() bool { return r.runs() > n })
	}
	got := r.questions()
	require.Equal(t, []string{"one", "two", "three", ": four"}, got)
}

func TestSlackGivesTheModelWhatAReaderSees(t *testing.T) {
	t.Parallel()
	r := slackServe(t, answers("an answer"))
	r.fake.Say(slackMention("<@U0TEAM0001> in <#C0HALL0001|hall> &amp;lt; <https://x.example/?a=1&amp;b=2|docs> " +
		"<https://y.example> <mailto:a@b.example|a@b.example> <!here> <!subteam^S01|@devs> <!date^1^{date}|today> a &lt; b"))
	r.answers(1)
	require.Equal(t, "@U0TEAM0001 in #hall &lt; docs (https://x.example/?a=1&b=2) https://y.example a@b.example @here @devs today a < b",
		r.questions()[0])
}

func TestSlackStoresIdsOnly(t *testing.T) {
	t.Parallel()
	r := slackServe(t, answers("an answer"))
	r.fake.Say(slackMention("q"))
	r.answers(1)
	event := r.jobs()[0]
	var accepted ask.Accepted
	require.NoError(t, json.Unmarshal(event.Data, &accepted))
	require.Regexp(t, `^slack:T0HOME001:C0HALL0001:[0-9]+\.[0-9]+$`, accepted.Message)
	require.Equal(t, "slack:T0HOME001:U0GUEST001", accepted.Person)
	require.NotContains(t, r.log.String(), "Olive Owner")
}
