package contract_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"parlour/bridge/ask"
	"parlour/bridge/discord"
	"parlour/tiers"

	fake "parlour/tests/fakes/discord"
)

const quickReports = 30 * time.Millisecond

// held is a delegate whose runs wait until free is called, and end as told.
func held(end ask.Result) (d *delegate, free func()) {
	release := make(chan struct{})
	return &delegate{plan: planned, run: func(ctx context.Context, _ ask.Prompt) ask.Result {
		select {
		case <-release:
			return end
		case <-ctx.Done():
			return ask.Result{Cause: ask.Interrupted}
		}
	}}, sync.OnceFunc(func() { close(release) })
}

// reporting is a serving bot that reports quickly.
func reporting(t *testing.T, f *fake.Server, dir string, d *delegate) *discordBotRig {
	t.Helper()
	r := openDiscord(t, f, dir, d, quickTiming())
	r.reports = quickReports
	r.run()
	r.ready()
	return r
}

func isOneMessage(path string) bool {
	_, rest, _ := strings.Cut(path, "/messages/")
	return rest != "" && !strings.Contains(rest, "/")
}

func (r *discordBotRig) edits() int { return len(r.fake.Requests("PATCH", isOneMessage)) }

// shown waits until progress is shown in a channel, and gives the message.
func (r *discordBotRig) shown(channel string) fake.Message {
	r.t.Helper()
	var got []fake.Message
	r.until("progress is shown", func() bool { got = r.fake.Posted(channel); return len(got) > 0 })
	require.Len(r.t, got, 1)
	require.Regexp(r.t, `^(Working on it: fake, \d+ s\.|I was stopped .*)\n-# id \w{26} · in progress$`, got[0].Content)
	return got[0]
}

// delivered waits until nothing waits for its delivery any more.
func (r *discordBotRig) delivered() {
	r.t.Helper()
	r.until("all is delivered", func() bool { return quiet(r.t, r.journal) })
}

func TestDiscordProgressIsOneMessageThatIsEdited(t *testing.T) {
	t.Parallel()
	d, free := held(ask.Result{Answer: "an answer"})
	r := reporting(t, newDiscordFake(t), t.TempDir(), d)
	id := r.fake.Say(ask1(discordChannel, discordGuest, mentionBot+" why?"))
	message := r.shown(id)
	r.until("it is edited", func() bool { return r.edits() >= 3 })
	require.Equal(t, message.ID, r.shown(id).ID, "it stays one message")
	free()
	r.delivered()
	got := r.fake.Posted("")
	require.Len(t, got, 1, "only the answer is left")
	require.Contains(t, got[0].Content, "an answer")
	requests := r.fake.Requests("", func(path string) bool { return strings.Contains(path, "/messages") && !isReaction(path) })
	answered := false
	for _, q := range requests {
		if q.Method == "POST" && strings.Contains(q.Body, "an answer") {
			answered = true
			continue
		}
		require.False(t, answered && (q.Method == "PATCH" || q.Method == "POST"), "nothing is shown after the answer")
		if q.Method == "PATCH" {
			require.Contains(t, q.Body, `"allowed_mentions":{"parse":[],"replied_user":false},"flags":4`)
		}
	}
	require.Len(t, r.fake.Requests("DELETE", isOneMessage), 1)
	require.Len(t, r.fake.Requests("POST", isThreads), 2, "an edit is one request: the first report and the answer look for the place")
	r.stop()
	r.clean()
}

func TestDiscordProgressIsGoneAfterTheOutcome(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		in      string
		thread  bool
		forbid  bool // no thread may be made
		outcome ask.Result
		want    string
	}{
		"an answer":             {discordChannel, true, false, ask.Result{Answer: "an answer"}, "an answer"},
		"a sentence":            {discordChannel, true, false, ask.Result{Cause: ask.Stalled}, ask.Sentence(ask.Stalled)},
		"in a thread":           {discordThread, false, false, ask.Result{Answer: "an answer"}, "an answer"},
		"a sentence there":      {discordThread, false, false, ask.Result{Cause: ask.Stalled}, ask.Sentence(ask.Stalled)},
		"no threads":            {discordChannel, false, true, ask.Result{Answer: "an answer"}, "an answer"},
		"no threads, no answer": {discordChannel, false, true, ask.Result{Cause: ask.Stalled}, ask.Sentence(ask.Stalled)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, free := held(c.outcome)
			f := newDiscordFake(t)
			if c.forbid {
				f.Fail(fake.Rule{Method: "POST", Match: isThreads, Status: 403, Body: `{"code":50013,"message":"Missing Permissions"}`})
			}
			r := reporting(t, f, t.TempDir(), d)
			id := f.Say(ask1(c.in, discordTeam, mentionBot+" why?"))
			where := c.in
			if c.thread {
				where = id
			}
			message := r.shown(where)
			free()
			r.delivered()
			got := f.Posted("")
			require.Len(t, got, 1)
			require.Equal(t, where, got[0].Channel)
			require.NotEqual(t, message.ID, got[0].ID)
			require.Contains(t, got[0].Content, c.want)
			if !c.thread {
				require.Contains(t, got[0].Body, id, "it is a reply")
			}
			r.stop()
			r.clean()
		})
	}
}

func TestDiscordAFastAnswerShowsNoProgress(t *testing.T) {
	t.Parallel()
	r := serveDiscord(t, answers("an answer"))
	r.asked()
	r.delivered()
	require.Empty(t, r.fake.Requests("PATCH", nil))
	require.Empty(t, r.fake.Requests("DELETE", nil))
	require.Empty(t, r.fake.Requests("GET", isMessages), "and costs no look-up")
	r.stop()
	r.clean()

	d, free := held(ask.Result{Answer: "an answer"})
	r = serveDiscord(t, d)
	id := r.fake.Say(ask1(discordThread, discordTeam, mentionBot+" why?"))
	r.until("it is accepted", func() bool { return len(r.fake.Reactions(id)) == 1 })
	free()
	r.delivered()
	require.Empty(t, r.fake.Requests("GET", isMessages), "nor does a reply")
	r.stop()
	r.clean()
}

// The first report arrives and nobody hears so; the run ends before another.
func TestDiscordProgressOfWhichNothingIsKnownIsTakenAway(t *testing.T) {
	t.Parallel()
	for _, in := range []string{discordChannel, discordThread} {
		d, free := held(ask.Result{Answer: "an answer"})
		f := newDiscordFake(t)
		f.Fail(fake.Rule{Method: "POST", Match: isMessages, Status: 500, Times: 1, Perform: true})
		r := openDiscord(t, f, t.TempDir(), d, quickTiming())
		r.reports, r.rhythm = quickReports, time.Hour
		r.run()
		r.ready()
		f.Say(ask1(in, discordTeam, mentionBot+" why?"))
		r.until("it arrives", func() bool { return len(f.Posted("")) == 1 })
		r.until("and fails", func() bool { return strings.Contains(r.log.String(), "progress could not be shown") })
		free()
		r.delivered()
		require.Len(t, f.Posted(""), 1)
		require.Contains(t, f.Posted("")[0].Content, "an answer")
		r.stop()
		r.clean()
	}
}

func TestDiscordALimitOnTheProgressHoldsUpNothing(t *testing.T) {
	t.Parallel()
	limited := func(method string, match func(string) bool) fake.Rule {
		return fake.Rule{Method: method, Match: match, Status: 429, Times: 1, Body: `{"message":"slow","retry_after":60,"global":false}`}
	}
	for name, c := range map[string]struct {
		rule  fake.Rule
		calls int // of that kind, at most; 0: any number
		left  int // messages beside the answer
	}{
		"an edit is limited":   {limited("PATCH", isOneMessage), 1, 0},
		"edits fail":           {fake.Rule{Method: "PATCH", Match: isOneMessage, Status: 500}, 0, 0},
		"edits are forbidden":  {fake.Rule{Method: "PATCH", Match: isOneMessage, Status: 403}, 1, 0},
		"edits hang":           {fake.Rule{Method: "PATCH", Match: isOneMessage, Delay: time.Minute}, 1, 0},
		"its deletion fails":   {fake.Rule{Method: "DELETE", Match: isOneMessage, Status: 403}, 1, 1},
		"the first is limited": {fake.Rule{Method: "POST", Match: isThreads, Status: 429, Times: 1, Body: `{"retry_after":0.3}`}, 0, 0},
		"the first gets lost":  {fake.Rule{Method: "POST", Match: isMessages, Status: 500, Times: 1, Perform: true}, 0, 0},
		"the first hangs":      {fake.Rule{Method: "POST", Match: isMessages, Times: 1, Delay: time.Minute}, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, free := held(ask.Result{Answer: "an answer"})
			f := newDiscordFake(t)
			f.Fail(c.rule)
			r := reporting(t, f, t.TempDir(), d)
			id := f.Say(ask1(discordChannel, discordGuest, mentionBot+" why?"))
			r.until("it runs", func() bool { return len(r.ran()) == 1 })
			f.Wait(10*quickReports, func() bool { return false })
			began := time.Now()
			free()
			r.until("the answer comes", func() bool {
				got := f.Posted(id)
				return len(got) > 0 && strings.Contains(got[len(got)-1].Content, "an answer")
			})
			require.Less(t, time.Since(began), 3*time.Second)
			r.delivered()
			require.Len(t, f.Posted(""), 1+c.left)
			if c.calls > 0 {
				require.LessOrEqual(t, len(f.Requests(c.rule.Method, isOneMessage)), c.calls)
			}
			require.LessOrEqual(t, strings.Count(r.log.String(), "progress could not be shown"), 1)
			r.stop()
			require.Empty(t, f.Problems())
		})
	}
}

func TestDiscordAReportIsOneAttemptAndDoesNotWait(t *testing.T) {
	t.Parallel()
	f := newDiscordFake(t)
	r := openDiscord(t, f, t.TempDir(), answers("x"), quickTiming())
	question := f.Say(ask1(discordChannel, discordGuest, "q"))
	job := ask.Job{ID: "01J", ReplyTo: discordChannel + "/" + question + "/thread", At: time.Now(), Attempt: 1}
	require.NoError(t, r.adapter.Report(t.Context(), job, ask.Progress{}))
	f.Fail(fake.Rule{Method: "PATCH", Match: isOneMessage, Times: 1, Status: 500})
	began := time.Now()
	require.Error(t, r.adapter.Report(t.Context(), job, ask.Progress{}))
	require.Equal(t, 1, r.edits())
	f.Fail(fake.Rule{Method: "PATCH", Match: isOneMessage, Times: 1, Status: 429, Body: `{"retry_after":2}`})
	for range 2 {
		require.Error(t, r.adapter.Report(t.Context(), job, ask.Progress{}))
	}
	require.Equal(t, 2, r.edits(), "while it is limited it is not even asked")
	require.Less(t, time.Since(began), 400*time.Millisecond)
	ended := ask.Ended{Outcome: ask.Outcome{Kind: ask.Answered, Text: "an answer"}}
	require.NoError(t, r.adapter.Deliver(t.Context(), job, ended))
	require.Less(t, time.Since(began), 1500*time.Millisecond, "nor does the answer wait")
	require.Len(t, f.Posted(""), 1)
	r.clean()
}

// A bot that died left its progress in the chat. The next one goes on with it,
// and takes it away.
func TestDiscordProgressOfADeadBotIsFoundAndTakenAway(t *testing.T) {
	t.Parallel()
	f := newDiscordFake(t)
	r := openDiscord(t, f, t.TempDir(), answers("x"), quickTiming())
	ended := ask.Ended{
		Outcome: ask.Outcome{Kind: ask.Answered, Text: "an answer"},
		Receipt: ask.Receipt{Tier: tiers.Guest, Choice: ask.Choice{Runner: "fake"}, Rung: "full"},
	}
	refused := ask.Ended{Outcome: ask.Outcome{Kind: ask.Unavailable, Cause: ask.Failed, Text: ask.Sentence(ask.Failed)}}
	n := 0
	for _, place := range []string{discordChannel + "/thread", discordThread + "/reply", discordDM + "/reply"} {
		for _, end := range []ask.Ended{ended, refused} {
			for _, age := range []time.Duration{0, time.Hour} {
				for _, again := range []bool{false, true} { // the next bot runs the question again, and reports
					t.Run(fmt.Sprint(place, end.Outcome.Kind, age, again), func(t *testing.T) {
						in, how, _ := strings.Cut(place, "/")
						question := f.Say(ask1(in, discordGuest, "q"))
						n++
						job := ask.Job{
							ID: fmt.Sprintf("01J%d", n), Message: "discord:" + question, ReplyTo: in + "/" + question + "/" + how,
							At: time.Now().Add(-age), Attempt: 1,
						}
						before := len(f.Posted(""))
						require.NoError(t, r.adapter.Report(t.Context(), job, ask.Progress{Runner: "fake"}))
						require.Len(t, f.Posted(""), before+1)
						if age > 0 {
							f.ForgetNonces()
						}
						next := openDiscord(t, f, t.TempDir(), answers("x"), quickTiming())
						if again {
							job.Attempt++
							for range 2 {
								require.NoError(t, next.adapter.Report(t.Context(), job, ask.Progress{Runner: "fake", For: time.Minute}))
							}
							require.Len(t, f.Posted(""), before+1, "no second one")
						}
						require.NoError(t, next.adapter.Deliver(t.Context(), job, end))
						got := f.Posted("")
						require.Len(t, got, before+1)
						require.Contains(t, got[len(got)-1].Content, end.Outcome.Text)
						require.NoError(t, next.adapter.Deliver(t.Context(), job, end))
						require.Len(t, f.Posted(""), before+1, "and the answer stays one")
					})
				}
			}
		}
	}
	r.clean()
}

func TestDiscordAStoppedBotsProgressIsTakenUp(t *testing.T) {
	t.Parallel()
	f, dir := newDiscordFake(t), t.TempDir()
	d, _ := held(ask.Result{})
	r := reporting(t, f, dir, d)
	id := f.Say(ask1(discordChannel, discordGuest, mentionBot+" why?"))
	message := r.shown(id)
	r.stop()
	require.Contains(t, r.shown(id).Content, "I was stopped while I worked on this.")
	d, free := held(ask.Result{Answer: "after all"})
	again := reporting(t, f, dir, d)
	again.until("it goes on", func() bool { return strings.HasPrefix(f.Posted(id)[0].Content, "Working on it: fake") })
	require.Equal(t, message.ID, again.shown(id).ID)
	free()
	again.delivered()
	require.Len(t, f.Posted(""), 1)
	require.Contains(t, f.Posted(id)[0].Content, "after all")
	again.stop()
	again.clean()
}

func TestDiscordAnAnswerIsNeverTakenForProgress(t *testing.T) {
	t.Parallel()
	f := newDiscordFake(t)
	question := f.Say(ask1(discordChannel, discordGuest, "q"))
	job := ask.Job{ID: "01JX", Message: "discord:" + question, ReplyTo: discordChannel + "/" + question + "/thread", At: time.Now(), Attempt: 1}
	mimic := "Working on it: fake, 4 s.\n-# id 01JX · in progress"
	other := fake.User{ID: "444444444444444444", Name: "another bot", Bot: true}
	deliver := func() {
		r := openDiscord(t, f, t.TempDir(), answers("x"), quickTiming()) // each time a bot that remembers nothing
		require.NoError(t, r.adapter.Deliver(t.Context(), job, ask.Ended{Outcome: ask.Outcome{Kind: ask.Answered, Text: mimic}}))
	}
	deliver()
	f.Say(ask1(question, other, mimic))
	f.Say(ask1(question, discordGuest, mimic))
	deliver()
	require.Len(t, f.Posted(question), 1, "an answer that reads like progress stays, and stays one")
	require.Empty(t, f.Requests("DELETE", nil), "what others say is left alone")
	require.Empty(t, f.Problems())
}

func TestDiscordOfADeletedQuestionNothingStays(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]ask.Result{"an answer": {Answer: "an answer"}, "a sentence": {Cause: ask.Stalled}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, free := held(end)
			r := reporting(t, newDiscordFake(t), t.TempDir(), d)
			id := r.fake.Say(ask1(discordChannel, discordGuest, mentionBot+" why?"))
			r.shown(id)
			r.fake.Delete(id)
			free()
			r.delivered()
			require.Empty(t, r.fake.Posted(""))
			require.True(t, r.fake.Archived(id), "the empty thread is closed")
			r.stop()
			r.clean()
		})
	}
}

func TestDiscordProgressThatSomebodyDeletesIsNotShownAgain(t *testing.T) {
	t.Parallel()
	d, free := held(ask.Result{Answer: "an answer"})
	r := reporting(t, newDiscordFake(t), t.TempDir(), d)
	id := r.fake.Say(ask1(discordChannel, discordGuest, mentionBot+" why?"))
	r.fake.Delete(r.shown(id).ID)
	require.False(t, r.fake.Wait(10*quickReports, func() bool { return len(r.fake.Posted("")) > 0 }))
	free()
	r.delivered()
	require.Len(t, r.fake.Posted(""), 1)
	r.stop()
	r.clean()
}

func TestDiscordProgressSaysNothingThatMayNotBeSaid(t *testing.T) {
	t.Parallel()
	f := newDiscordFake(t)
	r := openDiscord(t, f, t.TempDir(), answers("x"), quickTiming())
	question := f.Say(ask1(discordChannel, discordGuest, "q"))
	job := ask.Job{ID: "01J", ReplyTo: discordChannel + "/" + question + "/thread", At: time.Now(), Attempt: 1}
	for range 2 { // once posted, once edited
		require.NoError(t, r.adapter.Report(t.Context(), job, ask.Progress{Runner: "@everyone \x1b[31m" + discordToken, Before: "<@5>"}))
		text := f.Posted(question)[0].Content
		for _, bad := range []string{"@everyone", "<@", "\x1b", "sentinel"} {
			require.NotContains(t, text, bad)
		}
	}
	require.Error(t, r.adapter.Report(t.Context(), ask.Job{ReplyTo: "x"}, ask.Progress{}))
	r.clean()
}

// The operator can put a token right, so what is refused for its sake is kept.
func TestDiscordOnlyWhatIsLostForGoodIsPermanent(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]bool{400: true, 403: true, 404: true, 307: true, 401: false, 408: false, 429: false, 500: false} {
		require.Equal(t, want, (&discord.APIError{Status: status}).Permanent(), status)
	}
	r := openDiscord(t, newDiscordFake(t), t.TempDir(), answers("x"), quickTiming())
	err := r.adapter.Deliver(t.Context(), ask.Job{ReplyTo: "nowhere"}, ask.Ended{})
	var final interface{ Permanent() bool }
	require.ErrorAs(t, err, &final)
	require.True(t, final.Permanent(), "an address that is none")
}

// Others write more than Discord gives at a time between a question and its
// answer, or its progress, and then the bot is killed before it notes either.
func TestDiscordAFloodHidesNothingThatWasPosted(t *testing.T) {
	t.Parallel()
	ended := ask.Ended{
		Outcome: ask.Outcome{Kind: ask.Answered, Text: strings.Repeat("once ", 600)},
		Receipt: ask.Receipt{Tier: tiers.Guest, Choice: ask.Choice{Runner: "fake"}, Rung: "full"},
	}
	for name, c := range map[string]struct {
		messages int
		text     string
		pages    int // that are read; 0: as many as it takes
		posts    int // of the bot in the end
	}{
		"one page to the last":  {99, "flood", 2, 2}, // with the progress it is full
		"some pages":            {320, "flood", 4, 2},
		"long messages":         {120, strings.Repeat("\u6f22", 4000), 2, 2}, // who pays may write 4000
		"more than can be read": {1100, "flood", 10, 5},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newDiscordFake(t)
			question := f.Say(ask1(discordThread, discordGuest, "q"))
			for range c.messages {
				f.Say(ask1(discordThread, discordGuest, c.text))
			}
			job := ask.Job{
				ID: "01J", Message: "discord:" + question, ReplyTo: discordThread + "/" + question + "/reply",
				At: time.Now().Add(-time.Hour), Attempt: 1,
			}
			progress := func() { // each time a bot that remembers nothing
				r := openDiscord(t, f, t.TempDir(), answers("x"), quickTiming())
				require.NoError(t, r.adapter.Report(t.Context(), job, ask.Progress{Runner: "fake"}))
				f.ForgetNonces()
			}
			deliver := func() *discordBotRig {
				r := openDiscord(t, f, t.TempDir(), answers("x"), quickTiming())
				require.NoError(t, r.adapter.Deliver(t.Context(), job, ended))
				f.ForgetNonces()
				return r
			}
			progress()
			deliver()
			before := len(f.Requests("GET", isMessages))
			r := deliver()
			require.Len(t, f.Posted(discordThread), c.posts)
			require.Equal(t, c.pages, len(f.Requests("GET", isMessages))-before)
			require.Equal(t, c.posts > 2, strings.Contains(r.log.String(), "the rest is not read"))
			r.clean()
		})
	}
}
