package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"parlour/bridge/ask"
	"parlour/runner"
	"parlour/runner/policy"
	"parlour/tiers"
)

type runnersCmd struct {
	Invocation bool `help:"Print how each tier's runner is started: arguments, and a line for a shell."`
}

// row is one runner as the command lists it.
type row struct {
	Runner     string            `json:"runner"`
	Path       string            `json:"path,omitempty"`
	Missing    string            `json:"missing,omitempty"`
	Flags      string            `json:"flags,omitempty"` // a required one that the program lacks, or why it was not asked
	Provider   string            `json:"provider"`
	Credential bool              `json:"credential"`
	Barrier    string            `json:"barrier,omitempty"`
	Unsafe     map[string]string `json:"unsafe,omitempty"` // tier -> reason
	Manifest   string            `json:"manifest"`
}

type picked struct {
	Tier    tiers.Tier `json:"tier"`
	Runner  string     `json:"runner"`
	Origin  string     `json:"origin"`
	Skipped []ask.Skip `json:"skipped"`
	Refused string     `json:"refused,omitempty"` // why this host runs it nevertheless not
}

// picks gives the runner that would answer for each tier, as a question would
// get it.
func (h *house) picks(ctx context.Context) ([]picked, error) {
	all := []picked{}
	for _, t := range tiers.All() {
		plan, err := h.runner.Plan(ctx, t, nil)
		c := plan.Choice
		pick := picked{Tier: t, Runner: c.Runner, Origin: c.Origin, Skipped: c.Skipped}
		var none *ask.NoRunnerError
		var refused *policy.RefusedError
		switch {
		case errors.As(err, &refused):
			pick.Refused = err.Error()
		case err != nil && !errors.As(err, &none):
			return nil, err
		}
		all = append(all, pick)
	}
	return all, nil
}

// Run lists every described runner, and for each tier the one that would answer
// and why those before it would not; and whether this host has a sandbox.
func (cmd *runnersCmd) Run(ctx context.Context, p *process, c *cli) error {
	h, err := p.open(c)
	if err != nil {
		return err
	}
	if wait := served(h, p); len(wait.gains) > 0 {
		p.note("warning: %s", wait)
	}
	if cmd.Invocation {
		return h.invocations(ctx, p, c)
	}
	facts := h.runner.Checked(ctx)
	rows := []row{}
	for _, s := range h.set.Runners() {
		rows = append(rows, describe(facts[s.Name]))
	}
	host := h.runner.Host(ctx)
	picks, err := h.picks(ctx)
	if err != nil {
		return err
	}
	if c.JSON {
		return p.json(map[string]any{"runners": rows, "picks": picks, "sandbox": sandboxOf(host)})
	}
	if err := table(p.stdout, rows); err != nil {
		return err
	}
	for _, pick := range picks {
		p.print("\n%s: %s (order from the %s)", pick.Tier, orNone(pick.Runner), pick.Origin)
		for _, s := range pick.Skipped {
			p.print("  skipped %s: %s", s.Runner, s.Reason)
		}
		if pick.Refused != "" {
			p.print("  refused: %s", pick.Refused)
		}
	}
	p.print("\n%s", sandboxOf(host))
	return nil
}

// sandboxState is what this host can build.
type sandboxState struct {
	Rung     string `json:"rung"`
	Landlock int    `json:"landlock"`
	Why      string `json:"why,omitempty"`
	Cure     string `json:"cure,omitempty"`

	Absent []absentRung `json:"absent,omitempty"`
}

// absentRung is a rung that this host does not have.
type absentRung struct {
	Rung string `json:"rung"`
	Why  string `json:"why"`
	Cure string `json:"cure"`
}

func sandboxOf(c policy.Capabilities) sandboxState {
	s := sandboxState{Rung: c.Rung.String(), Landlock: c.Landlock, Why: c.Why, Cure: c.Cure}
	for _, a := range c.Absent {
		s.Absent = append(s.Absent, absentRung{a.Rung.String(), a.Why, a.Cure})
	}
	return s
}

// String gives the state in one line.
func (s sandboxState) String() string {
	line := "sandbox: " + s.Rung
	if s.Why != "" {
		line += ": " + s.Why + "; cure: " + s.Cure
	}
	return line
}

func describe(f runner.Fact) row {
	r := row{
		Runner: f.Spec.Name, Path: f.Path, Missing: f.Missing, Flags: flags(f), Provider: string(f.Spec.Provider),
		Credential: f.Credential, Barrier: f.Barrier, Manifest: f.Spec.Origin, Unsafe: map[string]string{},
	}
	for _, t := range tiers.All() {
		if v := f.Spec.Safe.For(t.String()); !v.OK {
			r.Unsafe[t.String()] = v.Reason
		}
	}
	return r
}

func table(out io.Writer, rows []row) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "RUNNER\tSAFE FOR\tKEY\tINSTALLED")
	for _, r := range rows {
		safe := []string{}
		for _, t := range tiers.All() {
			if _, unsafe := r.Unsafe[t.String()]; !unsafe {
				safe = append(safe, t.String())
			}
		}
		cells := []string{r.Runner, orNone(strings.Join(safe, " ")), credential(r), installed(r)}
		_, _ = fmt.Fprintln(w, visible(strings.Join(cells, "\t")))
	}
	return w.Flush()
}

// flags says what is wrong with the flags of an installed program.
func flags(f runner.Fact) string {
	switch {
	case f.Lacks != "":
		return "lacks " + f.Lacks + " (needs " + strings.Join(f.Spec.NeedsFlags, " ") + ")"
	case f.Unasked != "":
		return "not asked for its flags: " + f.Unasked
	}
	return ""
}

func installed(r row) string {
	switch {
	case r.Path == "":
		return r.Missing
	case r.Flags != "":
		return r.Path + ", " + r.Flags
	}
	return r.Path
}

func credential(r row) string {
	switch {
	case r.Provider == "none":
		return "not needed"
	case r.Credential:
		return r.Provider
	}
	return "none for " + r.Provider
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}
