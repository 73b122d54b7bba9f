package contract_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/stretchr/testify/require"

	"parlour/bridge/ask"
	"parlour/bridge/discord"
	"parlour/runner/policy"
	"parlour/tiers"

	fake "parlour/tests/fakes/discord"
)

// roomy answers with a text of any length.
func roomy(text string) *delegate {
	d := answers(text)
	d.plan = func(tiers.Tier, []ask.Skip) (ask.Plan, error) {
		e, err := policy.Narrow(policy.Wish{Mode: policy.ReadOnly, Limits: policy.Limits{
			Wall: time.Minute, Memory: policy.LeastMemory, Disk: 1, Files: 1, Processes: 1, OpenFiles: 1, Answer: 1 << 20,
		}}, policy.Capabilities{Rung: policy.RungFull, Filesystem: policy.Enforced, Network: policy.Enforced, Processes: policy.Enforced})
		return ask.Plan{Choice: ask.Choice{Runner: "fake"}, Policy: e}, err
	}
	return d
}

// asked asks one question as a guest and waits until the answer's last message,
// which carries the receipt.
func (r *discordBotRig) asked() (id string, got []fake.Message) {
	r.t.Helper()
	id = r.fake.Say(ask1(discordChannel, discordGuest, mentionBot+" why?"))
	r.until("the receipt is posted", func() bool {
		got = r.fake.Posted(id)
		return len(got) > 0 && strings.Contains(got[len(got)-1].Content, "-# id ")
	})
	return id, got
}

func TestDiscordAnswersMentionNobodyAndFetchNothing(t *testing.T) {
	t.Parallel()
	r := serveDiscord(t, roomy(strings.Join([]string{
		"@everyone @here <@&800000000000000001> <@111111111111111111> <@!5> <#6> </ban:7> <t:1700000000:R> <id:guide> <:x:8> <a:y:9>",
		"![x](https://evil.example/p.png?d=1) [docs](https://evil.example/?d=1) [a](<https://evil.example>) [b](\nhttps://evil.example)",
		"<https://fine.example/page> <slack://open> <discord://-/x> <mailto:a@b.example> https://fine.example",
		"discord.gg/abc https://discord.com/invite/abc DiscordApp.com/invite/x `discord.gg/inline`",
		"```md\n[docs](https://evil.example) @everyone\n``` then ``` [x](https://evil.example)",
		"std::vector<std::string> a<b>::c arr[0](x) [see](chapter 2) \x1b[31mred\x1b[0m \u202eback\u202c zero\u200bwidth \u0007",
		"the token is " + discordToken + " and xoxb-123456789012-123456789012-abcdefghijklmnopqrstuvwx",
	}, "\n")))
	_, got := r.asked()
	require.Len(t, got, 1)
	text := got[0].Content
	for _, live := range []string{
		"@everyone", "@here", "<@", "<#", "</", "<t:", "<id:", "<:x", "<a:y", "<slack:", "<discord:", "<mailto:", "discord.gg", "discord.com/invite",
		"DiscordApp.com/invite", "](https", "](<https", "](\nhttps", "\x1b", "\u202e", "\u0007", "sentinel", "xoxb-",
	} {
		require.NotContains(t, text, live)
	}
	for _, kept := range []string{
		"![x] (https://evil.example/p.png?d=1)", "<https://fine.example/page>", "std::vector<std::string>", "a<b>::c", "arr[0](x)", "[see](chapter 2)",
		"discord[.]gg/abc", "[docs]\u200b(https://evil.example)", "zerowidth",
	} {
		require.Contains(t, text, kept)
	}
	for _, q := range r.fake.Requests("POST", isMessages) {
		require.Contains(t, q.Body, `"allowed_mentions":{"parse":[],"replied_user":false}`)
		require.Contains(t, q.Body, `"flags":4`)
		require.Contains(t, q.Body, `"enforce_nonce":true`)
	}
	r.stop()
	r.clean()
}

func TestDiscordLongAnswersArriveWholeAndInOrder(t *testing.T) {
	t.Parallel()
	code := "Intro\n\n```py\n"
	for i := range 300 {
		code += fmt.Sprintf("print('line %d of the program')\n", i)
	}
	code += "```\noutro"
	words := strings.Repeat("lorem ipsum dolor ", 600)
	for name, text := range map[string]string{
		"2001 characters": strings.Repeat("x", 2001), "one word": strings.Repeat("y", 5000), "code": code, "words": words,
		"wide": strings.Repeat("\U0001F600", 3000), "lines": "a\n" + strings.Repeat("\n", 3000) + "b",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := serveDiscord(t, roomy(text))
			_, got := r.asked()
			joined := ""
			for _, m := range got {
				require.LessOrEqual(t, len(utf16.Encode([]rune(m.Content))), 2000)
				require.Zero(t, strings.Count(m.Content, "```")%2, m.Content)
				require.NotEmpty(t, strings.Trim(m.Content, "` \n"))
				joined += m.Content
			}
			joined, _, _ = strings.Cut(joined, "-# I do not")
			squeeze := func(s string) string {
				return strings.Join(strings.Fields(strings.NewReplacer("```py", "", "```", "").Replace(s)), "")
			}
			require.Equal(t, squeeze(text), squeeze(joined))
			r.stop()
			r.clean()
		})
	}
}

func TestDiscordTooLongAnswersAreCutAndSaySo(t *testing.T) {
	t.Parallel()
	r := serveDiscord(t, roomy(strings.Repeat("z", 60_000)))
	_, got := r.asked()
	require.Len(t, got, 21)
	require.Contains(t, got[20].Content, "Cut here: 20000 more characters")
	r.stop()
	r.clean()
}

func TestDiscordSecretAcrossTheCutIsTakenOut(t *testing.T) {
	t.Parallel()
	r := serveDiscord(t, roomy(strings.Repeat("w", 1985)+" "+discordToken+" end"))
	_, got := r.asked()
	all := ""
	for _, m := range got {
		all += m.Content
	}
	require.Contains(t, all, "<secret>")
	require.NotContains(t, all, "sentinel")
	r.stop()
	r.clean()
}

func TestDiscordEveryCauseIsAReply(t *testing.T) {
	t.Parallel()
	d := answers("")
	d.run = func(context.Context, ask.Prompt) ask.Result {
		return ask.Result{Cause: ask.Stalled, Detail: "detail-of-the-host /root"}
	}
	r := serveDiscord(t, d)
	id := r.fake.Say(ask1(discordChannel, discordGuest, mentionBot+" why?"))
	got := r.posts(discordChannel, 1)[0]
	require.Contains(t, got.Content, ask.Sentence(ask.Stalled))
	require.NotContains(t, got.Content, "detail")
	require.Contains(t, got.Body, `"message_reference":{"message_id":"`+id+`"`)
	require.Empty(t, r.fake.Requests("POST", isThreads))
	r.stop()
	r.clean()
}

func TestDiscordRateLimitsAreWaitedFor(t *testing.T) {
	t.Parallel()
	for name, rule := range map[string]fake.Rule{
		"of discord": {Status: 429, Times: 2, Body: `{"message":"slow","retry_after":0.4,"global":false}`,
			Header: map[string]string{"Retry-After": "1", "X-RateLimit-Scope": "user"}},
		"in front of discord": {Status: 429, Times: 1, Body: "error code: 1015", Header: map[string]string{"Retry-After": "1", "Content-Type": "text/plain"}},
		"a fault":             {Status: 503, Times: 2},
		"a lost answer":       {Status: 502, Times: 2, Perform: true},
		"a broken answer":     {Status: 500, Times: 1, Body: "<html>"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := serveDiscord(t, roomy(strings.Repeat("a ", 2500)))
			rule.Method, rule.Match, rule.Skip = "POST", isMessages, 1
			r.fake.Fail(rule)
			_, got := r.asked()
			require.Len(t, got, 3, "no part twice, none lost")
			calls := r.fake.Requests("POST", isMessages)
			require.Len(t, calls, 3+rule.Times)
			if rule.Status == 429 {
				require.GreaterOrEqual(t, calls[2].At.Sub(calls[1].At), 400*time.Millisecond)
			}
			r.stop()
			r.clean()
		})
	}
}

func TestDiscordRefusalForGoodIsTriedOnceAndTyped(t *testing.T) {
	t.Parallel()
	r := serveDiscord(t, answers("an answer"))
	r.fake.Fail(fake.Rule{Method: "POST", Match: isMessages, Status: 403, Body: `{"code":50013,"message":"Missing Permissions"}`})
	r.fake.Say(ask1(discordChannel, discordGuest, mentionBot+" why?"))
	r.until("it is logged", func() bool { return strings.Contains(r.log.String(), "50013") })
	require.Len(t, r.fake.Requests("POST", isMessages), 1)
	require.Equal(t, 1, strings.Count(r.log.String(), "Missing Permissions"))

	job := ask.Job{ID: "01J", ReplyTo: discordChannel + "/700000000000000555/reply", At: time.Now()}
	err := r.adapter.Deliver(t.Context(), job, ask.Ended{Outcome: ask.Outcome{Kind: ask.Answered, Text: "x"}})
	var refused *discord.APIError
	require.ErrorAs(t, err, &refused)
	require.True(t, refused.Permanent())
	require.Equal(t, 50013, refused.Code)
	require.NotContains(t, fmt.Sprintf("%+v %#v", err, err), "sentinel")
}

func TestDiscordWithoutTheRightToMakeThreadsTheAnswerIsAReply(t *testing.T) {
	t.Parallel()
	r := serveDiscord(t, answers("an answer"))
	r.fake.Fail(fake.Rule{Method: "POST", Match: isThreads, Status: 403, Body: `{"code":50013,"message":"Missing Permissions"}`})
	id := r.fake.Say(ask1(discordChannel, discordGuest, mentionBot+" why?"))
	require.Contains(t, r.posts(discordChannel, 1)[0].Body, id)
	require.Len(t, r.fake.Requests("POST", isThreads), 1)
	r.stop()
	r.clean()
}

func TestDiscordDeadPlatformIsGivenUpInTime(t *testing.T) {
	t.Parallel()
	r := openDiscord(t, newDiscordFake(t), t.TempDir(), answers("x"), discord.Timing{Delivery: 300 * time.Millisecond, Request: 100 * time.Millisecond})
	r.fake.Fail(fake.Rule{Delay: time.Minute})
	job := ask.Job{ID: "01J", ReplyTo: discordChannel + "/700000000000000555/thread", At: time.Now()}
	began := time.Now()
	err := r.adapter.Deliver(t.Context(), job, ask.Ended{Outcome: ask.Outcome{Kind: ask.Answered, Text: "x"}})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Less(t, time.Since(began), 5*time.Second)

	r.fake.Heal()
	r.fake.Fail(fake.Rule{Status: 429, Body: `{"retry_after":3600}`})
	began = time.Now()
	err = r.adapter.Deliver(t.Context(), job, ask.Ended{Outcome: ask.Outcome{Kind: ask.Answered, Text: "x"}})
	require.ErrorIs(t, err, context.DeadlineExceeded, "it is not waited for what cannot come in time")
	require.Less(t, time.Since(began), 5*time.Second)
	require.Error(t, r.adapter.Deliver(t.Context(), ask.Job{ReplyTo: "../x/1/reply"}, ask.Ended{}))
}

func TestDiscordRedeliveryPostsNothingTwice(t *testing.T) {
	t.Parallel()
	f := newDiscordFake(t)
	r := openDiscord(t, f, t.TempDir(), answers("x"), quickTiming())
	text := strings.Repeat("once ", 1000)
	ended := ask.Ended{
		Outcome: ask.Outcome{Kind: ask.Answered, Text: text},
		Receipt: ask.Receipt{Tier: tiers.Guest, Choice: ask.Choice{Runner: "fake"}, Rung: "full"},
	}
	refused := ask.Ended{Outcome: ask.Outcome{Kind: ask.Unavailable, Cause: ask.Failed, Text: ask.Sentence(ask.Failed)}}
	for name, c := range map[string]struct {
		in    string
		how   string
		ended ask.Ended
		age   time.Duration
		parts int
	}{
		"thread": {discordChannel, "thread", ended, 0, 3}, "reply": {discordThread, "reply", ended, time.Hour, 3},
		"young reply": {discordThread, "reply", ended, 0, 3}, "sentence": {discordChannel, "reply", refused, time.Hour, 1},
	} {
		t.Run(name, func(t *testing.T) {
			question := f.Say(ask1(c.in, discordGuest, "q"))
			job := ask.Job{ID: "01J" + name, Message: "discord:" + question, ReplyTo: c.in + "/" + question + "/" + c.how, At: time.Now().Add(-c.age)}
			before := len(f.Posted(""))
			// The first attempt dies in the middle; what was posted is kept.
			if c.parts > 1 {
				f.Fail(fake.Rule{Method: "POST", Match: isMessages, Skip: 1, Times: 1, Status: 403})
				require.Error(t, r.adapter.Deliver(t.Context(), job, c.ended))
			}
			require.NoError(t, r.adapter.Deliver(t.Context(), job, c.ended))
			if c.age > 0 || c.how == "thread" {
				f.ForgetNonces() // the restart came late
			}
			require.NoError(t, r.adapter.Deliver(t.Context(), job, c.ended))
			require.Len(t, f.Posted(""), before+c.parts)
		})
	}
	r.clean()
}

// Another bot, which knows or guesses the answer, cannot keep it from being posted.
func TestDiscordWhatAnotherBotPostsIsNotTakenForTheAnswer(t *testing.T) {
	t.Parallel()
	ended := ask.Ended{
		Outcome: ask.Outcome{Kind: ask.Answered, Text: "an answer"},
		Receipt: ask.Receipt{Tier: tiers.Guest, Choice: ask.Choice{Runner: "fake"}, Rung: "full"},
	}
	for name, said := range map[string]fake.Said{
		"another bot": {Author: fake.User{ID: "444444444444444444", Name: "robot", Bot: true}},
		"a person":    {Author: discordGuest},
	} {
		f := newDiscordFake(t)
		r := openDiscord(t, f, t.TempDir(), answers("x"), quickTiming())
		job := func(id string) ask.Job {
			question := f.Say(ask1(discordThread, discordGuest, "q"))
			return ask.Job{ID: id, Message: "discord:" + question, ReplyTo: discordThread + "/" + question + "/reply", At: time.Now().Add(-time.Hour)}
		}
		first := job("01J")
		require.NoError(t, r.adapter.Deliver(t.Context(), first, ended))
		posts := f.Posted(discordThread)
		require.Len(t, posts, 1)
		second := job("01J")
		said.Channel, said.Content = discordThread, posts[0].Content
		f.Say(said)
		f.ForgetNonces()
		require.NoError(t, r.adapter.Deliver(t.Context(), second, ended))
		require.Len(t, f.Posted(discordThread), 2, name)
		f.ForgetNonces()
		require.NoError(t, r.adapter.Deliver(t.Context(), second, ended))
		require.Len(t, f.Posted(discordThread), 2, "its own post is known again")
		r.clean()
	}
}

func TestDiscordKilledBetweenRunAndDeliveryAnswersOnce(t *testing.T) {
	t.Parallel()
	f, dir := newDiscordFake(t), t.TempDir()
	timing := quickTiming()
	timing.Delivery = time.Second
	r := openDiscord(t, f, dir, answers("paid for"), timing)
	f.Fail(fake.Rule{Method: "POST", Match: isMessages, Status: 500, Perform: true}) // it arrives, and nobody hears that it did
	r.run()
	r.ready()
	id := f.Say(ask1(discordChannel, discordGuest, mentionBot+" why?"))
	r.posts(id, 1)
	r.stop()
	f.Heal()
	again := openDiscord(t, f, dir, answers("a second run"), quickTiming())
	again.run()
	again.ready()
	again.until("the delivery is noted", func() bool {
		waiting, err := again.journal.Undelivered(t.Context())
		return err == nil && len(waiting) == 0
	})
	require.Len(t, f.Posted(id), 1)
	require.Empty(t, again.ran())
	again.stop()
	again.clean()
}

func TestDiscordAnswerToADeletedQuestionIsNotPosted(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	d := answers("an answer")
	d.run = func(context.Context, ask.Prompt) ask.Result { <-release; return ask.Result{Answer: "an answer"} }
	r := serveDiscord(t, d)
	id := r.fake.Say(ask1(discordChannel, discordGuest, mentionBot+" why?"))
	r.until("it runs", func() bool { return len(r.ran()) == 1 })
	r.fake.Delete(id)
	close(release)
	r.until("it is noted", func() bool { return strings.Contains(r.log.String(), "was deleted") })
	require.Empty(t, r.fake.Posted(""))
}

func TestDiscordTypingLastsUntilTheAnswer(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	d := answers("an answer")
	d.run = func(context.Context, ask.Prompt) ask.Result { <-release; return ask.Result{Answer: "an answer"} }
	r := openDiscord(t, newDiscordFake(t), t.TempDir(), d, discord.Timing{Hello: 2 * time.Second, Typing: 50 * time.Millisecond})
	r.run()
	r.ready()
	typing := func() int {
		return len(r.fake.Requests("POST", func(p string) bool { return strings.HasSuffix(p, "/typing") }))
	}
	id := r.fake.Say(ask1(discordChannel, discordGuest, mentionBot+" why?"))
	r.until("it is renewed", func() bool { return typing() >= 3 })
	close(release)
	r.posts(id, 1)
	n := typing()
	require.False(t, r.fake.Wait(300*time.Millisecond, func() bool { return typing() > n+1 }), "it stops with the answer")
}

func TestDiscordAsksTooFastIsSaidOnceThenShown(t *testing.T) {
	t.Parallel()
	f := newDiscordFake(t)
	r := openDiscord(t, f, t.TempDir(), answers("x"), quickTiming())
	fast := ask.Ended{Outcome: ask.Outcome{Kind: ask.Refused, Cause: ask.TooFast, Text: ask.Sentence(ask.TooFast)}}
	for i := range 3 {
		question := f.Say(ask1(discordChannel, discordGuest, "q"))
		job := ask.Job{ID: fmt.Sprint("01J", i), Person: "discord:3", ReplyTo: discordChannel + "/" + question + "/thread", At: time.Now()}
		require.NoError(t, r.adapter.Deliver(t.Context(), job, fast))
		require.Equal(t, i > 0, len(f.Reactions(question)) == 1)
	}
	require.Len(t, f.Posted(""), 1)
	r.clean()
}

func TestDiscordBodiesMatchDiscordsDescription(t *testing.T) {
	t.Parallel()
	described(t)
	f := newDiscordFake(t)
	require.True(t, f.Described(), "then every test here checks its bodies")
}

func TestDiscordAnInstantAnswerIsNotFollowedByTyping(t *testing.T) {
	t.Parallel()
	timing := quickTiming()
	timing.Typing = 20 * time.Millisecond
	r := openDiscord(t, newDiscordFake(t), t.TempDir(), answers("an answer"), timing)
	r.fake.Fail(fake.Rule{Method: "PUT", Match: isReaction, Delay: 500 * time.Millisecond}) // the answer overtakes it
	r.run()
	r.ready()
	id := r.fake.Say(ask1(discordChannel, discordGuest, mentionBot+" why?"))
	r.posts(id, 1)
	r.until("the reaction comes all the same", func() bool { return len(r.fake.Reactions(id)) == 1 })
	typed := func() bool {
		return len(r.fake.Requests("POST", func(p string) bool { return strings.HasSuffix(p, "/typing") })) > 0
	}
	require.False(t, r.fake.Wait(200*time.Millisecond, typed))
	r.stop()
	r.clean()
}
