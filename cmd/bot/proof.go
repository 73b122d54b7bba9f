package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"parlour/runner"
	"parlour/runner/policy"
	"parlour/runner/probe"
)

// proofs is what is known of this host's rungs from trying to escape from them:
// what the state folder holds, and what a serving bot has found since.
type proofs struct {
	h *house

	mu      sync.Mutex
	looked  bool // the state folder was looked into
	reports map[policy.Rung]probe.Report
}

// memo is where the reports lie.
func (h *house) memo() probe.Memo { return probe.Memo{Dir: filepath.Join(h.state, "probe")} }

// notProbed is what a receipt says where the battery has not ended yet.
const notProbed = "not yet probed on this host"

// of says whether a run under the policy may rely on its sandbox. Where the
// battery has not ended, it may: the sandbox holds or does not start.
// Guarded by tests/attacks TestAnEscapeRefusesTheRunsThatRelyOnIt.
func (p *proofs) of(ctx context.Context, e policy.Effective, require []policy.Clause) runner.Proof {
	if !slices.Contains(policy.Rungs(), e.Rung()) {
		return runner.Proof{} // its policy promises no sandbox
	}
	p.look(ctx)
	p.mu.Lock()
	report, known := p.reports[e.Rung()]
	p.mu.Unlock()
	if !known {
		return runner.Proof{Note: notProbed}
	}
	report = report.Under(e.Network())
	broken, escapes := report.Broken(require)
	proof := runner.Proof{Broken: broken}
	for _, a := range escapes {
		proof.Escapes = append(proof.Escapes, a.ID())
	}
	if n := report.Count(probe.NotMeasured); n > 0 {
		proof.Note = fmt.Sprintf("%d escape attempts not measured on this host", n)
	}
	return proof
}

// look reads what the state folder holds, once. Whoever asks meanwhile is told
// that nothing is known, and does not wait.
func (p *proofs) look(ctx context.Context) {
	p.mu.Lock()
	looked := p.looked
	p.looked = true
	p.mu.Unlock()
	if looked {
		return
	}
	for _, r := range p.rungs(ctx) {
		key, err := probe.NewKey(p.h.self, os.Geteuid(), r)
		if err != nil {
			continue // then nothing is known
		}
		if report, ok := p.h.memo().Load(key, r.Rung); ok {
			p.learn(report)
		}
	}
}

// rungs are those that runs can get on this host.
func (p *proofs) rungs(ctx context.Context) []probe.Rung {
	return slices.DeleteFunc(probe.Rungs(p.h.engine.Probe(ctx)), func(r probe.Rung) bool { return len(r.Policies) == 0 })
}

func (p *proofs) learn(r probe.Report) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reports[r.Rung] = r
}

func (p *proofs) known(r policy.Rung) (probe.Report, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	report, ok := p.reports[r]
	return report, ok
}

// keep takes a report over, and stores it for the next start. A battery that was
// stopped has nothing to say.
func (p *proofs) keep(ctx context.Context, r probe.Rung, report probe.Report) error {
	if ctx.Err() != nil || len(report.Findings) == 0 {
		return nil
	}
	p.learn(report)
	key, err := probe.NewKey(p.h.self, os.Geteuid(), r)
	if err != nil {
		return err
	}
	return p.h.memo().Save(key, report)
}

// prove runs the battery for each rung that runs can get here, unless the state
// folder knows the answer. It holds up no run.
func (p *proofs) prove(ctx context.Context, bot *process, metrics *escapes) {
	p.look(ctx)
	for _, r := range p.rungs(ctx) {
		report, before := p.known(r.Rung)
		if !before {
			var err error
			if report, err = p.measure(ctx, bot, r); err != nil {
				p.h.log.Error("escape battery", "rung", r.Rung, "err", err)
				continue
			}
		}
		if ctx.Err() != nil {
			return
		}
		metrics.show(report)
		p.tell(report, before)
	}
}

func (p *proofs) measure(ctx context.Context, bot *process, r probe.Rung) (probe.Report, error) {
	battery, unplant, err := bot.battery(p.h)
	if err != nil {
		return probe.Report{}, err
	}
	defer unplant()
	report := battery.Measure(ctx, r)
	return report, p.keep(ctx, r, report)
}

// tell writes the result into the log.
func (p *proofs) tell(r probe.Report, before bool) {
	log := p.h.log.With("rung", r.Rung, "took", r.Took.Round(time.Millisecond), "measured_before", before)
	if r.AsTold() {
		log.Info("sandbox probed: " + r.String())
		return
	}
	var missed []string
	for _, f := range r.Merged() {
		if f.Verdict == probe.Escaped || f.Verdict == probe.NotMeasured {
			missed = append(missed, f.ID())
		}
	}
	text := "sandbox probed: " + r.String()
	if broken, _ := r.Broken(nil); len(broken) > 0 {
		text += "; runs whose tier requires what did not hold are refused"
	}
	log.Warn(text, "missed", strings.Join(missed, " "), "why", r.Why)
}

// String gives one line for health.
func (p *proofs) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	words := []string{}
	for _, r := range policy.Rungs() {
		if report, ok := p.reports[r]; ok {
			words = append(words, r.String()+", "+report.String())
		}
	}
	if len(words) == 0 {
		return notProbed
	}
	return strings.Join(words, "; ")
}
