package runner

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"parlour/runner/policy"
	"parlour/runner/sandbox"
	"parlour/runner/spec"
)

// flagMemory keeps which flags a program lacks, by the file that was asked.
type flagMemory struct {
	mu    sync.Mutex
	known map[string]string
}

// helpLimits bound the program while it prints its help. It gets no question,
// no key and no network.
func helpLimits() policy.Limits {
	return policy.Limits{
		Wall: 60 * time.Second, Memory: 2 << 30, Disk: 64 << 20, Files: 4096, Processes: 64, OpenFiles: 1024, Answer: 1 << 20,
	}
}

// lacking says which required flag the program does not offer, and nothing
// where it offers all. A version number would not tell: the program itself is
// asked, in the sandbox, before any model request.
// Guarded by tests/realcli TestAClaudeThatIsTooOldIsPassedOver.
func (r *Runner) lacking(ctx context.Context, s spec.Spec, path string) (string, error) {
	if len(s.NeedsFlags) == 0 {
		return "", nil
	}
	info, err := os.Stat(path)
	if err != nil {
		return "it is gone", nil
	}
	key := fmt.Sprintf("%s %d %d %q", path, info.Size(), info.ModTime().UnixNano(), s.NeedsFlags)
	r.flags.mu.Lock()
	defer r.flags.mu.Unlock()
	if known, ok := r.flags.known[key]; ok {
		return known, nil
	}
	help, err := r.help(ctx, s, path)
	if err != nil {
		return "", err
	}
	lacks := ""
	for _, flag := range s.NeedsFlags {
		if !strings.Contains(help, flag) {
			lacks = "too old: it does not offer " + flag
			break
		}
	}
	if r.flags.known == nil {
		r.flags.known = map[string]string{}
	}
	r.flags.known[key] = lacks
	return lacks, nil
}

// help runs the program for its help text alone. One that fails has no flags.
func (r *Runner) help(ctx context.Context, s spec.Spec, path string) (string, error) {
	e, err := policy.Narrow(policy.Wish{Mode: policy.ReadOnly, Limits: helpLimits()}, r.cfg.Engine.Probe(ctx))
	if err != nil {
		return "", err
	}
	result := r.watch(ctx, e, spec.Text, nil, nil, sandbox.Command{
		Name: s.Name, Path: path, Args: s.HelpArgs, Env: childEnv(s, nil, strings.NewReplacer()), Mounts: readOnly(s.ReadOnly),
	})
	return result.Answer, ctx.Err()
}
