package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"parlour/bridge"
	"parlour/bridge/ask"
	"parlour/bridge/journal"
	"parlour/bridge/local"
)

// desk is the bridge of one command from the terminal: it takes questions of
// its own origin only, and works on one at a time.
type desk struct {
	journal  *journal.Journal
	gate     *bridge.Gate
	worker   *bridge.Worker
	outbox   *bridge.Outbox
	book     func() bridge.Rulebook
	terminal *local.Terminal
}

// desk opens the journal for the origin and wires the bridge before it. The
// caller closes the journal.
func (h *house) desk(ctx context.Context, origin string, show func(ask.Ended) error) (*desk, error) {
	h.sweep()
	j, err := journal.Open(ctx, journal.Config{Dir: h.state, Origin: origin, Now: time.Now})
	if err != nil {
		return nil, err
	}
	d := &desk{journal: j, terminal: local.NewTerminal(show)}
	if err := d.wire(ctx, h); err != nil {
		return nil, errors.Join(err, j.Close())
	}
	return d, nil
}

// sweep removes what bots that were killed have left. It is no reason not to
// answer where it fails.
func (h *house) sweep() {
	if err := h.engine.Sweep(); err != nil {
		h.log.Warn("sweep what dead bots have left", "err", err)
	}
}

func (d *desk) wire(ctx context.Context, h *house) (err error) {
	if err := h.nameAskers(); err != nil {
		return err
	}
	if d.outbox, err = bridge.NewOutbox(d.journal, d.terminal, nil, h.log); err != nil {
		return err
	}
	if err := h.goByConsent(h.log); err != nil { // what is said about a run is what it gets
		return err
	}
	grants, err := granting(ctx, d.journal, func() *bridge.Rulebook { return &h.book }, func() { d.worker.Review() }, h.log)
	if err != nil {
		return err
	}
	d.book = grants.Book
	if d.gate, err = bridge.NewGate(d.book, d.journal, d.outbox); err != nil {
		return err
	}
	d.worker, err = bridge.NewWorker(bridge.WorkerConfig{
		Book: d.book, Journal: d.journal, Delegate: h.runner, Outbox: d.outbox, Secrets: h.secrets, Aliases: h.aliases, Parallel: 1, Log: h.log,
	})
	return err
}

// serve works until the one question is answered. A question that is
// interrupted ends as cancelled, here and in the journal.
func (d *desk) serve(ctx context.Context, job ask.Job) (ask.Ended, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	failed := make(chan error, 1)
	go func() { failed <- d.worker.Serve(ctx) }()
	select {
	case ended := <-d.terminal.Done():
		stop()
		return ended, <-failed
	case err := <-failed:
		select {
		case ended := <-d.terminal.Done(): // answered in the same moment
			return ended, nil
		default:
		}
		if ctx.Err() == nil {
			return ask.Ended{}, err
		}
		if err == nil {
			err = context.Cause(ctx)
		}
		cancelled := d.journal.Cancel(context.WithoutCancel(ctx), job.ID, ask.Interrupted)
		return ask.Ended{}, fmt.Errorf("stopped before there was an answer: %w", errors.Join(err, cancelled))
	}
}
