package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"strings"

	"parlour/runner/policy"
	"parlour/runner/probe"
	"parlour/runner/sandbox"
)

type probeCmd struct {
	Rung string `placeholder:"NAME" help:"Only this rung of the sandbox."`
	List bool   `help:"List the attempts and make none."`
}

// Run makes every escape attempt in every rung that this host has, and says
// what came of them.
func (r *probeCmd) Run(ctx context.Context, p *process, c *cli) error {
	if r.List {
		return p.attempts(c.JSON)
	}
	h, err := p.open(c)
	if err != nil {
		return err
	}
	rungs := probe.Rungs(h.engine.ProbeAll(ctx))
	if r.Rung != "" {
		if rungs, err = only(rungs, r.Rung); err != nil {
			return err
		}
	}
	battery, unplant, err := p.battery(h)
	if err != nil {
		return err
	}
	defer unplant()
	reports, good := []probe.Report{}, true
	available := 0
	for _, rung := range rungs {
		report := battery.Measure(ctx, rung)
		if err := h.proofs.keep(ctx, rung, report); err != nil {
			p.note("warning: %s", err)
		}
		if report.Available {
			available++
			good = good && report.AsTold()
		}
		reports = append(reports, report)
	}
	if c.JSON {
		err = p.json(proven(reports))
	} else {
		p.reports(reports)
	}
	if err == nil && (!good || available == 0) {
		return silent(exitFailed)
	}
	return err
}

// attempts lists what the battery would try.
func (p *process) attempts(asJSON bool) error {
	all := []listedAttempt{}
	for _, a := range probe.Attempts() {
		all = append(all, listedAttempt{Name: a.ID(), What: a.What, Clauses: words(a.Needs)})
		if !asJSON {
			p.print("%-32s %s", a.ID(), a.What)
		}
	}
	if asJSON {
		return p.json(map[string]any{"attempts": all})
	}
	return nil
}

func words(clauses []policy.Clause) []string {
	all := []string{}
	for _, c := range clauses {
		all = append(all, c.String())
	}
	return all
}

func only(rungs []probe.Rung, name string) ([]probe.Rung, error) {
	known := []string{}
	for _, r := range rungs {
		if r.Rung.String() == name {
			return []probe.Rung{r}, nil
		}
		known = append(known, r.Rung.String())
	}
	return nil, bad("--rung: there is no rung %q (known: %s)", name, strings.Join(known, ", "))
}

// battery gives the battery for this bot. It plants a variable in the bot's own
// environment that no run may see; the caller takes it away again.
func (p *process) battery(h *house) (*probe.Battery, func(), error) {
	const variable = "PARLOUR_PROBE_PLANTED"
	random := make([]byte, 16)
	_, _ = rand.Read(random) // never fails, by its contract
	planted := hex.EncodeToString(random)
	if err := os.Setenv(variable, planted); err != nil {
		return nil, nil, fmt.Errorf("plant a variable: %w", err)
	}
	environ := []string{}
	for name, value := range p.env {
		environ = append(environ, name+"="+value)
	}
	b, err := probe.New(probe.Config{
		Self: h.self, Temp: h.temp, Environ: environ, Planted: planted,
		Start: func(ctx context.Context, e policy.Effective, cmd sandbox.Command) (probe.Run, error) {
			run, err := h.engine.Start(ctx, e, cmd)
			if err != nil {
				return nil, err // a nil run of a type would be no nil
			}
			return run, nil
		},
	})
	return b, func() { _ = os.Unsetenv(variable) }, err
}

// reports prints a table of families for each rung, and every attempt that was
// not contained.
func (p *process) reports(reports []probe.Report) {
	for _, r := range reports {
		if !r.Available {
			p.print("rung %s: not available: %s", r.Rung, r.Why)
			continue
		}
		p.print("rung %s: %s, in %d ms", r.Rung, r, r.Took.Milliseconds())
		if r.Why != "" {
			p.print("  %s", r.Why)
		}
		found := r.Merged()
		for _, family := range familiesOf(found) {
			p.print("  %s", family)
		}
		for _, f := range found {
			if word := missed(f); word != "" {
				p.print("  %s: %s: %s (%s)", word, f.ID(), f.What, f.Why)
			}
		}
		if n := r.Count(probe.NotApplicable); n > 0 {
			p.print("  not applicable here: %d (--json says which, and why)", n)
		}
	}
}

// missed says in what way an attempt was not contained; it is empty where it was.
func missed(f probe.Finding) string {
	switch {
	case f.Verdict == probe.Escaped && f.Admitted:
		return "told by the policy text"
	case f.Verdict == probe.Escaped || f.Verdict == probe.NotMeasured:
		return f.Verdict.String()
	}
	return ""
}

// familiesOf counts the attempts of each family, one line to a family.
func familiesOf(found []probe.Finding) []string {
	var order []string
	contained, total := map[string]int{}, map[string]int{}
	for _, f := range found {
		if _, seen := total[f.Family]; !seen {
			order = append(order, f.Family)
			total[f.Family] = 0
		}
		if f.Verdict != probe.NotApplicable {
			total[f.Family]++
		}
		if f.Verdict == probe.Contained {
			contained[f.Family]++
		}
	}
	for i, name := range order {
		order[i] = fmt.Sprintf("%-12s %3d of %3d contained", name, contained[name], total[name])
	}
	return order
}

// probed is what programs read of one rung.
type probed struct {
	Name          string          `json:"name"`
	Available     bool            `json:"available"`
	Why           string          `json:"why,omitempty"`
	Contained     int             `json:"contained"`
	Total         int             `json:"total"`
	Missed        []listedAttempt `json:"missed"`
	NotMeasured   []listedAttempt `json:"not_measured"`
	NotApplicable []listedAttempt `json:"not_applicable"`
	Took          int64           `json:"took_ms"`
}

// listedAttempt is what programs read of one attempt.
type listedAttempt struct {
	Name    string   `json:"name"`
	What    string   `json:"what"`
	Clauses []string `json:"clauses"`
	Why     string   `json:"why,omitempty"`
	// Admitted says that the policy text of such a run tells of it.
	Admitted bool `json:"admitted,omitempty"`
}

func proven(reports []probe.Report) map[string]any {
	all := []probed{}
	for _, r := range reports {
		all = append(all, probed{
			Name: r.Rung.String(), Available: r.Available, Why: r.Why, Contained: r.Count(probe.Contained), Total: r.Total(),
			Missed: listed(r, probe.Escaped), NotMeasured: listed(r, probe.NotMeasured), NotApplicable: listed(r, probe.NotApplicable),
			Took: r.Took.Milliseconds(),
		})
	}
	return map[string]any{"rungs": all}
}

func listed(r probe.Report, v probe.Verdict) []listedAttempt {
	all := []listedAttempt{}
	for _, f := range r.Merged() {
		if f.Verdict != v {
			continue
		}
		all = append(all, listedAttempt{Name: f.ID(), What: f.What, Clauses: words(f.Needs), Why: f.Why, Admitted: f.Admitted})
	}
	return all
}
