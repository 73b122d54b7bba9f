package main

import (
	"context"
	"encoding/json"
	"time"

	"parlour/bridge/ask"
	"parlour/bridge/journal"
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
	if err != nil {
		return err
	}
	if len(events) == 0 && !c.JSON {
		p.print("nothing has happened yet in %s", state)
	}
	for _, event := range events {
		if c.JSON {
			line, err := json.Marshal(event)
			if err != nil {
				return err
			}
			p.print("%s", line)
			continue
		}
		p.print("%d  %s  %s  %s  %s", event.Seq, event.At.Format(time.RFC3339), event.Job, event.Kind, event.Data)
	}
	return nil
}

func newest(ctx context.Context, state, job string, limit int) ([]ask.Event, error) {
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
