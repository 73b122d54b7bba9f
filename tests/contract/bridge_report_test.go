package contract_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"parlour/bridge"
	"parlour/bridge/ask"
	"parlour/bridge/journal"
	"parlour/tests/house"
	"parlour/tiers"
)

// place is a sender that shows progress. It keeps what happened in its order.
type place struct {
	report func(context.Context, ask.Progress) error // nil: it is shown
	mu     sync.Mutex
	seen   []string
	got    chan ask.Ended
}

func newPlace() *place { return &place{got: make(chan ask.Ended, 100)} }

func (p *place) note(what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen = append(p.seen, what)
}

func (p *place) all() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string{}, p.seen...)
}

func (p *place) Report(ctx context.Context, _ ask.Job, now ask.Progress) error {
	if p.report != nil {
		if err := p.report(ctx, now); err != nil {
			return err
		}
	}
	p.note(ask.Working(now))
	return nil
}

func (p *place) Deliver(_ context.Context, _ ask.Job, ended ask.Ended) error {
	p.note("outcome: " + ended.Outcome.Text)
	p.got <- ended
	return nil
}

// seat is a worker in front of a sender of the test's own.
type seat struct {
	t       *testing.T
	journal *journal.Journal
	gate    *bridge.Gate
	worker  *bridge.Worker
	log     *house.Printed
	end     func() error
}

// sit opens the journal and starts to work; everything ends with the test.
func sit(t *testing.T, dir string, d *delegate, sender bridge.Sender) *seat {
	t.Helper()
	s := prepare(t, dir, d, sender)
	s.work()
	return s
}

// prepare opens the journal without working yet.
func prepare(t *testing.T, dir string, d *delegate, sender bridge.Sender) *seat {
	t.Helper()
	j, err := journal.Open(t.Context(), journal.Config{Dir: dir, Origin: journal.Serve})
	require.NoError(t, err)
	s := &seat{t: t, journal: j, log: &house.Printed{}, end: j.Close}
	t.Cleanup(func() { _ = s.end() })
	log := slog.New(slog.NewTextHandler(s.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	out, err := bridge.NewOutbox(j, sender, nil, log)
	require.NoError(t, err)
	s.gate, err = bridge.NewGate(book(someRules), j, out)
	require.NoError(t, err)
	s.worker, err = bridge.NewWorker(bridge.WorkerConfig{Book: book(someRules), Journal: j, Delegate: d, Outbox: out, Parallel: 4, Log: log})
	require.NoError(t, err)
	return s
}

func (s *seat) work() {
	ctx, cancel := context.WithCancel(s.t.Context())
	done := make(chan error, 1)
	go func() { done <- s.worker.Serve(ctx) }()
	s.end = sync.OnceValue(func() error {
		cancel()
		return errors.Join(<-done, s.journal.Close())
	})
}

// quiet says whether every question has ended and nothing waits to be delivered.
func quiet(t *testing.T, j *journal.Journal) bool {
	t.Helper()
	events, err := j.Events(t.Context(), journal.Filter{})
	require.NoError(t, err)
	open := map[string]bool{}
	for _, e := range events {
		switch e.Kind {
		case ask.EventAccepted:
			open[e.Job] = true
		case ask.EventDelivered, ask.EventUndeliverable:
			delete(open, e.Job)
		}
	}
	return len(events) > 0 && len(open) == 0
}

func (s *seat) accept(m bridge.Message) journal.Accepted {
	s.t.Helper()
	got, err := s.gate.Accept(s.t.Context(), m)
	require.NoError(s.t, err)
	return got
}

// takes is a delegate whose runs take a time, unless they are stopped.
func takes(d time.Duration) *delegate {
	return &delegate{plan: planned, run: func(ctx context.Context, _ ask.Prompt) ask.Result {
		select {
		case <-time.After(d):
			return ask.Result{Answer: "at last"}
		case <-ctx.Done():
			return ask.Result{Cause: ask.Interrupted}
		}
	}}
}

func TestALongRunShowsItsProgressAndAFastOneDoesNot(t *testing.T) {
	t.Parallel()
	for took, want := range map[time.Duration][]string{
		3 * time.Second: {"outcome: at last"},
		28 * time.Second: {
			"Working on it: fake, 4 s.", "Working on it: fake, 14 s.", "Working on it: fake, 24 s.", "outcome: at last",
		},
	} {
		t.Run(took.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := newPlace()
				s := sit(t, t.TempDir(), takes(took), p)
				s.accept(message("1", "guest", "why?"))
				<-p.got
				<-time.After(time.Minute)
				require.Equal(t, want, p.all())
				require.NoError(t, s.end())
			})
		})
	}
}

// The run ends while a report is on its way; the report is called back, and the
// outcome comes after it.
func TestNoReportComesAfterTheOutcome(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPlace()
		p.report = func(ctx context.Context, _ ask.Progress) error {
			<-ctx.Done()
			<-time.After(time.Second) // it is on the wire
			p.note("called back")
			return ctx.Err()
		}
		s := sit(t, t.TempDir(), takes(5*time.Second), p)
		began := time.Now()
		s.accept(message("1", "guest", "why?"))
		<-p.got
		require.Equal(t, 6*time.Second, time.Since(began).Round(time.Second))
		<-time.After(time.Minute)
		require.Equal(t, []string{"called back", "outcome: at last"}, p.all())
		require.NotContains(t, s.log.String(), "progress could not be shown", "being called back is no fault")
		require.NoError(t, s.end())
	})
}

func TestAReporterThatHangsHoldsUpNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, never := newPlace(), make(chan struct{})
		p.report = func(context.Context, ask.Progress) error { <-never; return errors.New("too late") }
		s := sit(t, t.TempDir(), takes(30*time.Second), p)
		began := time.Now()
		s.accept(message("1", "guest", "why?"))
		require.Equal(t, ask.Answered, (<-p.got).Outcome.Kind)
		require.Less(t, time.Since(began), 33*time.Second)
		close(never)
		require.NoError(t, s.end())
	})
}

func TestReportsThatFailHurtNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPlace()
		p.report = func(context.Context, ask.Progress) error { return errors.New("the platform is busy") }
		s := sit(t, t.TempDir(), takes(time.Minute), p)
		s.accept(message("1", "guest", "why?"))
		<-p.got
		require.Equal(t, []string{"outcome: at last"}, p.all())
		require.NoError(t, s.end())
		require.Equal(t, 1, strings.Count(s.log.String(), "the platform is busy"), "and the log says it once")
	})
}

func TestProgressSaysWhichRunnerIsAtWork(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPlace()
		d := chain([]string{"claude", "codex"}, map[string][]ask.Cause{"claude": {ask.ModelBusy, ask.ModelBusy}})
		quick := d.run
		d.run = func(ctx context.Context, prompt ask.Prompt) ask.Result {
			<-time.After(10 * time.Second)
			return quick(ctx, prompt)
		}
		s := sit(t, t.TempDir(), d, p)
		s.accept(message("1", "guest", "why?"))
		<-p.got
		require.Equal(t, []string{
			"Working on it: claude, 4 s.", "Working on it: claude once more, 14 s.", "Working on it: codex in place of claude, 24 s.",
			"outcome: by codex",
		}, p.all())
		require.NoError(t, s.end())
	})
}

// What is shown must stay true when the bot is stopped in the middle of a run.
func TestAStoppedBotSaysSoWhereItShowedProgress(t *testing.T) {
	t.Parallel()
	for after, want := range map[time.Duration][]string{
		2 * time.Second: {},
		5 * time.Second: {"Working on it: fake, 4 s.", ask.Working(ask.Progress{Stopped: true})},
	} {
		t.Run(after.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := newPlace()
				s := sit(t, t.TempDir(), takes(time.Hour), p)
				s.accept(message("1", "guest", "why?"))
				<-time.After(after)
				require.NoError(t, s.end())
				require.Equal(t, want, p.all())
			})
		})
	}
}

func TestASenderWithoutReportsIsNotAsked(t *testing.T) {
	t.Parallel()
	mail := &mailbox{got: make(chan ask.Ended, 1)}
	require.NoError(t, bridge.Senders{tiers.Discord: mail}.Report(t.Context(), ask.Job{Identity: tiers.Identity{Platform: tiers.Discord}}, ask.Progress{}))
	require.NoError(t, bridge.Senders{}.Report(t.Context(), ask.Job{}, ask.Progress{}))
	p := newPlace()
	job := ask.Job{Identity: tiers.Identity{Platform: tiers.Slack}}
	require.NoError(t, bridge.Senders{tiers.Discord: mail, tiers.Slack: p}.Report(t.Context(), job, ask.Progress{For: 1500 * time.Millisecond}))
	require.Equal(t, []string{"Working on it: 2 s."}, p.all())
}

func TestNothingIsReportedOnceTheDeliveryHasBegun(t *testing.T) {
	t.Parallel()
	boards := bridge.NewBoards(4)
	boards.Expect("a")
	require.NoError(t, boards.Report("a", func(b *bridge.Board) error {
		require.True(t, b.Fresh)
		b.Place, b.Message = "here", "1"
		return nil
	}))
	require.Equal(t, bridge.Board{Place: "here", Message: "1", Fresh: true}, boards.Close("a"))
	late := func(*bridge.Board) error { return errors.New("a report after the delivery began") }
	require.NoError(t, boards.Report("a", late))
	boards.Cleared("a")
	require.NoError(t, boards.Report("a", late))
	require.Equal(t, bridge.Board{Place: "here", Fresh: true}, boards.Close("a"))

	require.NoError(t, boards.Report("b", func(b *bridge.Board) error { b.Off = true; return nil }))
	require.NoError(t, boards.Report("b", late), "what the platform does not want is not repeated")
	for i := range 10 {
		boards.Expect(fmt.Sprint(i))
	}
	require.Equal(t, bridge.Board{}, boards.Close("b"), "it is bounded, and what is forgotten is not known")
}

func TestProgressTellsTimeAsPeopleDo(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		-time.Second: "0 s", 3600 * time.Millisecond: "4 s", 59400 * time.Millisecond: "59 s", time.Minute: "1 min 0 s", 200 * time.Second: "3 min 20 s",
	} {
		require.Equal(t, "Working on it: claude, "+want+".", ask.Working(ask.Progress{Runner: "claude", For: d}))
	}
}
