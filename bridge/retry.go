package bridge

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"parlour/bridge/ask"
	"parlour/bridge/journal"
	"parlour/tiers"
)

const (
	lookAround  = 5 * time.Second  // between two looks at what is due
	firstRetry  = time.Minute      // after the first failure; doubles
	lastRetry   = 30 * time.Minute // and no longer than this
	mostAtOnce  = 4                // deliveries of one platform at a time, beside those of answers that are new
	mostFailing = 4                // failures in a row after which the rest of a pass is put off
)

// late is an outcome whose delivery is due again.
type late struct {
	journal.Delivery
	due      time.Time
	failures int
}

// later notes that a delivery has failed and when it is tried again.
func (o *Outbox) later(job ask.Job, ended ask.Ended, err error) {
	o.mu.Lock()
	l := o.late[job.ID]
	if l == nil {
		l = &late{Delivery: journal.Delivery{Job: job, Ended: ended}}
		o.late[job.ID] = l
	}
	pause := min(firstRetry<<min(l.failures, 10), lastRetry)
	l.failures++
	l.due = time.Now().Add(pause)
	first := l.failures == 1
	if errors.Is(err, errOff) {
		delete(o.late, job.ID) // until the next start
	}
	o.mu.Unlock()
	if first {
		o.log.Error("deliver", "job", job.ID, "err", err)
		return
	}
	o.log.Warn("deliver again", "job", job.ID, "err", err, "again_in", pause)
}

// serve delivers what was stored but not delivered when the bot died, and tries
// again what fails, until ctx ends. What is under way then has until runs ends.
func (o *Outbox) serve(ctx, runs context.Context, book func() Rulebook, left []journal.Delivery) {
	o.mu.Lock()
	for _, d := range left {
		o.late[d.Job.ID] = &late{Delivery: d, due: time.Now()}
		if d.Tries == 0 && d.Ended.Outcome.Cause == ask.GaveUp {
			o.metrics.questionEnded(d.Job, d.Ended) // the journal has ended it by itself
		}
	}
	o.mu.Unlock()
	var passes sync.WaitGroup
	defer passes.Wait()
	ticker := time.NewTicker(lookAround)
	defer ticker.Stop()
	for {
		for platform, due := range o.due(time.Now()) {
			passes.Go(func() {
				defer o.passed(platform)
				o.pass(ctx, runs, book, due)
			})
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// due gives what is to be tried now, in the order of the questions, of the
// platforms on which no pass goes on. On one that has become ready it is all.
func (o *Outbox) due(now time.Time) map[tiers.Platform][]journal.Delivery {
	o.mu.Lock()
	defer o.mu.Unlock()
	fresh := map[tiers.Platform]bool{}
	all := map[tiers.Platform][]journal.Delivery{}
	for _, l := range o.late {
		platform := l.Job.Identity.Platform
		if _, asked := fresh[platform]; !asked {
			was, known := o.up[platform]
			up := ready(o.sender, platform)
			o.up[platform], fresh[platform] = up, up && known && !was
		}
		if fresh[platform] {
			l.due = now
		}
		if !o.at[platform] && !l.due.After(now) {
			all[platform] = append(all[platform], l.Delivery)
		}
	}
	for platform, list := range all {
		o.at[platform] = true
		slices.SortFunc(list, func(a, b journal.Delivery) int { return cmp.Compare(a.Job.ID, b.Job.ID) })
	}
	return all
}

// ready says whether a platform is connected, where its sender knows.
func ready(sender Sender, platform tiers.Platform) bool {
	if s, ok := sender.(Senders); ok {
		sender = s[platform]
	}
	connected, ok := sender.(interface{ Ready() (bool, string) })
	if !ok {
		return false
	}
	up, _ := connected.Ready()
	return up
}

func (o *Outbox) passed(platform tiers.Platform) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.at, platform)
}

// turn is the place of one delivery in the order of its person and conversation.
type turn struct {
	over   chan struct{}
	failed bool
}

// pass tries to deliver a list on one platform: a few at a time, and one after
// the other what is of the same person or conversation. Where one fails, those
// behind it are put off, and where several do in a row, so is the rest.
// Guarded by tests/contract TestLateOutcomesKeepTheOrderOfTheirPersonAndConversation.
func (o *Outbox) pass(ctx, runs context.Context, book func() Rulebook, list []journal.Delivery) {
	slots := make(chan struct{}, mostAtOnce)
	last := map[string]*turn{}
	var failing atomic.Int32
	var all sync.WaitGroup
	for _, d := range list {
		t := &turn{over: make(chan struct{})}
		lane, person := "lane "+d.Job.Lane, "person "+d.Job.Person
		before := []*turn{last[lane], last[person]}
		last[lane], last[person] = t, t
		all.Go(func() {
			defer close(t.over)
			if !comes(before) {
				t.failed = true
				o.putOff(d.Job.ID)
				return
			}
			slots <- struct{}{}
			defer func() { <-slots }()
			switch {
			case ctx.Err() != nil:
				t.failed = true
			case failing.Load() >= mostFailing:
				t.failed = true
				o.putOff(d.Job.ID)
			case o.deliver(runs, book, d.Job, d.Ended):
				failing.Store(0)
			default:
				t.failed = true
				failing.Add(1)
			}
		})
	}
	all.Wait()
}

// comes waits for those before, and says whether all of them went well.
func comes(before []*turn) bool {
	for _, b := range before {
		if b == nil {
			continue
		}
		if <-b.over; b.failed {
			return false
		}
	}
	return true
}

// putOff leaves an outcome that was not tried to a later pass.
func (o *Outbox) putOff(job string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if l := o.late[job]; l != nil {
		l.due = time.Now().Add(firstRetry)
	}
}
