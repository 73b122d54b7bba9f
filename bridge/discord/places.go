package discord

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// places knows the type and the parent of channels. What could not be looked up
// is not kept, so the next message asks again.
type places struct {
	rest *client

	mu    sync.Mutex
	known map[string]seen
}

// seen is what Discord said of a channel, and when.
type seen struct {
	channel
	at time.Time
}

// mostAge is how long that is believed: a channel can be moved to another
// category, where other limits hold.
const mostAge = time.Minute

// fresh says whether it may still be believed.
// Guarded by TestWhatIsKnownOfAChannelGrowsOld.
func (s seen) fresh(now time.Time) bool { return s.known && now.Sub(s.at) < mostAge }

// mostLookup is how long a question waits for a look-up.
const mostLookup = 3 * time.Second

// mostPlaces bounds the memory for channels; beyond it everything is forgotten.
const mostPlaces = 10_000

func newPlaces(rest *client) *places { return &places{rest: rest, known: map[string]seen{}} }

// find gives what is known of the place of a message, after looking it up where
// needed. Direct messages need no look-up. On failure it gives what is known.
// Guarded by tests/contract TestDiscordFailedLookupIsLessRightAndNotKept.
func (p *places) find(ctx context.Context, e event) (channel, error) {
	if e.GuildID == "" {
		return channel{}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, mostLookup)
	defer cancel()
	c, err := p.look(ctx, e.GuildID, e.ChannelID)
	if err != nil {
		return channel{}, err
	}
	if c.plain() {
		c.category, c.whole = c.Parent, true
		return c, nil
	}
	parent, err := p.look(ctx, e.GuildID, c.Parent)
	if err != nil {
		return c, err
	}
	if !parent.plain() {
		return c, errors.New("the thread is in no channel")
	}
	c.category, c.whole = parent.Parent, true
	return c, nil
}

// look gives one channel of a guild, from memory or from Discord.
func (p *places) look(ctx context.Context, guild, id string) (channel, error) {
	now := time.Now()
	p.mu.Lock()
	before := p.known[id]
	p.mu.Unlock()
	if before.fresh(now) && before.Guild == guild {
		return before.channel, nil
	}
	if !snowflake(id) {
		return channel{}, errors.New("the channel has no id")
	}
	c, err := p.rest.channel(ctx, id)
	switch {
	case err != nil:
		return channel{}, err
	case c.Guild != guild:
		return channel{}, errors.New("the channel is of no guild or of another one")
	case !c.plain() && !c.thread():
		return channel{}, fmt.Errorf("channels of type %d are not known", c.Type)
	case c.thread() && (c.Parent == "" || c.Parent == id):
		return channel{}, errors.New("the thread is in no channel")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.known) >= mostPlaces {
		clear(p.known)
	}
	p.known[id] = seen{c, now}
	return c, nil
}
