package runner

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"parlour/bridge/ask"
	"parlour/runner/policy"
	"parlour/runner/sandbox"
	"parlour/runner/spec"
)

// flagMemory keeps which flags a program lacks, by the file that was asked.
type flagMemory struct {
	mu    sync.Mutex
	known map[string]string
}

func (m *flagMemory) get(key string) (string, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	lacks, ok := m.known[key]
	return lacks, ok
}

func (m *flagMemory) put(key, lacks string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.known == nil {
		m.known = map[string]string{}
	}
	m.known[key] = lacks
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
	if known, ok := r.flags.get(key); ok {
		return known, nil
	}
	help := r.help(ctx, s, path)
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case help.Cause != ask.NoCause:
		// It may be a passing fault of the host, so it is not remembered.
		return "its help could not be read: " + string(help.Cause), nil
	}
	lacks := ""
	for _, flag := range s.NeedsFlags {
		if !strings.Contains(help.Answer, flag) {
			lacks = "too old: it does not offer " + flag
			break
		}
	}
	r.flags.put(key, lacks)
	return lacks, nil
}

// help runs the program for its help text alone.
func (r *Runner) help(ctx context.Context, s spec.Spec, path string) ask.Result {
	e, err := policy.Narrow(policy.Wish{Mode: policy.ReadOnly, Limits: helpLimits()}, r.cfg.Engine.Probe(ctx))
	if err != nil {
		return ask.Result{Cause: ask.NoSandbox, Detail: err.Error()}
	}
	return r.watch(ctx, e, spec.Text, nil, nil, sandbox.Command{
		Name: s.Name, Path: path, Args: s.HelpArgs, Env: childEnv(s, nil, strings.NewReplacer()), Mounts: readOnly(s.ReadOnly),
	})
}
