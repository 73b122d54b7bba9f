package contract_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"parlour/bridge"
	"parlour/bridge/ask"
	"parlour/bridge/slack"
	slackfake "parlour/tests/fakes/slack"
)

// intakeFunc is an intake that a test scripts.
type intakeFunc func(context.Context, bridge.Message) (bridge.Accepted, error)

func (f intakeFunc) Accept(ctx context.Context, m bridge.Message) (bridge.Accepted, error) {
	return f(ctx, m)
}

// acked says whether the event was acknowledged.
func (r *slackRig) acked(event string) bool {
	for _, a := range r.fake.Acks() {
		if a.Event == event {
			return true
		}
	}
	return false
}

func TestSlackAcknowledgesOnlyWhatIsStored(t *testing.T) {
	t.Parallel()
	fake := slackFake(t, slackfake.Config{})
	r := slackBot(t, fake, t.TempDir(), answers("an answer"))
	entered, release := make(chan struct{}), make(chan struct{})
	free := sync.OnceFunc(func() { close(release) })
	t.Cleanup(free)
	gate := r.intake
	r.adapter = r.adapt(intakeFunc(func(ctx context.Context, m bridge.Message) (bridge.Accepted, error) {
		entered <- struct{}{}
		<-release
		return gate.Accept(ctx, m)
	}))
	r.serve()
	payload := fake.Event(slackInner(fake, "app_mention", slackHall, slackGuest, "<@U0BOT00001> q"))
	event := payload["event_id"].(string)
	fake.Send(payload)
	<-entered
	require.False(t, r.acked(event), "nothing is stored yet")
	require.Empty(t, fake.Reactions())
	free()
	r.until("it is acknowledged", func() bool { return r.acked(event) })
	require.Len(t, r.jobs(), 1)
}

func TestSlackDoesNotAcknowledgeWhatTheJournalRefuses(t *testing.T) {
	t.Parallel()
	fake := slackFake(t, slackfake.Config{})
	r := slackBot(t, fake, t.TempDir(), answers("an answer"))
	broken := atomic.Bool{}
	broken.Store(true)
	gate, refused := r.intake, make(chan struct{}, 10)
	r.adapter = r.adapt(intakeFunc(func(ctx context.Context, m bridge.Message) (bridge.Accepted, error) {
		if broken.Load() {
			refused <- struct{}{}
			return bridge.Accepted{}, errors.New("disk full")
		}
		return gate.Accept(ctx, m)
	}))
	r.serve()
	payload := fake.Event(slackInner(fake, "app_mention", slackHall, slackGuest, "<@U0BOT00001> q"))
	event := payload["event_id"].(string)
	fake.Send(payload)
	<-refused
	fake.SendAgain(payload, 1, "timeout")
	<-refused
	require.False(t, r.acked(event))
	broken.Store(false)
	fake.SendAgain(payload, 2, "timeout")
	r.answers(1)
	require.True(t, r.acked(event))
	require.Equal(t, 1, r.runs())
}

// A journal that is closed stands for one that was killed: the platform is told
// nothing, so it sends the event to the next bot.
func TestSlackADeadJournalAcknowledgesNothing(t *testing.T) {
	t.Parallel()
	fake := slackFake(t, slackfake.Config{Retries: []time.Duration{20 * time.Millisecond, 20 * time.Millisecond, 20 * time.Millisecond}})
	dir := t.TempDir()
	r := slackBot(t, fake, dir, answers("an answer"))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.adapter.Run(ctx) }()
	r.until("the bot is ready", func() bool { ready, _ := r.adapter.Ready(); return ready })
	require.NoError(t, r.journal.Close())
	fake.Say(slackMention("q"))
	r.until("the failure is told", func() bool { return strings.Count(r.log.String(), "was not stored") >= 2 })
	require.Empty(t, fake.Acks())
	require.Empty(t, fake.Answers())
	cancel()
	require.NoError(t, <-done)

	next := slackBot(t, fake, dir, answers("after all")).serve()
	next.fake.SendAgain(fake.Event(map[string]any{}), 3, "timeout") // only to show that the socket lives
	_, events := fake.Write(slackMention("the event that is sent again"))
	fake.SendAgain(fake.Event(events[0]), 3, "timeout")
	// Slack's own retry of the first question may reach the new bot as well.
	next.until("what is sent again is answered", func() bool { return len(fake.Answers()) > 0 })
	require.Contains(t, fake.Answers()[0].Text, "after all")
}

func TestSlackARefusalIsAcknowledgedBeforeItIsPosted(t *testing.T) {
	t.Parallel()
	r := slackServe(t, answers("an answer"))
	r.fake.Fail("chat.postMessage", slackfake.Fault{RetryAfter: "1"})
	start := time.Now()
	payload := r.fake.Event(slackInner(r.fake, "app_mention", slackOther, slackGuest, "<@U0BOT00001> q"))
	r.fake.Send(payload)
	r.answers(1)
	require.GreaterOrEqual(t, time.Since(start), time.Second, "the post waits as long as Slack wants")
	for _, a := range r.fake.Acks() {
		if a.Event == payload["event_id"] {
			require.Less(t, a.At.Sub(start), time.Second)
		}
	}
	require.Empty(t, r.fake.Calls("conversations.replies"), "what was just stored was never posted before")
}

func TestSlackRepetitionsAreToldByKeyNotByNumber(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	r := slackServe(t, &delegate{plan: planned, run: func(context.Context, ask.Prompt) ask.Result {
		<-release
		return ask.Result{Answer: "an answer"}
	}})
	late := r.fake.Event(slackInner(r.fake, "app_mention", slackHall, slackGuest, "<@U0BOT00001> never seen before"))
	r.fake.SendAgain(late, 1, "timeout")
	r.until("the repetition runs like a first delivery", func() bool { return r.runs() == 1 })
	for _, attempt := range []int{0, 1, 0, 2, 3} {
		r.fake.SendAgain(late, attempt, "timeout")
	}
	r.until("all are acknowledged while it runs", func() bool { return len(r.fake.Unacknowledged()) == 0 })
	close(release)
	r.answers(1)
	r.settled()
	require.Len(t, r.jobs(), 2)
}

func TestSlackReconnects(t *testing.T) {
	t.Parallel()
	for name, happens := range map[string]func(*slackfake.Server){
		"warning":             func(s *slackfake.Server) { s.Disconnect("warning") },
		"refresh_requested":   func(s *slackfake.Server) { s.Disconnect("refresh_requested") },
		"too_many_websockets": func(s *slackfake.Server) { s.Disconnect("too_many_websockets") },
		"a broken connection": func(s *slackfake.Server) { s.Drop() },
		"garbage for ever": func(s *slackfake.Server) {
			for range 10 {
				s.SendFrame("")
			}
		},
		"an address that is dead": func(s *slackfake.Server) {
			s.Fail("apps.connections.open", slackfake.Fault{Body: `{"ok":true,"url":"ws://127.0.0.1:1/link?ticket=ticket-secret-9"}`})
			s.Fail("apps.connections.open", slackfake.Fault{Body: `{"ok":true,"url":"ws://127.0.0.1:1/\u0000?ticket=ticket-secret-9"}`})
			s.Fail("apps.connections.open", slackfake.Fault{Body: `{"ok":true,"url":"` + s.API() + `/x?ticket=ticket-secret-9"}`})
			s.Drop()
		},
		"a failed opening": func(s *slackfake.Server) {
			s.Fail("apps.connections.open", slackfake.Fault{Status: 503})
			s.Fail("apps.connections.open", slackfake.Fault{RetryAfter: "1"})
			s.Drop()
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := slackServe(t, answers("an answer"))
			happens(r.fake)
			r.until("there is a new socket", func() bool { open, ever := r.fake.Sockets(); return open == 1 && ever >= 2 })
			r.fake.Say(slackMention("q"))
			r.answers(1)
			ready, why := r.adapter.Ready()
			require.True(t, ready, why)
		})
	}
}

func TestSlackHalfDeadSocketsAreReplaced(t *testing.T) {
	t.Parallel()
	t.Run("no ping", func(t *testing.T) {
		t.Parallel()
		r := slackServe(t, answers("an answer"))
		r.fake.Still(true)
		r.until("the socket is given up", func() bool { _, ever := r.fake.Sockets(); return ever >= 2 })
		r.fake.Still(false)
		r.until("the bot is ready again", func() bool { ready, _ := r.adapter.Ready(); return ready })
		r.fake.Say(slackMention("q"))
		r.answers(1)
	})
	t.Run("no hello", func(t *testing.T) {
		t.Parallel()
		fake := slackFake(t, slackfake.Config{})
		fake.Mute(true)
		r := slackBot(t, fake, t.TempDir(), answers("an answer"))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- r.adapter.Run(ctx) }()
		r.until("the mute socket is given up", func() bool { _, ever := fake.Sockets(); return ever >= 2 })
		ready, why := r.adapter.Ready()
		require.False(t, ready)
		require.NotEmpty(t, why)
		fake.Mute(false)
		r.until("the bot is ready", func() bool { ready, _ := r.adapter.Ready(); return ready })
		cancel()
		require.NoError(t, <-done)
		ready, why = r.adapter.Ready()
		require.False(t, ready)
		require.Equal(t, "stopped", why)
	})
	t.Run("a quiet one is left alone", func(t *testing.T) {
		t.Parallel()
		r := slackServe(t, answers("an answer"))
		timer := time.NewTimer(3 * time.Second)
		defer timer.Stop()
		<-timer.C
		_, ever := r.fake.Sockets()
		require.Equal(t, 1, ever)
		_, why := r.adapter.Ready()
		require.Equal(t, "connected; no event yet", why)
	})
}

func TestSlackRefusedTokensAreSaidAndTriedSlowly(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"invalid_auth", "token_expired", "missing_scope", "account_inactive", "not_allowed_token_type"} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			fake := slackFake(t, slackfake.Config{})
			fake.Fail("apps.connections.open", slackfake.Fault{Times: 2, Code: code})
			r := slackBot(t, fake, t.TempDir(), answers("an answer"))
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() { done <- r.adapter.Run(ctx) }()
			r.until("the reason is shown", func() bool {
				ready, why := r.adapter.Ready()
				return !ready && strings.Contains(why, code)
			})
			r.until("it is tried again", func() bool { ready, _ := r.adapter.Ready(); return ready })
			opens := fake.Calls("apps.connections.open")
			require.Len(t, opens, 3)
			require.GreaterOrEqual(t, opens[1].At.Sub(opens[0].At), 2*time.Second, "slowly")
			cancel()
			require.NoError(t, <-done)
		})
	}
	t.Run("the bot token", func(t *testing.T) {
		r := slackServe(t, answers("an answer"))
		r.fake.Fail("chat.postMessage", slackfake.Fault{Code: "token_revoked"})
		r.fake.Say(slackMention("q"))
		r.until("the reason is shown", func() bool {
			ready, why := r.adapter.Ready()
			return !ready && why == "slack refused chat.postMessage: token_revoked"
		})
		r.fake.Say(slackMention("q"))
		r.answers(1)
		r.until("the fault is over", func() bool { ready, _ := r.adapter.Ready(); return ready })
	})
}

func TestSlackTellsOfASecondSocket(t *testing.T) {
	t.Parallel()
	fake := slackFake(t, slackfake.Config{})
	first := slackBot(t, fake, t.TempDir(), answers("an answer")).serve()
	require.NotContains(t, first.log.String(), "more sockets are open")
	second := slackBot(t, fake, t.TempDir(), answers("an answer")).serve()
	require.Contains(t, second.log.String(), "more sockets are open")
}

func TestSlackKeepsReadingWhenItCannotStore(t *testing.T) {
	t.Parallel()
	fake := slackFake(t, slackfake.Config{})
	r := slackBot(t, fake, t.TempDir(), answers("an answer"))
	release := make(chan struct{})
	free := sync.OnceFunc(func() { close(release) })
	t.Cleanup(free)
	r.adapter = r.adapt(intakeFunc(func(ctx context.Context, m bridge.Message) (bridge.Accepted, error) {
		<-release
		return bridge.Accepted{Duplicate: true}, nil
	}))
	r.serve()
	for range 200 { // more than the library holds and than one person may have waiting
		fake.Send(fake.Event(slackInner(fake, "app_mention", slackHall, slackGuest, "<@U0BOT00001> q")))
	}
	r.until("the overflow is told", func() bool { return strings.Contains(r.log.String(), "faster than they are stored") })
	require.Empty(t, fake.Acks())
	fake.Disconnect("refresh_requested")
	r.until("it still reconnects", func() bool { open, ever := fake.Sockets(); return open == 1 && ever >= 2 })
	free()
	r.until("what had room is acknowledged", func() bool { return len(fake.Acks()) >= 64 })
}

func TestSlackStopsGracefully(t *testing.T) {
	before := runtime.NumGoroutine()
	fake, err := slackfake.Start(slackfake.Config{})
	require.NoError(t, err)
	fake.AddChannel(slackfake.Channel{ID: slackHall})
	fake.AddUser(slackfake.User{ID: slackGuest})
	r := slackBot(t, fake, t.TempDir(), answers("an answer"))
	entered, release := make(chan struct{}), make(chan struct{})
	gate := r.intake
	r.adapter = r.adapt(intakeFunc(func(ctx context.Context, m bridge.Message) (bridge.Accepted, error) {
		if m.Text == "in hand" {
			entered <- struct{}{}
			<-release
		}
		return gate.Accept(ctx, m)
	}))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.adapter.Run(ctx) }()
	r.until("the bot is ready", func() bool { ready, _ := r.adapter.Ready(); return ready })
	payload := fake.Event(slackInner(fake, "app_mention", slackHall, slackGuest, "<@U0BOT00001> in hand"))
	fake.Send(payload)
	<-entered
	cancel()
	close(release)
	require.NoError(t, <-done)
	require.Len(t, r.jobs(), 1, "what was in hand is stored")
	require.ErrorContains(t, r.adapter.Run(t.Context()), "runs once")
	r.stop()
	fake.Close()
	r.until("nothing is left running", func() bool { return runtime.NumGoroutine() <= before })
}

func TestSlackRefusesAnUnfitConfiguration(t *testing.T) {
	t.Parallel()
	good := slackConfig()
	for name, edit := range map[string]func(*slack.Config){
		"no app token":       func(c *slack.Config) { c.AppToken = slackSecret("") },
		"tokens swapped":     func(c *slack.Config) { c.AppToken, c.BotToken = c.BotToken, c.AppToken },
		"a user token":       func(c *slack.Config) { c.BotToken = slackSecret("xoxp-1234567890") },
		"http to elsewhere":  func(c *slack.Config) { c.API = "http://slack.example/api" },
		"no address":         func(c *slack.Config) { c.API = "slack" },
		"a password in it":   func(c *slack.Config) { c.API = "https://u:p@slack.example/api" },
		"another scheme":     func(c *slack.Config) { c.API = "ftp://127.0.0.1/api" },
		"a query":            func(c *slack.Config) { c.API = "https://slack.example/api?x=1" },
		"a host like a loop": func(c *slack.Config) { c.API = "http://127.0.0.1.evil.example/api" },
	} {
		c := good
		edit(&c)
		_, err := slack.New(c, intakeFunc(nil), slackSilence())
		require.Error(t, err, name)
		require.NotContains(t, err.Error(), "1234567890", name)
	}
	_, err := slack.New(good, nil, slackSilence())
	require.Error(t, err)
	_, err = slack.New(good, intakeFunc(nil), nil)
	require.Error(t, err)
	a, err := slack.New(good, intakeFunc(nil), slackSilence())
	require.NoError(t, err)
	ready, why := a.Ready()
	require.False(t, ready)
	require.Equal(t, "not started", why)
}
