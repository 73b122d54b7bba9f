package main

import (
	"context"
	"errors"
	"path/filepath"

	"parlour/bridge/ask"
	"parlour/guardrail"
	"parlour/runner"
	"parlour/runner/policy"
	"parlour/tiers"
)

// delegation is how a question is handed on to the sandbox, for the core agent
// of another gateway.
type delegation struct {
	Job     string       `json:"job"`
	Tier    tiers.Tier   `json:"tier"`
	Runner  string       `json:"runner"` // empty: none can take it
	Command []string     `json:"command,omitempty"`
	Text    string       `json:"text"`
	Outcome *ask.Outcome `json:"outcome,omitempty"` // it has ended without an answer

	plan ask.Plan
	why  error // why no runner can take it
}

// delegation picks the runner as a run would, and starts nothing of it.
func (h *house) delegation(ctx context.Context, tier tiers.Tier, job string) (delegation, error) {
	d := delegation{Job: job, Tier: tier}
	if tier == tiers.None {
		return d, nil // it was refused, and the caller knows why
	}
	plan, err := h.runner.Plan(ctx, tier, nil)
	var none *ask.NoRunnerError
	var refused *policy.RefusedError
	switch {
	case err == nil:
		d.plan, d.Runner, d.Command = plan, plan.Choice.Runner, h.askJob(job)
	case !errors.As(err, &none) && !errors.As(err, &refused):
		return delegation{}, err
	default:
		d.why = err
	}
	return d, d.render()
}

// render writes the text from what else the value holds.
func (d *delegation) render() (err error) {
	v := guardrail.Delegated{Tier: d.Tier, Job: d.Job, Runner: d.Runner, Policy: d.plan.Policy, Command: runner.ShellWords(d.Command) + " </dev/null"}
	if d.Outcome != nil {
		d.Runner, d.Command = "", nil
		v.Runner, v.Command, v.Instead = "", "", d.Outcome.Text
	}
	d.Text, err = guardrail.Delegation(v)
	return err
}

// askJob is the command by which the question is answered. It names everything
// that decides where the journal lies, since whoever runs it may have another
// environment.
func (h *house) askJob(job string) []string {
	argv := []string{h.self}
	if h.cfg.file != "" {
		argv = append(argv, "--config", absolute(h.cfg.file))
	}
	if h.cfg.Manifests != "" {
		argv = append(argv, "--manifests", absolute(h.cfg.Manifests))
	}
	return append(argv, "--state", absolute(h.state), "ask", "--job", job)
}

func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}
