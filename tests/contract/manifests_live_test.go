package contract_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"parlour/manifests"
	"parlour/runner/policy"
	"parlour/tiers"
)

const (
	liveOwner  = "111111111111111111"
	liveGuest  = "333333333333333333"
	liveOther  = "444444444444444444"
	liveTeam   = "222222222222222222"
	runsByDocs = "policy: {mode: read-only, network: none, documents: [handbook], runners: [docs]}\n"
)

// files is a manifests folder that a test changes.
type files struct {
	t   testing.TB
	dir string
}

func newFiles(t testing.TB) files {
	t.Helper()
	f := files{t, t.TempDir()}
	require.NoError(t, os.Mkdir(filepath.Join(f.dir, "tiers"), 0o755))
	f.write("owner", listed("owner", liveOwner))
	return f
}

// listed is a tier file that lists users and has a policy of its own.
func listed(tier string, users ...string) string {
	text := "tier: " + tier + "\n"
	if len(users) > 0 {
		text += "match:\n  discord:\n"
	}
	for _, user := range users {
		text += "    - {users: [\"" + user + "\"]}\n"
	}
	return text + runsByDocs
}

func (f files) path(tier string) string { return filepath.Join(f.dir, "tiers", tier+".yaml") }

// write puts a whole file in its place at once.
func (f files) write(tier, text string) {
	f.t.Helper()
	next := filepath.Join(f.dir, "."+tier+".new")
	require.NoError(f.t, os.WriteFile(next, []byte(text), 0o600))
	require.NoError(f.t, os.Rename(next, f.path(tier)))
}

// desk is what a serving bot does around the manifests.
type desk struct {
	*manifests.Live
	mu      sync.Mutex
	turns   []manifests.Turn
	kept    []manifests.Texts
	consent atomic.Value // a hash
	full    atomic.Bool  // the disk
}

func (f files) load() *manifests.Set {
	f.t.Helper()
	set, err := manifests.Load(f.dir)
	require.NoError(f.t, err)
	return set
}

// live begins as a bot does, after what an earlier one has kept.
func (f files) live(kept ...manifests.Texts) *desk {
	f.t.Helper()
	d := &desk{}
	d.consent.Store("")
	set, under := f.load(), []*manifests.Set{}
	for _, texts := range kept {
		before, err := set.Earlier(texts, nil)
		require.NoError(f.t, err)
		under = append(under, before)
	}
	d.Live, _ = manifests.NewLive(manifests.LiveConfig{
		Unbounded: len(kept) == 0,
		Allow: func(s *manifests.Set) error {
			if s.Rules().Count(tiers.Owner) == 0 {
				return errors.New("no owner")
			}
			return nil
		},
		Consented: func(hash string) bool { return d.consent.Load() == hash },
		Turned: func(t manifests.Turn) {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.turns = append(d.turns, t)
		},
		Keep: func(texts []manifests.Texts) error {
			if d.full.Load() {
				return errors.New("no space left")
			}
			d.mu.Lock()
			defer d.mu.Unlock()
			d.kept = texts
			return nil
		},
		Now: time.Now,
	}, set, under)
	return d
}

// tier decides by what is in force, as the gate does.
func (d *desk) tier(user string) tiers.Tier {
	who := tiers.Identity{Platform: tiers.Discord, User: user, Kind: tiers.Person}
	where := tiers.Place{Platform: tiers.Discord, Channel: "700000000000000001", Direct: true, Most: tiers.Owner}
	rules, under := d.Force().Rules()
	tier := rules.Resolve(who, where, time.Now()).Tier
	for _, r := range under {
		tier = min(tier, r.Resolve(who, where, time.Now()).Tier)
	}
	return tier
}

func TestALossTakesEffectAtOnceAndAGainWaits(t *testing.T) {
	f := newFiles(t)
	f.write("guest", listed("guest", liveGuest))
	d := f.live()
	require.Equal(t, tiers.Guest, d.tier(liveGuest))

	f.write("guest", listed("guest", liveOther))
	require.True(t, d.Look())
	require.Equal(t, tiers.None, d.tier(liveGuest), "a loss is in force")
	require.Equal(t, tiers.None, d.tier(liveOther), "a gain waits")
	require.Len(t, d.turns, 1)
	require.Len(t, d.turns[0].Gains, 1)
	require.Contains(t, d.turns[0].Gains[0], liveOther)
	require.Equal(t, d.turns[0].Gains, d.Status().Waiting)

	f.write("guest", listed("guest", liveGuest, liveOther))
	d.Look()
	require.Equal(t, tiers.None, d.tier(liveGuest), "a right that is gone does not come back by itself")

	d.consent.Store("another state of the files")
	d.Look()
	require.Equal(t, tiers.None, d.tier(liveOther))
	d.consent.Store(f.load().Texts().Hash())
	require.True(t, d.Look())
	require.Equal(t, tiers.Guest, d.tier(liveGuest))
	require.Equal(t, tiers.Guest, d.tier(liveOther))
	require.Empty(t, d.Status().Waiting)
	require.Len(t, d.kept, 1, "nothing older bounds what comes")
}

func TestAFaultyStateChangesNothing(t *testing.T) {
	f := newFiles(t)
	f.write("guest", listed("guest", liveGuest))
	d := f.live()
	good := d.Status().Good
	for name, text := range map[string]string{
		"half a file":       "tier: guest\nmatch:\n  discord:\n    - {users: [\"33333",
		"an empty file":     "",
		"an unknown key":    listed("guest") + "anyone: true\n",
		"a failing case":    listed("guest") + "expect:\n  - {discord: {channel: \"700000000000000001\", user: \"" + liveOther + "\"}, tier: guest}\n",
		"an id in two":      listed("guest", liveOwner),
		"an unknown runner": "tier: guest\npolicy: {mode: read-only, network: none, documents: [handbook], runners: [shell]}\n",
	} {
		f.write("guest", text)
		require.True(t, d.Look(), name)
		require.Equal(t, tiers.Guest, d.tier(liveGuest), name)
		require.Error(t, d.Status().Refused, name)
		require.Equal(t, good, d.Status().Good, name)
	}
	f.write("guest", listed("guest"))
	f.write("owner", "tier: owner\n")
	d.Look()
	require.EqualError(t, d.Status().Refused, "no owner")
	require.Equal(t, tiers.Owner, d.tier(liveOwner))
	f.write("owner", listed("owner", liveOwner))
	d.Look()
	require.NoError(t, d.Status().Refused)
	require.Equal(t, tiers.None, d.tier(liveGuest), "and the next good state is in force")
	require.NoError(t, os.Chmod(f.path("guest"), 0o666))
	d.Look()
	require.ErrorContains(t, d.Status().Refused, "can be written by everybody")
}

// What a bot kept bounds the next one too, whatever is in the files at its start.
func TestGainsWaitAcrossARestart(t *testing.T) {
	f := newFiles(t)
	f.write("guest", listed("guest", liveGuest))
	d := f.live()
	f.write("guest", listed("guest", liveOther))
	d.Look()
	f.write("guest", listed("guest", liveGuest, liveOther))

	after := f.live(d.kept...)
	require.Equal(t, tiers.None, after.tier(liveGuest), "it was taken away before")
	require.Equal(t, tiers.None, after.tier(liveOther), "nobody has consented")
	require.NotEmpty(t, after.Status().Waiting)
	require.NotEmpty(t, d.kept)
}

func TestWhatCannotBeStoredIsStoredLater(t *testing.T) {
	f := newFiles(t)
	f.write("guest", listed("guest", liveGuest))
	d := f.live()
	d.full.Store(true)
	f.write("guest", listed("guest"))
	require.False(t, d.Look(), "it wants to be called again")
	require.Equal(t, tiers.None, d.tier(liveGuest), "the loss does not wait for the disk")
	d.full.Store(false)
	require.True(t, d.Look())
	require.Equal(t, f.load().Texts(), d.kept[0])
}

func TestT13WhatATierMayDoGrowsByNothing(t *testing.T) {
	const head = "tier: guest\n"
	narrow := head + runsByDocs + "limits: {wall: 10s, stall: 1s, memory: 100MiB, disk: 1MiB, files: 1, processes: 1, open_files: 1, answer: 1KiB, model_requests: 1}\n" +
		"asking: {per_minute: 1, running: 1, waiting: 0, tokens_per_day: {user: 1, tier: 1}}\n"
	f := newFiles(t)
	f.write("guest", narrow)
	d := f.live()
	before, _ := d.Force().Tier(tiers.Guest)
	f.write("guest", head+"policy: {mode: workspace-write, network: model-only, tools: [read, search], documents: [handbook], require: [filesystem],"+
		" runners: [claude, docs], model: {anthropic: dearer, output_tokens: 9000}}\n"+
		"limits: {wall: 20s, stall: 2s, memory: 200MiB, disk: 2MiB, files: 2, processes: 2, open_files: 2, answer: 2KiB, model_requests: 2}\n"+
		"asking: {per_minute: 2, running: 2, waiting: 2, tokens_per_day: {user: 2, tier: 2}}\n")
	d.Look()
	require.NoError(t, d.Status().Refused)
	require.NotEmpty(t, d.Status().Waiting)
	now, _ := d.Force().Tier(tiers.Guest)
	require.Equal(t, fmt.Sprint(before), fmt.Sprint(now))
	require.False(t, manifests.Narrows(before, now))

	d.consent.Store(f.load().Texts().Hash())
	d.Look()
	now, _ = d.Force().Tier(tiers.Guest)
	require.Equal(t, policy.ModelOnly, now.Wish.Network)
	require.Equal(t, []string{"claude", "docs"}, now.Runners)
	require.False(t, manifests.Narrows(before, now), "a run under a policy that has grown may go on")

	f.write("guest", narrow)
	d.Look()
	less, _ := d.Force().Tier(tiers.Guest)
	require.Equal(t, fmt.Sprint(before), fmt.Sprint(less), "less right does not wait")
	require.True(t, manifests.Narrows(now, less))
}

// A mark of one change after the other: each way of writing a file ends in a
// look that sees it, without the poll.
func TestEveryWayOfChangingAManifestIsSeen(t *testing.T) {
	put := func(t *testing.T, file, text string) { require.NoError(t, os.WriteFile(file, []byte(text), 0o600)) }
	for name, c := range map[string]struct {
		prepare, change func(t *testing.T, dir string)
	}{
		"written in place": {nil, func(t *testing.T, dir string) { put(t, filepath.Join(dir, "tiers", "guest.yaml"), "2") }},
		"renamed over it": {nil, func(t *testing.T, dir string) {
			put(t, filepath.Join(dir, "tiers", ".guest.yaml.swp"), "2")
			require.NoError(t, os.Rename(filepath.Join(dir, "tiers", ".guest.yaml.swp"), filepath.Join(dir, "tiers", "guest.yaml")))
		}},
		"deleted and made again": {nil, func(t *testing.T, dir string) {
			require.NoError(t, os.Remove(filepath.Join(dir, "tiers", "guest.yaml")))
			put(t, filepath.Join(dir, "tiers", "guest.yaml"), "2")
		}},
		"the folder is another one": {nil, func(t *testing.T, dir string) {
			require.NoError(t, os.Rename(filepath.Join(dir, "tiers"), filepath.Join(dir, "before")))
			require.NoError(t, os.Mkdir(filepath.Join(dir, "tiers"), 0o755))
			put(t, filepath.Join(dir, "tiers", "guest.yaml"), "2")
		}},
		"a ConfigMap beside the files": {configMap("tiers"), swapConfigMap("tiers")},
		"a ConfigMap of the folder":    {configMap(""), swapConfigMap("")},
		"the folder is a link that is turned": {func(t *testing.T, dir string) {
			require.NoError(t, os.Rename(filepath.Join(dir, "tiers"), filepath.Join(dir, "v1")))
			require.NoError(t, os.Symlink("v1", filepath.Join(dir, "tiers")))
			require.NoError(t, os.Mkdir(filepath.Join(dir, "v2"), 0o755))
			put(t, filepath.Join(dir, "v2", "guest.yaml"), "2")
		}, func(t *testing.T, dir string) {
			require.NoError(t, os.Symlink("v2", filepath.Join(dir, "next")))
			require.NoError(t, os.Rename(filepath.Join(dir, "next"), filepath.Join(dir, "tiers")))
		}},
		"a link to elsewhere": {func(t *testing.T, dir string) {
			require.NoError(t, os.Mkdir(filepath.Join(dir, "real"), 0o755))
			file := filepath.Join(dir, "tiers", "guest.yaml")
			require.NoError(t, os.Rename(file, filepath.Join(dir, "real", "g.yaml")))
			require.NoError(t, os.Symlink(filepath.Join("..", "real", "g.yaml"), file))
		}, func(t *testing.T, dir string) { put(t, filepath.Join(dir, "real", "g.yaml"), "2") }},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			require.NoError(t, os.Mkdir(filepath.Join(dir, "tiers"), 0o755))
			put(t, filepath.Join(dir, "tiers", "guest.yaml"), "1")
			if c.prepare != nil {
				c.prepare(t, dir)
			}
			seen := make(chan string, 100)
			w := manifests.Watch{Dir: dir, Quiet: 20 * time.Millisecond, Poll: time.Hour, Deaf: func(err error) { t.Error(err) }}
			stop := watch(t, w, func() bool {
				text, _ := os.ReadFile(filepath.Join(dir, "tiers", "guest.yaml"))
				seen <- string(text)
				return true
			})
			defer stop()
			require.Equal(t, "1", <-seen, "at once")
			c.change(t, dir)
			timeout := time.After(20 * time.Second)
			for text := ""; text != "2"; {
				select {
				case text = <-seen:
				case <-timeout:
					require.Fail(t, "the change was not seen")
				}
			}
		})
	}
}

// configMap turns a folder into the form in which Kubernetes mounts one.
func configMap(of string) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		first := filepath.Join(dir, of, "..1")
		require.NoError(t, os.Mkdir(first, 0o755))
		require.NoError(t, os.Symlink("..1", filepath.Join(dir, of, "..data")))
		name := "guest.yaml"
		if of == "" {
			name = "tiers"
		}
		require.NoError(t, os.Rename(filepath.Join(dir, of, name), filepath.Join(first, name)))
		require.NoError(t, os.Symlink(filepath.Join("..data", name), filepath.Join(dir, of, name)))
	}
}

// swapConfigMap does what the kubelet does on a change.
func swapConfigMap(of string) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		second := filepath.Join(dir, of, "..2")
		into := second
		if of == "" {
			into = filepath.Join(second, "tiers")
		}
		require.NoError(t, os.MkdirAll(into, 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(into, "guest.yaml"), []byte("2"), 0o600))
		require.NoError(t, os.Symlink("..2", filepath.Join(dir, of, "..data_tmp")))
		require.NoError(t, os.Rename(filepath.Join(dir, of, "..data_tmp"), filepath.Join(dir, of, "..data")))
		require.NoError(t, os.RemoveAll(filepath.Join(dir, of, "..1")))
	}
}

// watch runs a watch until stop.
func watch(t *testing.T, w manifests.Watch, look func() bool) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.Serve(ctx, look)
	}()
	return func() {
		cancel()
		<-done
	}
}

func TestAWatchLooksAgainWithoutWordOfTheKernel(t *testing.T) {
	seen := make(chan struct{})
	look := func() bool { seen <- struct{}{}; return true }
	next := func() {
		t.Helper()
		select {
		case <-seen:
		case <-time.After(20 * time.Second):
			require.Fail(t, "it did not look")
		}
	}
	nowhere := filepath.Join(t.TempDir(), "gone")
	stop := watch(t, manifests.Watch{Dir: nowhere, Poll: 10 * time.Millisecond}, look)
	next()
	next()
	next()
	go func() {
		for range seen { // the last look, while it stops
		}
	}()
	stop()

	ask, asked := make(chan struct{}), make(chan struct{}, 10)
	stop = watch(t, manifests.Watch{Dir: nowhere, Poll: time.Hour, Ask: ask}, func() bool { asked <- struct{}{}; return true })
	<-asked
	ask <- struct{}{}
	<-asked
	stop()
}

// badID is named in no file that is right.
const badID = "999999999999999999"

// It is 2,000 writes of files that are good, faulty, half written, or good and
// wide, by several ways of writing at once, while people are decided about.
func TestReloadStorm(t *testing.T) {
	const writes, writers, deciders = 2000, 2, 2
	f := newFiles(t)
	good := listed("guest", liveGuest, liveOther)
	f.write("guest", good)
	f.write("team", listed("team", liveTeam))
	d := f.live()
	routines, descriptors := runtime.NumGoroutine(), openFiles(t)

	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	looks, looked := 0, make(chan struct{})
	all.Go(func() {
		manifests.Watch{Dir: f.dir, Quiet: time.Millisecond, Most: 3 * time.Millisecond, Poll: time.Millisecond}.Serve(ctx, func() bool {
			looks++
			select {
			case looked <- struct{}{}:
			default:
			}
			return d.Look()
		})
	})
	var decisions atomic.Int64
	for range deciders {
		all.Go(func() {
			ticker := time.NewTicker(100 * time.Microsecond)
			defer ticker.Stop()
			for ctx.Err() == nil {
				<-ticker.C
				// Nobody ever has more than the state of the start gave: nobody has consented.
				for user, most := range map[string]tiers.Tier{liveOwner: tiers.Owner, liveTeam: tiers.Team, liveGuest: tiers.Guest, liveOther: tiers.Guest, "555555555555555555": tiers.None} {
					if got := d.tier(user); got > most {
						t.Errorf("%s is %s, at most %s", user, got, most)
					}
				}
				// No file of the storm takes the owner away and is right.
				if got := d.tier(liveOwner); got != tiers.Owner {
					t.Errorf("the owner is %s", got)
				}
				decisions.Add(5)
			}
		})
	}
	var writing sync.WaitGroup
	for n := range writers {
		writing.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(n)))
			for i := range writes / writers {
				stormWrite(f, random, n, i, good)
				if i%8 == 0 {
					<-looked // a look begins while the next ones are written
				}
			}
		})
	}
	writing.Wait()
	f.write("guest", listed("guest", liveOther))
	f.write("team", listed("team", liveTeam, "555555555555555555"))
	require.Eventually(t, func() bool {
		return d.tier(liveGuest) == tiers.None && d.Status().Refused == nil && len(d.Status().Waiting) > 0
	}, 20*time.Second, 5*time.Millisecond, "the last state is not in force")
	cancel()
	all.Wait()
	require.Equal(t, tiers.None, d.tier("555555555555555555"))
	for _, turn := range d.turns {
		require.NotContains(t, fmt.Sprint(turn.Gains, turn.Losses), badID, "a faulty file was taken over")
	}
	t.Logf("%d looks, %d turns, %d decisions, %d states underneath", looks, len(d.turns), decisions.Load(), len(d.kept))
	require.Eventually(t, func() bool { return runtime.NumGoroutine() <= routines+1 }, 20*time.Second, 5*time.Millisecond, "goroutines are left besides the one that counts")
	require.LessOrEqual(t, openFiles(t), descriptors, "descriptors are left")
}

// stormWrite writes one file; each writer has ways and a file of its own.
func stormWrite(f files, random *rand.Rand, writer, i int, good string) {
	tier, text := "guest", good
	if writer == 1 {
		tier, text = "team", listed("team", liveTeam)
	}
	switch random.IntN(6) {
	case 0:
		text = listed(tier)
	case 1:
		text = listed(tier, fmt.Sprint(555555555555555000+i)) // somebody new
	case 2:
		text = listed(tier, badID) + "anyone: true\n"
	case 3:
		text = text[:random.IntN(len(text))]
	case 4:
		text = listed(tier, liveOwner, badID)
	}
	if random.IntN(2) == 0 {
		_ = os.WriteFile(f.path(tier), []byte(text), 0o600) // in place: read half written
		return
	}
	next := filepath.Join(f.dir, "."+tier+".storm")
	_ = os.WriteFile(next, []byte(text), 0o600)
	_ = os.Rename(next, f.path(tier))
}

func openFiles(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	return len(entries)
}

// What was kept is not nothing by being forgotten: without it, and without a word
// that nothing bounds the start, nobody has anything.
func TestT13WithNothingKeptNobodyHasAnything(t *testing.T) {
	t.Parallel()
	f := newFiles(t)
	f.write("team", listed("team", "222222222222222222"))
	live, turn := manifests.NewLive(manifests.LiveConfig{
		Allow: func(*manifests.Set) error { return nil }, Consented: func(string) bool { return false },
		Turned: func(manifests.Turn) {}, Keep: func([]manifests.Texts) error { return nil }, Now: time.Now,
	}, f.load(), nil)
	require.NotEmpty(t, turn.Gains)
	for _, tier := range tiers.All() {
		_, ok := live.Force().Tier(tier)
		require.False(t, ok, tier)
	}
	_, under := live.Force().Rules()
	require.NotEmpty(t, under)
	require.Zero(t, under[0].Count(tiers.Team))
}
