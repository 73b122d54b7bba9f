package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"parlour/bridge/ask"
	"parlour/bridge/journal"
	"parlour/tiers"
)

type eventsCmd struct {
	Job   string `placeholder:"ID" help:"Only the events of this question."`
	Limit int    `default:"50" help:"How many of the newest events to print."`
}

// Run prints the newest events in the order in which they happened.
func (e *eventsCmd) Run(ctx context.Context, p *process, c *cli) error {
	if e.Limit < 1 {
		return bad("--limit must be at least 1, not %d", e.Limit)
	}
	cfg, err := p.config(c)
	if err != nil {
		return err
	}
	state, err := p.stateFolder(cfg)
	if err != nil {
		return err
	}
	events, err := newest(ctx, state, e.Job, e.Limit)
	switch {
	case err != nil:
		return err
	case len(events) == 0 && e.Job != "":
		return bad("no question %s in %s", e.Job, state)
	case len(events) == 0 && !c.JSON:
		p.print("nothing has happened yet in %s", state)
	}
	for _, event := range events {
		if c.JSON {
			if err := p.json(event); err != nil {
				return err
			}
			continue
		}
		p.print("%s  %s  %s", event.At.Format(time.DateTime), cmp.Or(event.Job, noJob), summary(event))
	}
	return nil
}

func newest(ctx context.Context, state, job string, limit int) ([]ask.Event, error) {
	if _, err := os.Stat(state); errors.Is(err, fs.ErrNotExist) {
		return nil, nil // looking must not begin a journal
	}
	origin, err := journal.AskOrigin(time.Now())
	if err != nil {
		return nil, err
	}
	j, err := journal.Open(ctx, journal.Config{Dir: state, Origin: origin, Now: time.Now})
	if err != nil {
		return nil, err
	}
	defer func() { _ = j.Close() }()
	var last []ask.Event
	for after := int64(0); ; {
		page, err := j.Events(ctx, journal.Filter{Job: job, After: after})
		if err != nil || len(page) == 0 {
			return last, err
		}
		after = page[len(page)-1].Seq
		last = append(last, page...)
		last = last[max(0, len(last)-limit):]
	}
}

// noJob stands where an event belongs to no question.
const noJob = "-                         " // as wide as an id

// shown is how much of a text a line of the log shows.
const shown = 80

// summary says in one short line what an event tells; --json has all of it.
func summary(e ask.Event) string {
	switch e.Kind {
	case ask.EventAccepted:
		if a, ok := data[ask.Accepted](e); ok {
			return fmt.Sprintf("accepted from %s, %d bytes", a.Person, a.Bytes)
		}
	case ask.EventDecided:
		if d, ok := data[tiers.Decision](e); ok {
			return fmt.Sprintf("decided %s: %s", d.Tier, d.Why)
		}
	case ask.EventRequest:
		if h, ok := data[ask.RequestHeader](e); ok {
			return fmt.Sprintf("run by %s as %s, policy %.12s", h.Runner, h.Tier, h.PolicyHash)
		}
	case ask.EventOutcome:
		if o, ok := data[ask.Ended](e); ok {
			return fmt.Sprintf("%s: %s", o.Outcome.Kind, firstLine(o.Outcome.Text))
		}
	case ask.EventGranted:
		if g, ok := data[tiers.Grant](e); ok {
			return fmt.Sprintf("granted %d: %s, until %s", g.ID, given(g), utc(g.Until))
		}
	case ask.EventRevoked:
		if g, ok := data[tiers.Grant](e); ok {
			return fmt.Sprintf("revoked %d: %s", g.ID, given(g))
		}
	case ask.EventUndeliverable:
		if u, ok := data[ask.Undeliverable](e); ok {
			return "not deliverable: " + strings.Join(strings.Fields(u.Why), " ")
		}
	}
	return e.Kind
}

func data[T any](e ask.Event) (T, bool) {
	var value T
	err := json.Unmarshal(e.Data, &value)
	return value, err == nil
}

func firstLine(text string) string {
	line, _, more := strings.Cut(text, "\n")
	if runes := []rune(line); len(runes) > shown {
		line, more = string(runes[:shown]), true
	}
	if more {
		line += " …"
	}
	return line
}
