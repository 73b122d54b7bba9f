package contract_test

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"parlour/bridge"
	"parlour/bridge/ask"
	"parlour/bridge/discord"
	"parlour/bridge/journal"
	"parlour/guardrail/secret"
	"parlour/tests/house"
	"parlour/tiers"

	fake "parlour/tests/fakes/discord"
)

// The people and places of the Discord tests.
const (
	discordToken   = "token-sentinel.discord.0001"
	discordBot     = "100000000000000001"
	discordGuild   = "900000000000000001"
	discordChannel = "700000000000000001"
	discordOther   = "700000000000000002" // in no rule
	discordVoice   = "700000000000000003"
	discordThread  = "700000000000000099" // of discordChannel
	discordDM      = "600000000000000001"
)

var (
	discordGuest = fake.User{ID: "333333333333333333", Name: "Olive Owner"}
	discordTeam  = fake.User{ID: "222222222222222222", Name: "team"}
	discordOwner = fake.User{ID: "111111111111111111", Name: "owner"}
)

func discordRules() tiers.Rules {
	return tiers.NewRules([]tiers.Rule{
		{Tier: tiers.Owner, Platform: tiers.Discord, Users: []string{discordOwner.ID}, Origin: "owner.yaml:1"},
		{Tier: tiers.Team, Platform: tiers.Discord, Workspace: discordGuild, Users: []string{discordTeam.ID}, Origin: "team.yaml:1"},
		{Tier: tiers.Guest, Platform: tiers.Discord, Workspace: discordGuild, Channels: []string{discordChannel, discordVoice},
			Anyone: true, Origin: "guest.yaml:1"},
	}, nil)
}

// router lets the outbox be made before the adapter, which needs the gate.
type router struct{ to bridge.Sender }

func (r *router) Deliver(ctx context.Context, job ask.Job, ended ask.Ended) error {
	return r.to.Deliver(ctx, job, ended)
}

func (r *router) Report(ctx context.Context, job ask.Job, p ask.Progress) error {
	if reporter, can := r.to.(bridge.Reporter); can {
		return reporter.Report(ctx, job, p)
	}
	return nil
}

func (r *router) Look(ctx context.Context, who tiers.Identity, where tiers.Place) (tiers.Identity, error) {
	if looker, can := r.to.(bridge.Looker); can {
		return looker.Look(ctx, who, where)
	}
	return who, nil
}

// gateProbe stands between adapter and gate.
type gateProbe struct {
	gate *bridge.Gate

	mu     sync.Mutex
	before func(bridge.Message) error
	seen   []bridge.Message
}

func (p *gateProbe) Accept(ctx context.Context, m bridge.Message) (bridge.Accepted, error) {
	p.mu.Lock()
	p.seen = append(p.seen, m)
	before := p.before
	p.mu.Unlock()
	if before != nil {
		if err := before(m); err != nil {
			return bridge.Accepted{}, err
		}
	}
	return p.gate.Accept(ctx, m)
}

func (p *gateProbe) messages() []bridge.Message {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]bridge.Message(nil), p.seen...)
}

// discordBotRig is a bot that serves a fake Discord.
type discordBotRig struct {
	t        *testing.T
	shelf    shelf
	fake     *fake.Server
	journal  *journal.Journal
	probe    *gateProbe
	adapter  *discord.Adapter
	delegate *delegate
	log      *house.Printed
	outbox   *bridge.Outbox
	reports  time.Duration // until the first report on the progress; 0: as in real
	rhythm   time.Duration // between two reports; 0: as the first
	ended    chan error    // what Run gave
	stop     func()
}

func quickTiming() discord.Timing {
	return discord.Timing{
		Hello: 5 * time.Second, Silence: time.Minute, Backoff: 20 * time.Millisecond, Identify: time.Millisecond,
		Request: 5 * time.Second, Delivery: 15 * time.Second, Typing: time.Second, Stop: 2 * time.Second,
	}
}

func newDiscordFake(t *testing.T) *fake.Server {
	t.Helper()
	f, err := fake.New(fake.Config{Token: discordToken, Bot: discordBot, OpenAPI: "../../../shared/data/discord-openapi.json"})
	require.NoError(t, err)
	t.Cleanup(f.Close)
	f.AddChannel(fake.Channel{ID: discordChannel, Guild: discordGuild, Name: "questions", Parent: "700000000000000777"})
	f.AddChannel(fake.Channel{ID: discordOther, Guild: discordGuild, Name: "other"})
	f.AddChannel(fake.Channel{ID: discordVoice, Guild: discordGuild, Type: fake.Voice, Name: "voice"})
	f.AddChannel(fake.Channel{ID: discordThread, Guild: discordGuild, Type: fake.PublicThread, Parent: discordChannel, Name: "thread"})
	f.AddChannel(fake.Channel{ID: discordDM, Type: fake.Direct})
	return f
}

// openDiscord makes a bot with a state folder; nothing runs yet.
func openDiscord(t *testing.T, f *fake.Server, dir string, d *delegate, timing discord.Timing) *discordBotRig {
	t.Helper()
	r := &discordBotRig{t: t, fake: f, delegate: d, log: &house.Printed{}, ended: make(chan error, 1)}
	log := slog.New(slog.NewTextHandler(r.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	j, err := journal.Open(t.Context(), journal.Config{Dir: dir, Origin: journal.Serve})
	require.NoError(t, err)
	r.journal = j
	route := &router{}
	r.outbox, err = bridge.NewOutbox(j, route, nil, log)
	require.NoError(t, err)
	r.shelf.put(book(discordRules())())
	gate, err := bridge.NewGate(r.shelf.rulebook, j, r.outbox)
	require.NoError(t, err)
	r.probe = &gateProbe{gate: gate}
	r.adapter, err = discord.New(discord.Config{Token: secret.New(discordToken), API: f.URL(), Timing: timing}, r.probe, log)
	require.NoError(t, err)
	route.to = r.adapter
	r.stop = sync.OnceFunc(func() { require.NoError(t, j.Close()) })
	t.Cleanup(func() { r.stop() })
	return r
}

// run starts the adapter and a worker.
func (r *discordBotRig) run() {
	r.t.Helper()
	log := slog.New(slog.NewTextHandler(r.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	w, err := bridge.NewWorker(bridge.WorkerConfig{
		Book: r.shelf.rulebook, Journal: r.journal, Delegate: r.delegate, Outbox: r.outbox, Parallel: 4, Log: log,
		ReportAfter: r.reports, ReportEvery: cmp.Or(r.rhythm, r.reports),
	})
	require.NoError(r.t, err)
	ctx, cancel := context.WithCancel(r.t.Context())
	worked := make(chan error, 1)
	connected := make(chan struct{})
	go func() { worked <- w.Serve(ctx) }()
	go func() {
		r.ended <- r.adapter.Run(ctx)
		close(connected)
	}()
	closing := r.stop
	r.stop = sync.OnceFunc(func() {
		cancel()
		<-connected
		require.NoError(r.t, <-worked)
		closing()
	})
}

func serveDiscord(t *testing.T, d *delegate) *discordBotRig {
	t.Helper()
	r := openDiscord(t, newDiscordFake(t), t.TempDir(), d, quickTiming())
	r.run()
	r.ready()
	return r
}

const discordWait = 20 * time.Second

func (r *discordBotRig) ready() {
	r.t.Helper()
	r.until("the bot is ready", func() bool { ok, _ := r.adapter.Ready(); return ok && r.fake.Listening() > 0 })
}

func (r *discordBotRig) until(what string, ok func() bool) {
	r.t.Helper()
	require.True(r.t, r.fake.Wait(discordWait, ok), "%s\n%s", what, tail(r.log.String()))
}

func tail(s string) string { return s[max(0, len(s)-3000):] }

// posts waits for n messages of the bot in a channel; an empty channel is any.
func (r *discordBotRig) posts(channel string, n int) []fake.Message {
	r.t.Helper()
	r.until("an answer is posted", func() bool { return len(r.fake.Posted(channel)) >= n })
	return r.fake.Posted(channel)
}

// settled asks one more question and waits for its answer, so that whatever was
// sent before has gone its way.
func (r *discordBotRig) settled() {
	r.t.Helper()
	id := r.fake.Say(fake.Said{Channel: discordChannel, Author: discordTeam, Content: mentionBot + " the last one"})
	r.posts(id, 1)
}

// ran gives the questions that reached a run, without those of settled.
func (r *discordBotRig) ran() []string {
	r.delegate.mu.Lock()
	defer r.delegate.mu.Unlock()
	out := []string{}
	for _, p := range r.delegate.seen {
		if p.Question != "the last one" {
			out = append(out, p.Question)
		}
	}
	return out
}

const mentionBot = "<@" + discordBot + ">"

func ask1(channel string, who fake.User, text string) fake.Said {
	return fake.Said{Channel: channel, Author: who, Content: text}
}

// clean checks what holds after every test: no broken request and no secret
// outside the requests' own header.
func (r *discordBotRig) clean() {
	r.t.Helper()
	require.Empty(r.t, r.fake.Problems())
	require.NotContains(r.t, r.log.String(), "sentinel")
	for _, q := range r.fake.Requests("", nil) {
		require.NotContains(r.t, q.Body+q.Path, "sentinel")
	}
}

func isReaction(path string) bool { return strings.Contains(path, "/reactions/") }

func isMessages(path string) bool { return strings.HasSuffix(path, "/messages") }

func isThreads(path string) bool { return strings.HasSuffix(path, "/threads") }

func stacks() string {
	buf := make([]byte, 1<<20)
	return string(buf[:runtime.Stack(buf, true)])
}

func described(t *testing.T) {
	t.Helper()
	if _, err := os.Stat("../../../shared/data/discord-openapi.json"); errors.Is(err, os.ErrNotExist) {
		t.Skip("Discord's description of its API is not beside the checkout (../shared/data/discord-openapi.json)")
	}
}
