package sandbox

import (
	"context"
	"time"

	"parlour/runner/policy"
)

// probeTime bounds one measurement of the host.
const probeTime = 20 * time.Second

// Probe says what this host enforces. It builds a real box whose child performs
// every step, tries to undo it and reports, instead of becoming a program. The
// answer is kept, unless time ran out before there was one.
func (e *Engine) Probe(ctx context.Context) policy.Capabilities {
	e.probing.Lock()
	defer e.probing.Unlock()
	if e.probed != nil {
		return *e.probed
	}
	limited, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	caps := e.measure(limited)
	if limited.Err() == nil {
		e.probed = &caps
	}
	return caps
}

// full are the levels of a box in which every step held.
func full(landlock int) policy.Capabilities {
	return policy.Capabilities{
		Rung: policy.RungFull, Filesystem: policy.Enforced, Network: policy.Enforced, Processes: policy.Enforced,
		Memory: policy.Soft, // for each process, not for the run
		Disk:   policy.Enforced, ProcessCount: policy.Enforced, OpenFiles: policy.Enforced,
		Landlock: landlock,
	}
}
