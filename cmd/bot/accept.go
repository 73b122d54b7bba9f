package main

import (
	"context"
	"io"
	"strings"
	"time"

	"parlour/bridge/ask"
	"parlour/bridge/journal"
	"parlour/bridge/local"
	"parlour/tiers"
)

type acceptCmd struct {
	personFlags
	Message    string `placeholder:"ID" help:"The platform's id of the message: the same one is accepted once (default: every call is a message of its own)."`
	PromptFile string `placeholder:"FILE" help:"Read the question from a file."`
	Question   string `arg:"" optional:"" help:"The question."`
}

// Run decides by the one gate about a message that another gateway received,
// keeps it, and prints how that gateway's core agent hands it on. The text holds
// no word of the question. A person who may be an owner elsewhere is at most
// team here: whoever calls the command names the ids, and an owner needs no
// delegate.
// Guarded by tests/attacks TestT14NothingButTheJournalSaysWhoAsks.
func (a *acceptCmd) Run(ctx context.Context, p *process, c *cli) error {
	if err := a.check(); err != nil {
		return err
	}
	question, err := readQuestion(a.Question, a.PromptFile)
	if err != nil {
		return err
	}
	origin, err := journal.AskOrigin(time.Now())
	if err != nil {
		return err
	}
	who, where := a.ids(tiers.Team)
	message, err := local.Entrusted(a.Message, origin, who, where, question, time.Now())
	if err != nil {
		return badInput{err}
	}
	h, err := p.open(c)
	if err != nil {
		return err
	}
	d, err := h.desk(ctx, origin, func(ask.Ended) error { return nil }) // the text below says it
	if err != nil {
		return err
	}
	defer func() { _ = d.journal.Close() }()
	if most, flags := untold(d.book(), message.Place); most < message.Place.Most {
		p.note("warning: nobody is more than %s there, as it may be in a place with a limit; tell %s", most, strings.Join(flags, ", and "))
		message.Place.Most = most
	}
	accepted, err := d.gate.Accept(ctx, message)
	if err != nil {
		return err
	}
	if accepted.Duplicate {
		p.note("this message was taken in before; its text is that of then")
	}
	shown, err := h.hand(ctx, d, accepted.Job, accepted.Ended)
	if err != nil {
		return err
	}
	return p.showDelegation(c.JSON, shown)
}

// hand gives the text for an accepted question. One that no runner can take is
// ended at once, by the way that every question takes.
func (h *house) hand(ctx context.Context, d *desk, job ask.Job, ended *ask.Ended) (delegation, error) {
	shown, err := h.delegation(ctx, job.Decision.Tier, job.ID)
	if err != nil {
		return delegation{}, err
	}
	if ended == nil && shown.Runner == "" {
		if _, err := d.journal.Adopt(ctx, job.ID); err != nil {
			return delegation{}, err
		}
		over, err := d.serve(ctx, job)
		if err != nil {
			return delegation{}, err
		}
		ended = &over
	}
	if ended == nil || ended.Outcome.Kind == ask.Answered {
		return shown, nil
	}
	shown.Outcome = &ended.Outcome
	return shown, shown.render()
}

// printDelegation prints the text without a question: its id is left open.
func (h *house) printDelegation(ctx context.Context, p *process, c *cli, tier tiers.Tier) error {
	if tier > tiers.Team {
		return bad("--tier: nobody is more than %s by another gateway", tiers.Team)
	}
	shown, err := h.delegation(ctx, tier, "ID")
	if err != nil {
		return err
	}
	return p.showDelegation(c.JSON, shown)
}

func (p *process) showDelegation(asJSON bool, d delegation) error {
	write := func() error { _, err := io.WriteString(p.stdout, d.Text); return err }
	if asJSON {
		write = func() error { return p.json(d) }
	}
	if err := write(); err != nil {
		return err
	}
	if d.why != nil {
		p.note("%s", d.why)
	}
	if d.Outcome == nil {
		return nil
	}
	return askExit(ask.Ended{Outcome: *d.Outcome})
}
