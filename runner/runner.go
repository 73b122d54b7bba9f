// Package runner picks the first safe installed agent program that a tier may
// use, and runs it once per question inside the sandbox that its policy names.
//
// It starts nothing that a manifest does not call safe for the tier, nothing
// outside the sandbox but the built-in handbook reader, and nothing with an
// environment that it did not build itself. It never shows what a failed run
// printed.
package runner

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"parlour/bridge/ask"
	"parlour/runner/broker"
	"parlour/runner/policy"
	"parlour/runner/sandbox"
	"parlour/runner/spec"
)

// TierPolicy is what one tier's manifest asks for.
type TierPolicy struct {
	Wish   policy.Wish
	List   []string // the tier's runners: its order, and its ceiling
	Models map[spec.Provider]string
}

// Config is everything that a Runner needs. Nothing is read from the process.
type Config struct {
	Specs    []spec.Spec
	Tiers    map[ask.Tier]TierPolicy
	Prefer   Preference
	Finder   Finder
	Models   map[spec.Provider]broker.Upstream // without a key there is no credential
	Shut     map[spec.Provider]string          // providers that may not be used, and why
	Env      map[string]string                 // the bot's environment, for the allow-lists
	Self     string                            // absolute path of the bot's own program
	Handbook fs.FS
	Index    string // folder for document indexes
	Engine   *sandbox.Engine
	// Proof says what is known of the sandbox under a policy from trying to escape
	// from it. Nil: nothing is known, and nothing is said.
	Proof func(ctx context.Context, e policy.Effective, require []policy.Clause) Proof
}

// Proof is what trying to escape from a sandbox has shown.
type Proof struct {
	Broken  []policy.Clause // required clauses that did not hold
	Escapes []string        // the attempts that succeeded against them
	Note    string          // for the receipt
}

// Runner implements the bridge's delegate.
type Runner struct {
	cfg   Config
	specs map[string]spec.Spec
	flags *flagMemory
}

// New checks the configuration. Two specs of one name are an error.
func New(cfg Config) (*Runner, error) {
	if cfg.Engine == nil {
		return nil, errors.New("runner: no sandbox engine")
	}
	r := &Runner{cfg: cfg, specs: map[string]spec.Spec{}, flags: &flagMemory{}}
	for _, s := range cfg.Specs {
		if _, twice := r.specs[s.Name]; twice {
			return nil, fmt.Errorf("runner %q is described twice", s.Name)
		}
		r.specs[s.Name] = s
	}
	return r, nil
}

// With gives a Runner of the same runners and the same sandbox for other tiers, so
// that rules and policies can be changed together, as one value.
func (r *Runner) With(tiers map[ask.Tier]TierPolicy) *Runner {
	other := *r
	other.cfg.Tiers = tiers
	return &other
}

// Choose picks a runner for the tier as Plan would, by what Facts or Checked
// found. It starts nothing.
func (r *Runner) Choose(tier ask.Tier, facts map[string]Fact) ask.Choice {
	p := r.cfg.Tiers[tier]
	order, origin := r.cfg.Prefer.order(p.List)
	choice := Pick(Demand{Tier: tier, Tools: p.Wish.Tools, Models: p.Models, Order: order}, facts)
	choice.Origin = origin
	if s := r.specs[choice.Runner]; s.NeedsModel() {
		choice.Model = p.Models[s.Provider]
	}
	return choice
}

// Host says what this host enforces.
func (r *Runner) Host(ctx context.Context) policy.Capabilities { return r.cfg.Engine.Probe(ctx) }

// Plan picks a runner for the tier and the policy under which it will run. It
// passes over those that were tried before for the same question, and those
// whose program lacks a flag that its manifest requires. It fails with an
// ask.NoRunnerError, or with a policy.RefusedError where the host cannot enforce
// what the tier requires; the plan then still holds the choice.
func (r *Runner) Plan(ctx context.Context, tier ask.Tier, tried []ask.Skip) (ask.Plan, error) {
	facts := r.Facts()
	for _, t := range tried {
		f := facts[t.Runner]
		f.Barrier = t.Reason
		facts[t.Runner] = f
	}
	for {
		choice := r.Choose(tier, facts)
		if choice.Runner == "" {
			return ask.Plan{Choice: choice}, &ask.NoRunnerError{Choice: choice}
		}
		s := r.specs[choice.Runner]
		e, notes, err := r.narrow(ctx, tier, s)
		if err != nil {
			return ask.Plan{Choice: choice}, err
		}
		lacks, err := r.lacking(ctx, s, choice.Path)
		if err != nil {
			return ask.Plan{Choice: choice}, err
		}
		if lacks == "" {
			return ask.Plan{Choice: choice, Policy: e, Notes: notes}, nil
		}
		f := facts[choice.Runner]
		f.Barrier = lacks
		facts[choice.Runner] = f
	}
}

// Warm makes the sandbox of the tier's next run in advance, where the engine
// keeps any. What it cannot plan or make, the run itself says.
func (r *Runner) Warm(ctx context.Context, tier ask.Tier) error {
	plan, err := r.Plan(ctx, tier, nil)
	if err != nil {
		return err
	}
	command, err := r.command(ctx, plan, ask.Prompt{Policy: "p", Question: "q", Fenced: "q"}, "t")
	if err != nil {
		return err
	}
	return r.cfg.Engine.Warm(ctx, plan.Policy, command)
}

// narrow makes the policy of a run, and says what the receipt must add. A host
// without a sandbox that holds serves the built-in handbook reader alone.
// Guarded by tests/attacks TestNothingButTheHandbookRunsWithoutASandbox and
// TestAnEscapeRefusesTheRunsThatRelyOnIt.
func (r *Runner) narrow(ctx context.Context, tier ask.Tier, s spec.Spec) (policy.Effective, []string, error) {
	wish := r.wish(tier, s)
	host := r.cfg.Engine.Probe(ctx)
	e, err := policy.Narrow(wish, host)
	var notes []string
	if err == nil && r.cfg.Proof != nil {
		notes, err = r.cfg.Proof(ctx, e, wish.Require).weigh()
	}
	var refused *policy.RefusedError
	if errors.As(err, &refused) && s.BuiltIn {
		if bare, berr := policy.BuiltInDocs(wish, host); berr == nil {
			return bare, notes, nil
		}
	}
	return e, notes, err
}

// weigh turns a proof into what the receipt adds, or into a refusal.
func (p Proof) weigh() ([]string, error) {
	if len(p.Broken) > 0 {
		why := "attempts to escape from the sandbox succeeded here: " + strings.Join(p.Escapes, " ")
		return []string{why}, &policy.RefusedError{Missing: p.Broken, Why: why, Cure: "'bot probe' says more; mend the host and run it again"}
	}
	if p.Note != "" {
		return []string{p.Note}, nil
	}
	return nil, nil
}

// wish is the tier's wish, less what this runner does not need.
func (r *Runner) wish(tier ask.Tier, s spec.Spec) policy.Wish {
	w := r.cfg.Tiers[tier].Wish
	if !s.NeedsModel() {
		w.Network = policy.NetworkNone
		w.Limits.ModelRequests, w.Limits.OutputTokens = 0, 0
	}
	if s.BuiltIn {
		w.Tools, w.Mode, w.Armed = nil, policy.ReadOnly, false
	} else {
		w.Documents = nil // only the built-in reader is given documents
	}
	w.Limits.Stall = stall(w.Limits.Stall, s.Stall)
	for _, folder := range s.ConfigEnv {
		w.Scratch = append(slices.Clone(w.Scratch), folder)
	}
	return w
}

// stall gives the runner's own limit, of which the tier's is the ceiling. A
// runner that prints only at its end has none.
func stall(tier time.Duration, own *time.Duration) time.Duration {
	if own == nil {
		return tier
	}
	if tier == 0 {
		return *own
	}
	return min(tier, *own)
}
