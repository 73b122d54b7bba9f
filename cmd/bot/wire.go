package main

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"parlour/bridge"
	handbook "parlour/docs"
	"parlour/guardrail/secret"
	"parlour/manifests"
	"parlour/runner"
	"parlour/runner/broker"
	"parlour/runner/policy"
	"parlour/runner/probe"
	"parlour/runner/sandbox"
	"parlour/runner/spec"
)

// house is what the commands share: the configuration, the manifests, and the
// runner that they describe.
type house struct {
	cfg     config
	set     *manifests.Set
	runner  *runner.Runner
	book    bridge.Rulebook
	secrets secret.Redactor
	aliases aliases // set by nameAskers
	state   string
	again   func(words ...string) string // a command line for the same folders
	self    string                       // absolute path of the bot's own program
	temp    string                       // absolute path of the temporary folder
	engine  *sandbox.Engine
	proofs  *proofs
	closed  map[string]string // outlets that wait for consent
	log     *slog.Logger
}

// open reads configuration and manifests and wires the runner. It starts
// nothing.
func (p *process) open(c *cli) (*house, error) {
	cfg, err := p.config(c)
	if err != nil {
		return nil, err
	}
	set, err := manifests.Load(cfg.Manifests)
	if err != nil {
		return nil, err
	}
	for _, w := range set.Warnings {
		p.note("warning: %s; the runner is skipped", w)
	}
	h := &house{cfg: cfg, set: set, again: c.again, log: slog.New(slog.NewTextHandler(p.stderr, nil))}
	if h.state, err = p.stateFolder(cfg); err != nil {
		return nil, err
	}
	if err := cfg.Against(set, h.state); err != nil {
		return nil, err
	}
	if h.secrets, err = secret.NewRedactor(cfg.secrets()...); err != nil {
		return nil, bad("configuration: %w", err)
	}
	h.closed = consentIn(h.state).closed(cfg.outlets())
	if h.runner, err = p.runner(h); err != nil {
		return nil, err
	}
	h.book = rulebook(manifests.InForce(set), h.runner)
	return h, nil
}

func (p *process) runner(h *house) (*runner.Runner, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find the bot's own program: %w", err)
	}
	temp, err := filepath.Abs(os.TempDir())
	if err != nil {
		return nil, fmt.Errorf("find the temporary folder: %w", err)
	}
	h.self, h.temp = self, temp
	h.engine, err = sandbox.New(sandbox.Config{Self: self, Temp: temp})
	if err != nil {
		return nil, err
	}
	h.proofs = &proofs{h: h, reports: map[policy.Rung]probe.Report{}}
	return runner.New(runner.Config{
		Specs:    h.set.Runners(),
		Tiers:    policies(manifests.InForce(h.set), nil),
		Prefer:   p.preference(h),
		Finder:   runner.NewFinder(p.env["PATH"], p.env["HOME"], os.Getuid()),
		Models:   h.cfg.upstreams(),
		Shut:     shut(h.closed),
		Env:      p.env,
		Self:     self,
		Handbook: handbook.Handbook(),
		Index:    filepath.Join(h.state, "docs"),
		Engine:   h.engine,
		Proof:    h.proofs.of,
	})
}

// preference reads the operator's order of runners. Unknown names in the
// environment are dropped with a warning; in the configuration they are a fault.
func (p *process) preference(h *house) runner.Preference {
	names, unknown := runner.SplitNames(p.env["PARLOUR_RUNNERS"], func(name string) bool {
		_, ok := h.set.Runner(name)
		return ok
	})
	if len(unknown) > 0 {
		p.note("warning: PARLOUR_RUNNERS: unknown %s dropped", strings.Join(unknown, ", "))
	}
	return runner.Preference{Environment: names, Config: h.cfg.Order}
}

// stateFolder gives the folder of the journal: the flag's, the configuration's,
// or the user's own.
func (p *process) stateFolder(cfg config) (string, error) {
	if cfg.State != "" {
		return cfg.State, nil
	}
	if base := p.env["XDG_STATE_HOME"]; filepath.IsAbs(base) {
		return filepath.Join(base, "parlour"), nil
	}
	if home := p.env["HOME"]; filepath.IsAbs(home) {
		return filepath.Join(home, ".local", "state", "parlour"), nil
	}
	return "", bad("no state folder: HOME is not set; give one with --state")
}

// upstreams says how each provider is reached.
func (c config) upstreams() map[spec.Provider]broker.Upstream {
	all := map[spec.Provider]broker.Upstream{}
	for provider, model := range c.Models {
		all[provider] = broker.Upstream{BaseURL: model.BaseURL, Key: c.keys[provider]}
	}
	return all
}
