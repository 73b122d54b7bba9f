package contract_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"parlour/bridge/ask"
	"parlour/bridge/journal"
)

func TestJournalUndeliverableIsAnEndOfItsOwn(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := t.TempDir()
	j := openJournal(t, dir, journal.Serve)
	j.accept(t, jobOf("m1", "anna", "lane"))
	waiting := j.accept(t, jobOf("m2", "anna", "lane"))
	told := j.accept(t, jobOf("m3", "bert", "other"))
	lost := j.claim(t)
	require.ErrorContains(t, j.Undeliverable(ctx, waiting.ID, "gone"), "has not ended")
	j.finish(t, lost)
	require.Error(t, j.Undeliverable(ctx, lost.ID, ""), "it must say why")
	other := openJournal(t, dir, askOrigin(t))
	require.ErrorIs(t, other.Undeliverable(ctx, lost.ID, "gone"), journal.ErrUnknown)
	for range 2 {
		require.NoError(t, j.Undeliverable(ctx, lost.ID, "the channel is gone"))
	}
	require.NoError(t, j.Delivered(ctx, lost.ID), "too late, and harmless")
	open, err := j.Tried(ctx, lost.ID)
	require.NoError(t, err)
	require.False(t, open)
	require.Equal(t, []string{ask.EventAccepted, ask.EventDecided, ask.EventOutcome, ask.EventUndeliverable}, j.kinds(t, lost.ID))
	require.ErrorContains(t, j.Append(ctx, waiting.ID, ask.EventUndeliverable, ask.Undeliverable{Why: "made up"}), "by the journal alone")

	done := j.claim(t)
	require.Equal(t, told.ID, done.ID)
	j.finish(t, done)
	require.NoError(t, j.Delivered(ctx, done.ID))
	require.NoError(t, j.Undeliverable(ctx, done.ID, "gone"), "an outcome that was delivered stays so")
	require.Equal(t, ask.EventDelivered, j.kinds(t, done.ID)[3])
	require.Len(t, j.kinds(t, done.ID), 4)

	require.NoError(t, j.Close())
	j = openJournal(t, dir, journal.Serve)
	left, err := j.Undelivered(ctx)
	require.NoError(t, err)
	require.Empty(t, left)
}
