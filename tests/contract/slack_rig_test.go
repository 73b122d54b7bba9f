package contract_test

import (
	"cmp"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"parlour/bridge"
	"parlour/bridge/ask"
	"parlour/bridge/journal"
	"parlour/bridge/slack"
	"parlour/guardrail/secret"
	slackfake "parlour/tests/fakes/slack"
	"parlour/tests/house"
	"parlour/tiers"
)

const (
	slackHall   = "C0HALL0001" // anyone is a guest here
	slackOther  = "C0OTHER001" // no rule names it
	slackShared = "C0SHARED01" // shared with another organisation; anyone is a guest here
	slackDM     = "D0TEAM0001"
	slackTeam   = "U0TEAM0001" // a member of the team
	slackGuest  = "U0GUEST001" // anybody of the workspace
	slackGrid   = "W012A3CDE"
	slackPeer   = "U0EXT00001" // of another organisation
	slackWait   = 30 * time.Second
)

func slackRules() tiers.Rules {
	home := slackfake.HomeTeam
	return tiers.NewRules([]tiers.Rule{
		{Tier: tiers.Team, Platform: tiers.Slack, Workspace: home, Users: []string{slackTeam}, Origin: "team.yaml:3"},
		{Tier: tiers.Guest, Platform: tiers.Slack, Workspace: home, Channels: []string{slackHall, slackShared}, Anyone: true, Origin: "guest.yaml:3"},
		{Tier: tiers.Team, Platform: tiers.Slack, Workspace: "T0OTHER01", Users: []string{slackPeer}, Origin: "team.yaml:9"},
	}, nil)
}

// slackLate closes the circle of gate, outbox and adapter.
type slackLate struct{ bridge.Sender }

func (l *slackLate) Report(ctx context.Context, job ask.Job, p ask.Progress) error {
	if reporter, can := l.Sender.(bridge.Reporter); can {
		return reporter.Report(ctx, job, p)
	}
	return nil
}

func (l *slackLate) Look(ctx context.Context, who tiers.Identity, where tiers.Place) (tiers.Identity, error) {
	if looker, can := l.Sender.(bridge.Looker); can {
		return looker.Look(ctx, who, where)
	}
	return who, nil
}

// slackRig is a bot that serves the fake.
type slackRig struct {
	t        *testing.T
	shelf    shelf
	belief   time.Duration // 0: as in real; set before adapt
	fake     *slackfake.Server
	journal  *journal.Journal
	adapter  *slack.Adapter
	delegate *delegate
	log      *house.Printed
	late     *slackLate
	outbox   *bridge.Outbox
	reports  time.Duration // until the first report on the progress; 0: as in real
	rhythm   time.Duration // between two reports; 0: as the first
	intake   slack.Intake  // nil: the gate
	stop     func()
}

func slackFake(t *testing.T, cfg slackfake.Config) *slackfake.Server {
	t.Helper()
	fake, err := slackfake.Start(cfg)
	require.NoError(t, err)
	t.Cleanup(fake.Close)
	for _, c := range []slackfake.Channel{{ID: slackHall}, {ID: slackOther}, {ID: slackShared, Shared: true}, {ID: slackDM, Direct: true}} {
		fake.AddChannel(c)
	}
	for _, id := range []string{slackTeam, slackGuest, slackGrid} {
		fake.AddUser(slackfake.User{ID: id, Name: "Olive Owner"})
	}
	fake.AddUser(slackfake.User{ID: slackPeer, Team: "T0OTHER01", Stranger: true})
	return fake
}

// slackBot makes a bot in front of the fake, ready to be started.
func slackBot(t *testing.T, fake *slackfake.Server, dir string, d *delegate) *slackRig {
	t.Helper()
	j, err := journal.Open(t.Context(), journal.Config{Dir: dir, Origin: journal.Serve})
	require.NoError(t, err)
	r := &slackRig{t: t, fake: fake, journal: j, delegate: d, log: &house.Printed{}, late: &slackLate{}}
	r.stop = sync.OnceFunc(func() { _ = j.Close() })
	t.Cleanup(func() {
		r.stop()
		for _, hidden := range []string{slackfake.AppToken, slackfake.BotToken, "ticket-secret"} {
			require.NotContains(t, r.log.String(), hidden)
		}
	})
	r.shelf.put(book(slackRules())())
	log := slog.New(slog.NewTextHandler(r.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	out, err := bridge.NewOutbox(j, r.late, nil, log)
	require.NoError(t, err)
	gate, err := bridge.NewGate(r.shelf.rulebook, j, out)
	require.NoError(t, err)
	r.intake = gate
	r.outbox = out
	r.adapter = r.adapt(r.intake)
	return r
}

// adapt makes the adapter in front of an intake.
func (r *slackRig) adapt(intake slack.Intake) *slack.Adapter {
	r.t.Helper()
	a, err := slack.New(slack.Config{
		AppToken: secret.New(slackfake.AppToken), BotToken: secret.New(slackfake.BotToken), API: r.fake.API(), Patience: 2 * time.Second,
		Belief: r.belief,
		Groups: func(workspace string) (named, denied []string) { return r.shelf.rulebook().Groups(workspace) },
	}, intake, slog.New(slog.NewTextHandler(r.log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	require.NoError(r.t, err)
	r.late.Sender = a
	return a
}

func (r *slackRig) worker() *bridge.Worker {
	r.t.Helper()
	redactor, err := secret.NewRedactor(secret.New("key-sentinel-0001"))
	require.NoError(r.t, err)
	w, err := bridge.NewWorker(bridge.WorkerConfig{
		Book: r.shelf.rulebook, Journal: r.journal, Delegate: r.delegate, Outbox: r.outbox, Secrets: redactor, Parallel: 4,
		Log:         slog.New(slog.NewTextHandler(r.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		ReportAfter: r.reports, ReportEvery: cmp.Or(r.rhythm, r.reports),
	})
	require.NoError(r.t, err)
	return w
}

// serve lets the bot work until the test, or stop, ends it.
func (r *slackRig) serve() *slackRig {
	r.t.Helper()
	worker := r.worker()
	ctx, cancel := context.WithCancel(r.t.Context())
	done := make(chan error, 2)
	go func() { done <- r.adapter.Run(ctx) }()
	go func() { done <- worker.Serve(ctx) }()
	closing := r.stop
	r.stop = sync.OnceFunc(func() {
		cancel()
		for range 2 {
			require.NoError(r.t, <-done)
		}
		closing()
	})
	r.until("the bot is ready", func() bool { ready, _ := r.adapter.Ready(); return ready })
	return r
}

// slackServe is a serving bot with a delegate that answers.
func slackServe(t *testing.T, d *delegate) *slackRig {
	t.Helper()
	return slackBot(t, slackFake(t, slackfake.Config{}), t.TempDir(), d).serve()
}

// until waits for something that the fake or the bot shows.
func (r *slackRig) until(what string, holds func() bool) {
	r.t.Helper()
	deadline := time.NewTimer(slackWait)
	defer deadline.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline.C:
			require.Fail(r.t, "waited in vain until "+what, r.log.String())
		}
	}
}

// answers waits for n posts of the bot.
func (r *slackRig) answers(n int) []slackfake.Message {
	r.t.Helper()
	r.until("there are answers", func() bool { return len(r.fake.Answers()) >= n })
	got := r.fake.Answers()
	require.Len(r.t, got, n)
	return got
}

// settled waits until every event so far is acknowledged and nothing is on its
// way, by asking a last question and waiting for its answer.
func (r *slackRig) settled() {
	r.t.Helper()
	ts := r.fake.Say(slackfake.Post{Channel: slackHall, User: slackTeam, Text: "<@U0BOT00001> are you there"})
	r.until("the last question is answered", func() bool { return r.inThread(ts) != nil })
	r.until("all is acknowledged", func() bool { return len(r.fake.Unacknowledged()) == 0 })
}

// inThread gives the bot's posts in a thread.
func (r *slackRig) inThread(ts string) (found []slackfake.Message) {
	for _, m := range r.fake.Answers() {
		if m.Thread == ts {
			found = append(found, m)
		}
	}
	return found
}

func (r *slackRig) runs() int {
	r.delegate.mu.Lock()
	defer r.delegate.mu.Unlock()
	return len(r.delegate.seen)
}

// questions gives what the runs were asked.
func (r *slackRig) questions() (texts []string) {
	r.delegate.mu.Lock()
	defer r.delegate.mu.Unlock()
	for _, p := range r.delegate.seen {
		texts = append(texts, p.Question)
	}
	return texts
}

func (r *slackRig) jobs() (jobs []ask.Event) {
	events, err := r.journal.Events(r.t.Context(), journal.Filter{})
	require.NoError(r.t, err)
	for _, e := range events {
		if e.Kind == ask.EventAccepted {
			jobs = append(jobs, e)
		}
	}
	return jobs
}

func slackMention(text string) slackfake.Post {
	return slackfake.Post{Channel: slackHall, User: slackGuest, Text: "<@U0BOT00001> " + text}
}

// slackInner is the inner event of a post, as Slack writes it.
func slackInner(fake *slackfake.Server, kind, channel, user, text string) map[string]any {
	ts, _ := fake.Write(slackfake.Post{Channel: channel, User: user, Text: text})
	return map[string]any{"type": kind, "user": user, "text": text, "ts": ts, "event_ts": ts, "channel": channel, "channel_type": "channel"}
}

func slackContains(texts []string, part string) bool {
	for _, t := range texts {
		if strings.Contains(t, part) {
			return true
		}
	}
	return false
}

func slackSecret(s string) secret.Value { return secret.New(s) }

func slackConfig() slack.Config {
	return slack.Config{AppToken: slackSecret(slackfake.AppToken), BotToken: slackSecret(slackfake.BotToken), API: "http://127.0.0.1:9/api"}
}

func slackSilence() *slog.Logger { return slog.New(slog.DiscardHandler) }
