package main

import (
	"context"
	"errors"
	"fmt"
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
	As         string `default:"guest" placeholder:"TIER" help:"Tier to ask as: guest, team or owner. It can only lower what you may do."`
	PromptFile string `placeholder:"FILE" help:"Read the question from a file."`
	Question   string `arg:"" optional:"" help:"The question."`
}

// Run asks one question by the way that every question takes: gate, journal,
// worker, sandbox, delivery.
func (a *askCmd) Run(ctx context.Context, p *process, c *cli) error {
	most, err := tiers.Parse(a.As)
	if err != nil {
		return bad("--as: %w", err)
	}
	origin, err := journal.AskOrigin(time.Now())
	if err != nil {
		return err
	}
	question, err := a.question()
	if err != nil {
		return err
	}
	message, err := local.Message(origin, os.Getuid(), most, question, time.Now())
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

func (a *askCmd) question() (string, error) {
	if a.PromptFile == "" {
		return a.Question, nil
	}
	if a.Question != "" {
		return "", bad("give the question or --prompt-file, not both")
	}
	file, err := os.Open(a.PromptFile)
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
	j, err := journal.Open(ctx, journal.Config{Dir: h.state, Origin: origin, Now: time.Now})
	if err != nil {
		return ask.Ended{}, err
	}
	defer func() { _ = j.Close() }()
	terminal := local.NewTerminal(p.showEnded(c.JSON))
	outbox, err := bridge.NewOutbox(j, terminal, nil, h.log)
	if err != nil {
		return ask.Ended{}, err
	}
	book := func() bridge.Rulebook { return h.book }
	gate, err := bridge.NewGate(book, j, outbox)
	if err != nil {
		return ask.Ended{}, err
	}
	worker, err := bridge.NewWorker(bridge.WorkerConfig{
		Book: book, Journal: j, Delegate: h.runner, Outbox: outbox, Secrets: h.secrets, Parallel: 1, Log: h.log,
	})
	if err != nil {
		return ask.Ended{}, err
	}
	accepted, err := gate.Accept(ctx, m)
	if err != nil {
		return ask.Ended{}, err
	}
	if accepted.Ended != nil {
		return *accepted.Ended, nil // refused, and said so
	}
	if accepted.Ahead > 0 {
		p.note("waiting: %d of your questions are ahead", accepted.Ahead)
	}
	return serveOne(ctx, worker, terminal, j, accepted.Job)
}

// serveOne works until the one question is answered. A question that is
// interrupted ends as cancelled, here and in the journal.
func serveOne(ctx context.Context, w *bridge.Worker, t *local.Terminal, j *journal.Journal, job ask.Job) (ask.Ended, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	failed := make(chan error, 1)
	go func() { failed <- w.Serve(ctx) }()
	select {
	case ended := <-t.Done():
		stop()
		return ended, <-failed
	case err := <-failed:
		select {
		case ended := <-t.Done(): // answered in the same moment
			return ended, nil
		default:
		}
		if ctx.Err() == nil {
			return ask.Ended{}, err
		}
		if err == nil {
			err = context.Cause(ctx)
		}
		cancelled := j.Cancel(context.WithoutCancel(ctx), job.ID, ask.Interrupted)
		return ask.Ended{}, fmt.Errorf("stopped before there was an answer: %w", errors.Join(err, cancelled))
	}
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
