package contract_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
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

// granting is a bot that goes by grants, and the operator's terminal beside it:
// another process, as far as the journal can tell.
type granting struct {
	*revoking
	terminal *ledgerOf
	reviews  atomic.Int64
}

func openGranting(t *testing.T, dir string) *granting {
	t.Helper()
	g := &granting{revoking: openRevokingIn(t, dir, map[string]tiers.Tier{"other": tiers.Guest})}
	g.out = g.outbox()
	g.grants(t)
	j, err := journal.Open(t.Context(), journal.Config{Dir: dir, Origin: askOrigin(t)})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, j.Close()) })
	ledger, err := journal.NewLedger(t.Context(), j)
	require.NoError(t, err)
	g.terminal = &ledgerOf{ledger, j}
	return g
}

// grants puts the grants before the rulebook, as bot serve does.
func (g *granting) grants(t *testing.T) {
	t.Helper()
	ledger, err := journal.NewLedger(t.Context(), g.journal)
	require.NoError(t, err)
	changed := func() {
		if g.reviews.Add(1); g.worker != nil {
			g.worker.Review()
		}
	}
	granted, err := bridge.NewGranting(t.Context(), g.shelf.book.Load, ledger, changed, slog.New(slog.NewTextHandler(io.Discard, nil)))
	require.NoError(t, err)
	g.rulebook = granted.Book
	g.gate, err = bridge.NewGate(g.rulebook, g.journal, g.outbox())
	require.NoError(t, err)
}

// give grants the guest something from now on.
func (g *granting) give(lasts time.Duration, edit ...func(*tiers.Grant)) int64 {
	g.t.Helper()
	grant := tiers.Grant{Tier: tiers.Guest, Platform: tiers.Discord, Workspace: "guild", User: "guest", Until: time.Now().Add(lasts)}
	for _, e := range edit {
		e(&grant)
	}
	return g.terminal.make(g.t, grant)
}

func (g *granting) take(id int64) {
	g.t.Helper()
	_, revoked, err := g.terminal.Revoke(g.t.Context(), id)
	require.NoError(g.t, err)
	require.True(g.t, revoked)
}

// shorten puts a grant that ends soon in the place of another, and lets the bot
// see that.
func (g *granting) shorten(id int64) {
	g.t.Helper()
	g.give(700 * time.Millisecond)
	g.take(id)
	g.tier()
}

// inGuild is a message of a member of the guild.
func inGuild(id, user string) bridge.Message {
	m := message(id, user, "why?")
	m.Identity.Workspace, m.Identity.Member, m.Place.Workspace = "guild", true, "guild"
	return m
}

func (g *granting) tier() tiers.Tier {
	m := inGuild("x", "guest")
	return g.rulebook().Decide(m.Identity, m.Place).Tier
}

func TestNoDecisionGoesByARevokedGrant(t *testing.T) {
	t.Parallel()
	g := openGranting(t, t.TempDir())
	require.Equal(t, tiers.None, g.tier())
	for range 20 {
		id := g.give(time.Hour)
		require.Equal(t, tiers.Guest, g.tier())
		g.take(id)
		require.Equal(t, tiers.None, g.tier())
	}
	require.Equal(t, int64(40), g.reviews.Load(), "each change is told")
	g.tier()
	require.Equal(t, int64(40), g.reviews.Load())
	g.give(time.Hour)
	g.put(listing(nil))
	require.Equal(t, tiers.Guest, g.tier(), "a reload takes no grant away")
	other := inGuild("x", "other")
	require.Equal(t, tiers.None, g.rulebook().Decide(other.Identity, other.Place).Tier, "and is in force")
}

func TestAStrangerIsAnsweredByAGrant(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	g := openGranting(t, dir)
	g.serve()
	g.accept(inGuild("1", "guest"))
	require.Equal(t, ask.NotAllowed, g.next().Outcome.Cause)
	g.give(time.Hour, func(g *tiers.Grant) { g.Channels, g.Note = []string{"5"}, "the-note" })
	g.accept(inGuild("2", "guest"))
	g.begun()
	g.ends <- ask.Result{Answer: "an answer"}
	ended := g.next()
	require.Equal(t, "an answer", ended.Outcome.Text)
	require.True(t, strings.HasPrefix(ended.Receipt.Rule, "grant 1 until 20"))
	require.NotContains(t, g.delegate.seen[0].Policy, "the-note")
	g.stop()

	again := openGranting(t, dir)
	require.Equal(t, tiers.Guest, again.tier(), "it outlives a restart")
}

func TestT24AQuestionThatWaitsEndsWithItsGrant(t *testing.T) {
	t.Parallel()
	g := openGranting(t, t.TempDir())
	g.serve()
	g.accept(inGuild("1", "other"))
	g.begun()
	id := g.give(time.Hour)
	waiting := g.accept(inGuild("2", "guest"))
	require.Equal(t, tiers.Guest, waiting.Job.Decision.Tier)
	g.take(id)
	ended := g.next()
	require.Equal(t, waiting.Job.ID, ended.Receipt.Job, "while another question still runs")
	require.Equal(t, ask.Sentence(ask.NotAllowed), ended.Outcome.Text)
	g.ends <- ask.Result{Answer: "an answer"}
	require.Equal(t, "an answer", g.next().Outcome.Text)
	g.stop()
	require.Len(t, g.delegate.seen, 1)
}

func TestT24ARunEndsWithItsGrant(t *testing.T) {
	t.Parallel()
	g := openGranting(t, t.TempDir())
	g.serve()
	id := g.give(time.Hour)
	g.accept(inGuild("1", "guest"))
	running := g.begun()
	g.take(id)
	g.interrupted(running)
	require.Equal(t, ask.NotAllowed, g.next().Outcome.Cause)
	g.stop()
	require.Empty(t, g.mail.got)
}

func TestT24AnAnswerIsWithheldWhenItsGrantIsOver(t *testing.T) {
	t.Parallel()
	for name, over := range map[string]func(g *granting, id int64){
		"revoked": func(g *granting, id int64) { g.take(id) },
		"ended": func(g *granting, id int64) {
			g.shorten(id)
			require.Eventually(g.t, func() bool { return g.tier() == tiers.None }, 20*time.Second, 10*time.Millisecond)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			g := openGranting(t, dir)
			g.mail.fail = errors.New("the platform is down")
			g.serve()
			id := g.give(time.Hour)
			accepted := g.accept(inGuild("1", "guest"))
			g.begun()
			g.ends <- ask.Result{Answer: "an answer"}
			require.Eventually(t, func() bool {
				left, err := g.journal.Undelivered(t.Context())
				return err == nil && len(left) > 0 && left[0].Tries > 0
			}, 20*time.Second, 10*time.Millisecond, "the delivery was not tried")
			g.stop()

			g = openGranting(t, dir)
			over(g, id)
			g.serve()
			require.Equal(t, ask.Sentence(ask.NotAllowed), g.next().Outcome.Text)
			require.True(t, kinds(t, g.bot, accepted.Job.ID)[ask.EventWithheld])
		})
	}
}

// Nobody says that anything has changed when a grant ends by itself.
func TestT24AGrantThatEndsEndsWhatWaitsAndRuns(t *testing.T) {
	t.Parallel()
	g := openGranting(t, t.TempDir())
	g.serve()
	id := g.give(time.Hour)
	first := g.accept(inGuild("1", "guest"))
	running := g.begun()
	g.delegate.run = nil // nothing else begins
	second := g.accept(inGuild("2", "guest"))
	g.shorten(id)
	reviews := g.reviews.Load()
	g.interrupted(running)
	jobs := map[string]bool{}
	for range 2 {
		ended := g.next()
		require.Equal(t, ask.NotAllowed, ended.Outcome.Cause)
		jobs[ended.Receipt.Job] = true
	}
	require.Equal(t, map[string]bool{first.Job.ID: true, second.Job.ID: true}, jobs)
	require.Equal(t, reviews, g.reviews.Load())
}

// The person whose question waits is not the one who runs: nothing but the end of
// the line itself ends it.
func TestT24AWaitingQuestionEndsWithItsLine(t *testing.T) {
	t.Parallel()
	r := openRevoking(t, nil)
	lines := func(lasts time.Duration) bridge.Rulebook {
		return book(tiers.NewRules([]tiers.Rule{
			{Tier: tiers.Guest, Platform: tiers.Discord, Users: []string{"other"}},
			{Tier: tiers.Guest, Platform: tiers.Discord, Users: []string{"guest"}, Until: time.Now().Add(lasts), Origin: "guest.yaml:3"},
		}, nil))()
	}
	r.put(lines(time.Hour))
	r.serve()
	r.accept(message("1", "other", "why?"))
	r.begun()
	waiting := r.accept(message("2", "guest", "why?"))
	r.put(lines(500 * time.Millisecond))
	ended := r.next()
	require.Equal(t, waiting.Job.ID, ended.Receipt.Job, "while another question still runs")
	require.Equal(t, ask.NotAllowed, ended.Outcome.Cause)
	r.ends <- ask.Result{Answer: "an answer"}
	require.Equal(t, "an answer", r.next().Outcome.Text)
}

// brittle is a ledger that can fail.
type brittle struct {
	mu    sync.Mutex
	fails error
	list  journal.Grants
}

func (b *brittle) Changed(context.Context) (int64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.list.Changed, b.fails
}

func (b *brittle) List(context.Context) (journal.Grants, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.list, b.fails
}

func TestGrantsThatCannotBeReadGiveNothing(t *testing.T) {
	t.Parallel()
	grant := tiers.Grant{ID: 1, Tier: tiers.Team, Platform: tiers.Discord, Workspace: "guild", User: "guest", Until: time.Now().Add(time.Hour), Made: time.Now()}
	ledger := &brittle{list: journal.Grants{Changed: 1, All: []journal.Given{{Grant: grant}}}}
	s, log, told := &shelf{}, &bytes.Buffer{}, 0
	s.put(listing(map[string]tiers.Tier{"guest": tiers.Guest}))
	ctx, stop := context.WithCancel(t.Context())
	granted, err := bridge.NewGranting(ctx, s.book.Load, ledger, func() { told++ }, slog.New(slog.NewTextHandler(log, nil)))
	require.NoError(t, err)
	stop() // what goes on after the bot was told to stop is decided about too
	tier := func() tiers.Tier {
		m := inGuild("x", "guest")
		return granted.Book().Decide(m.Identity, m.Place).Tier
	}
	require.Equal(t, tiers.Team, tier())
	require.Equal(t, 1, granted.Holding())
	ledger.fails = errors.New("the disk is gone")
	for range 3 {
		require.Equal(t, tiers.Guest, tier(), "what the manifests give stays")
	}
	require.Zero(t, granted.Holding())
	require.Equal(t, 1, told, "what runs by them is looked at")
	require.Equal(t, 1, strings.Count(log.String(), "the grants cannot be read"), "it is said once")
	ledger.fails = nil
	require.Equal(t, tiers.Team, tier(), "it is tried again")
	require.Contains(t, log.String(), "the grants can be read again")
}

// What the operator grants at the terminal needs no second consent. What else
// bounds the manifests bounds grants as well.
func TestAGrantNeedsNoFurtherConsent(t *testing.T) {
	t.Parallel()
	m := inGuild("x", "guest")
	grant := tiers.Grant{ID: 7, Tier: tiers.Guest, Platform: tiers.Discord, Workspace: "guild", User: "guest", Made: time.Now(), Until: time.Now().Add(time.Hour)}
	now := bridge.Rulebook{Rules: someRules, Under: []tiers.Rules{tiers.NewRules(nil, nil)}}
	require.Equal(t, tiers.None, now.Decide(m.Identity, m.Place).Tier)
	require.Equal(t, tiers.Guest, now.With(grant).Decide(m.Identity, m.Place).Tier)
	require.Equal(t, tiers.None, now.Decide(m.Identity, m.Place).Tier, "the book itself stays as it was")
	for name, under := range map[string]tiers.Rules{
		"block": tiers.NewRules(nil, nil, tiers.Block{Platform: tiers.Discord, Users: []string{"guest"}}),
		"limit": tiers.NewRules(nil, []tiers.Cap{{Tier: tiers.None, Platform: tiers.Discord, Workspace: "guild"}}),
	} {
		now.Under = []tiers.Rules{under}
		require.Equal(t, tiers.None, now.With(grant).Decide(m.Identity, m.Place).Tier, name)
	}
}

// BenchmarkBookWithGrants is what the look at the ledger adds to each decision.
func BenchmarkBookWithGrants(b *testing.B) {
	j, err := journal.Open(b.Context(), journal.Config{Dir: b.TempDir(), Origin: journal.Serve})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, j.Close()) })
	ledger, err := journal.NewLedger(b.Context(), j)
	require.NoError(b, err)
	for range 20 {
		_, err := ledger.Make(b.Context(), tiers.Grant{Tier: tiers.Guest, Platform: tiers.Discord, Workspace: "guild", User: "guest", Until: time.Now().Add(time.Hour)})
		require.NoError(b, err)
	}
	rules := book(someRules)()
	granted, err := bridge.NewGranting(b.Context(), func() *bridge.Rulebook { return &rules }, ledger, func() {}, slog.New(slog.NewTextHandler(io.Discard, nil)))
	require.NoError(b, err)
	b.ReportAllocs()
	for b.Loop() {
		granted.Book()
	}
}
