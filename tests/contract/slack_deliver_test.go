package contract_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"parlour/bridge"
	"parlour/bridge/ask"
	"parlour/bridge/slack"
	slackfake "parlour/tests/fakes/slack"
	"parlour/tiers"
)

// slackJob is a question that stands in the fake, and its outcome.
func slackJob(fake *slackfake.Server, text string) (ask.Job, ask.Ended) {
	ts, _ := fake.Write(slackMention("q"))
	job := ask.Job{
		ID: "01K0000000000000000000000A", Message: "slack:T0HOME001:" + slackHall + ":" + ts, Person: "slack:T0HOME001:" + slackGuest,
		ReplyTo: slackHall + "/" + ts + "/" + ts, Identity: tiers.Identity{Platform: tiers.Slack, User: slackGuest, Kind: tiers.Person},
		Place: tiers.Place{Platform: tiers.Slack, Channel: slackHall},
	}
	return job, ask.Ended{
		Outcome: ask.Outcome{Kind: ask.Answered, Text: text},
		Receipt: ask.Receipt{Job: job.ID, Tier: tiers.Guest, Rung: "full", Choice: ask.Choice{Runner: "fake"}},
	}
}

// slackSender is an adapter that has just been started anew: it remembers
// nothing and has not connected.
func slackSender(t *testing.T, fake *slackfake.Server) *slackRig {
	t.Helper()
	return slackBot(t, fake, t.TempDir(), answers(""))
}

// longText is an answer of several posts, with a block of code across the cuts.
func longText() string {
	var b strings.Builder
	b.WriteString("**before**\n```go\n")
	for i := range 400 {
		fmt.Fprintf(&b, "line %d with *stars* and <angles> & more\n", i)
	}
	b.WriteString("```\n**after**")
	return b.String()
}

func TestSlackLongAnswersAreSplitInOrder(t *testing.T) {
	t.Parallel()
	fake := slackFake(t, slackfake.Config{})
	r := slackSender(t, fake)
	job, ended := slackJob(fake, longText())
	require.NoError(t, r.adapter.Deliver(t.Context(), job, ended))
	posts := fake.Answers()
	require.Greater(t, len(posts), 4)
	var lines []string
	for _, p := range posts {
		require.LessOrEqual(t, len([]rune(p.Text)), 4000)
		require.Zero(t, strings.Count(p.Text, "```")%2, "blocks of code are whole in each post")
		for _, line := range strings.Split(p.Text, "\n") {
			if strings.HasPrefix(line, "line ") {
				lines = append(lines, line)
			}
		}
	}
	require.Len(t, lines, 400)
	require.Equal(t, "line 399 with *stars* and &lt;angles&gt; &amp; more", lines[399])
	require.Contains(t, posts[len(posts)-1].Text, "*after*\n— guest · fake · sandboxed · "+job.ID)
}

func TestSlackRedeliveryPostsOnce(t *testing.T) {
	t.Parallel()
	fake := slackFake(t, slackfake.Config{})
	job, ended := slackJob(fake, longText())
	require.NoError(t, slackSender(t, fake).adapter.Deliver(t.Context(), job, ended))
	want := fake.Answers()
	for range 2 { // each by a bot that was started anew
		require.NoError(t, slackSender(t, fake).adapter.Deliver(t.Context(), job, ended))
	}
	require.Equal(t, want, fake.Answers())
	require.NotEmpty(t, fake.Calls("conversations.replies"))
}

func TestSlackRedeliveryPostsOnlyWhatIsMissing(t *testing.T) {
	t.Parallel()
	fake := slackFake(t, slackfake.Config{})
	job, ended := slackJob(fake, longText())
	whole := slackFake(t, slackfake.Config{})
	wholeJob, _ := slackJob(whole, "")
	require.NoError(t, slackSender(t, whole).adapter.Deliver(t.Context(), wholeJob, ended))
	var want []string
	for _, p := range whole.Answers() {
		want = append(want, p.Text)
	}
	first := slackSender(t, fake)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { // the bot dies after the second post
		_ = fake.Wait(t.Context(), func() bool { return len(fake.Answers()) == 2 })
		cancel()
	}()
	_ = first.adapter.Deliver(ctx, job, ended)
	cancel()
	require.NoError(t, slackSender(t, fake).adapter.Deliver(t.Context(), job, ended))
	var got []string
	for _, p := range fake.Answers() {
		got = append(got, p.Text)
	}
	require.Equal(t, want, got)
}

func TestSlackOnlyOwnPostsCountAsDelivered(t *testing.T) {
	t.Parallel()
	fake := slackFake(t, slackfake.Config{})
	job, ended := slackJob(fake, "an answer")
	thread := strings.Split(job.ReplyTo, "/")[1]
	fake.Write(slackfake.Post{Channel: slackHall, User: slackGuest, Thread: thread, Text: "— guest · fake · sandboxed · " + job.ID})
	require.NoError(t, slackSender(t, fake).adapter.Deliver(t.Context(), job, ended))
	require.Len(t, fake.Answers(), 1, "a person who copies the receipt does not stop the answer")
}

// The bot's own post that reads like the receipt of a question is no answer to it,
// as long as it says that it belongs to another.
func TestSlackAPostOfAnotherOutcomeIsNotTakenForThisOne(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		told string // the metadata
		left int    // answers that are posted beside it
	}{
		"an answer of another":    {`{"event_type":"parlour_answer","event_payload":{"job":"01K0000000000000000000000B","part":0}}`, 1},
		"progress of another":     {`{"event_type":"parlour_progress","event_payload":{"job":"01K0000000000000000000000B"}}`, 1},
		"of another kind":         {`{"event_type":"something","event_payload":{}}`, 1},
		"of no kind of an answer": {`{"event_type":"something","event_payload":{"job":"JOB","part":0}}`, 1},
		"nothing is told":         {"null", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fake := slackFake(t, slackfake.Config{})
			job, ended := slackJob(fake, "an answer")
			ts, _ := fake.Write(slackfake.Post{
				Channel: slackHall, User: slackfake.BotUser, Thread: strings.Split(job.ReplyTo, "/")[1], Text: "as I said · " + job.ID,
			})
			fake.Amend(func(m *slackfake.Message) {
				if m.TS == ts {
					m.BotID, m.Metadata = slackfake.BotID, json.RawMessage(strings.ReplaceAll(c.told, "JOB", job.ID))
				}
			})
			require.NoError(t, slackSender(t, fake).adapter.Deliver(t.Context(), job, ended))
			require.Len(t, fake.Answers(), 1+c.left)
		})
	}
}

// Slack shows no metadata, and the answer to one question ends as the receipt of
// another would, wherever it is cut.
func TestSlackAnAnswerEndsLikeNoReceiptButItsOwn(t *testing.T) {
	t.Parallel()
	const other = "01K0000000000000000000000B"
	for name, text := range map[string]string{
		"its last post is full":  strings.Repeat("x", 3850) + "\n— guest · fake · " + other,
		"a post that is cut":     strings.Repeat("x", 3850) + "\n— guest · fake · " + other + "\n" + strings.Repeat("y", 3800),
		"blanks follow":          strings.Repeat("x", 3850) + "\n · " + other + " \u00a0\n\u3000\n\t" + strings.Repeat("\n", 3900) + "y",
		"joiners follow":         strings.Repeat("x", 3850) + "\n · \u200c" + other + "\u200d\n" + strings.Repeat("y", 3800),
		"it reads like progress": strings.Repeat("x", 3850) + "\n— " + other + " · in progress\n" + strings.Repeat("y", 3800),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fake := slackFake(t, slackfake.Config{})
			job, ended := slackJob(fake, text)
			job.Attempt = 1
			require.NoError(t, slackSender(t, fake).adapter.Deliver(t.Context(), job, ended))
			posts := fake.Answers()
			require.Greater(t, len(posts), 1)
			for _, p := range posts { // as Slack might give it back
				text := strings.TrimSpace(strings.NewReplacer("\u200c", "", "\u200d", "").Replace(p.Text))
				require.False(t, strings.HasSuffix(text, " · "+other) || strings.HasSuffix(text, " · in progress"))
			}
			require.Contains(t, posts[0].Text, other, "the words stay")
			second := job
			second.ID, ended.Receipt.Job, ended.Outcome.Text = other, other, "the answer to the other"
			fake.Amend(func(m *slackfake.Message) { m.Metadata = nil })
			require.NoError(t, slackSender(t, fake).adapter.Deliver(t.Context(), second, ended))
			got := fake.Answers()
			require.Len(t, got, len(posts)+1)
			require.Contains(t, got[len(got)-1].Text, "the answer to the other")
		})
	}
}

// What an asker reads about the sandbox is the same in both chats.
func TestReceiptsSaySandboxedForSandboxesOnly(t *testing.T) {
	t.Parallel()
	f, s := newDiscordFake(t), slackFake(t, slackfake.Config{})
	for rung, want := range map[string]string{
		"full": "sandboxed", "bwrap": "sandboxed", "landlock": "sandboxed", "off": "not sandboxed", "plain": "not sandboxed",
		"unknown": "not sandboxed", "Full": "not sandboxed",
	} {
		require.Equal(t, want, ask.Held(ask.Receipt{Rung: rung}), rung)
		job, ended := slackJob(s, "an answer")
		ended.Receipt.Rung = rung
		require.NoError(t, slackSender(t, s).adapter.Deliver(t.Context(), job, ended))
		posts := s.Answers()
		require.Contains(t, posts[len(posts)-1].Text, " · "+want+" · ", rung)
		question := f.Say(ask1(discordChannel, discordGuest, "q"))
		at := ask.Job{ID: "01J" + rung, ReplyTo: discordChannel + "/" + question + "/thread", At: time.Now()}
		require.NoError(t, openDiscord(t, f, t.TempDir(), answers("x"), quickTiming()).adapter.Deliver(t.Context(), at, ended))
		require.Contains(t, f.Posted(question)[0].Content, " · "+want, rung)
	}
	for _, rung := range []string{"", "none"} {
		require.Equal(t, "not sandboxed", ask.Held(ask.Receipt{Rung: rung}))
	}
}

func TestSlackAnswerWhoseAcknowledgementWasLostIsPostedOnce(t *testing.T) {
	t.Parallel()
	r := slackServe(t, answers("an answer"))
	r.fake.Fail("chat.postMessage", slackfake.Fault{LoseAnswer: true, Times: 2})
	r.fake.Say(slackMention("q"))
	r.until("the thread is looked at", func() bool { return len(r.fake.Calls("conversations.replies")) > 0 })
	r.settled()
	require.Len(t, r.fake.Calls("chat.postMessage"), 2, "two answers lost, and neither posted again")
	require.Len(t, r.fake.Answers(), 2)
}

func TestSlackFaultsOfDelivery(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		faults    []slackfake.Fault
		permanent string // Slack's word; empty: it is delivered in the end
		least     time.Duration
	}{
		"limited with a header": {faults: []slackfake.Fault{{RetryAfter: "1"}, {RetryAfter: "1"}}, least: 2 * time.Second},
		"500 and 503":           {faults: []slackfake.Fault{{Status: 500}, {Status: 503}}},
		"internal_error":        {faults: []slackfake.Fault{{Code: "internal_error", Times: 2}}},
		"ok and nothing":        {faults: []slackfake.Fault{{Body: `{"ok":true}`}, {Body: `{}`}, {Body: `<html>`}}},
		"no such channel":       {faults: []slackfake.Fault{{Code: "channel_not_found"}}, permanent: "channel_not_found"},
		"archived":              {faults: []slackfake.Fault{{Code: "is_archived"}}, permanent: "is_archived"},
		"a word of tomorrow":    {faults: []slackfake.Fault{{Code: "brand_new_error"}}, permanent: "brand_new_error"},
		"no scope":              {faults: []slackfake.Fault{{Code: "missing_scope"}}, permanent: "missing_scope (needed: )"},
		"404":                   {faults: []slackfake.Fault{{Status: 404}}, permanent: "HTTP 404"},
		"a redirect":            {faults: []slackfake.Fault{{Status: 307}}, permanent: "HTTP 307"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fake := slackFake(t, slackfake.Config{})
			job, ended := slackJob(fake, "an answer")
			for _, f := range c.faults {
				fake.Fail("chat.postMessage", f)
			}
			start := time.Now()
			err := slackSender(t, fake).adapter.Deliver(t.Context(), job, ended)
			if c.permanent != "" {
				var permanent *slack.PermanentError
				require.ErrorAs(t, err, &permanent)
				require.Equal(t, c.permanent, permanent.Code)
				require.Len(t, fake.Calls("chat.postMessage"), 1)
				return
			}
			require.NoError(t, err)
			require.GreaterOrEqual(t, time.Since(start), c.least)
			require.Len(t, fake.Answers(), 1)
		})
	}
}

func TestSlackFollowsNoRedirect(t *testing.T) {
	t.Parallel()
	fake, elsewhere := slackFake(t, slackfake.Config{}), slackFake(t, slackfake.Config{})
	job, ended := slackJob(fake, "an answer")
	for _, status := range []int{301, 302, 307, 308} {
		fake.Fail("chat.postMessage", slackfake.Fault{Status: status, Location: elsewhere.API() + "/chat.postMessage"})
		require.Error(t, slackSender(t, fake).adapter.Deliver(t.Context(), job, ended))
	}
	require.Empty(t, elsewhere.Calls(""), "a form with the token in it went to another host")
}

func TestSlackDeliveryGivesUpInBoundedTime(t *testing.T) {
	t.Parallel()
	fake := slackFake(t, slackfake.Config{})
	job, ended := slackJob(fake, "an answer")
	fake.Fail("chat.postMessage", slackfake.Fault{Status: 500, Times: 1000})
	err := slackSender(t, fake).adapter.Deliver(t.Context(), job, ended)
	require.ErrorContains(t, err, "post 1 of 1: slack chat.postMessage")
	require.Len(t, fake.Calls("chat.postMessage"), 6)
	fake.Heal()
	fake.Fail("chat.postMessage", slackfake.Fault{RetryAfter: "3600"})
	start := time.Now()
	err = slackSender(t, fake).adapter.Deliver(t.Context(), job, ended)
	require.ErrorContains(t, err, "limits the rate")
	require.Less(t, time.Since(start), 10*time.Second, "a pause that is longer than the budget is not begun")
}

func TestSlackOrderIsKeptWhenAPartIsLimited(t *testing.T) {
	t.Parallel()
	fake := slackFake(t, slackfake.Config{})
	job, ended := slackJob(fake, longText())
	r := slackSender(t, fake)
	go func() {
		_ = fake.Wait(t.Context(), func() bool { return len(fake.Answers()) == 2 })
		fake.Fail("chat.postMessage", slackfake.Fault{Code: "ratelimited", RetryAfter: "30"})
	}()
	require.NoError(t, r.adapter.Deliver(t.Context(), job, ended))
	last := -1
	for _, p := range fake.Answers() {
		var n int
		for _, line := range strings.Split(p.Text, "\n") {
			if _, err := fmt.Sscanf(line, "line %d", &n); err == nil {
				require.Equal(t, last+1, n)
				last = n
			}
		}
	}
	require.Equal(t, 399, last)
}

func TestSlackPostsWhereTheThreadMayNotBeRead(t *testing.T) {
	t.Parallel()
	fake := slackFake(t, slackfake.Config{})
	job, ended := slackJob(fake, "an answer")
	fake.Fail("conversations.replies", slackfake.Fault{Code: "missing_scope"})
	r := slackSender(t, fake)
	require.NoError(t, r.adapter.Deliver(t.Context(), job, ended))
	require.Len(t, fake.Answers(), 1)
	require.Contains(t, r.log.String(), "may be posted twice")
}

func TestSlackRefusesJobsThatAreNotItsOwn(t *testing.T) {
	t.Parallel()
	fake := slackFake(t, slackfake.Config{})
	r := slackSender(t, fake)
	job, ended := slackJob(fake, "an answer")
	foreign := job
	foreign.Identity.Platform = tiers.Discord
	require.Error(t, r.adapter.Deliver(t.Context(), foreign, ended))
	for _, address := range []string{"", "terminal", "C0HALL0001/1.1", "C0HALL0001/1.1/1.1/1.1", "#hall/1.1/1.1", "C0HALL0001/x/1.1"} {
		job.ReplyTo = address
		var permanent *slack.PermanentError
		require.ErrorAs(t, r.adapter.Deliver(t.Context(), job, ended), &permanent)
	}
	require.Empty(t, fake.Calls("chat.postMessage"))
}

func TestSlackItsOwnTokensNeverReachAChat(t *testing.T) {
	t.Parallel()
	fake := slackFake(t, slackfake.Config{})
	r := slackSender(t, fake)
	token := slackfake.BotToken
	job, ended := slackJob(fake, strings.Repeat("x", 3890)+" "+token+" and xapp-1-A0000000009-1234567890-abcdefabcdef and "+token[:20]+"\u200b"+token[20:])
	require.NoError(t, r.adapter.Deliver(t.Context(), job, ended))
	var all strings.Builder
	for _, p := range fake.Answers() {
		all.WriteString(p.Text)
	}
	require.NotContains(t, all.String(), "fakefake")
	require.NotContains(t, all.String(), "xapp-")
	require.Equal(t, 3, strings.Count(all.String(), "&lt;secret&gt;"))
}

// What was accepted or answered when the bot died is answered once after it has
// been started anew.
func TestSlackARestartAnswersOnce(t *testing.T) {
	t.Parallel()
	fake, dir := slackFake(t, slackfake.Config{}), t.TempDir()
	started := make(chan struct{})
	r := slackBot(t, fake, dir, &delegate{plan: planned, run: func(ctx context.Context, _ ask.Prompt) ask.Result {
		close(started)
		<-ctx.Done()
		return ask.Result{Cause: ask.Interrupted}
	}}).serve()
	_, events := fake.Write(slackMention("q"))
	payload := fake.Event(events[0])
	fake.Send(payload)
	<-started
	r.stop()
	require.Empty(t, fake.Answers())
	fake.Forget()
	next := slackBot(t, fake, dir, answers("after all")).serve()
	fake.SendAgain(payload, 1, "timeout")
	next.answers(1)
	next.settled()
	require.Len(t, fake.Answers(), 2)
	require.Equal(t, 2, next.runs())
}

func TestSlackAnAnswerThatWasPostedButNotNotedIsNotPostedAgain(t *testing.T) {
	t.Parallel()
	fake, dir := slackFake(t, slackfake.Config{}), t.TempDir()
	r := slackBot(t, fake, dir, answers("paid for"))
	adapter := r.adapter
	posted := make(chan struct{}, 1)
	r.late.Sender = senderFunc(func(ctx context.Context, job ask.Job, ended ask.Ended) error {
		err := adapter.Deliver(ctx, job, ended)
		posted <- struct{}{}
		return errors.Join(err, errors.New("the bot dies before it notes the delivery"))
	})
	r.serve()
	fake.Say(slackMention("q"))
	<-posted
	r.stop()
	require.Len(t, fake.Answers(), 1)
	fake.Forget()
	next := slackBot(t, fake, dir, answers("a second run")).serve()
	next.settled()
	require.Len(t, fake.Answers(), 2)
	require.Equal(t, []string{"are you there"}, next.questions())
}

// senderFunc is a sender that a test scripts.
type senderFunc func(context.Context, ask.Job, ask.Ended) error

func (f senderFunc) Deliver(ctx context.Context, job ask.Job, ended ask.Ended) error {
	return f(ctx, job, ended)
}

var _ bridge.Sender = senderFunc(nil)
