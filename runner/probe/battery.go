package probe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"time"

	"parlour/runner/policy"
	"parlour/runner/sandbox"
)

// Run is one started program, as sandbox.Run is.
type Run interface {
	Wait() (sandbox.Exit, error)
	Listener() net.Listener
}

// Config is what the battery needs of the bot.
type Config struct {
	Self    string   // absolute path of the bot's own program
	Temp    string   // absolute path of a folder for the targets
	Environ []string // the bot's environment
	Planted string   // a value that the caller put into it for the battery's time
	// Start starts a program in the sandbox that is to be measured.
	Start func(context.Context, policy.Effective, sandbox.Command) (Run, error)
}

// Battery is every attempt, ready to be made.
type Battery struct{ cfg Config }

// New checks the configuration. It starts nothing.
func New(cfg Config) (*Battery, error) {
	switch {
	case !filepath.IsAbs(cfg.Self) || !filepath.IsAbs(cfg.Temp):
		return nil, errors.New("probe: the paths of program and temporary folder must be absolute")
	case cfg.Start == nil:
		return nil, errors.New("probe: there is nothing to start a sandbox with")
	}
	return &Battery{cfg: cfg}, nil
}

// Measure makes every attempt under each policy of the rung. It takes some
// seconds at most, and leaves nothing behind.
func (b *Battery) Measure(ctx context.Context, r Rung) Report {
	report := Report{Rung: r.Rung, Available: len(r.Policies) > 0, Why: r.Why}
	if !report.Available {
		return report
	}
	start := time.Now()
	if err := b.measure(ctx, r, &report); err != nil {
		report.Why = err.Error()
	}
	if slices.ContainsFunc(report.Findings, Finding.breaks) {
		again := Report{}
		_ = b.measure(ctx, r, &again) // what it did not come to is not escaped again
		report.Findings = confirmed(report.Findings, again.Findings)
	}
	report.Took = time.Since(start)
	return report
}

// confirmed keeps what two measurements agree on. An escape takes the rung from
// those who rely on it, so chance, or somebody else on the host, must not be
// able to make one up. What differs is not measured, and never contained.
// Guarded by tests/attacks TestAnEscapeMustBeSeenTwice.
func confirmed(first, again []Finding) []Finding {
	out := slices.Clone(first)
	for i, f := range out {
		var second Finding // says not measured
		if i < len(again) && again[i].ID() == f.ID() && again[i].Network == f.Network {
			second = again[i]
		}
		if f.breaks() != second.breaks() {
			out[i].Verdict, out[i].Admitted = NotMeasured, false
			out[i].Why = fmt.Sprintf("it was %s first and %s then: %s", f.Verdict, second.Verdict, cmp.Or(f.Why, second.Why))
		}
	}
	return out
}
