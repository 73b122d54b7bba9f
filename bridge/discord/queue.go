package discord

import (
	"context"
	"sync"
	"time"
)

// queue keeps the events of one channel in their order and lets channels go
// side by side. It takes events without blocking, since the library's reader
// waits for it.
type queue struct {
	take func(context.Context, event)

	mu      sync.Mutex
	ctx     context.Context // of the current Run; nil: nothing is taken
	waiting map[string][]event
	size    int
	running sync.WaitGroup
}

// mostWaiting bounds the events that wait for the gate, over all channels.
const mostWaiting = 2048

func newQueue(take func(context.Context, event)) *queue {
	return &queue{take: take, waiting: map[string][]event{}}
}

// open lets events in; they are taken under ctx.
func (q *queue) open(ctx context.Context) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.ctx = ctx
}

// push queues an event. It says no where the queue is full or closed.
func (q *queue) push(e event) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.ctx == nil || q.size >= mostWaiting {
		return false
	}
	waiting, running := q.waiting[e.ChannelID]
	q.waiting[e.ChannelID] = append(waiting, e)
	q.size++
	if !running {
		ctx := q.ctx
		q.running.Go(func() { q.drain(ctx, e.ChannelID) })
	}
	return true
}

// drain takes the events of one channel until none is left.
func (q *queue) drain(ctx context.Context, key string) {
	for {
		q.mu.Lock()
		waiting := q.waiting[key]
		if len(waiting) == 0 {
			delete(q.waiting, key)
			q.mu.Unlock()
			return
		}
		e := waiting[0]
		q.waiting[key] = waiting[1:]
		q.size--
		q.mu.Unlock()
		q.take(ctx, e)
	}
}

// close lets nothing more in and waits for what is there, but not for ever. It
// says whether all was taken.
func (q *queue) close(wait time.Duration) bool {
	q.mu.Lock()
	q.ctx = nil
	q.mu.Unlock()
	done := make(chan struct{})
	go func() {
		q.running.Wait()
		close(done)
	}()
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}

// notices are the typing notices that are out, by the message they are for.
type notices struct {
	mu      sync.Mutex
	stops   map[string]context.CancelFunc
	running sync.WaitGroup
}

// mostNotices bounds the notices at a time; a question beyond it has none.
const mostNotices = 256

func newNotices() *notices { return &notices{stops: map[string]context.CancelFunc{}} }

// expect makes room for the notice of a message that is about to be accepted, so
// that an answer that comes at once is not followed by a notice. It says no where
// there is one, or no room.
func (n *notices) expect(message string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, there := n.stops[message]; there || len(n.stops) >= mostNotices {
		return false
	}
	n.stops[message] = func() {}
	return true
}

// start runs first in any case, and then the notice until it is stopped or ends
// by itself.
func (n *notices) start(ctx context.Context, message string, first, notice func(context.Context)) {
	n.running.Go(func() {
		first(ctx)
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		n.mu.Lock()
		_, expected := n.stops[message]
		if expected {
			n.stops[message] = cancel
		}
		n.mu.Unlock()
		if expected {
			notice(ctx)
			n.stop(message)
		}
	})
}

func (n *notices) stop(message string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if cancel, there := n.stops[message]; there {
		cancel()
		delete(n.stops, message)
	}
}

// quiet remembers who was refused where, so that a refusal is not repeated to
// somebody who keeps asking.
type quiet struct {
	span time.Duration

	mu   sync.Mutex
	last map[string]time.Time
}

// mostQuiet bounds the memory of refusals; beyond it the old ones go, and where
// all are recent, everybody is kept silent to.
const mostQuiet = 10_000

func newQuiet(span time.Duration) *quiet { return &quiet{span: span, last: map[string]time.Time{}} }

// may says whether a refusal may be said now, and notes that it is.
func (q *quiet) may(key string, now time.Time) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if last, there := q.last[key]; there && now.Sub(last) < q.span {
		return false
	}
	if len(q.last) >= mostQuiet {
		for k, last := range q.last {
			if now.Sub(last) >= q.span {
				delete(q.last, k)
			}
		}
		if len(q.last) >= mostQuiet {
			return false
		}
	}
	q.last[key] = now
	return true
}
