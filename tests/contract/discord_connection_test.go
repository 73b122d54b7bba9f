package contract_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"parlour/bridge"
	"parlour/bridge/ask"
	"parlour/bridge/discord"
	"parlour/guardrail/secret"

	fake "parlour/tests/fakes/discord"
)

// answersAgain shows that the bot hears and answers.
func (r *discordBotRig) answersAgain(text string) {
	r.t.Helper()
	id := r.fake.Say(ask1(discordChannel, discordTeam, mentionBot+" "+text))
	r.posts(id, 1)
}

func TestDiscordReconnects(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fault  func(*fake.Server)
		resume bool
	}{
		"closed with 4000":    {func(f *fake.Server) { f.CloseAll(4000) }, true},
		"closed with 1001":    {func(f *fake.Server) { f.CloseAll(1001) }, true},
		"cut":                 {func(f *fake.Server) { f.Drop() }, true},
		"asked to":            {func(f *fake.Server) { f.Reconnect() }, true},
		"invalid session":     {func(f *fake.Server) { f.Invalidate() }, false},
		"resume is not valid": {func(f *fake.Server) { f.SetGateway(fake.Gateway{InvalidResume: true}); f.CloseAll(4000) }, false},
		"identify is refused twice": {func(f *fake.Server) {
			f.SetGateway(fake.Gateway{InvalidResume: true, InvalidIdentify: 2})
			f.CloseAll(4000)
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := serveDiscord(t, answers("an answer"))
			r.answersAgain("before")
			before := len(r.fake.Ops())
			c.fault(r.fake)
			r.until("it came back", func() bool {
				ok, _ := r.adapter.Ready()
				return ok && len(r.fake.Ops()) > before && r.fake.Listening() == 1
			})
			r.answersAgain("after")
			require.Equal(t, c.resume, slices.Equal(r.fake.Ops()[before:], []int{6}), "%v", r.fake.Ops())
			r.stop()
			r.clean()
		})
	}
}

func TestDiscordResumeBringsWhatWasMissedOnce(t *testing.T) {
	t.Parallel()
	r := serveDiscord(t, answers("an answer"))
	r.answersAgain("before")
	r.fake.CloseAll(4000)
	r.until("it is away", func() bool { return r.fake.Listening() == 0 })
	missed := r.fake.Say(ask1(discordChannel, discordGuest, mentionBot+" missed"))
	r.posts(missed, 1)
	r.fake.Replay(20)
	r.settled()
	require.Equal(t, []string{"before", "missed"}, r.ran())
	require.Len(t, r.fake.Posted(missed), 1)
	r.stop()
	r.clean()
}

func TestDiscordSilentGatewayIsLeft(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		faults fake.Gateway
		timing discord.Timing
	}{
		"no hello":        {fake.Gateway{NoHello: true}, discord.Timing{Hello: 300 * time.Millisecond}},
		"no ready":        {fake.Gateway{NoReady: true}, discord.Timing{Hello: 300 * time.Millisecond}},
		"no heartbeat":    {fake.Gateway{NoAck: true}, discord.Timing{Hello: 5 * time.Second, Silence: 400 * time.Millisecond}},
		"no upgrade":      {fake.Gateway{RefuseUpgrade: 503}, discord.Timing{}},
		"op 7 for resume": {fake.Gateway{ReconnectResume: true}, discord.Timing{Hello: 500 * time.Millisecond}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newDiscordFake(t)
			timing := c.timing
			timing.Backoff, timing.Identify, timing.Stop = 20*time.Millisecond, time.Millisecond, time.Second
			r := openDiscord(t, f, t.TempDir(), answers("an answer"), timing)
			f.SetGateway(c.faults)
			r.run()
			if c.faults.ReconnectResume {
				r.ready()
				f.CloseAll(4000)
			}
			r.until("it tried again", func() bool {
				made, _ := f.Connections()
				return made >= 2 || strings.Count(r.log.String(), "connection lost") >= 2
			})
			f.SetGateway(fake.Gateway{Heartbeat: 50 * time.Millisecond})
			r.until("it gets through", func() bool { ok, _ := r.adapter.Ready(); return ok && f.Listening() == 1 })
			r.answersAgain("after")
			r.stop()
			r.clean()
		})
	}
}

func TestDiscordQuietGatewayIsNotLeft(t *testing.T) {
	t.Parallel()
	f := newDiscordFake(t)
	f.SetGateway(fake.Gateway{Heartbeat: 100 * time.Millisecond})
	r := openDiscord(t, f, t.TempDir(), answers("an answer"), discord.Timing{Silence: 600 * time.Millisecond})
	r.run()
	r.ready()
	require.False(t, f.Wait(2*time.Second, func() bool { made, _ := f.Connections(); return made > 1 }))
	ok, why := r.adapter.Ready()
	require.True(t, ok)
	require.Contains(t, why, "last frame")
}

func TestDiscordReadyNeedsReady(t *testing.T) {
	t.Parallel()
	f := newDiscordFake(t)
	f.SetGateway(fake.Gateway{NoReady: true})
	r := openDiscord(t, f, t.TempDir(), answers("an answer"), quickTiming())
	ok, why := r.adapter.Ready()
	require.False(t, ok)
	require.Equal(t, "discord: not connected yet", why)
	r.run()
	r.until("identified", func() bool { return len(f.Ops()) > 0 })
	ok, _ = r.adapter.Ready()
	require.False(t, ok, "a socket is not enough")
	f.SetGateway(fake.Gateway{})
	r.ready()
	r.stop()
	ok, why = r.adapter.Ready()
	require.False(t, ok)
	require.Contains(t, why, "stopped")
}

func TestDiscordFatalCloseIsNotTriedAgain(t *testing.T) {
	t.Parallel()
	for _, code := range []int{4004, 4010, 4011, 4012, 4013, 4014} {
		f := newDiscordFake(t)
		f.SetGateway(fake.Gateway{CloseIdentify: code})
		r := openDiscord(t, f, t.TempDir(), answers("an answer"), quickTiming())
		r.run()
		var end *discord.FatalError
		select {
		case err := <-r.ended:
			require.ErrorAs(t, err, &end)
		case <-time.After(discordWait):
			require.Fail(t, "Run goes on", "%d", code)
		}
		require.Equal(t, code, end.Code)
		made, _ := f.Connections()
		require.Equal(t, 1, made)
		_, why := r.adapter.Ready()
		require.NotContains(t, why, "sentinel")
		r.stop()
		r.clean()
	}
}

func TestDiscordOtherCloseCodesAreTriedAgain(t *testing.T) {
	t.Parallel()
	f := newDiscordFake(t)
	f.SetGateway(fake.Gateway{CloseIdentify: 4008})
	r := openDiscord(t, f, t.TempDir(), answers("an answer"), quickTiming())
	r.run()
	r.until("three attempts", func() bool { made, _ := f.Connections(); return made >= 3 })
	f.SetGateway(fake.Gateway{})
	r.ready()
	r.stop()
	r.clean()
}

func TestDiscordStopStoresWhatHasArrived(t *testing.T) {
	t.Parallel()
	f, dir := newDiscordFake(t), t.TempDir()
	r := openDiscord(t, f, dir, answers("an answer"), quickTiming())
	arrived, release := make(chan struct{}), make(chan struct{})
	r.probe.before = func(bridge.Message) error {
		close(arrived)
		<-release
		return nil
	}
	r.run()
	r.ready()
	id := f.Say(ask1(discordChannel, discordGuest, mentionBot+" why?"))
	<-arrived
	stopped := make(chan struct{})
	go func() { r.stop(); close(stopped) }()
	r.until("it is told to stop", func() bool { _, open := f.Connections(); return open == 0 })
	close(release)
	<-stopped
	require.Empty(t, f.Posted(id))
	again := openDiscord(t, f, dir, answers("an answer"), quickTiming())
	again.run()
	again.posts(id, 1)
	again.stop()
}

// The library leaves its goroutines behind for a moment; ours must all end.
func TestDiscordLeavesNoGoroutineBehind(t *testing.T) {
	before := runtime.NumGoroutine()
	for range 2 {
		func() {
			f, err := fake.New(fake.Config{Token: discordToken, Bot: discordBot})
			require.NoError(t, err)
			defer f.Close()
			f.AddChannel(fake.Channel{ID: discordChannel, Guild: discordGuild})
			r := openDiscord(t, f, t.TempDir(), answers("an answer"), quickTiming())
			r.run()
			r.ready()
			r.answersAgain("one")
			f.Drop()
			r.until("it is back", func() bool { ok, _ := r.adapter.Ready(); return ok && f.Listening() == 1 })
			r.answersAgain("two")
			began := time.Now()
			r.stop()
			require.Less(t, time.Since(began), 8*time.Second)
		}()
	}
	deadline := time.Now().Add(10 * time.Second)
	for runtime.NumGoroutine() > before && time.Now().Before(deadline) {
		<-time.After(50 * time.Millisecond)
	}
	require.LessOrEqual(t, runtime.NumGoroutine(), before, "%s", stacks())
}

func TestDiscordRunsOnceAndRefusesBadSettings(t *testing.T) {
	t.Parallel()
	log := slog.New(slog.DiscardHandler)
	probe := &gateProbe{}
	for name, cfg := range map[string]discord.Config{
		"no token":       {},
		"short token":    {Token: secret.New("abc")},
		"token of two":   {Token: secret.New("sentinel one")},
		"token of lines": {Token: secret.New("sentinel\r\nX-Evil: 1")},
		"plain http":     {Token: secret.New(discordToken), API: "http://discord.example"},
		"no host":        {Token: secret.New(discordToken), API: "discord.example"},
		"user in it":     {Token: secret.New(discordToken), API: "https://a:b@discord.example"},
		"other scheme":   {Token: secret.New(discordToken), API: "file:///etc"},
		"not an address": {Token: secret.New(discordToken), API: "https://%zz"},
	} {
		_, err := discord.New(cfg, probe, log)
		require.Error(t, err, name)
		require.NotContains(t, err.Error(), "sentinel", name)
	}
	_, err := discord.New(discord.Config{Token: secret.New(discordToken)}, nil, log)
	require.Error(t, err)
	_, err = discord.New(discord.Config{Token: secret.New("Bot " + discordToken), API: "https://proxy.example/discord/"}, probe, log)
	require.NoError(t, err)

	r := serveDiscord(t, answers("an answer"))
	require.ErrorContains(t, r.adapter.Run(t.Context()), "before")
}

func TestDiscordIdentifiesWithTheSmallestIntents(t *testing.T) {
	t.Parallel()
	r := serveDiscord(t, answers("an answer"))
	require.Equal(t, []int{1<<0 | 1<<9 | 1<<12}, r.fake.Intents(), "guilds, their messages, direct messages: none is privileged")
	for _, q := range r.fake.Requests("", nil) {
		require.Equal(t, "Bot "+discordToken, q.Auth)
	}
}

func TestDiscordTokenFollowsNoRedirect(t *testing.T) {
	t.Parallel()
	got := make(chan string, 10)
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got <- r.Header.Get("Authorization") }))
	t.Cleanup(elsewhere.Close)
	f := newDiscordFake(t)
	f.Fail(fake.Rule{Status: http.StatusTemporaryRedirect, Header: map[string]string{"Location": elsewhere.URL + "/api/v10/x"}})
	r := openDiscord(t, f, t.TempDir(), answers("x"), quickTiming())
	r.run()
	r.until("it tried to connect", func() bool { return len(f.Requests("GET", nil)) >= 2 })
	job := ask.Job{ID: "01J", ReplyTo: discordChannel + "/700000000000000555/reply", At: time.Now()}
	require.Error(t, r.adapter.Deliver(t.Context(), job, ask.Ended{Outcome: ask.Outcome{Kind: ask.Answered, Text: "x"}}))
	require.Empty(t, got)
	r.stop()
	r.clean()
}
