package bridge

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"parlour/bridge/ask"
)

// The times of reports, where the configuration names none. A report is beside
// the run, so none may take long.
const (
	firstReport = 4 * time.Second // what is answered by then shows no progress
	nextReport  = 10 * time.Second
	mostReport  = 5 * time.Second // one report
	mostWait    = 2 * time.Second // for a report that was told to end
)

// progress reports on one question while it is worked on. Nothing about it can
// delay a run or fail it.
type progress struct {
	job    ask.Job
	log    *slog.Logger
	to     Reporter
	began  time.Time
	cancel context.CancelFunc
	done   chan struct{}

	mu     sync.Mutex
	now    ask.Progress
	begun  bool // a report was sent, and may have arrived whatever came back
	failed bool // a report has failed, and the log knows
}

// progress begins the reports on a question. They end with stop.
func (w *Worker) progress(ctx context.Context, job ask.Job) *progress {
	p := &progress{job: job, log: w.cfg.Log.With("job", job.ID), began: time.Now(), done: make(chan struct{})}
	to, can := w.cfg.Outbox.sender.(Reporter)
	if !can {
		close(p.done)
		p.cancel = func() {}
		return p
	}
	p.to = to
	ctx, p.cancel = context.WithCancel(ctx)
	go func() {
		defer close(p.done)
		p.serve(ctx, w.cfg.ReportAfter, w.cfg.ReportEvery)
	}()
	return p
}

func (p *progress) serve(ctx context.Context, after, every time.Duration) {
	timer := time.NewTimer(after)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		p.report(ctx, mostReport, false)
		timer.Reset(every)
	}
}

// runs notes which runner is at work now, after which other one.
func (p *progress) runs(runner, before string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now.Runner, p.now.Before = runner, before
}

func (p *progress) report(ctx context.Context, most time.Duration, stopped bool) {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	p.mu.Lock()
	now := p.now
	p.begun = true
	p.mu.Unlock()
	now.For, now.Stopped = time.Since(p.began), stopped
	err := p.to.Report(ctx, p.job, now)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil && !p.failed && ctx.Err() == nil {
		p.failed = true
		p.log.Debug("progress could not be shown", "err", err)
	}
}

// stop tells the reports to end. end waits until they have, so that none comes
// after the answer; a sender that does not listen is waited for only shortly.
// Guarded by tests/contract TestNoReportComesAfterTheOutcome and
// TestAReporterThatHangsHoldsUpNothing.
func (p *progress) stop() { p.cancel() }

func (p *progress) end() {
	p.cancel()
	timer := time.NewTimer(mostWait)
	defer timer.Stop()
	select {
	case <-p.done:
	case <-timer.C:
		p.log.Warn("a report on the progress does not end")
	}
}

// pause says at last that the bot stops, where something may be shown that is
// not true any more.
func (p *progress) pause(ctx context.Context) {
	p.end()
	p.mu.Lock()
	begun := p.begun
	p.mu.Unlock()
	if begun {
		p.report(context.WithoutCancel(ctx), mostWait, true)
	}
}
