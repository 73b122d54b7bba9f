package contract_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"parlour/bridge/ask"
	"parlour/bridge/journal"
	"parlour/bridge/slack"
	slackfake "parlour/tests/fakes/slack"
)

// slackReporting is a serving bot that reports quickly.
func slackReporting(t *testing.T, fake *slackfake.Server, dir string, d *delegate) *slackRig {
	t.Helper()
	r := slackBot(t, fake, dir, d)
	r.reports = quickReports
	return r.serve()
}

// shown waits until progress is shown, and gives the post.
func (r *slackRig) shown() slackfake.Message {
	r.t.Helper()
	r.until("progress is shown", func() bool { return len(r.fake.Answers()) > 0 })
	got := r.fake.Answers()
	require.Len(r.t, got, 1)
	require.Regexp(r.t, `^(Working on it: (fake, )?\d+ s\.|I was stopped .*)\n— \w{26} · in progress$`, got[0].Text)
	return got[0]
}

func (r *slackRig) delivered() {
	r.t.Helper()
	r.until("all is delivered", func() bool { return quiet(r.t, r.journal) })
}

func TestSlackProgressIsOnePostThatIsEdited(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		end  ask.Result
		want string
	}{"an answer": {ask.Result{Answer: "an answer"}, "an answer"}, "a sentence": {ask.Result{Cause: ask.Stalled}, ask.Sentence(ask.Stalled)}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, free := held(c.end)
			r := slackReporting(t, slackFake(t, slackfake.Config{}), t.TempDir(), d)
			ts := r.fake.Say(slackMention("q"))
			post := r.shown()
			require.Equal(t, ts, post.Thread, "in the thread of the question")
			r.until("it is edited", func() bool { return r.shown().Edits >= 3 })
			require.Equal(t, post.TS, r.shown().TS, "it stays one post")
			free()
			r.delivered()
			got := r.fake.Answers()
			require.Len(t, got, 1, "only the outcome is left")
			require.Contains(t, got[0].Text, c.want)
			answered := false
			for _, call := range r.fake.Calls("") {
				if call.Method == "chat.postMessage" && strings.Contains(call.Form.Get("text"), c.want) {
					answered = true
					continue
				}
				require.False(t, answered && (call.Method == "chat.postMessage" || call.Method == "chat.update"), "nothing is shown after the outcome")
				if strings.HasPrefix(call.Method, "chat.") && call.Method != "chat.delete" {
					require.Equal(t, []string{"false", "false"}, []string{call.Form.Get("unfurl_links"), call.Form.Get("unfurl_media")})
				}
			}
			require.Len(t, r.fake.Calls("chat.delete"), 1)
			require.Empty(t, r.fake.Calls("conversations.replies"), "what is known is not looked for")
			require.Equal(t, 1, r.runs(), "the events about its own posts ask nothing")
		})
	}
}

func TestSlackAFastAnswerShowsNoProgress(t *testing.T) {
	t.Parallel()
	r := slackServe(t, answers("an answer"))
	r.fake.Say(slackMention("q"))
	r.answers(1)
	r.delivered()
	require.Empty(t, r.fake.Calls("chat.update"))
	require.Empty(t, r.fake.Calls("chat.delete"))
	require.Empty(t, r.fake.Calls("conversations.replies"))
}

func TestSlackALimitOnTheProgressHoldsUpNothing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		method string
		fault  slackfake.Fault
		calls  int // of that method, at most; 0: any number
		left   int // posts beside the answer
	}{
		"edits are limited":   {"chat.update", slackfake.Fault{RetryAfter: "60", Times: 1000}, 0, 0},
		"edits fail":          {"chat.update", slackfake.Fault{Status: 500, Times: 1000}, 0, 0},
		"edits are forbidden": {"chat.update", slackfake.Fault{Code: "cant_update_message", Times: 1000}, 1, 0},
		"edits hang":          {"chat.update", slackfake.Fault{Hang: true, Times: 1000}, 1, 0},
		"its deletion fails":  {"chat.delete", slackfake.Fault{Code: "cant_delete_message"}, 1, 1},
		"the first gets lost": {"chat.postMessage", slackfake.Fault{LoseAnswer: true}, 0, 0},
		"the first hangs":     {"chat.postMessage", slackfake.Fault{Hang: true}, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, free := held(ask.Result{Answer: "an answer"})
			fake := slackFake(t, slackfake.Config{})
			fake.Fail(c.method, c.fault)
			r := slackReporting(t, fake, t.TempDir(), d)
			fake.Say(slackMention("q"))
			r.until("it is reported", func() bool { return len(fake.Calls("chat.postMessage")) > 0 })
			pause := time.NewTimer(10 * quickReports)
			<-pause.C
			began := time.Now()
			free()
			r.until("the answer comes", func() bool {
				got := fake.Answers()
				return len(got) > 0 && strings.Contains(got[len(got)-1].Text, "an answer")
			})
			require.Less(t, time.Since(began), 3*time.Second)
			r.delivered()
			require.Len(t, fake.Answers(), 1+c.left)
			if c.calls > 0 {
				require.LessOrEqual(t, len(fake.Calls(c.method)), c.calls)
			}
			require.LessOrEqual(t, strings.Count(r.log.String(), "progress could not be shown"), 1)
		})
	}
}

// The first report arrives and nobody hears so; the run ends before another.
func TestSlackProgressOfWhichNothingIsKnownIsTakenAway(t *testing.T) {
	t.Parallel()
	d, free := held(ask.Result{Answer: "an answer"})
	fake := slackFake(t, slackfake.Config{})
	fake.Fail("chat.postMessage", slackfake.Fault{LoseAnswer: true})
	r := slackBot(t, fake, t.TempDir(), d)
	r.reports, r.rhythm = quickReports, time.Hour
	r.serve()
	fake.Say(slackMention("q"))
	r.until("it arrives and fails", func() bool { return strings.Contains(r.log.String(), "progress could not be shown") })
	require.Len(t, fake.Answers(), 1)
	free()
	r.delivered()
	require.Contains(t, r.answers(1)[0].Text, "an answer")
}

func TestSlackProgressOfADeadBotIsFoundAndTakenAway(t *testing.T) {
	t.Parallel()
	for name, again := range map[string]bool{"its outcome was stored": false, "its question runs again": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fake := slackFake(t, slackfake.Config{})
			job, ended := slackJob(fake, longText())
			job.Attempt = 1
			require.NoError(t, slackSender(t, fake).adapter.Report(t.Context(), job, ask.Progress{Runner: "fake"}))
			require.Len(t, fake.Answers(), 1)
			next := slackSender(t, fake)
			if again {
				job.Attempt++
				for range 2 {
					require.NoError(t, next.adapter.Report(t.Context(), job, ask.Progress{Runner: "fake", For: time.Minute}))
				}
				require.Len(t, fake.Answers(), 1, "no second one")
				require.Equal(t, 2, fake.Answers()[0].Edits)
			}
			require.NoError(t, next.adapter.Deliver(t.Context(), job, ended))
			got := fake.Answers()
			for _, m := range got {
				require.NotContains(t, m.Text, "in progress")
			}
			require.NoError(t, slackSender(t, fake).adapter.Deliver(t.Context(), job, ended))
			require.Equal(t, got, fake.Answers(), "and the answer stays one")
		})
	}
}

func TestSlackAStoppedBotsProgressIsTakenUp(t *testing.T) {
	t.Parallel()
	fake, dir := slackFake(t, slackfake.Config{}), t.TempDir()
	d, _ := held(ask.Result{})
	r := slackReporting(t, fake, dir, d)
	fake.Say(slackMention("q"))
	post := r.shown()
	r.stop()
	require.Contains(t, r.shown().Text, "I was stopped while I worked on this.")
	d, free := held(ask.Result{Answer: "after all"})
	next := slackReporting(t, fake, dir, d)
	next.until("it goes on", func() bool { return strings.HasPrefix(next.shown().Text, "Working on it") })
	require.Equal(t, post.TS, next.shown().TS)
	free()
	next.delivered()
	require.Contains(t, next.answers(1)[0].Text, "after all")
}

func TestSlackAnAnswerIsNeverTakenForProgress(t *testing.T) {
	t.Parallel()
	fake := slackFake(t, slackfake.Config{})
	mimic := "Working on it: fake, 4 s.\n— 01K0000000000000000000000A · in progress"
	job, ended := slackJob(fake, mimic)
	job.Attempt = 1
	thread := strings.Split(job.ReplyTo, "/")[1]
	require.NoError(t, slackSender(t, fake).adapter.Deliver(t.Context(), job, ended))
	fake.Write(slackfake.Post{Channel: slackHall, User: slackGuest, Thread: thread, Text: mimic})
	require.NoError(t, slackSender(t, fake).adapter.Deliver(t.Context(), job, ended))
	require.Len(t, fake.Answers(), 1)
	require.Empty(t, fake.Calls("chat.delete"))
}

// A question whose thread is gone takes its progress with it.
func TestSlackOfADeletedQuestionNothingStays(t *testing.T) {
	t.Parallel()
	d, free := held(ask.Result{Answer: "an answer"})
	r := slackReporting(t, slackFake(t, slackfake.Config{}), t.TempDir(), d)
	ts := r.fake.Say(slackMention("q"))
	// Once it was edited the bot knows which post it is; a thread that is gone does not tell.
	r.until("its progress is edited", func() bool { return r.shown().Edits > 0 })
	r.fake.Remove(slackHall, ts)
	free()
	r.delivered()
	require.Empty(t, r.fake.Answers())
	events, err := r.journal.Events(t.Context(), journal.Filter{Job: r.jobs()[0].Job})
	require.NoError(t, err)
	require.Equal(t, ask.EventUndeliverable, events[len(events)-1].Kind)
}

func TestSlackProgressSaysNothingThatMayNotBeSaid(t *testing.T) {
	t.Parallel()
	fake := slackFake(t, slackfake.Config{})
	r := slackSender(t, fake)
	job, _ := slackJob(fake, "")
	for range 2 { // once posted, once edited
		require.NoError(t, r.adapter.Report(t.Context(), job, ask.Progress{Runner: "<!channel> \x1b[31m" + slackfake.BotToken}))
		text := fake.Answers()[0].Text
		for _, bad := range []string{"<!channel>", "\x1b", "fakefake"} {
			require.NotContains(t, text, bad)
		}
	}
	require.Error(t, r.adapter.Report(t.Context(), ask.Job{ReplyTo: "x"}, ask.Progress{}))
}

// The operator can put a token or its scopes right, so what is refused for their
// sake is kept.
func TestSlackOnlyWhatIsLostForGoodIsPermanent(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]bool{
		"channel_not_found": true, "is_archived": true, "HTTP 404": true, "invalid_auth": false, "token_revoked": false,
		"account_inactive": false, "missing_scope (needed: chat:write)": false,
	} {
		require.Equal(t, want, (&slack.PermanentError{Method: "chat.postMessage", Code: code}).Permanent(), code)
	}
}
