package sandbox

import (
	"context"
	"slices"
	"strings"
	"time"

	"parlour/runner/policy"
)

// probeTime bounds one measurement of one rung.
const probeTime = 20 * time.Second

// measurement is what came of rehearsing a rung.
type measurement struct {
	caps   policy.Capabilities
	absent *policy.Absence // nil: the rung holds
	passes bool            // absent for a reason that may pass: the bot lacks something right now
}

// Probe says what this host enforces. It goes down the rungs and builds a real
// sandbox on each, whose child performs every step, tries to undo it and
// reports, instead of becoming a program. Below the full rung, which enforces
// everything, it does not look. What it found is kept, unless time ran out before
// there was an answer, or the bot lacked descriptors, processes or memory.
func (e *Engine) Probe(ctx context.Context) policy.Capabilities {
	return e.survey(ctx, func(m measurement) bool { return m.absent == nil && m.caps.Rung == policy.RungFull })
}

// ProbeAll says the same with every weaker rung besides.
func (e *Engine) ProbeAll(ctx context.Context) policy.Capabilities {
	return e.survey(ctx, func(measurement) bool { return false })
}

func (e *Engine) survey(ctx context.Context, enough func(measurement) bool) policy.Capabilities {
	e.probing.Lock()
	defer e.probing.Unlock()
	var all []measurement
	for _, rung := range policy.Rungs() {
		m := e.rung(ctx, rung)
		all = append(all, m)
		if enough(m) {
			break
		}
	}
	return summary(all)
}

// rung measures one rung, or remembers it.
func (e *Engine) rung(ctx context.Context, rung policy.Rung) measurement {
	if m, known := e.probed[rung]; known {
		return m
	}
	if slices.Contains(e.cfg.Without, rung) {
		return measurement{absent: &policy.Absence{Rung: rung, Why: "it is switched off", Cure: "switch it on"}}
	}
	limited, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	m := e.measure(limited, rung)
	if limited.Err() == nil && !m.passes {
		e.probed[rung] = m
	}
	return m
}

// summary puts the strongest rung first, and says why it is not better. It is
// pure; guarded by probe_test.go.
func summary(all []measurement) policy.Capabilities {
	var held []policy.Capabilities
	var absent []policy.Absence
	// A plain child can be held to its open files on every system that has one.
	best := policy.Capabilities{OpenFiles: policy.Enforced}
	for _, m := range all {
		if m.absent != nil {
			absent = append(absent, *m.absent)
			continue
		}
		held = append(held, m.caps)
	}
	if len(held) > 0 {
		best = held[0]
		best.Lower = append([]policy.Capabilities(nil), held[1:]...)
	}
	best.Absent = absent
	best.Why, best.Cure = reasons(absent, best.Rung)
	for i := range best.Lower {
		best.Lower[i].Why, best.Lower[i].Cure = reasons(absent, best.Lower[i].Rung)
	}
	return best
}

// reasons says why the rungs above one are missing, with one reason said once.
// The cure is that of the strongest, because it serves every tier.
func reasons(absent []policy.Absence, above policy.Rung) (why, cure string) {
	var all []string
	for i, a := range absent {
		if a.Rung <= above || slices.ContainsFunc(absent[:i], func(b policy.Absence) bool { return b.Why == a.Why }) {
			continue
		}
		names := []string{}
		for _, b := range absent[i:] {
			if b.Rung > above && b.Why == a.Why {
				names = append(names, b.Rung.String())
			}
		}
		all = append(all, "no rung "+strings.Join(names, ", ")+": "+a.Why)
		if cure == "" {
			cure = a.Cure
		}
	}
	return strings.Join(all, "; "), cure
}

// portsLandlock is the first ABI that keeps TCP connections to their ports.
const portsLandlock = 4

// levels are what a rung enforces where every step of it held.
func levels(rung policy.Rung, landlock int, root bool) policy.Capabilities {
	c := policy.Capabilities{
		Rung: rung, Filesystem: policy.Enforced, Network: policy.Enforced, Processes: policy.Enforced,
		Memory: policy.Soft, // for each process, not for the run
		Disk:   policy.Enforced, ProcessCount: policy.Enforced, OpenFiles: policy.Enforced,
		Landlock: landlock,
	}
	switch rung {
	case policy.RungBwrap:
		c.Disk = policy.Soft // bytes, but no number of files
	case policy.RungLandlock:
		c.Network, c.Offline = policy.None, policy.Enforced // no socket at all can be made
		if landlock >= portsLandlock {
			c.Network = policy.Soft // TCP alone, to one port of any address
		}
		c.Processes = policy.Soft // that others exist can be told
		c.Disk = policy.Soft      // for each file
		if !root {
			c.ProcessCount = policy.Soft // together with what else the bot's user runs
		}
	}
	return c
}
