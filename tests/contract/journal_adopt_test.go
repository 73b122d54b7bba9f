package contract_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"parlour/bridge/ask"
	"parlour/bridge/journal"
)

// entrust accepts an entrusted job in a process that ends at once.
func entrust(t *testing.T, dir, message string) ask.Job {
	t.Helper()
	j, err := journal.Open(context.Background(), journal.Config{Dir: dir, Origin: askOrigin(t)})
	require.NoError(t, err)
	job := ask.Job{Message: message, Person: "discord:1", Lane: message, Entrusted: true, Question: ask.Question{Text: "q"}}
	got, err := j.Accept(context.Background(), job, waits(10), nil)
	require.NoError(t, err)
	require.Nil(t, got.Ended)
	require.NoError(t, j.Close())
	return got.Job
}

func TestJournalAnEntrustedJobOutlivesWhoAcceptedItAndRunsWhereItIsAdopted(t *testing.T) {
	dir := t.TempDir()
	job := entrust(t, dir, "m1")
	serving := openJournal(t, dir, journal.Serve)
	serving.noClaim(t)

	origin := askOrigin(t)
	j := openJournal(t, dir, origin)
	j.noClaim(t)
	record, err := j.Adopt(context.Background(), job.ID)
	require.NoError(t, err)
	require.Nil(t, record.Ended)
	claimed := j.claim(t)
	require.Equal(t, job.ID, claimed.ID)
	require.Equal(t, origin, claimed.Origin)
	require.Equal(t, "q", claimed.Question.Text)
	ended := *ask.EndedBy(claimed, ask.Empty, "")
	require.NoError(t, j.Finish(context.Background(), claimed, ended))

	later := openJournal(t, dir, askOrigin(t))
	for range 2 {
		record, err := later.Adopt(context.Background(), job.ID)
		require.NoError(t, err)
		require.Equal(t, ask.Empty, record.Ended.Outcome.Cause, "whoever asks again reads the same")
	}
}

func TestJournalOnlyEntrustedJobsAreAdopted(t *testing.T) {
	dir := t.TempDir()
	serving := openJournal(t, dir, journal.Serve)
	chat := serving.accept(t, ask.Job{Message: "m", Person: "discord:1", Lane: "l"})
	asker := openJournal(t, dir, askOrigin(t))
	terminal := asker.accept(t, ask.Job{Message: "n", Person: "local:1", Lane: "n"})
	j := openJournal(t, dir, askOrigin(t))
	for _, id := range []string{chat.ID, terminal.ID, "01JD0000000000000000000000", ""} {
		_, err := j.Adopt(context.Background(), id)
		require.ErrorIs(t, err, journal.ErrUnknown, id)
	}
	require.Equal(t, chat.ID, serving.claim(t).ID, "nothing was moved")
	require.Equal(t, terminal.ID, asker.claim(t).ID)
}

func TestJournalOneOfManyAdoptsAnEntrustedJob(t *testing.T) {
	dir := t.TempDir()
	job := entrust(t, dir, "m1")
	journals := []store{}
	for range 8 {
		journals = append(journals, openJournal(t, dir, askOrigin(t)))
	}
	var adopted, taken atomic.Int32
	var all sync.WaitGroup
	for _, j := range journals {
		all.Go(func() {
			switch _, err := j.Adopt(context.Background(), job.ID); {
			case err == nil:
				adopted.Add(1)
			case errors.Is(err, journal.ErrTaken):
				taken.Add(1)
			}
		})
	}
	all.Wait()
	require.EqualValues(t, 1, adopted.Load())
	require.EqualValues(t, len(journals)-1, taken.Load())
}

func TestJournalEntrustedJobsExpire(t *testing.T) {
	dir := t.TempDir()
	job := entrust(t, dir, "m1")
	at := func(later time.Duration) *journal.Journal {
		j, err := journal.Open(context.Background(), journal.Config{
			Dir: dir, Origin: askOrigin(t), Now: func() time.Time { return time.Now().Add(later) },
		})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, j.Close()) })
		return j
	}
	record, err := at(9*time.Minute).Job(context.Background(), job.ID)
	require.NoError(t, err)
	require.Equal(t, journal.Queued, record.State)

	late := at(11 * time.Minute)
	record, err = late.Adopt(context.Background(), job.ID)
	require.NoError(t, err)
	require.Equal(t, ask.Expired, record.Ended.Outcome.Kind)
	require.Equal(t, ask.Sentence(ask.NotTaken), record.Ended.Outcome.Text)
	require.NoError(t, late.Delivered(context.Background(), job.ID), "it is this process's to show")
}

func TestJournalARefusedEntrustedMessageIsTheAcceptorsToShow(t *testing.T) {
	j := openJournal(t, t.TempDir(), askOrigin(t))
	refused := *ask.EndedBy(ask.Job{}, ask.NotAllowed, "")
	got, err := j.Accept(context.Background(), ask.Job{Message: "m", Person: "discord:1", Lane: "m", Entrusted: true}, waits(1), &refused)
	require.NoError(t, err)
	require.Equal(t, j.Origin(), got.Job.Origin)
	require.NoError(t, j.Delivered(context.Background(), got.Job.ID))
}

// Scenario: the core agent's time limit kills bot ask --job, and the agent tries again.
func TestJournalADeadAdoptersJobCanBeAdoptedAgain(t *testing.T) {
	dir := t.TempDir()
	job := entrust(t, dir, "m1")
	for attempt := 1; ; attempt++ {
		j, err := journal.Open(context.Background(), journal.Config{Dir: dir, Origin: askOrigin(t), MaxAttempts: 2})
		require.NoError(t, err)
		record, err := j.Adopt(context.Background(), job.ID)
		require.NoError(t, err)
		if record.Ended != nil {
			require.Equal(t, 3, attempt, "it is given up after two runs that died")
			require.Equal(t, ask.GaveUp, record.Ended.Outcome.Cause)
			require.NoError(t, j.Close())
			return
		}
		claimed, err := j.Claim(context.Background(), 1)
		require.NoError(t, err)
		require.Equal(t, attempt, claimed.Attempt)
		require.NoError(t, j.Close()) // dead in the middle of its run
	}
}
