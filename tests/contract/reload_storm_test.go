package contract_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"parlour/manifests"
	"parlour/tiers"
)

// whirl is a storm in which the operator consents to each state of the files, so
// that nothing but the files bounds who may do what. Each good state of a tier
// file names two people of its own, by which a decision tells whence it came.
type whirl struct {
	files
	*manifests.Live
	began   map[tiers.Tier]*atomic.Int64 // the last state of a file that was begun to be written
	refused atomic.Int64
	taken   atomic.Int64
}

// person is the nth of the two that state i of a tier's file names.
func person(t tiers.Tier, i, n int) string { return fmt.Sprintf("5%d%d%015d", t, n, i) }

// stateOf says which state of which file names somebody.
func stateOf(id string) (t tiers.Tier, i int64) {
	i, _ = strconv.ParseInt(id[3:], 10, 64) // made by person
	return tiers.Tier(id[1] - '0'), i
}

func newWhirl(t testing.TB) *whirl {
	w := &whirl{files: newFiles(t), began: map[tiers.Tier]*atomic.Int64{tiers.Guest: {}, tiers.Team: {}}}
	for tier := range w.began {
		w.write(tier.String(), listed(tier.String(), person(tier, 0, 0), person(tier, 0, 1)))
	}
	w.Live, _ = manifests.NewLive(manifests.LiveConfig{
		Allow:     func(*manifests.Set) error { return nil },
		Consented: func(string) bool { return true },
		Unbounded: true,
		Turned: func(turn manifests.Turn) {
			if turn.Err == nil {
				w.taken.Add(1)
				return
			}
			w.refused.Add(1)
			// In the midst of a refusal, which deciders beside it seldom meet.
			if fault := w.look(map[tiers.Tier]int64{}); fault != "" {
				t.Error(fault)
			}
		},
		Keep: func([]manifests.Texts) error { return nil },
		Now:  time.Now,
	}, w.load(), nil)
	return w
}

// put writes state i of a tier's file: good, half of it, or with faults. Each
// faulty one names people too, of a state that never comes.
func (w *whirl) put(tier tiers.Tier, i int, random *rand.Rand) {
	name, bad := tier.String(), []string{person(tier, 1_000_000+i, 0), person(tier, 1_000_000+i, 1)}
	text := listed(name, person(tier, i, 0), person(tier, i, 1))
	switch random.IntN(10) {
	case 0:
		text = listed(name, bad...) + "anyone: true\n"
	case 1:
		text = listed(name, append(bad, liveOwner)...)
	case 2:
		text = listed(name, bad...) + "expect:\n  - {discord: {channel: \"700000000000000001\", user: \"" + liveOther + "\"}, tier: guest}\n"
	case 3:
		text = text[:random.IntN(len(text))]
	}
	w.began[tier].Store(int64(i))
	if random.IntN(2) == 0 {
		_ = os.WriteFile(w.path(name), []byte(text), 0o600) // in place: read half written
		return
	}
	next := filepath.Join(w.dir, "."+name+".storm")
	_ = os.WriteFile(next, []byte(text), 0o600)
	_ = os.Rename(next, w.path(name))
}

// look decides about everybody whom the rules in force name, and gives the
// states of the files by which it is so.
func (w *whirl) look(before map[tiers.Tier]int64) (fault string) {
	force := w.Force()
	rules, under := force.Rules()
	if len(under) > 0 {
		return "something bounds the files"
	}
	seen, owner := map[tiers.Tier]int64{}, false
	for _, rule := range rules.All() {
		for _, id := range rule.Users {
			if id == liveOwner {
				owner = tierBy(rules, id) == tiers.Owner
				continue
			}
			tier, i := stateOf(id)
			last, again := seen[tier]
			switch {
			case tier != rule.Tier || tierBy(rules, id) != tier:
				return id + " is " + tierBy(rules, id).String()
			case again && last != i:
				return fmt.Sprintf("%s: of the states %d and %d at once", tier, last, i)
			case i > w.began[tier].Load():
				return fmt.Sprintf("%s: of the state %d, which is faulty", tier, i)
			case i < before[tier]:
				return fmt.Sprintf("%s: of the state %d, after the state %d", tier, i, before[tier])
			}
			seen[tier] = i
		}
	}
	if !owner {
		return "the owner is none"
	}
	for tier, i := range before {
		if now, named := seen[tier]; !named || now != i {
			if got := tierBy(rules, person(tier, int(i), 0)); got != tiers.None {
				return fmt.Sprintf("somebody of a state of before is %s", got)
			}
		}
	}
	for tier, i := range seen {
		before[tier] = i
	}
	return ""
}

func tierBy(rules tiers.Rules, user string) tiers.Tier {
	who := tiers.Identity{Platform: tiers.Discord, User: user, Kind: tiers.Person}
	where := tiers.Place{Platform: tiers.Discord, Channel: "700000000000000001", Direct: true, Most: tiers.Owner}
	return rules.Resolve(who, where, time.Time{}).Tier
}

// TestReloadStormOfStatesThatAreConsentedTo writes 2,000 files, good, half and
// faulty, while people are decided about. Each decision is of one good state of
// each file, never of one before it, and nothing is left behind.
func TestReloadStormOfStatesThatAreConsentedTo(t *testing.T) {
	const writes, deciders = 2000, 2
	w := newWhirl(t)
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	routines, descriptors, watches := runtime.NumGoroutine(), openFiles(t), watchesOf(t)

	ctx, cancel := context.WithCancel(t.Context())
	var all, writing sync.WaitGroup
	looked := make(chan struct{})
	mostFiles, mostWatches := 0, 0
	all.Go(func() {
		manifests.Watch{Dir: w.dir, Quiet: time.Millisecond, Most: 3 * time.Millisecond, Poll: time.Millisecond}.Serve(ctx, func() bool {
			mostFiles, mostWatches = max(mostFiles, openFiles(t)), max(mostWatches, watchesOf(t))
			select {
			case looked <- struct{}{}:
			default:
			}
			return w.Look()
		})
	})
	var decisions atomic.Int64
	for range deciders {
		all.Go(func() {
			states := map[tiers.Tier]int64{}
			ticker := time.NewTicker(50 * time.Microsecond)
			defer ticker.Stop()
			for ctx.Err() == nil {
				<-ticker.C
				if fault := w.look(states); fault != "" {
					t.Error(fault)
					return
				}
				decisions.Add(1)
			}
		})
	}
	for tier := range w.began {
		writing.Go(func() {
			random := rand.New(rand.NewPCG(2, uint64(tier)))
			for i := 1; i <= writes/len(w.began); i++ {
				w.put(tier, i, random)
				if i%16 == 0 {
					<-looked // a look begins while the next ones are written
				}
			}
		})
	}
	writing.Wait()
	const last = writes + 1
	for tier, began := range w.began {
		began.Store(last)
		w.write(tier.String(), listed(tier.String(), person(tier, last, 0), person(tier, last, 1)))
	}
	require.Eventually(t, func() bool {
		rules, _ := w.Force().Rules()
		return tierBy(rules, person(tiers.Team, last, 0)) == tiers.Team && tierBy(rules, person(tiers.Guest, last, 1)) == tiers.Guest
	}, 20*time.Second, 5*time.Millisecond, "the last state is not in force")
	cancel()
	all.Wait()

	t.Logf("%d taken over, %d refused, %d decisions, at most %d descriptors and %d watches more", w.taken.Load(), w.refused.Load(), decisions.Load(),
		mostFiles-descriptors, mostWatches-watches)
	require.Greater(t, w.taken.Load(), int64(5), "it was no storm")
	require.Greater(t, w.refused.Load(), int64(10), "it was no storm")
	require.Greater(t, decisions.Load(), w.taken.Load(), "it was no storm")
	require.Eventually(t, func() bool { return runtime.NumGoroutine() <= routines+1 }, 20*time.Second, 5*time.Millisecond, "goroutines are left besides the one that counts")
	require.LessOrEqual(t, openFiles(t), descriptors, "descriptors are left")
	require.LessOrEqual(t, watchesOf(t), watches, "watches are left")
	require.LessOrEqual(t, mostWatches-watches, 8, "watches pile up")
	require.LessOrEqual(t, mostFiles-descriptors, 16, "descriptors pile up")
	runtime.GC()
	runtime.ReadMemStats(&after)
	left := int64(after.HeapAlloc) - int64(before.HeapAlloc)
	t.Logf("%d KiB of memory more", left>>10)
	require.Less(t, left, int64(256<<10), "memory is left")
}

// watchesOf counts the kernel's watches of files that this process has.
func watchesOf(t testing.TB) (n int) {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fdinfo")
	if err != nil {
		return 0
	}
	for _, e := range entries {
		text, _ := os.ReadFile(filepath.Join("/proc/self/fdinfo", e.Name())) // it may be closed by now
		n += strings.Count("\n"+string(text), "\ninotify ")
	}
	return n
}
