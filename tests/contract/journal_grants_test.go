package contract_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"parlour/bridge/ask"
	"parlour/bridge/journal"
	"parlour/tiers"
)

// someGrant is one that begins with the clocks of these tests.
func someGrant(lasts time.Duration) tiers.Grant {
	return tiers.Grant{
		Tier: tiers.Guest, Platform: tiers.Discord, Workspace: "guild", Channels: []string{"hall"}, User: "guest",
		Made: setClock, Until: setClock.Add(lasts), Note: "why",
	}
}

var setClock = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// setting is a clock that a test sets.
type setting struct{ at atomic.Int64 }

func (s *setting) now() time.Time              { return setClock.Add(time.Duration(s.at.Load())) }
func (s *setting) to(after time.Duration)      { s.at.Store(int64(after)) }
func (s *setting) open(t *testing.T) *ledgerOf { return s.openIn(t, t.TempDir(), journal.Serve) }
func (l *ledgerOf) events(t *testing.T) []string {
	t.Helper()
	events, err := l.store.Events(t.Context(), journal.Filter{})
	require.NoError(t, err)
	kinds := []string{}
	for _, e := range events {
		require.Empty(t, e.Job)
		require.Contains(t, string(e.Data), `"user":"guest"`)
		kinds = append(kinds, e.Kind)
	}
	return kinds
}

// ledgerOf is an open journal with its grants.
type ledgerOf struct {
	*journal.Ledger
	store *journal.Journal
}

func (s *setting) openIn(t *testing.T, dir, origin string) *ledgerOf {
	t.Helper()
	j, err := journal.Open(t.Context(), journal.Config{Dir: dir, Origin: origin, Now: s.now})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, j.Close()) })
	l, err := journal.NewLedger(t.Context(), j)
	require.NoError(t, err)
	return &ledgerOf{l, j}
}

func (l *ledgerOf) make(t *testing.T, g tiers.Grant) int64 {
	t.Helper()
	made, err := l.Make(t.Context(), g)
	require.NoError(t, err)
	return made.ID
}

func (l *ledgerOf) fates(t *testing.T, now time.Time) map[int64]string {
	t.Helper()
	list, err := l.List(t.Context())
	require.NoError(t, err)
	fates := map[int64]string{}
	for _, g := range list.All {
		fates[g.ID] = g.Fate(now)
	}
	return fates
}

func TestAGrantIsKept(t *testing.T) {
	t.Parallel()
	var clock setting
	dir := t.TempDir()
	l := clock.openIn(t, dir, journal.Serve)
	clock.to(time.Second)
	want := someGrant(time.Hour)
	made, err := l.Make(t.Context(), want)
	require.NoError(t, err)
	want.ID, want.Made = 1, setClock.Add(time.Second)
	require.Equal(t, want, made)
	everywhere := someGrant(2 * time.Hour)
	everywhere.Channels, everywhere.Platform, everywhere.External, everywhere.Note = nil, tiers.Slack, true, ""
	require.Equal(t, int64(2), l.make(t, everywhere))
	require.NoError(t, l.store.Close())

	again := clock.openIn(t, dir, journal.Serve)
	list, err := again.List(t.Context())
	require.NoError(t, err)
	require.Equal(t, want, list.All[0].Grant)
	everywhere.ID, everywhere.Made = 2, want.Made
	require.Equal(t, everywhere, list.All[1].Grant, "no channels are still none")
	require.Equal(t, []string{ask.EventGranted, ask.EventGranted}, again.events(t))
}

// The clock is read inside the transaction, after the change and before its
// event: whoever stops there has changed nothing.
func TestAGrantAndItsEventAreOneTransaction(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var readings, dies atomic.Int64
	j, err := journal.Open(t.Context(), journal.Config{Dir: dir, Origin: journal.Serve, Now: func() time.Time {
		if readings.Add(1) == dies.Load() {
			stop()
		}
		return setClock
	}})
	require.NoError(t, err)
	defer func() { require.NoError(t, j.Close()) }()
	ledger, err := journal.NewLedger(t.Context(), j)
	require.NoError(t, err)
	l := &ledgerOf{ledger, j}

	dies.Store(readings.Load() + 2)
	_, err = l.Make(ctx, someGrant(time.Hour))
	require.ErrorIs(t, err, context.Canceled)
	require.Empty(t, l.fates(t, setClock))
	require.Empty(t, l.events(t))

	id := l.make(t, someGrant(time.Hour))
	again, stopAgain := context.WithCancel(t.Context())
	stop = stopAgain
	defer stopAgain()
	dies.Store(readings.Load() + 2)
	_, _, err = l.Revoke(again, id)
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, map[int64]string{id: journal.Holds}, l.fates(t, setClock))
	require.Equal(t, []string{ask.EventGranted}, l.events(t))
}

func TestAGrantIsRevokedOnce(t *testing.T) {
	t.Parallel()
	var clock setting
	l := clock.open(t)
	id, short := l.make(t, someGrant(time.Hour)), l.make(t, someGrant(time.Minute))
	clock.to(time.Minute)
	g, revoked, err := l.Revoke(t.Context(), id)
	require.NoError(t, err)
	require.True(t, revoked)
	require.Equal(t, clock.now(), g.Revoked)
	clock.to(2 * time.Minute)
	g, revoked, err = l.Revoke(t.Context(), id)
	require.NoError(t, err)
	require.False(t, revoked)
	require.Equal(t, setClock.Add(time.Minute), g.Revoked, "it stays as it was")
	g, revoked, err = l.Revoke(t.Context(), short)
	require.NoError(t, err)
	require.False(t, revoked, "it has ended by itself")
	require.Equal(t, journal.Over, g.Fate(clock.now()))
	_, _, err = l.Revoke(t.Context(), 99)
	require.ErrorIs(t, err, journal.ErrNoGrant)
	require.Equal(t, []string{ask.EventGranted, ask.EventGranted, ask.EventRevoked}, l.events(t))
}

func TestAGrantsIdIsNeverGivenAgain(t *testing.T) {
	t.Parallel()
	var clock setting
	l := clock.open(t)
	day := 24 * time.Hour
	ended, revoked := l.make(t, someGrant(time.Hour)), l.make(t, someGrant(300*day))
	_, _, err := l.Revoke(t.Context(), revoked)
	require.NoError(t, err)
	clock.to(29 * day)
	require.Equal(t, map[int64]string{ended: journal.Over, revoked: journal.Revoked}, l.fates(t, clock.now()))
	clock.to(31 * day)
	require.Empty(t, l.fates(t, clock.now()), "it is told for 30 days")
	next := someGrant(32 * day)
	require.Equal(t, revoked+1, l.make(t, next), "although the rows of the others are gone")
	_, _, err = l.Revoke(t.Context(), ended)
	require.ErrorIs(t, err, journal.ErrNoGrant)
}

// Whoever decides by grants looks at the number alone.
func TestEveryChangeOfGrantsIsSeen(t *testing.T) {
	t.Parallel()
	var clock setting
	dir := t.TempDir()
	l, other := clock.openIn(t, dir, journal.Serve), clock.openIn(t, dir, askOrigin(t))
	seen := map[int64]bool{}
	look := func() {
		times, err := l.Changed(t.Context())
		require.NoError(t, err)
		require.False(t, seen[times])
		seen[times] = true
		list, err := l.List(t.Context())
		require.NoError(t, err)
		require.Equal(t, times, list.Changed)
	}
	look()
	id := other.make(t, someGrant(time.Hour))
	look()
	_, _, err := other.Revoke(t.Context(), id)
	require.NoError(t, err)
	look()
	served, err := other.Served(t.Context())
	require.NoError(t, err)
	require.True(t, served)
	require.NoError(t, l.store.Close())
	served, err = other.Served(t.Context())
	require.NoError(t, err)
	require.False(t, served)
	clock.openIn(t, dir, journal.Serve) // the look took no lock away
}

func TestAGrantThatIsNoneIsRefused(t *testing.T) {
	t.Parallel()
	var clock setting
	l := clock.open(t)
	who := tiers.Identity{Platform: tiers.Discord, Workspace: "guild", User: "guest", Kind: tiers.Person, Member: true}
	where := tiers.Place{Platform: tiers.Discord, Workspace: "guild", Channel: "hall", Most: tiers.Owner}
	gives := func(g tiers.Grant) tiers.Tier { return tiers.Rules{}.With(g).Resolve(who, where, setClock).Tier }
	require.Equal(t, tiers.Guest, gives(someGrant(time.Hour)), "the control")
	require.NoError(t, someGrant(tiers.LongestGrant).Check())
	require.Error(t, tiers.Grant{}.Check())
	for want, edit := range map[string]func(*tiers.Grant){
		"never gives owner":                   func(g *tiers.Grant) { g.Tier = tiers.Owner },
		"gives guest or team, not none":       func(g *tiers.Grant) { g.Tier = tiers.None },
		"for discord or slack":                func(g *tiers.Grant) { g.Platform = tiers.Local },
		"one guild or workspace":              func(g *tiers.Grant) { g.Workspace = "" },
		"one person":                          func(g *tiers.Grant) { g.User = "" },
		"an empty channel":                    func(g *tiers.Grant) { g.Channels = []string{"hall", ""} },
		"an empty list":                       func(g *tiers.Grant) { g.Channels = []string{} },
		"at most 100 channels":                func(g *tiers.Grant) { g.Channels = strings.Split(strings.Repeat("hall ", 101), " ")[:101] },
		"known on slack only":                 func(g *tiers.Grant) { g.External = true },
		"other organisations are guests":      func(g *tiers.Grant) { g.External, g.Platform, g.Tier = true, tiers.Slack, tiers.Team },
		"none is given":                       func(g *tiers.Grant) { g.Until = time.Time{} },
		"ended already":                       func(g *tiers.Grant) { g.Until = setClock },
		"366 days at most":                    func(g *tiers.Grant) { g.Until = setClock.Add(tiers.LongestGrant + 1) },
		"the note is longer":                  func(g *tiers.Grant) { g.Note = strings.Repeat("x", tiers.LongestNote+1) },
		"the note is not valid UTF-8":         func(g *tiers.Grant) { g.Note = "\xff" },
		"the note holds the character U+001B": func(g *tiers.Grant) { g.Note = "\x1b[2J" },
		"the note holds the character U+000A": func(g *tiers.Grant) { g.Note = "a\nb" },
		"the note holds the character U+202E": func(g *tiers.Grant) { g.Note = "a\u202eb" },
	} {
		g := someGrant(time.Hour)
		edit(&g)
		require.ErrorContains(t, g.Check(), want)
		require.Equal(t, tiers.None, gives(g), want)
		_, err := l.Make(t.Context(), g)
		require.ErrorContains(t, err, want)
	}
	require.Empty(t, l.fates(t, setClock))
	require.Empty(t, l.events(t))
}

// A look at the grants makes nothing and changes nothing, whether or not a bot
// works there.
func TestAPeekLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	var clock setting
	dir := filepath.Join(t.TempDir(), "state")
	peek := func() []journal.Given {
		found, err := journal.PeekGrants(t.Context(), dir, setClock)
		require.NoError(t, err)
		return found.All
	}
	require.Empty(t, peek())
	require.NoDirExists(t, dir)

	l := clock.openIn(t, dir, journal.Serve)
	l.make(t, someGrant(time.Hour))
	require.Len(t, peek(), 1, "beside a bot that works")
	died := filepath.Join(t.TempDir(), "died") // as a bot leaves it that is killed
	require.NoError(t, os.CopyFS(died, os.DirFS(dir)))
	require.NoError(t, l.store.Close())

	before := contents(t, dir)
	require.Len(t, peek(), 1, "of a bot that has ended")
	require.Equal(t, before, contents(t, dir))

	dir, before = died, contents(t, died)
	require.Len(t, peek(), 1, "of a bot that was killed")
	after := contents(t, died)
	require.Equal(t, before["parlour.db"], after["parlour.db"])
	require.Equal(t, before["parlour.db-wal"], after["parlour.db-wal"])
	require.Len(t, after, len(before))
}

// contents gives the files of a folder, with a hash of each.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			text, wrong := os.ReadFile(path)
			found[d.Name()], err = fmt.Sprintf("%x", sha256.Sum256(text)), wrong
		}
		return err
	}))
	return found
}
