package main

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"time"

	"parlour/bridge"
	"parlour/bridge/ask"
	"parlour/bridge/journal"
	"parlour/bridge/local"
	"parlour/tiers"
)

type askCmd struct {
	As         string `placeholder:"TIER" help:"Tier to ask as: guest (the default), team or owner. It can only lower what you may do."`
	PromptFile string `placeholder:"FILE" help:"Read the question from a file."`
	Job        string `placeholder:"ID" help:"Answer the question that 'bot accept' took in under this id; who asks and what comes from the journal."`
	Question   string `arg:"" optional:"" help:"The question."`
}

// Run asks one question by the way that every question takes: gate, journal,
// worker, sandbox, delivery.
func (a *askCmd) Run(ctx context.Context, p *process, c *cli) error {
	origin, err := journal.AskOrigin(time.Now())
	if err != nil {
		return err
	}
	if a.Job != "" {
		return a.entrusted(ctx, p, c, origin)
	}
	most, err := a.most()
	if err != nil {
		return err
	}
	question, err := readQuestion(a.Question, a.PromptFile)
	if err != nil {
		return err
	}
	message, err := local.Message(origin, os.Getuid(), most, question, time.Now())
	if errors.Is(err, local.ErrEmpty) && a.PromptFile == "" {
		return bad("%w; give it as an argument, or with --prompt-file FILE", err)
	}
	if err != nil {
		return badInput{err}
	}
	h, err := p.open(c)
	if err != nil {
		return err
	}
	ended, err := h.ask(ctx, p, c, origin, message)
	if err != nil {
		return err
	}
	return askExit(ended)
}

// most reads --as. Without it the question is a guest's.
func (a *askCmd) most() (tiers.Tier, error) {
	if a.As == "" {
		return tiers.Guest, nil
	}
	most, err := tiers.Parse(a.As)
	if err != nil {
		return tiers.None, bad("--as: %w", err)
	}
	return most, nil
}

// readQuestion gives the question that was typed, or the one in the file.
func readQuestion(typed, path string) (string, error) {
	if path == "" {
		return typed, nil
	}
	if typed != "" {
		return "", bad("give the question or --prompt-file, not both")
	}
	file, err := os.Open(path)
	if err != nil {
		return "", bad("read the question: %w", err)
	}
	defer func() { _ = file.Close() }()
	text, err := io.ReadAll(io.LimitReader(file, ask.MaxQuestion+1))
	if err != nil {
		return "", bad("read the question: %w", err)
	}
	return string(text), nil
}

// ask brings the message through the bridge and waits for its outcome.
func (h *house) ask(ctx context.Context, p *process, c *cli, origin string, m bridge.Message) (ask.Ended, error) {
	d, err := h.desk(ctx, origin, p.showEnded(c.JSON))
	if err != nil {
		return ask.Ended{}, err
	}
	defer func() { _ = d.journal.Close() }()
	accepted, err := d.gate.Accept(ctx, m)
	if err != nil {
		return ask.Ended{}, err
	}
	if accepted.Ended != nil {
		return *accepted.Ended, nil // refused, and said so
	}
	if accepted.Ahead > 0 {
		p.note("waiting: %d of your questions are ahead", accepted.Ahead)
	}
	return d.serve(ctx, accepted.Job)
}

// entrusted answers a question that was taken in for another gateway. Nothing
// on the command line can change who asks or what.
// Guarded by tests/attacks TestT14NothingButTheJournalSaysWhoAsks.
func (a *askCmd) entrusted(ctx context.Context, p *process, c *cli, origin string) error {
	if a.As != "" || a.PromptFile != "" || a.Question != "" {
		return bad("--job stands alone: who asks and what they ask come from the journal")
	}
	h, err := p.open(c)
	if err != nil {
		return err
	}
	show := p.showEntrusted(c.JSON)
	d, err := h.desk(ctx, origin, show)
	if err != nil {
		return err
	}
	defer func() { _ = d.journal.Close() }()
	if err := d.knowsAsker(ctx, a.Job); err != nil {
		return err
	}
	record, err := d.journal.Adopt(ctx, a.Job)
	switch {
	case errors.Is(err, journal.ErrTaken):
		p.print("%s", ask.Sentence(ask.Taken))
		p.note("bot: %s", err)
		return silent(exitFailed)
	case errors.Is(err, journal.ErrUnknown):
		return bad("no question was taken in under the id %s in %s", a.Job, h.state)
	case err != nil:
		return err
	case record.Ended != nil && record.Job.Origin != origin: // it was read before
		return errors.Join(show(*record.Ended), askExit(*record.Ended))
	}
	ended, err := d.serve(ctx, record.Job)
	if err != nil {
		return err
	}
	return askExit(ended)
}

func askExit(ended ask.Ended) error {
	switch ended.Outcome.Kind {
	case ask.Answered:
		return nil
	case ask.Refused:
		return silent(exitRefused)
	}
	return silent(exitFailed)
}

// showEnded shows an outcome: the answer and a line for its receipt, or JSON.
func (p *process) showEnded(asJSON bool) func(ask.Ended) error {
	if asJSON {
		return func(ended ask.Ended) error { return p.json(ended) }
	}
	return func(ended ask.Ended) error {
		p.print("%s\n\n%s", unsigned(ended.Outcome.Text), local.Line(ended))
		return p.stdout.err
	}
}

// knowsAsker refuses manifests other than those with which a question was taken
// in, where they would only end it: the right ones can still answer it. A grant
// that is over comes by no manifests again.
func (d *desk) knowsAsker(ctx context.Context, id string) error {
	record, err := d.journal.Job(ctx, id)
	if err != nil || record.State != journal.Queued {
		return nil // Adopt says what is wrong
	}
	job := record.Job
	if job.Decision.Tier == tiers.None || job.Decision.Granted() || d.book().Decide(job.Identity, job.Place).Tier != tiers.None {
		return nil
	}
	return bad("these manifests give the asker no tier, and the question was taken in as %s's; repeat the --config, --manifests and --state of 'bot accept'", job.Decision.Tier)
}

// showEntrusted shows an outcome to a program that passes it on: the answer alone,
// and the receipt where people look for what happened.
func (p *process) showEntrusted(asJSON bool) func(ask.Ended) error {
	if asJSON {
		return p.showEnded(true)
	}
	return func(ended ask.Ended) error {
		p.print("%s", ended.Outcome.Text)
		p.note("%s", local.Line(ended))
		return p.stdout.err
	}
}

// unsigned keeps an answer from printing a receipt of its own.
func unsigned(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(strings.TrimSpace(strings.ToLower(line)), "receipt:") {
			lines[i] = "> " + line
		}
	}
	return strings.Join(lines, "\n")
}
