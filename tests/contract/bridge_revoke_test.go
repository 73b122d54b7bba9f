package contract_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"parlour/bridge"
	"parlour/bridge/ask"
	"parlour/bridge/journal"
	"parlour/tiers"
)

// shelf holds the rulebook of now, as a bot that reloads does.
type shelf struct {
	book atomic.Pointer[bridge.Rulebook]
}

func (s *shelf) put(b bridge.Rulebook)     { s.book.Store(&b) }
func (s *shelf) rulebook() bridge.Rulebook { return *s.book.Load() }

// listing makes a rulebook that lists users of one tier each.
func listing(users map[string]tiers.Tier) bridge.Rulebook {
	rules := []tiers.Rule{}
	for user, tier := range users {
		rules = append(rules, tiers.Rule{Tier: tier, Platform: tiers.Discord, Users: []string{user}, Origin: user + ":1"})
	}
	return book(tiers.NewRules(rules, nil))()
}

// revoking is a bot whose rulebook a test changes while it works.
type revoking struct {
	*bot
	*shelf
	rulebook func() bridge.Rulebook // that of the shelf, or more
	worker   *bridge.Worker
	starts   chan context.Context // of each run, as it begins
	ends     chan ask.Result      // what the next run gives, unless it is interrupted
}

func openRevoking(t *testing.T, users map[string]tiers.Tier) *revoking {
	t.Helper()
	return openRevokingIn(t, t.TempDir(), users)
}

func openRevokingIn(t *testing.T, dir string, users map[string]tiers.Tier) *revoking {
	t.Helper()
	r := &revoking{shelf: &shelf{}, starts: make(chan context.Context, 10), ends: make(chan ask.Result, 10)}
	r.put(listing(users))
	r.rulebook = r.shelf.rulebook
	r.bot = openBot(t, dir, &delegate{plan: planned, run: func(ctx context.Context, _ ask.Prompt) ask.Result {
		r.starts <- ctx
		select {
		case result := <-r.ends:
			return result
		case <-ctx.Done():
			return ask.Result{Cause: ask.Interrupted}
		}
	}})
	var err error
	r.gate, err = bridge.NewGate(r.rulebook, r.journal, r.outbox())
	require.NoError(t, err)
	return r
}

// serve lets the bot work, one question at a time.
func (r *revoking) serve() {
	r.t.Helper()
	var err error
	r.worker, err = bridge.NewWorker(bridge.WorkerConfig{
		Book: r.rulebook, Journal: r.journal, Delegate: r.delegate, Outbox: r.outbox(), Parallel: 1, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	require.NoError(r.t, err)
	ctx, cancel := context.WithCancel(r.t.Context())
	done := make(chan error, 1)
	go func() { done <- r.worker.Serve(ctx) }()
	closing := r.stop
	r.stop = sync.OnceFunc(func() {
		cancel()
		require.NoError(r.t, <-done)
		closing()
	})
}

// reload changes the rulebook as a bot does: first the book, then the word.
func (r *revoking) reload(users map[string]tiers.Tier) {
	r.put(listing(users))
	r.worker.Review()
}

func (r *revoking) begun() context.Context {
	r.t.Helper()
	select {
	case ctx := <-r.starts:
		return ctx
	case <-time.After(20 * time.Second):
		require.Fail(r.t, "no run has begun")
		return nil
	}
}

func (r *revoking) interrupted(run context.Context) {
	r.t.Helper()
	select {
	case <-run.Done():
	case <-time.After(20 * time.Second):
		require.Fail(r.t, "the run goes on")
	}
}

func TestT24AWaitingQuestionOfWhomWasRevokedEndsAtOnce(t *testing.T) {
	both := map[string]tiers.Tier{"guest": tiers.Guest, "other": tiers.Guest}
	r := openRevoking(t, both)
	r.serve()
	r.accept(message("1", "other", "why?"))
	r.begun()
	waiting := r.accept(message("2", "guest", "why?"))
	r.reload(map[string]tiers.Tier{"other": tiers.Guest})
	ended := r.next()
	require.Equal(t, waiting.Job.ID, ended.Receipt.Job, "while another question still runs")
	require.Equal(t, ask.NotAllowed, ended.Outcome.Cause)
	r.ends <- ask.Result{Answer: "an answer"}
	require.Equal(t, "an answer", r.next().Outcome.Text, "the other person's run went on")
	r.stop()
	require.Len(t, r.delegate.seen, 1)
	require.Empty(t, r.mail.got)
}

func TestT24ARunningQuestionOfWhomWasRevokedIsInterrupted(t *testing.T) {
	r := openRevoking(t, map[string]tiers.Tier{"guest": tiers.Guest})
	r.serve()
	r.accept(message("1", "guest", "why?"))
	running := r.begun()
	r.reload(map[string]tiers.Tier{"other": tiers.Guest})
	r.interrupted(running)
	require.Equal(t, ask.NotAllowed, r.next().Outcome.Cause)
	r.stop()
	require.Empty(t, r.mail.got)
	require.Len(t, r.delegate.seen, 1)
}

// A right can end by itself; nobody says that the rulebook has changed then.
func TestT24ARightThatEndsByItselfInterruptsTheRun(t *testing.T) {
	r := openRevoking(t, nil)
	lasting := func(d time.Duration) bridge.Rulebook {
		return book(tiers.NewRules([]tiers.Rule{{
			Tier: tiers.Guest, Platform: tiers.Discord, Users: []string{"guest"}, Until: time.Now().Add(d), Origin: "guest.yaml:3",
		}}, nil))()
	}
	r.put(lasting(time.Hour))
	r.serve()
	r.accept(message("1", "guest", "why?"))
	running := r.begun()
	r.put(lasting(300 * time.Millisecond))
	r.interrupted(running)
	require.Equal(t, ask.NotAllowed, r.next().Outcome.Cause)
}

func TestT24ALoweredPersonsRunIsBegunAnewWithLessRight(t *testing.T) {
	r := openRevoking(t, map[string]tiers.Tier{"team": tiers.Team})
	r.serve()
	r.accept(message("1", "team", "why?"))
	running := r.begun()
	r.reload(map[string]tiers.Tier{"team": tiers.Guest})
	r.interrupted(running)
	r.begun()
	r.ends <- ask.Result{Answer: "a guest's answer"}
	ended := r.next()
	require.Equal(t, "a guest's answer", ended.Outcome.Text)
	require.Equal(t, tiers.Guest, ended.Receipt.Tier)
	require.Contains(t, ended.Receipt.Notes, "an earlier run was stopped: the rights to it were taken away")
	r.stop()
	require.Contains(t, r.delegate.seen[0].Policy, "the tier team")
	require.Contains(t, r.delegate.seen[1].Policy, "the tier guest")
}

func TestT23ARunUnderAPolicyThatWasNarrowedIsBegunAnew(t *testing.T) {
	r := openRevoking(t, map[string]tiers.Tier{"guest": tiers.Guest})
	r.serve()
	r.accept(message("1", "guest", "why?"))
	running := r.begun()
	narrowed := listing(map[string]tiers.Tier{"guest": tiers.Guest})
	narrowed.Policies = map[tiers.Tier]string{tiers.Guest: "another"}
	second := answers("by the new policy")
	narrowed.Delegate = second
	r.put(narrowed)
	r.worker.Review()
	r.interrupted(running)
	require.Equal(t, "by the new policy", r.next().Outcome.Text)
	r.stop()
	require.Len(t, second.seen, 1, "rules and policies change together")
}

// The book changes as the run returns, before anybody has said so.
func TestT24ARightThatIsLostAsTheRunEndsIsSeen(t *testing.T) {
	r := openRevoking(t, map[string]tiers.Tier{"guest": tiers.Guest})
	r.delegate.run = func(context.Context, ask.Prompt) ask.Result {
		r.put(listing(nil))
		return ask.Result{Answer: "an answer"}
	}
	r.serve()
	accepted := r.accept(message("1", "guest", "why?"))
	require.Equal(t, ask.NotAllowed, r.next().Outcome.Cause)
	require.False(t, kinds(t, r.bot, accepted.Job.ID)[ask.EventWithheld], "the answer was never the outcome")
	r.stop()
	require.Empty(t, r.mail.got)
}

// The book changes between the decision and the run.
func TestT24ARightThatIsLostAsTheRunBeginsIsSeen(t *testing.T) {
	r := openRevoking(t, map[string]tiers.Tier{"guest": tiers.Guest})
	r.accept(message("1", "guest", "why?"))
	var asked atomic.Int32
	var err error
	r.worker, err = bridge.NewWorker(bridge.WorkerConfig{
		Journal: r.journal, Delegate: r.delegate, Outbox: r.outbox(), Parallel: 1, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Book: func() bridge.Rulebook {
			if asked.Add(1) <= 2 { // how many may run, and the decision
				return r.rulebook()
			}
			return listing(nil)
		},
	})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.worker.Serve(ctx) }()
	require.Equal(t, ask.NotAllowed, r.next().Outcome.Cause)
	cancel()
	require.NoError(t, <-done)
	require.Empty(t, r.delegate.seen, "nothing has run")
}

// The answer is stored, and cannot be delivered until its person is revoked.
func TestT24AnAnswerIsWithheldFromWhomWasRevokedBeforeItsDelivery(t *testing.T) {
	for name, c := range map[string]struct {
		after map[string]tiers.Tier
		want  ask.Cause
	}{
		"revoked": {nil, ask.NotAllowed},
		"lowered": {map[string]tiers.Tier{"team": tiers.Guest}, ask.Lowered},
		"as was":  {map[string]tiers.Tier{"team": tiers.Team}, ask.NoCause},
		"raised":  {map[string]tiers.Tier{"team": tiers.Owner}, ask.NoCause},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			b := openBot(t, dir, answers("for the team only"))
			b.mail.fail = errors.New("the platform is down")
			b.work(book(someRules))
			accepted := b.accept(message("1", "team", "why?"))
			require.Eventually(t, func() bool {
				left, err := b.journal.Undelivered(t.Context())
				return err == nil && len(left) > 0 && left[0].Tries > 0
			}, 20*time.Second, 10*time.Millisecond, "the delivery was not tried")
			b.stop()

			b = openBot(t, dir, answers("a second run"))
			b.work(func() bridge.Rulebook { return listing(c.after) })
			ended := b.next()
			require.Equal(t, c.want, ended.Outcome.Cause)
			if c.want != ask.NoCause {
				require.Equal(t, ask.Sentence(c.want), ended.Outcome.Text)
			}
			require.Equal(t, c.want != ask.NoCause, kinds(t, b, accepted.Job.ID)[ask.EventWithheld], "the log says so")
			b.stop()
			require.Empty(t, b.mail.got, "one outcome is seen")
			require.Empty(t, b.delegate.seen)
		})
	}
}

// kinds gives the kinds of event of a job, once its outcome is delivered.
func kinds(t *testing.T, b *bot, job string) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	require.Eventually(t, func() bool {
		events, err := b.journal.Events(t.Context(), journal.Filter{Job: job})
		for _, e := range events {
			found[e.Kind] = true
		}
		return err == nil && found[ask.EventDelivered]
	}, 20*time.Second, 10*time.Millisecond, "no outcome was delivered")
	return found
}

func TestT13NobodyHasMoreThanTheRulesUnderneathGive(t *testing.T) {
	now := listing(map[string]tiers.Tier{"raised": tiers.Team, "new": tiers.Guest, "lowered": tiers.Guest, "same": tiers.Team})
	was := listing(map[string]tiers.Tier{"raised": tiers.Guest, "lowered": tiers.Team, "same": tiers.Team, "gone": tiers.Owner})
	now.Under = []tiers.Rules{was.Rules}
	for user, want := range map[string]tiers.Tier{
		"raised": tiers.Guest, "new": tiers.None, "lowered": tiers.Guest, "same": tiers.Team, "gone": tiers.None, "nobody": tiers.None,
	} {
		m := message("1", user, "why?")
		require.Equal(t, want, now.Decide(m.Identity, m.Place).Tier, user)
	}
	m := message("1", "new", "why?")
	require.Contains(t, now.Decide(m.Identity, m.Place).Why, "the manifests of now give guest, which waits for the operator's consent")
}
