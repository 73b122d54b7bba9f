package discord

import (
	"context"
	"sync"
	"time"
)

// places knows the type and the parent of channels. What could not be looked up
// is not kept, so the next message asks again.
type places struct {
	rest *client

	mu    sync.Mutex
	known map[string]channel
}

// mostLookup is how long a question waits for a look-up.
const mostLookup = 3 * time.Second

// mostPlaces bounds the memory for channels; beyond it everything is forgotten.
const mostPlaces = 10_000

func newPlaces(rest *client) *places { return &places{rest: rest, known: map[string]channel{}} }

// find gives what is known of the place of a message, after looking it up where
// needed. Direct messages need no look-up.
// Guarded by tests/contract TestDiscordFailedLookupIsLessRightAndNotKept.
func (p *places) find(ctx context.Context, e event) (channel, error) {
	if e.GuildID == "" {
		return channel{}, nil
	}
	p.mu.Lock()
	c, known := p.known[e.ChannelID]
	p.mu.Unlock()
	if known {
		return c, nil
	}
	ctx, cancel := context.WithTimeout(ctx, mostLookup)
	defer cancel()
	c, err := p.rest.channel(ctx, e.ChannelID)
	if err != nil {
		return channel{}, err
	}
	c.known = true
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.known) >= mostPlaces {
		clear(p.known)
	}
	p.known[e.ChannelID] = c
	return c, nil
}
