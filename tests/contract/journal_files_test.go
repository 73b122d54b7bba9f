package contract_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"parlour/bridge"
	"parlour/bridge/ask"
	"parlour/bridge/journal"
	"parlour/tests/house"
	"parlour/tiers"
)

// swaps are ways in which the journal at a path becomes another one than that
// which a bot has open.
func swaps() map[string]func(t *testing.T, dir string) {
	rename := func(t *testing.T, from, to string) { require.NoError(t, os.Rename(from, to)) }
	fresh := func(t *testing.T, dir string) {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, "locks"), 0o700))
		require.NoError(t, os.Chmod(dir, 0o700))
	}
	return map[string]func(t *testing.T, dir string){
		"a copy was moved over it": func(t *testing.T, dir string) {
			text, err := os.ReadFile(filepath.Join(dir, "parlour.db"))
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(filepath.Join(dir, "copy"), text, 0o600))
			rename(t, filepath.Join(dir, "copy"), filepath.Join(dir, "parlour.db"))
		},
		"it was removed": func(t *testing.T, dir string) { require.NoError(t, os.Remove(filepath.Join(dir, "parlour.db"))) },
		"its log was removed": func(t *testing.T, dir string) {
			require.NoError(t, os.Remove(filepath.Join(dir, "parlour.db-wal")))
		},
		"the index of its log was removed": func(t *testing.T, dir string) {
			require.NoError(t, os.Remove(filepath.Join(dir, "parlour.db-shm")))
		},
		"its folder was put aside": func(t *testing.T, dir string) { rename(t, dir, dir+".old") },
		"its folder was put aside and a copy is there": func(t *testing.T, dir string) {
			rename(t, dir, dir+".old")
			require.NoError(t, os.CopyFS(dir, os.DirFS(dir+".old")))
			fresh(t, dir)
		},
		"its folder is another, with the same files": func(t *testing.T, dir string) {
			rename(t, dir, dir+".old")
			fresh(t, dir)
			for _, name := range []string{"parlour.db", "parlour.db-wal", "parlour.db-shm"} {
				rename(t, filepath.Join(dir+".old", name), filepath.Join(dir, name))
			}
		},
	}
}

// serving opens the journal of a bot in a state folder of its own.
func serving(t *testing.T) (dir string, j *journal.Journal) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "state")
	j, err := journal.Open(t.Context(), journal.Config{Dir: dir, Origin: journal.Serve})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, j.Close()) })
	return dir, j
}

// Whoever revokes a grant writes to the files at the paths. A bot that has others
// open would never hear of it.
func TestT24AGrantDoesNotOutliveItsJournal(t *testing.T) {
	t.Parallel()
	for name, swap := range swaps() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, j := serving(t)
			l, err := journal.NewLedger(t.Context(), j)
			require.NoError(t, err)
			s, log, told := &shelf{}, &bytes.Buffer{}, 0
			s.put(listing(map[string]tiers.Tier{"other": tiers.Guest}))
			granted, err := bridge.NewGranting(t.Context(), s.book.Load, l, func() { told++ }, slog.New(slog.NewTextHandler(log, nil)))
			require.NoError(t, err)
			_, err = l.Make(t.Context(), tiers.Grant{Tier: tiers.Guest, Platform: tiers.Discord, Workspace: "guild", User: "guest", Until: time.Now().Add(time.Hour)})
			require.NoError(t, err)
			tier := func(user string) tiers.Tier {
				m := inGuild("x", user)
				return granted.Book().Decide(m.Identity, m.Place).Tier
			}
			require.Equal(t, tiers.Guest, tier("guest"), "the control")
			told = 0
			swap(t, dir)
			require.Equal(t, tiers.None, tier("guest"))
			require.Equal(t, 1, told, "what runs by it is looked at")
			require.Contains(t, log.String(), "the journal's files are others than those that were opened ("+dir)
			require.Contains(t, log.String(), "start the bot again")
			require.Equal(t, tiers.Guest, tier("other"), "what the manifests give stays")
		})
	}
}

// A journal that is put back may have been changed meanwhile, unseen.
func TestT24AJournalThatWasPutBackGrantsNothing(t *testing.T) {
	t.Parallel()
	dir, j := serving(t)
	l, err := journal.NewLedger(t.Context(), j)
	require.NoError(t, err)
	require.NoError(t, os.Rename(dir, dir+".old"))
	_, err = l.Changed(t.Context())
	require.ErrorIs(t, err, journal.ErrMoved)
	require.NoError(t, os.Rename(dir+".old", dir))
	_, err = l.Changed(t.Context())
	require.ErrorIs(t, err, journal.ErrMoved)
}

// What is written to files without a name is lost with the process, so nothing is
// taken in that could not be kept, and the worker ends at once.
func TestAJournalThatWasReplacedTakesNothing(t *testing.T) {
	t.Parallel()
	for name, swap := range swaps() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, j := serving(t)
			log := &house.Printed{}
			out, err := bridge.NewOutbox(j, bridge.Senders{}, nil, slog.New(slog.NewTextHandler(log, nil)))
			require.NoError(t, err)
			gate, err := bridge.NewGate(book(someRules), j, out)
			require.NoError(t, err)
			worker, err := bridge.NewWorker(bridge.WorkerConfig{
				Book: book(someRules), Journal: j, Delegate: takesFor(0), Outbox: out, Parallel: 1, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
			})
			require.NoError(t, err)
			ended := make(chan error, 1)
			ctx, stop := context.WithTimeout(t.Context(), 5*time.Second)
			defer stop()
			go func() { ended <- worker.Serve(ctx) }()
			swap(t, dir)
			_, err = gate.Accept(t.Context(), message("1", "guest", "why?"))
			require.ErrorIs(t, err, journal.ErrMoved)
			_, err = j.Claim(t.Context(), 1)
			require.ErrorIs(t, err, journal.ErrMoved)
			require.ErrorIs(t, j.Recover(t.Context()), journal.ErrMoved)
			require.ErrorIs(t, j.Cancel(t.Context(), "x", ask.Interrupted), journal.ErrMoved)
			require.ErrorIs(t, <-ended, journal.ErrMoved)
			require.NoError(t, ctx.Err(), "it does not wait for what cannot pass")
			require.False(t, strings.Contains(log.String(), "panic"))
		})
	}
}

// A grant that was made by a clock which was set back since can be taken back.
func TestAGrantOfAClockThatWentBackIsRevoked(t *testing.T) {
	t.Parallel()
	var clock setting
	l := clock.open(t)
	clock.to(2 * time.Hour)
	id := l.make(t, someGrant(5*time.Hour))
	clock.to(time.Hour)
	_, revoked, err := l.Revoke(t.Context(), id)
	require.NoError(t, err)
	require.True(t, revoked)
}
