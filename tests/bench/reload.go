package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"parlour/bridge"
	"parlour/manifests"
)

// How decisions are measured while the manifests are read again.
const (
	segments = 7               // of each variant, in turns
	segment  = time.Second / 2 // the shortest; one with reloads lasts until one has taken effect
	patience = time.Minute     // for one reload
	messages = 2_100           // decisions of each variant that come now and then
	between  = time.Millisecond / 4
)

// reloads compares decisions while large manifests are read again and again with
// decisions while nothing happens.
//
// A reload is what a serving bot does: word of the kernel, 300 ms of quiet, a
// look at the files, the comparison with the last state, and the change of the
// book. Each edit puts one id in the place of another, and the next is written as
// soon as the last is in force, so that reloads follow each other as fast as the
// bot would let them: one in about half a second. Back to back there is no quiet.
//
// Decisions are made one after the other, or now and then as messages come. The
// latter find the caches cold, so their ratio tells of whatever shares the
// machine as much as of reloads: what is held to a bar is how long they take. Too
// few are made in a segment, so they are counted all together.
func reloads(ctx context.Context, _ *rig) (rows []row, err error) {
	dir, err := os.MkdirTemp("", "parlour-reloads-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := large(dir); err != nil {
		return nil, err
	}
	h, err := newHall(dir)
	if err != nil {
		return nil, err
	}
	watched, err := h.compare(ctx, h.watch)
	if err != nil {
		return nil, err
	}
	hurried, err := h.compare(ctx, h.hurry)
	if err != nil {
		return nil, err
	}
	alone, beside, err := h.seldom(ctx)
	if err != nil {
		return nil, err
	}
	return []row{
		below("p99 of decisions during reloads ÷ without", watched, 2),
		said("p99 of decisions during reloads back to back ÷ without", fmt.Sprintf("%.2f", hurried)),
		short("p99 of decisions now and then, during reloads", beside, time.Millisecond),
		said("the same ÷ without reloads", fmt.Sprintf("%.2f", float64(beside)/float64(alone))),
	}, nil
}

// hall is a serving bot as far as it decides: the files, and the book of now.
type hall struct {
	dir   string
	edits [2][]byte // of the guest's file
	live  *manifests.Live
	book  atomic.Pointer[bridge.Rulebook]
	taken atomic.Int64 // reloads that took effect
	edit  int
	err   atomic.Pointer[error]
}

func newHall(dir string) (*hall, error) {
	h := &hall{dir: dir}
	text, err := os.ReadFile(h.file())
	if err != nil {
		return nil, err
	}
	last, other := []byte(discordID(1_000_000+manyIDs-1)), []byte(discordID(1_000_000+manyIDs))
	if bytes.Count(text, last) != 1 {
		return nil, fmt.Errorf("%s stands not once in the guest's file", last)
	}
	h.edits = [2][]byte{bytes.Replace(text, last, other, 1), text}
	set, err := manifests.Load(dir)
	if err != nil {
		return nil, err
	}
	var turn manifests.Turn
	// The operator consents to each edit: rules underneath would make decisions
	// dearer, and not the reload.
	h.live, turn = manifests.NewLive(manifests.LiveConfig{
		Allow: func(*manifests.Set) error { return nil }, Consented: func(string) bool { return true }, Unbounded: true,
		Turned: h.turned, Keep: func([]manifests.Texts) error { return nil }, Now: time.Now,
	}, set, nil)
	h.open(turn.Force)
	return h, nil
}

func (h *hall) file() string { return filepath.Join(h.dir, "tiers", "guest.yaml") }

func (h *hall) turned(t manifests.Turn) {
	if t.Err != nil {
		h.err.Store(&t.Err)
		return
	}
	h.open(t.Force)
	h.taken.Add(1)
}

func (h *hall) open(f manifests.Force) {
	var book bridge.Rulebook
	book.Rules, book.Under = f.Rules()
	h.book.Store(&book)
}

// write puts the next edit in the place of the last.
func (h *hall) write() {
	next := filepath.Join(h.dir, ".next")
	if err := errors.Join(os.WriteFile(next, h.edits[h.edit%2], 0o644), os.Rename(next, h.file())); err != nil {
		h.err.Store(&err)
	}
	h.edit++
}

// watch reloads as a bot does.
func (h *hall) watch(ctx context.Context) {
	var written int64 = -1
	manifests.Watch{Dir: h.dir}.Serve(ctx, func() bool {
		done := h.live.Look()
		if n := h.taken.Load(); n != written {
			h.write()
			written = n
		}
		return done
	})
}

// hurry reloads without a pause.
func (h *hall) hurry(ctx context.Context) {
	for ctx.Err() == nil {
		h.write()
		h.live.Look()
	}
}

// during runs do while the manifests are read again.
func (h *hall) during(ctx context.Context, reload func(context.Context), do func() error) error {
	ctx, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		reload(ctx)
	}()
	err := do()
	stop()
	<-done
	if failed := h.err.Load(); failed != nil {
		err = errors.Join(err, *failed)
	}
	return err
}

// compare gives the ratio of the medians of each segment's p99.
func (h *hall) compare(ctx context.Context, reload func(context.Context)) (float64, error) {
	var quiet, busy []time.Duration
	for range segments {
		alone, err := h.decide(func(took time.Duration, _ int64) bool { return took >= segment })
		if err != nil {
			return 0, err
		}
		var beside *spread
		err = h.during(ctx, reload, func() (err error) {
			before := h.taken.Load()
			beside, err = h.decide(func(took time.Duration, _ int64) bool {
				return took >= segment && h.taken.Load() > before || took >= patience || ctx.Err() != nil
			})
			if err == nil && h.taken.Load() == before {
				err = errors.New("no reload took effect")
			}
			return err
		})
		if err != nil {
			return 0, err
		}
		quiet, busy = append(quiet, alone.p99()), append(busy, beside.p99())
	}
	return float64(median(busy)) / float64(median(quiet)), nil
}

// seldom gives the p99 of decisions that come now and then, without reloads and
// during them.
func (h *hall) seldom(ctx context.Context) (alone, beside time.Duration, err error) {
	quiet, busy := &spread{}, &spread{}
	ticker := time.NewTicker(between)
	defer ticker.Stop()
	part := func(into *spread) error {
		return h.into(into, ticker.C, func(_ time.Duration, n int64) bool { return n >= messages/segments || ctx.Err() != nil })
	}
	before := h.taken.Load()
	for range segments {
		if err := errors.Join(part(quiet), h.during(ctx, h.watch, func() error { return part(busy) })); err != nil {
			return 0, 0, err
		}
	}
	if h.taken.Load() == before {
		return 0, 0, errors.New("no reload took effect")
	}
	return quiet.p99(), busy.p99(), nil
}

func (h *hall) decide(enough func(took time.Duration, n int64) bool) (*spread, error) {
	s := &spread{}
	return s, h.into(s, nil, enough)
}

// into decides about everybody in turn, at once or when it is time for the next,
// until it is enough.
func (h *hall) into(s *spread, next <-chan time.Time, enough func(took time.Duration, n int64) bool) error {
	people := asking()
	began := time.Now()
	for n := int64(1); ; n++ {
		c := &people[n%int64(len(people))]
		begin := time.Now()
		d := h.book.Load().Decide(c.who, c.where)
		end := time.Now()
		s.add(end.Sub(begin))
		if d.Tier != c.want {
			return fmt.Errorf("%s is %s: %s", c.name, d.Tier, d.Why)
		}
		if enough(end.Sub(began), n) {
			return nil
		}
		if next != nil {
			<-next
		}
	}
}

// spread counts times in steps of 10 ns, without making garbage of its own.
type spread struct {
	counts [100_000]int64
	n      int64
}

const step = 10 * time.Nanosecond

func (s *spread) add(d time.Duration) {
	s.counts[min(int(d/step), len(s.counts)-1)]++
	s.n++
}

// p99 is the time that 99 of 100 did not exceed, in whole steps.
func (s *spread) p99() time.Duration {
	left := s.n - s.n/100
	for i, c := range s.counts {
		if left -= c; left <= 0 {
			return time.Duration(i+1) * step
		}
	}
	return time.Duration(len(s.counts)) * step
}

func median(all []time.Duration) time.Duration { return slices.Sorted(slices.Values(all))[len(all)/2] }
