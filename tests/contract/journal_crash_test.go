package contract_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"parlour/bridge/ask"
	"parlour/bridge/journal"
)

// TestJournalSurvivesKills kills a working bot at 16 points, half of them from
// outside after a random acknowledged step, half of them inside a transaction,
// and looks after each at everything that the bot had acknowledged.
func TestJournalSurvivesKills(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	dir := t.TempDir()
	said := map[string][]string{}
	killed := 0
	for life := range 16 {
		p := runUntilKilled(t, dir, life, random)
		for verb, ids := range p.said {
			said[verb] = append(said[verb], ids...)
		}
		killed++
		checkJournal(t, dir, said)
	}
	require.GreaterOrEqual(t, killed, 12)

	// The last life is left alone: it ends and delivers what is left.
	p := startJournal(t, dir, journal.Serve, "kill-16", 1, 0)
	require.Equal(t, syscall.Signal(-1), p.end())
	checkJournal(t, dir, said)
	j := openJournal(t, dir, journal.Serve)
	count, err := j.Queue(context.Background())
	require.NoError(t, err)
	require.Zero(t, count.Queued+count.Running)
	for _, id := range said["accepted"] {
		record, err := j.Job(context.Background(), id)
		require.NoError(t, err)
		require.Equal(t, journal.Ended, record.State, "an acknowledged message has no outcome")
	}
}

func runUntilKilled(t *testing.T, dir string, life int, random *rand.Rand) *journalChild {
	t.Helper()
	const messages = 30
	prefix := fmt.Sprintf("kill-%d", life)
	if life%2 == 1 {
		// The first readings are inside the recovery of Open, if there is any.
		dieAt := 1 + random.Int64N(50)
		if life == 3 {
			dieAt = 1
		}
		p := startJournal(t, dir, journal.Serve, prefix, messages, dieAt)
		require.Equal(t, syscall.SIGKILL, p.end())
		return p
	}
	p := startJournal(t, dir, journal.Serve, prefix, messages, untilKilled)
	for stop := 1 + random.IntN(80); p.count < stop && p.read(); {
	}
	require.NoError(t, p.cmd.Process.Kill())
	require.Equal(t, syscall.SIGKILL, p.end())
	return p
}

// eventCounts counts a job's events by kind.
type eventCounts map[string]int

// checkJournal opens the store as the next bot does and compares states, events
// and what was acknowledged.
func checkJournal(t *testing.T, dir string, said map[string][]string) {
	t.Helper()
	ctx := context.Background()
	j, err := journal.Open(ctx, journal.Config{Dir: dir, Origin: journal.Serve})
	require.NoError(t, err)
	defer func() { require.NoError(t, j.Close()) }()

	events, ends := readEvents(t, j)
	queued := 0
	for id, kinds := range events {
		record, err := j.Job(ctx, id)
		require.NoError(t, err)
		checkRecord(t, record, kinds)
		if record.State == journal.Queued {
			queued++
			continue
		}
		var end ask.Ended
		require.NoError(t, json.Unmarshal(ends[id], &end))
		require.Equal(t, *record.Ended, end)
	}
	count, err := j.Queue(ctx)
	require.NoError(t, err)
	require.Equal(t, queued, count.Queued, "a job without events")
	require.Zero(t, count.Running)

	for _, id := range said["accepted"] {
		require.Contains(t, events, id, "an acknowledged message is lost")
	}
	for _, id := range said["ended"] {
		require.Equal(t, 1, events[id][ask.EventOutcome], "an acknowledged end is lost")
	}
	for _, id := range said["delivered"] {
		require.Equal(t, 1, events[id][ask.EventDelivered], "an acknowledged delivery is lost")
	}
}

func checkRecord(t *testing.T, record journal.Record, kinds eventCounts) {
	t.Helper()
	require.Equal(t, 1, kinds[ask.EventAccepted])
	require.Equal(t, 1, kinds[ask.EventDecided])
	require.NotEqual(t, journal.Running, record.State, "running survived the start")
	require.Equal(t, record.State == journal.Ended, kinds[ask.EventOutcome] == 1)
	require.LessOrEqual(t, kinds[ask.EventOutcome], 1, "ended twice")
	require.Equal(t, record.Delivered, kinds[ask.EventDelivered] == 1)
	require.LessOrEqual(t, kinds[ask.EventDelivered], 1)
	// Every run that did not end the job was requeued exactly once.
	cut := record.Job.Attempt - kinds[ask.EventRequeued]
	if record.State == journal.Queued {
		require.Zero(t, cut)
	} else {
		require.Contains(t, []int{0, 1}, cut)
	}
}

func readEvents(t *testing.T, j *journal.Journal) (map[string]eventCounts, map[string]json.RawMessage) {
	t.Helper()
	events, ends := map[string]eventCounts{}, map[string]json.RawMessage{}
	for after := int64(0); ; {
		page, err := j.Events(context.Background(), journal.Filter{After: after, Limit: 100})
		require.NoError(t, err)
		if len(page) == 0 {
			return events, ends
		}
		for _, event := range page {
			require.Greater(t, event.Seq, after)
			after = event.Seq
			if events[event.Job] == nil {
				events[event.Job] = eventCounts{}
			}
			events[event.Job][event.Kind]++
			if event.Kind == ask.EventOutcome {
				ends[event.Job] = event.Data
			}
		}
	}
}

// TestJournalAskBesideServe lets two processes work on one store at the same
// time: each runs all of its own jobs and none of the other's.
func TestJournalAskBesideServe(t *testing.T) {
	t.Parallel()
	const each = 200
	dir := t.TempDir()
	serve := startJournal(t, dir, journal.Serve, "serve-a", each, 0)
	asker := startJournal(t, dir, askOrigin(t), "ask-a", each, 0)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for serve.read() {
		}
	}()
	require.Equal(t, syscall.Signal(-1), asker.end())
	<-done
	require.Equal(t, syscall.Signal(-1), serve.end())

	j := openJournal(t, dir, askOrigin(t))
	for _, p := range []*journalChild{serve, asker} {
		require.Len(t, p.said["accepted"], each)
		require.Subset(t, p.said["accepted"], p.said["claimed"], "ran the other's job")
		for _, id := range p.said["accepted"] {
			record, err := j.Job(context.Background(), id)
			require.NoError(t, err)
			require.Equal(t, journal.Ended, record.State)
			require.LessOrEqual(t, record.Job.Attempt, 1)
		}
	}
	require.Len(t, append(serve.said["claimed"], asker.said["claimed"]...), 2*(each-each/11))
}

// TestJournalDeadAskersAreBuriedAndLivingOnesNot kills an asking process; the
// serving bot ends its jobs, so its person can ask again, and leaves the jobs of
// a living asker and its own alone.
func TestJournalDeadAskersAreBuriedAndLivingOnesNot(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := t.TempDir()
	serve := openJournal(t, dir, journal.Serve)
	mine := serve.accept(t, jobOf("serve-1", "anna", "lane-s"))
	serve.claim(t)

	dead := askOrigin(t)
	p := startJournal(t, dir, dead, idle, 5, 25) // in the midst of the second five
	require.Equal(t, syscall.SIGKILL, p.end())
	require.Greater(t, len(p.said["accepted"]), 5)

	living := openJournal(t, dir, askOrigin(t)) // an asker's Open buries the dead as well
	theirs := living.accept(t, jobOf("ask-1", "bert", "lane-l"))
	living.claim(t)
	waiting := living.accept(t, jobOf("ask-2", "bert", "lane-l"))

	for range 2 {
		require.NoError(t, serve.Recover(ctx))
		require.NoError(t, living.Recover(ctx))
	}
	require.Equal(t, journal.Running, serve.state(t, mine.ID))
	require.Equal(t, journal.Running, serve.state(t, theirs.ID))
	require.Equal(t, journal.Queued, serve.state(t, waiting.ID))

	attempts := 0
	for _, id := range p.said["accepted"] {
		record, err := serve.Job(ctx, id)
		require.NoError(t, err)
		require.Equal(t, journal.Ended, record.State)
		require.Equal(t, ask.Outcome{Kind: ask.Cancelled, Cause: ask.AskerGone, Text: ask.Sentence(ask.AskerGone)}, record.Ended.Outcome)
		attempts += record.Job.Attempt
	}
	require.Equal(t, 1, attempts, "one of the buried was running")
	require.ElementsMatch(t, []string{"gate", lockName(journal.Serve), lockName(living.Origin())}, lockFiles(t, dir))

	count, err := serve.Queue(ctx)
	require.NoError(t, err)
	require.Equal(t, journal.Counts{Queued: 1, Running: 2}, count, "a dead asker still counts against its person")
}
