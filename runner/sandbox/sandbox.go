// Package sandbox runs one program inside a box that is built from one
// policy.Effective and holds nothing else of the host.
//
// The parent turns the policy, facts about the host and the command into a flat
// list of steps, without doing anything yet. A child performs the list (see
// package entry) and becomes the program. On the full rung it is a clone of the
// bot in new namespaces, no process of the engine stays, and boxes may wait ready
// for a program of exactly their kind; on the bwrap rung bubblewrap
// makes namespaces and view, and waits outside; on the Landlock rung there is
// neither, and a keeper ends what the run leaves. Where the policy allows the
// model, the child hands out a listening socket before it gives up its rights,
// and whoever serves it is all that answers inside.
//
// It refuses to weaken a box: every step of the list holds or the program does
// not start, and no other rung is tried. It runs nothing in the rungs that
// policy does not know, nothing without a file boundary, and outside a box only
// the bot's own program over the embedded handbook. It does not judge which
// program may run, does not count the time, and reads neither the environment
// nor any configuration.
package sandbox

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"sync"

	"parlour/runner/policy"
)

// Config is what the engine needs of the host.
type Config struct {
	Self string // absolute path of the bot's own program; it is also the sandbox's child
	Temp string // absolute path of the folder that holds the folders of runs that have no view
	// Without are rungs that are not used, though the host may have them.
	Without []policy.Rung
}

// Engine starts runs. It is safe for concurrent use.
type Engine struct {
	cfg Config

	probing sync.Mutex // serialises Probe, so that the host is measured once
	probed  map[policy.Rung]measurement

	facts func() (facts, error) // what does not change while the engine lives
	self  func() (int, error)   // a descriptor of the bot's own process
	alive *presence
	pool  pool
}

// New gives an engine. It measures nothing and starts nothing.
func New(cfg Config) (*Engine, error) {
	for _, p := range []struct{ name, path string }{{"own program", cfg.Self}, {"temporary folder", cfg.Temp}} {
		if !filepath.IsAbs(p.path) {
			return nil, fmt.Errorf("sandbox: path of the %s is not absolute: %q", p.name, p.path)
		}
	}
	return &Engine{
		cfg: cfg, probed: map[policy.Rung]measurement{},
		facts: once(gather), self: once(openSelf),
		alive: &presence{temp: cfg.Temp},
	}, nil
}

// once keeps the first good value. A failure may pass, so it is not kept.
func once[T any](get func() (T, error)) func() (T, error) {
	var mu sync.Mutex
	var kept *T
	return func() (T, error) {
		mu.Lock()
		defer mu.Unlock()
		if kept != nil {
			return *kept, nil
		}
		v, err := get()
		if err == nil {
			kept = &v
		}
		return v, err
	}
}

// StartError says at which step the box or its program did not start. No
// process of the run is left.
type StartError struct {
	Step string
	Err  error
}

// Error names the step and the cause.
func (e *StartError) Error() string { return fmt.Sprintf("sandbox: %s: %v", e.Step, e.Err) }

// Unwrap gives the cause, a system call's error where there was one.
func (e *StartError) Unwrap() error { return e.Err }

// Start runs the command under the policy and returns once the program itself
// is running. Every error is a StartError. When ctx ends, the whole run is
// killed; the caller must call Wait in any case.
func (e *Engine) Start(ctx context.Context, eff policy.Effective, cmd Command) (*Run, error) {
	if err := cmd.check(); err != nil {
		return nil, &StartError{"check the command", err}
	}
	if err := ctx.Err(); err != nil {
		return nil, &StartError{"start", err}
	}
	if slices.Contains(e.cfg.Without, eff.Rung()) {
		return nil, &StartError{"check the policy", fmt.Errorf("rung %s is switched off", eff.Rung())}
	}
	switch eff.Rung() {
	case policy.RungFull, policy.RungBwrap, policy.RungLandlock:
		if eff.Mode() != policy.ReadOnly && eff.Mode() != policy.WorkspaceWrite {
			return nil, &StartError{"check the policy", fmt.Errorf("mode %s has no box", eff.Mode())}
		}
		return e.startBox(ctx, eff, cmd)
	case policy.RungPlain:
		if err := plainAllowed(e.cfg.Self, eff, cmd); err != nil {
			return nil, &StartError{"check the policy", err}
		}
		return e.startPlain(ctx, eff, cmd)
	}
	return nil, &StartError{"check the policy", fmt.Errorf("rung %s runs nothing", eff.Rung())}
}

// plainAllowed is the one exception from the box: the bot's own program, which
// reads the handbook that is compiled into it. Guarded by tests/attacks
// TestPlainChildIsTheBotItselfOnly.
func plainAllowed(self string, eff policy.Effective, cmd Command) error {
	switch {
	case eff.Mode() != policy.ReadOnly:
		return fmt.Errorf("mode %s needs a box", eff.Mode())
	case eff.Network() != policy.NetworkNone:
		return fmt.Errorf("network %s needs a box", eff.Network())
	case len(eff.Tools()) > 0:
		return fmt.Errorf("tools need a box")
	case !slices.Equal(eff.Documents(), []string{policy.Handbook}):
		return fmt.Errorf("documents %q need a box", eff.Documents())
	case cmd.Path != self:
		return fmt.Errorf("%s needs a box: it is not the bot's own program", cmd.Path)
	case len(cmd.Mounts) > 0:
		return fmt.Errorf("mounts need a box")
	}
	return nil
}
