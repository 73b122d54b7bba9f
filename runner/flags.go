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

// askWithin bounds the questions to all programs together, for a person who
// waits for a list.
const askWithin = 10 * time.Second

// Checked gives the facts with what the programs say of themselves: one that
// lacks a required flag cannot be driven. What could not be asked says why, and
// is left as it was; a run will ask again.
func (r *Runner) Checked(ctx context.Context) map[string]Fact {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	facts := r.Facts()
	_, noSandbox := helpPolicy(ctx, r.cfg.Engine)
	var mu sync.Mutex
	var asking sync.WaitGroup
	for name, f := range facts {
		if f.Path == "" || f.Spec.BuiltIn || len(f.Spec.NeedsFlags) == 0 {
			continue
		}
		asking.Go(func() {
			if noSandbox != nil {
				f.Unasked = "this host has no sandbox to ask it in"
			} else {
				r.check(ctx, &f)
			}
			mu.Lock()
			defer mu.Unlock()
			facts[name] = f
		})
	}
	asking.Wait()
	return facts
}

// check asks one program and writes down what it said.
func (r *Runner) check(ctx context.Context, f *Fact) {
	lacks, fault, err := r.missing(ctx, f.Spec, f.Path)
	switch {
	case err != nil:
		f.Unasked = "it took too long to print its help"
	case lacks == "":
		f.Unasked = fault
	}
	f.Lacks = lacks
	if f.Barrier == "" {
		f.Barrier = tooOld(lacks, fault)
	}
}

// lacking says why the program cannot be driven by its flags, and nothing where
// it offers all that are required.
func (r *Runner) lacking(ctx context.Context, s spec.Spec, path string) (string, error) {
	lacks, fault, err := r.missing(ctx, s, path)
	return tooOld(lacks, fault), err
}

func tooOld(lacks, fault string) string {
	if lacks != "" {
		return "too old: it does not offer " + lacks
	}
	return fault
}

// missing says which required flag the program does not offer, or why it could
// not tell. A version number would not tell: the program itself is asked, in the
// sandbox, before any model request.
// Guarded by tests/realcli TestAClaudeThatIsTooOldIsPassedOver.
func (r *Runner) missing(ctx context.Context, s spec.Spec, path string) (lacks, fault string, err error) {
	if len(s.NeedsFlags) == 0 {
		return "", "", nil
	}
	info, err := os.Stat(path)
	if err != nil {
		return "", "it is gone", nil
	}
	key := fmt.Sprintf("%s %d %d %q", path, info.Size(), info.ModTime().UnixNano(), s.NeedsFlags)
	if known, ok := r.flags.get(key); ok {
		return known, "", nil
	}
	help := r.help(ctx, s, path)
	switch {
	case ctx.Err() != nil:
		return "", "", ctx.Err()
	case help.Cause != ask.NoCause:
		// It may be a passing fault of the host, so it is not remembered.
		return "", "its help could not be read: " + string(help.Cause), nil
	}
	for _, flag := range s.NeedsFlags {
		if !strings.Contains(help.Answer, flag) {
			lacks = flag
			break
		}
	}
	r.flags.put(key, lacks)
	return lacks, "", nil
}

func helpPolicy(ctx context.Context, engine *sandbox.Engine) (policy.Effective, error) {
	return policy.Narrow(policy.Wish{
		Mode: policy.ReadOnly, Limits: helpLimits(), Require: []policy.Clause{policy.Filesystem, policy.NetworkReach},
	}, engine.Probe(ctx))
}

// help runs the program for its help text alone.
func (r *Runner) help(ctx context.Context, s spec.Spec, path string) ask.Result {
	e, err := helpPolicy(ctx, r.cfg.Engine)
	if err != nil {
		return ask.Result{Cause: ask.NoSandbox, Detail: err.Error()}
	}
	return r.watch(ctx, e, spec.Text, nil, nil, sandbox.Command{
		Name: s.Name, Path: path, Args: s.HelpArgs, Env: childEnv(s, nil, strings.NewReplacer()), Mounts: readOnly(s.ReadOnly),
	})
}
