package contract_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"parlour/bridge"
	"parlour/bridge/ask"
	"parlour/bridge/journal"
	"parlour/tiers"
)

// stored puts ended questions into a state folder, none of them delivered.
func stored(t *testing.T, dir string, all ...bridge.Message) (ids []string) {
	t.Helper()
	j, err := journal.Open(t.Context(), journal.Config{Dir: dir, Origin: journal.Serve})
	require.NoError(t, err)
	for _, m := range all {
		job := ask.Job{Message: m.ID, Person: m.Identity.Key(), Lane: m.Lane, Identity: m.Identity, Place: m.Place}
		got, err := j.Accept(t.Context(), job, journal.Caps{}, ask.EndedBy(ask.Job{}, ask.NotAllowed, ""))
		require.NoError(t, err)
		ids = append(ids, got.Job.ID)
	}
	require.NoError(t, j.Close())
	return ids
}

// inSlack is a message as message makes it, of the other platform.
func inSlack(id, user string) bridge.Message {
	m := message(id, user, "why?")
	m.ID, m.Identity.Platform, m.Place.Platform = "slack:"+id, tiers.Slack, tiers.Slack
	return m
}

// script is a sender whose deliveries a test scripts.
type script struct {
	deliver func(context.Context, ask.Job) error
	ready   func() bool
	mu      sync.Mutex
	tries   []string // job ids, in their order
	at      []time.Time
}

func (s *script) Deliver(ctx context.Context, job ask.Job, _ ask.Ended) error {
	s.mu.Lock()
	s.tries, s.at = append(s.tries, job.ID), append(s.at, time.Now())
	s.mu.Unlock()
	return s.deliver(ctx, job)
}

func (s *script) Ready() (bool, string) { return s.ready == nil || s.ready(), "" }

func (s *script) tried() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.tries)
}

func hangs(ctx context.Context, _ ask.Job) error {
	<-ctx.Done()
	return ctx.Err()
}

func TestAPlatformThatHangsHoldsUpNobodyElse(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		var old []bridge.Message
		for i := range 12 {
			old = append(old, message(fmt.Sprint(i), fmt.Sprint("person", i), "why?"))
		}
		stored(t, dir, append(old, inSlack("s", "other"))...)
		dead, well := &script{deliver: hangs}, newPlace()
		s := sit(t, dir, answers("an answer"), bridge.Senders{tiers.Discord: dead, tiers.Slack: well})
		require.Equal(t, ask.NotAllowed, (<-well.got).Outcome.Cause, "what waits for the other platform")
		m := inSlack("new", "guest")
		m.Identity.Platform = tiers.Slack
		s.accept(m)
		require.NotEmpty(t, (<-well.got).Outcome.Text, "what is new")
		synctest.Wait()
		require.Len(t, dead.tried(), 4, "a few at a time")
		began := time.Now()
		require.NoError(t, s.end())
		require.Less(t, time.Since(began), time.Second, "and it ends with the bot")
	})
}

// refusedForGood is what an adapter says of a channel that is gone.
type refusedForGood struct{}

func (refusedForGood) Error() string   { return "the channel is gone" }
func (refusedForGood) Permanent() bool { return true }

func TestWhatAPlatformRefusesForGoodIsTriedOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		p := &script{deliver: func(context.Context, ask.Job) error { return fmt.Errorf("post: %w", refusedForGood{}) }}
		s := sit(t, dir, answers("an answer"), p)
		job := s.accept(message("1", "guest", "why?")).Job
		<-time.After(3 * time.Minute)
		require.Equal(t, []string{job.ID}, p.tried())
		events, err := s.journal.Events(t.Context(), journal.Filter{Job: job.ID})
		require.NoError(t, err)
		last := events[len(events)-1]
		require.Equal(t, ask.EventUndeliverable, last.Kind)
		require.JSONEq(t, `{"why":"post: the channel is gone"}`, string(last.Data))
		require.NoError(t, s.end())
		require.Equal(t, 1, strings.Count(s.log.String(), "level=ERROR"), s.log.String())

		again := sit(t, dir, answers("an answer"), p)
		<-time.After(3 * time.Minute)
		require.Len(t, p.tried(), 1, "nor after a restart")
		require.NoError(t, again.end())
	})
}

func TestAFailedDeliveryIsTriedAgainWithoutARestart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		left := 3
		p := &script{deliver: func(context.Context, ask.Job) error {
			if left--; left >= 0 {
				return errors.New("the platform is down")
			}
			return nil
		}}
		s := sit(t, t.TempDir(), answers("an answer"), p)
		s.accept(message("1", "guest", "why?"))
		<-time.After(8 * time.Minute)
		require.Len(t, p.tried(), 4)
		for i, pause := range []time.Duration{time.Minute, 2 * time.Minute, 4 * time.Minute} {
			require.InDelta(t, pause, p.at[i+1].Sub(p.at[i]), float64(6*time.Second))
		}
		waiting, err := s.journal.Undelivered(t.Context())
		require.NoError(t, err)
		require.Empty(t, waiting)
		require.NoError(t, s.end())
		require.Equal(t, 1, strings.Count(s.log.String(), "level=ERROR"), "one error, then warnings")
	})
}

func TestAPlatformThatIsReadyAgainGetsWhatWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		up := false
		is := func() bool { mu.Lock(); defer mu.Unlock(); return up }
		p := &script{ready: is, deliver: func(context.Context, ask.Job) error {
			if !is() {
				return errors.New("not connected")
			}
			return nil
		}}
		s := sit(t, t.TempDir(), answers("an answer"), p)
		s.accept(message("1", "guest", "why?"))
		<-time.After(6 * time.Minute)
		before := len(p.tried())
		require.Equal(t, 3, before, "the pauses grow: now, after one minute, after two more")
		mu.Lock()
		up = true
		mu.Unlock()
		<-time.After(10 * time.Second)
		require.Len(t, p.tried(), before+1)
		require.NoError(t, s.end())
	})
}

// A refusal is on its way while the worker starts and reads what is left: it is
// not delivered by both. And what was delivered meanwhile is not delivered again.
func TestAnOutcomeIsNeverDeliveredTwiceAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		var old []bridge.Message
		for i := range 5 {
			old = append(old, message(fmt.Sprint(i), fmt.Sprint("person", i), "why?"))
		}
		ids := stored(t, dir, old...)
		p := &script{deliver: func(context.Context, ask.Job) error { <-time.After(3 * time.Second); return nil }}
		s := prepare(t, dir, answers("an answer"), p)
		go func() { _, _ = s.gate.Accept(t.Context(), message("new", "stranger", "why?")) }()
		synctest.Wait()
		require.Len(t, p.tried(), 1)
		s.work()
		<-time.After(time.Second)
		last := slices.DeleteFunc(ids, func(id string) bool { return slices.Contains(p.tried(), id) })
		require.Len(t, last, 1, "one has no turn yet")
		require.NoError(t, s.journal.Delivered(t.Context(), last[0]))
		<-time.After(time.Minute)
		tried := p.tried()
		require.Len(t, tried, 5)
		require.NotContains(t, tried, last[0])
		require.NoError(t, s.end())
	})
}

func TestLateOutcomesKeepTheOrderOfTheirPersonAndConversation(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		inLane := func(id, user, lane string) bridge.Message {
			m := message(id, user, "why?")
			m.Lane = lane
			return m
		}
		ids := stored(t, dir,
			inLane("1", "anna", "a"), inLane("2", "bert", "a"), inLane("3", "bert", "b"), inLane("4", "carl", "b"),
			inLane("5", "dora", "d"), inLane("6", "emil", "e"))
		var mu sync.Mutex
		var over []string
		failed := false
		p := &script{deliver: func(_ context.Context, job ask.Job) error {
			<-time.After(time.Second)
			mu.Lock()
			defer mu.Unlock()
			if job.ID == ids[1] && !failed {
				failed = true
				return errors.New("not now")
			}
			over = append(over, job.ID)
			return nil
		}}
		s := sit(t, dir, answers("x"), p)
		arrived := func() []string { mu.Lock(); defer mu.Unlock(); return slices.Clone(over) }
		<-time.After(30 * time.Second)
		require.ElementsMatch(t, []string{ids[0], ids[4], ids[5]}, arrived(), "what is behind a failure waits with it, others do not")
		<-time.After(5 * time.Minute)
		require.Len(t, arrived(), 6)
		require.Equal(t, []string{ids[1], ids[2], ids[3]}, arrived()[3:])
		require.NoError(t, s.end())
	})
}

func TestAPlatformThatIsOffKeepsItsOutcomes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		stored(t, dir, message("1", "guest", "why?"))
		s := sit(t, dir, answers("x"), bridge.Senders{})
		<-time.After(3 * time.Minute)
		require.NoError(t, s.end())
		require.Equal(t, 1, strings.Count(s.log.String(), "the platform discord: it is off"))
		p := newPlace()
		s = sit(t, dir, answers("x"), bridge.Senders{tiers.Discord: p})
		<-p.got
		require.NoError(t, s.end())
	})
}

func TestAJournalThatFailsForAWhileEndsNothing(t *testing.T) {
	t.Parallel()
	dir, p := t.TempDir(), newPlace()
	s := sit(t, dir, answers("after all"), p)
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "parlour.db")+"?_pragma=busy_timeout(20000)")
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	_, err = db.Exec(`ALTER TABLE persons RENAME TO away`)
	require.NoError(t, err)
	s.accept(message("1", "guest", "why?"))
	require.Eventually(t, func() bool { return strings.Contains(s.log.String(), "no such table") }, 20*time.Second, time.Millisecond)
	_, err = db.Exec(`ALTER TABLE away RENAME TO persons`)
	require.NoError(t, err)
	require.Equal(t, "after all", (<-p.got).Outcome.Text)
	require.NoError(t, s.end())
}

func TestAJournalThatFailsForGoodEndsTheWorker(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := sit(t, t.TempDir(), answers("x"), newPlace())
		synctest.Wait()
		require.NoError(t, s.journal.Close())
		began := time.Now()
		<-time.After(time.Minute)
		require.Error(t, s.end())
		require.Contains(t, s.log.String(), "again_in=5.12s", "after some patience")
		require.Less(t, time.Since(began), 2*time.Minute)
	})
}
