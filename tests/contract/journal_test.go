package contract_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"parlour/bridge/ask"
	"parlour/bridge/journal"
)

// store is an open journal with words for tests.
type store struct{ *journal.Journal }

func openJournal(t testing.TB, dir, origin string) store {
	t.Helper()
	j, err := journal.Open(context.Background(), journal.Config{Dir: dir, Origin: origin, Now: secondsClock()})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, j.Close()) })
	return store{j}
}

// steps is a clock that moves by a second at each reading.
func secondsClock() func() time.Time {
	var n atomic.Int64
	return func() time.Time {
		return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).Add(time.Duration(n.Add(1)) * time.Second)
	}
}

func askOrigin(t testing.TB) string {
	t.Helper()
	origin, err := journal.AskOrigin(time.Now())
	require.NoError(t, err)
	return origin
}

func (j store) accept(t testing.TB, job ask.Job) ask.Job {
	t.Helper()
	got, err := j.Accept(context.Background(), job, waits(1000), nil)
	require.NoError(t, err)
	require.False(t, got.Duplicate)
	require.Nil(t, got.Ended)
	return got.Job
}

// claim takes one job for a person who may run one.
func (j store) claim(t testing.TB) ask.Job {
	t.Helper()
	job, err := j.Claim(context.Background(), 1)
	require.NoError(t, err)
	require.NotNil(t, job, "nothing to claim")
	return *job
}

func (j store) noClaim(t testing.TB) {
	t.Helper()
	job, err := j.Claim(context.Background(), 1)
	require.NoError(t, err)
	require.Nil(t, job)
}

func (j store) finish(t testing.TB, job ask.Job) {
	t.Helper()
	require.NoError(t, j.Finish(context.Background(), job, endOf(job, "so")))
}

func (j store) state(t testing.TB, id string) journal.State {
	t.Helper()
	record, err := j.Job(context.Background(), id)
	require.NoError(t, err)
	return record.State
}

func (j store) kinds(t testing.TB, id string) []string {
	t.Helper()
	events, err := j.Events(context.Background(), journal.Filter{Job: id})
	require.NoError(t, err)
	list := make([]string, 0, len(events))
	for _, event := range events {
		require.Equal(t, id, event.Job)
		list = append(list, event.Kind)
	}
	return list
}

func lockName(origin string) string { return strings.Replace(origin, ":", "-", 1) + ".lock" }

func lockFiles(t testing.TB, dir string) []string {
	t.Helper()
	files, err := os.ReadDir(filepath.Join(dir, "locks"))
	require.NoError(t, err)
	names := make([]string, 0, len(files))
	for _, file := range files {
		names = append(names, file.Name())
	}
	return names
}

func TestJournalTellsTheWholeWayOfAJob(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	j := openJournal(t, t.TempDir(), journal.Serve)
	first := j.accept(t, jobOf("m1", "anna", "lane"))
	require.Len(t, first.ID, 26)
	require.Equal(t, journal.Serve, first.Origin)
	require.Zero(t, first.Attempt)
	second, err := j.Accept(ctx, jobOf("m2", "bert", "other"), waits(3), nil)
	require.NoError(t, err)
	require.Zero(t, second.Ahead, "another person's question is not ahead")
	require.Less(t, first.ID, second.Job.ID)

	job := j.claim(t)
	want := first
	want.Attempt = 1
	require.Equal(t, want, job)
	require.NoError(t, j.Append(ctx, job.ID, ask.EventRequest, ask.RequestHeader{Policy: "text"}))
	j.finish(t, job)
	require.NoError(t, j.Delivered(ctx, job.ID))

	require.Equal(t, []string{ask.EventAccepted, ask.EventDecided, ask.EventRequest, ask.EventOutcome, ask.EventDelivered}, j.kinds(t, job.ID))
	record, err := j.Job(ctx, job.ID)
	require.NoError(t, err)
	require.Equal(t, endOf(job, "so"), *record.Ended)
	require.True(t, record.Delivered)
	count, err := j.Queue(ctx)
	require.NoError(t, err)
	require.Equal(t, journal.Counts{Queued: 1}, count)
	_, err = j.Job(ctx, "no such")
	require.ErrorIs(t, err, journal.ErrUnknown)
}

func TestJournalAcceptsAMessageOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j := openJournal(t, dir, journal.Serve)
	var group sync.WaitGroup
	got := make([]journal.Accepted, 8)
	errs := make([]error, len(got))
	for i := range got {
		group.Go(func() {
			got[i], errs[i] = j.Accept(context.Background(), jobOf("same", "anna", "lane"), waits(0), nil)
		})
	}
	group.Wait()
	fresh := 0
	for i := range got {
		require.NoError(t, errs[i])
		require.Equal(t, got[0].Job, got[i].Job)
		if !got[i].Duplicate {
			fresh++
		}
	}
	require.Equal(t, 1, fresh)

	// Also for another process, and after the end.
	other := openJournal(t, dir, askOrigin(t))
	again, err := other.Accept(context.Background(), jobOf("same", "anna", "lane"), waits(3), nil)
	require.NoError(t, err)
	require.True(t, again.Duplicate)
	require.Equal(t, got[0].Job, again.Job)
	j.finish(t, j.claim(t))
	again, err = j.Accept(context.Background(), jobOf("same", "anna", "lane"), waits(3), nil)
	require.NoError(t, err)
	require.True(t, again.Duplicate)
	require.Equal(t, ask.Answered, again.Ended.Outcome.Kind)
	j.noClaim(t)
}

func TestJournalRefusalIsAnEndLikeAnyOther(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	j := openJournal(t, t.TempDir(), journal.Serve)
	refuse := ask.Ended{Outcome: ask.Outcome{Kind: ask.Refused, Cause: ask.NotAllowed, Text: ask.Sentence(ask.NotAllowed)}}
	got, err := j.Accept(ctx, jobOf("m", "anna", "lane"), waits(3), &refuse)
	require.NoError(t, err)
	require.Equal(t, refuse.Outcome, got.Ended.Outcome)
	require.Equal(t, got.Job.ID, got.Ended.Receipt.Job)
	require.Equal(t, []string{ask.EventAccepted, ask.EventDecided, ask.EventOutcome}, j.kinds(t, got.Job.ID))
	j.noClaim(t)
	left, err := j.Undelivered(ctx)
	require.NoError(t, err)
	require.Equal(t, []journal.Delivery{{Job: got.Job, Ended: *got.Ended}}, left)

	_, err = j.Accept(ctx, jobOf("m2", "anna", "lane"), waits(3), &ask.Ended{})
	require.ErrorContains(t, err, "is not an end")
	for _, bad := range []ask.Job{jobOf("", "p", "l"), jobOf("m", "", "l"), jobOf("m", "p", ""), {Message: "m", Person: "p", Lane: "l", Origin: "ask:other"}} {
		_, err = j.Accept(ctx, bad, waits(3), nil)
		require.ErrorContains(t, err, "accept a message: the job")
	}
}

func TestJournalWaitingCapIsExact(t *testing.T) {
	t.Parallel()
	for name, claimer := range map[string]bool{"nobody claims": false, "a worker claims meanwhile": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := openJournal(t, t.TempDir(), journal.Serve)
			var group sync.WaitGroup
			var queued, busy, failed atomic.Int64
			for i := range 24 {
				group.Go(func() {
					got, err := j.Accept(context.Background(), jobOf(fmt.Sprint(i), "anna", fmt.Sprint("lane", i)), waits(3), nil)
					switch {
					case err != nil:
						failed.Add(1)
					case got.Ended == nil:
						queued.Add(1)
					case got.Ended.Outcome == ask.Outcome{Kind: ask.Refused, Cause: ask.Busy, Text: ask.Sentence(ask.Busy)}:
						busy.Add(1)
					}
				})
				if claimer {
					group.Go(func() {
						if _, err := j.Claim(context.Background(), 1); err != nil {
							failed.Add(1)
						}
					})
				}
			}
			group.Wait()
			require.Zero(t, failed.Load())
			require.EqualValues(t, 4, queued.Load(), "one that runs and three that wait")
			require.EqualValues(t, 20, busy.Load())
		})
	}
}

func TestJournalMinuteCapIsExact(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	j, err := journal.Open(ctx, journal.Config{Dir: t.TempDir(), Origin: journal.Serve, Now: func() time.Time { return now }})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, j.Close()) })
	caps := journal.Caps{Waiting: 100, PerMinute: 2}
	asks := func(id, person string) ask.Cause {
		got, err := j.Accept(ctx, jobOf(id, person, id), caps, nil)
		require.NoError(t, err)
		if got.Ended == nil {
			return ask.NoCause
		}
		return got.Ended.Outcome.Cause
	}
	require.Equal(t, ask.NoCause, asks("1", "anna"))
	now = now.Add(30 * time.Second)
	require.Equal(t, ask.NoCause, asks("2", "anna"))
	require.Equal(t, ask.TooFast, asks("3", "anna"))
	require.Equal(t, ask.NoCause, asks("4", "bert"), "one person does not hold up another")
	now = now.Add(30 * time.Second)
	require.Equal(t, ask.NoCause, asks("5", "anna"), "the first is a minute old; refused ones do not count")
	require.Equal(t, ask.TooFast, asks("6", "anna"))

	none, err := j.Accept(ctx, jobOf("7", "cleo", "7"), journal.Caps{}, nil)
	require.NoError(t, err)
	require.NotNil(t, none.Ended, "the zero caps admit nothing")
}

func TestJournalCapsHoldAcrossOrigins(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := t.TempDir()
	serve, asker := openJournal(t, dir, journal.Serve), openJournal(t, dir, askOrigin(t))
	asker.accept(t, jobOf("a", "anna", "terminal"))
	serve.accept(t, jobOf("b", "anna", "channel"))
	running := asker.claim(t)
	serve.noClaim(t)
	got, err := serve.Accept(ctx, jobOf("c", "anna", "channel"), waits(1), nil)
	require.NoError(t, err)
	require.Equal(t, ask.Busy, got.Ended.Outcome.Cause)
	asker.finish(t, running)
	serve.claim(t)
	serve.noClaim(t)

	asker.accept(t, jobOf("d", "bert", "terminal"))
	asker.accept(t, jobOf("e", "bert", "terminal"))
	got, err = serve.Accept(ctx, jobOf("f", "bert", "channel"), waits(1), nil)
	require.NoError(t, err)
	require.Equal(t, ask.Busy, got.Ended.Outcome.Cause)
}

// TestJournalAskersLeaveAStoppedServeAlone: what a stopped bot has accepted
// waits for that bot.
func TestJournalAskersLeaveAStoppedServeAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	serve, err := journal.Open(context.Background(), journal.Config{Dir: dir, Origin: journal.Serve})
	require.NoError(t, err)
	running := store{serve}.accept(t, jobOf("a", "anna", "lane"))
	queued := store{serve}.accept(t, jobOf("b", "anna", "lane"))
	store{serve}.claim(t)
	require.NoError(t, serve.Close())

	asker := openJournal(t, dir, askOrigin(t))
	require.NoError(t, asker.Recover(context.Background()))
	asker.noClaim(t)
	require.Equal(t, journal.Running, asker.state(t, running.ID))
	require.Equal(t, journal.Queued, asker.state(t, queued.ID))
	again := openJournal(t, dir, journal.Serve).claim(t)
	require.Equal(t, running.ID, again.ID)
	require.Equal(t, 2, again.Attempt)
}

func TestJournalOnePersonCannotFillTheQueue(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	j := openJournal(t, t.TempDir(), journal.Serve)
	for i := range 200 {
		j.accept(t, jobOf(fmt.Sprint("a", i), "anna", fmt.Sprint("lane", i)))
	}
	j.accept(t, jobOf("b", "bert", "lane-b"))
	for _, want := range []string{"a0", "b", "a1", "a2"} {
		job, err := j.Claim(ctx, 50) // even if anna may run many
		require.NoError(t, err)
		require.Equal(t, want, job.Message)
	}
	j.noClaim(t) // anna runs three, of the one that this caller allows
}

func TestJournalKeepsOrderInALane(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	j := openJournal(t, t.TempDir(), journal.Serve)
	for i := range 12 {
		j.accept(t, jobOf(fmt.Sprint(i), fmt.Sprint("person", i%3), fmt.Sprint("lane", i%2)))
	}
	order := map[string][]string{}
	for range 6 {
		var pair []ask.Job
		for range 2 {
			job, err := j.Claim(ctx, 2)
			require.NoError(t, err)
			require.NotNil(t, job)
			pair = append(pair, *job)
			order[job.Lane] = append(order[job.Lane], job.Message)
		}
		none, err := j.Claim(ctx, 9)
		require.NoError(t, err)
		require.Nil(t, none, "two of one lane run at a time")
		j.finish(t, pair[1])
		j.finish(t, pair[0])
	}
	require.Equal(t, map[string][]string{"lane0": {"0", "2", "4", "6", "8", "10"}, "lane1": {"1", "3", "5", "7", "9", "11"}}, order)
}

func TestJournalSecondServeIsRefused(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := t.TempDir()
	opened, err := journal.Open(ctx, journal.Config{Dir: dir, Origin: journal.Serve})
	require.NoError(t, err)
	j := store{opened}
	job := j.accept(t, jobOf("m", "anna", "lane"))
	j.claim(t)
	_, err = journal.Open(ctx, journal.Config{Dir: dir, Origin: journal.Serve})
	require.ErrorIs(t, err, journal.ErrLocked)
	require.ErrorContains(t, err, dir)
	require.ErrorContains(t, err, fmt.Sprintf("(pid %d)", os.Getpid()))
	require.Equal(t, journal.Running, j.state(t, job.ID), "the refused bot touched the queue")
	require.NoError(t, j.Close())
	require.NoError(t, j.Close())
	require.Equal(t, job.ID, openJournal(t, dir, journal.Serve).claim(t).ID)
}

func TestJournalStaleFinishIsRefused(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := t.TempDir()
	j := openJournal(t, dir, journal.Serve)
	queued := j.accept(t, jobOf("m", "anna", "lane"))
	require.ErrorContains(t, j.Finish(ctx, queued, endOf(queued, "x")), "never claimed")
	stale := j.claim(t)
	require.NoError(t, j.Close())

	j = openJournal(t, dir, journal.Serve)
	require.ErrorIs(t, j.Finish(ctx, stale, endOf(stale, "old")), journal.ErrStale)
	fresh := j.claim(t)
	require.Equal(t, 2, fresh.Attempt)
	require.ErrorIs(t, j.Finish(ctx, stale, endOf(stale, "old")), journal.ErrStale)
	require.ErrorContains(t, j.Finish(ctx, fresh, ask.Ended{}), "is not an end")
	j.finish(t, fresh)
	require.ErrorIs(t, j.Finish(ctx, fresh, endOf(fresh, "twice")), journal.ErrStale)
	require.Equal(t, []string{ask.EventAccepted, ask.EventDecided, ask.EventRequeued, ask.EventOutcome}, j.kinds(t, fresh.ID))
}

func TestJournalGivesUpAJobThatKillsTheBot(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := t.TempDir()
	j := openJournal(t, dir, journal.Serve)
	deadly := j.accept(t, jobOf("deadly", "anna", "lane"))
	j.accept(t, jobOf("good", "anna", "lane"))
	for attempt := 1; attempt <= 3; attempt++ {
		job := j.claim(t)
		require.Equal(t, deadly.ID, job.ID)
		require.Equal(t, attempt, job.Attempt)
		require.NoError(t, j.Close())
		j = openJournal(t, dir, journal.Serve)
	}
	record, err := j.Job(ctx, deadly.ID)
	require.NoError(t, err)
	require.Equal(t, ask.Outcome{Kind: ask.Expired, Cause: ask.GaveUp, Text: ask.Sentence(ask.GaveUp)}, record.Ended.Outcome)
	require.Equal(t, []string{ask.EventAccepted, ask.EventDecided, ask.EventRequeued, ask.EventRequeued, ask.EventOutcome}, j.kinds(t, deadly.ID))
	left, err := j.Undelivered(ctx)
	require.NoError(t, err)
	require.Len(t, left, 1)
	require.Equal(t, "good", j.claim(t).Message)
}

func TestJournalUndeliveredSurvivesRestart(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := t.TempDir()
	j := openJournal(t, dir, journal.Serve)
	j.accept(t, jobOf("m1", "anna", "lane"))
	waiting := j.accept(t, jobOf("m2", "anna", "lane"))
	job := j.claim(t)
	j.finish(t, job)
	open, err := j.Tried(ctx, job.ID)
	require.NoError(t, err)
	require.True(t, open)
	require.NoError(t, j.Close())

	j = openJournal(t, dir, journal.Serve)
	left, err := j.Undelivered(ctx)
	require.NoError(t, err)
	require.Equal(t, []journal.Delivery{{Job: job, Ended: endOf(job, "so"), Tries: 1}}, left)
	other := openJournal(t, dir, askOrigin(t))
	none, err := other.Undelivered(ctx)
	require.NoError(t, err)
	require.Empty(t, none)
	require.ErrorIs(t, other.Delivered(ctx, job.ID), journal.ErrUnknown)

	require.NoError(t, j.Delivered(ctx, job.ID))
	require.NoError(t, j.Delivered(ctx, job.ID))
	require.ErrorIs(t, other.Delivered(ctx, job.ID), journal.ErrUnknown)
	require.ErrorContains(t, j.Delivered(ctx, waiting.ID), "has not ended")
	require.ErrorIs(t, j.Delivered(ctx, "no such"), journal.ErrUnknown)
	left, err = j.Undelivered(ctx)
	require.NoError(t, err)
	require.Empty(t, left)
	require.Equal(t, []string{ask.EventAccepted, ask.EventDecided, ask.EventOutcome, ask.EventDelivered}, j.kinds(t, job.ID))
}

func TestJournalCancelEndsOnce(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := t.TempDir()
	j := openJournal(t, dir, journal.Serve)
	job := j.accept(t, jobOf("m", "anna", "lane"))
	other := openJournal(t, dir, askOrigin(t))
	require.ErrorIs(t, other.Cancel(ctx, job.ID, ask.Interrupted), journal.ErrUnknown)
	require.Error(t, j.Cancel(ctx, job.ID, ask.NoCause))
	require.NoError(t, j.Cancel(ctx, job.ID, ask.Interrupted))
	require.ErrorIs(t, j.Cancel(ctx, job.ID, ask.Interrupted), journal.ErrEnded)
	require.ErrorIs(t, j.Cancel(ctx, "no such", ask.Interrupted), journal.ErrUnknown)
	j.noClaim(t)
	for i := range 10 {
		j.accept(t, jobOf(fmt.Sprint(i), "anna", "lane"))
		job := j.claim(t)
		var group sync.WaitGroup
		errs := make([]error, 2)
		group.Go(func() { errs[0] = j.Cancel(ctx, job.ID, ask.Interrupted) })
		group.Go(func() { errs[1] = j.Finish(ctx, job, endOf(job, "so")) })
		group.Wait()
		require.NotEqual(t, errs[0] == nil, errs[1] == nil, "exactly one ends it: %v", errs)
		require.True(t, errs[0] == nil || errors.Is(errs[0], journal.ErrEnded))
		require.True(t, errs[1] == nil || errors.Is(errs[1], journal.ErrStale))
		require.Equal(t, []string{ask.EventAccepted, ask.EventDecided, ask.EventOutcome}, j.kinds(t, job.ID))
	}
}

func TestJournalAppendCannotContradictTheState(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := t.TempDir()
	j := openJournal(t, dir, journal.Serve)
	job := j.accept(t, jobOf("m", "anna", "lane"))
	for _, kind := range []string{"", ask.EventAccepted, ask.EventDecided, ask.EventRequeued, ask.EventOutcome, ask.EventDelivered} {
		require.ErrorContains(t, j.Append(ctx, job.ID, kind, nil), "by the journal alone")
	}
	require.ErrorIs(t, j.Append(ctx, job.ID, ask.EventRequest, ask.RequestHeader{}), journal.ErrStale)
	require.ErrorIs(t, j.Append(ctx, "no such", ask.EventMode, ask.ModeSet{}), journal.ErrUnknown)
	require.ErrorIs(t, openJournal(t, dir, askOrigin(t)).Append(ctx, job.ID, ask.EventMode, ask.ModeSet{}), journal.ErrUnknown)
	require.NoError(t, j.Append(ctx, job.ID, ask.EventMode, ask.ModeSet{Mode: "read-only"}))
	job = j.claim(t)
	require.NoError(t, j.Append(ctx, job.ID, ask.EventRequest, ask.RequestHeader{}))
	require.NoError(t, j.Cancel(ctx, job.ID, ask.Interrupted))
	require.ErrorIs(t, j.Append(ctx, job.ID, ask.EventRequest, ask.RequestHeader{}), journal.ErrStale)

	events, err := j.Events(ctx, journal.Filter{Job: job.ID})
	require.NoError(t, err)
	require.JSONEq(t, `{"mode":"read-only","by":""}`, string(events[2].Data))
	page, err := j.Events(ctx, journal.Filter{After: events[0].Seq, Limit: 2})
	require.NoError(t, err)
	require.Equal(t, events[1:3], page)
	require.True(t, events[1].At.After(events[0].At))
}

func TestJournalWakesItsOwnClaimer(t *testing.T) {
	t.Parallel()
	j := openJournal(t, t.TempDir(), journal.Serve)
	<-j.Wake() // Open may have queued something again
	awake := func() bool {
		select {
		case <-j.Wake():
			return true
		default:
			return false
		}
	}
	require.False(t, awake())
	j.accept(t, jobOf("m1", "anna", "lane"))
	j.accept(t, jobOf("m2", "anna", "lane"))
	require.True(t, awake())
	require.False(t, awake(), "one signal is kept, not one per job")
	job := j.claim(t)
	require.False(t, awake())
	j.finish(t, job)
	require.True(t, awake())
	require.NoError(t, j.Cancel(context.Background(), j.claim(t).ID, ask.Interrupted))
	require.True(t, awake())
}

// waits are caps that bound the waiting questions alone.
func waits(n int) journal.Caps { return journal.Caps{Waiting: n, PerMinute: 1 << 30} }
