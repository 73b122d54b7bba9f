package slack

import (
	"errors"
	"fmt"
	"sync"
	"time"
)

// health is what the operator is told about the connection.
type health struct {
	mu        sync.Mutex
	ready     bool
	why       string
	since     time.Time
	lastEvent time.Time
	badToken  string // why nothing can be posted; empty: it can, as far as is known
}

// Ready says whether posts reach the bot and answers reach Slack, and why not.
func (a *Adapter) Ready() (bool, string) { return a.health.report(time.Now()) }

func (h *health) report(now time.Time) (bool, string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.why == "":
		return false, "not started"
	case h.badToken != "":
		return false, h.badToken
	case !h.ready:
		return false, h.why
	case h.lastEvent.IsZero():
		return true, "connected; no event yet"
	}
	return true, fmt.Sprintf("connected; last event %s ago", now.Sub(h.lastEvent).Round(time.Second))
}

func (h *health) set(ready bool, why string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if ready != h.ready {
		h.since = time.Now()
	}
	h.ready, h.why = ready, why
}

func (h *health) event() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lastEvent = time.Now()
}

// quiet says whether the socket is open for so long without an event.
func (h *health) quiet(d time.Duration) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.ready && time.Since(h.since) > d && time.Since(h.lastEvent) > d
}

// token notes whether Slack takes the bot's token.
func (h *health) token(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	permanent, ok := errors.AsType[*PermanentError](err)
	switch {
	case err == nil:
		h.badToken = ""
	case ok && permanent.aboutToken():
		h.badToken = permanent.Error()
	}
}
