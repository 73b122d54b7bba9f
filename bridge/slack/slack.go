// Package slack is the adapter of Slack: posts that address the bot become
// messages for the one gate, and their outcomes become replies in the thread.
//
// It connects by Socket Mode only, so it opens no port. It vouches for ids and
// nothing else: it never decides a tier, never reads a name, a display name or
// an e-mail address, and what Slack does not tell is less right, never more. It
// acknowledges an event to Slack only after the gate has stored it. It refuses
// bots, workflow posts, edits and events of other workspaces, downloads no
// files, follows no redirect, takes no proxy from the environment, mentions
// nobody and lets Slack unfurl nothing.
package slack

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"parlour/bridge"
	"parlour/guardrail/secret"
)

// Config says how Slack is reached.
type Config struct {
	AppToken secret.Value // xapp-…, with connections:write
	BotToken secret.Value // xoxb-…
	API      string       // another base URL; empty: Slack's. Plain http only to loopback
	// Groups gives the user groups of a workspace that the rules of now name, and
	// those among them that a block names: of them alone Slack is asked who is in
	// them. Nil: of none.
	Groups func(workspace string) (named, denied []string)
	// Belief is how long what Slack says of people is believed. 0, and whatever is
	// longer: a minute.
	Belief time.Duration
	// Patience is how long a socket may be silent before it is replaced, and
	// how long a connection that Slack refuses is left alone. 0: 30 seconds,
	// which is more than Slack's own ping interval.
	Patience time.Duration
}

// Intake is the gate, as far as an adapter needs it. Accept returns without an
// error only when the message is stored. *bridge.Gate is one.
type Intake interface {
	Accept(ctx context.Context, m bridge.Message) (bridge.Accepted, error)
}

var _ Intake = (*bridge.Gate)(nil)

const (
	defaultPatience = 30 * time.Second
	remembered      = 10_000 // entries of each memory
)

// Adapter is one connection to one Slack workspace.
type Adapter struct {
	cfg  Config
	log  *slog.Logger
	web  *web
	door *door

	started  atomic.Bool
	stopping chan struct{} // closed when Run is told to end: nothing waits any more
	stopped  atomic.Bool   // Run has ended
	health   health
	refusals *memory[string, time.Time] // person and channel -> last refusal in words
	boards   *bridge.Boards             // what is shown of questions that are worked on
}

var (
	_ bridge.Sender   = (*Adapter)(nil)
	_ bridge.Reporter = (*Adapter)(nil)
	_ bridge.Looker   = (*Adapter)(nil)
)

// New checks the configuration. It does not connect.
func New(cfg Config, intake Intake, log *slog.Logger) (*Adapter, error) {
	if intake == nil || log == nil {
		return nil, errors.New("slack: intake and log are required")
	}
	if err := cfg.check(); err != nil {
		return nil, fmt.Errorf("slack: %w", err)
	}
	if cfg.Patience <= 0 {
		cfg.Patience = defaultPatience
	}
	if cfg.Belief <= 0 || cfg.Belief > mostBelief {
		cfg.Belief = mostBelief
	}
	redactor, err := secret.NewRedactor(cfg.AppToken, cfg.BotToken)
	if err != nil {
		return nil, fmt.Errorf("slack: %w", err)
	}
	w := newWeb(cfg, redactor, log)
	return &Adapter{
		cfg: cfg, log: log, web: w, door: newDoor(w, intake, log), stopping: make(chan struct{}),
		refusals: newMemory[string, time.Time](remembered), boards: bridge.NewBoards(remembered),
	}, nil
}

func (c Config) check() error {
	switch {
	case !strings.HasPrefix(c.AppToken.Reveal(), "xapp-"):
		return errors.New("the app token must begin with xapp-")
	case !strings.HasPrefix(c.BotToken.Reveal(), "xoxb-"):
		return errors.New("the bot token must begin with xoxb-")
	case c.API == "":
		return nil
	}
	u, err := url.Parse(c.API)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return errors.New("api is no base URL")
	}
	if u.Scheme != "https" && !(u.Scheme == "http" && loopback(u.Hostname())) {
		return errors.New("api must be https, or http to this machine")
	}
	return nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// pause waits, unless ctx ends or the adapter is told to stop.
func (a *Adapter) pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
	case <-a.stopping:
	}
	return false
}
