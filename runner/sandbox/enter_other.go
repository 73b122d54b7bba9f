//go:build !linux || !(amd64 || arm64)

package sandbox

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"syscall"

	"parlour/runner/policy"
)

// facts are nothing here.
type facts struct{}

func gather() (facts, error) { return facts{}, nil }

func (e *Engine) measure(_ context.Context, rung policy.Rung) measurement {
	return measurement{absent: &policy.Absence{
		Rung: rung,
		Why:  "no sandbox on " + runtime.GOOS + "/" + runtime.GOARCH,
		Cure: "run the bot on Linux 5.12 or newer, on amd64 or arm64; here only the built-in handbook can answer",
	}}
}

// pool is empty here: without a box none can wait.
type pool struct{}

// Reserve keeps no boxes on this system.
func (e *Engine) Reserve(int) {}

// Warm makes no box on this system.
func (e *Engine) Warm(context.Context, policy.Effective, Command) error { return nil }

// Flush has nothing to end on this system.
func (e *Engine) Flush() {}

// Spare says that no box waits.
func (e *Engine) Spare() int { return 0 }

// Sweep removes the folders that runs of dead bots of this user have left.
func (e *Engine) Sweep() error { return sweep(e.cfg.Temp, func([]string, string) error { return nil }) }

func (e *Engine) startBox(context.Context, policy.Effective, Command) (*Run, error) {
	return nil, &StartError{"build the box", errors.New("no sandbox on " + runtime.GOOS)}
}

// startPlain runs the bot's own program with an own process group and folder.
// This system gives no more.
func (e *Engine) startPlain(ctx context.Context, _ policy.Effective, cmd Command) (*Run, error) {
	if len(cmd.Stdin) > 0 {
		return nil, &StartError{"check stdin", errors.New("this system has no sealed files")}
	}
	root, remove, err := plainFolder(e.cfg.Temp, e.alive, cmd)
	if err != nil {
		remove()
		return nil, &StartError{"make the run's folder", err}
	}
	run, child, err := plainChild(cmd, root)
	if err != nil {
		remove()
		return nil, &StartError{"start the program", err}
	}
	killGroup := func() { _ = syscall.Kill(-child.Pid, syscall.SIGKILL) }
	run.setKill(killGroup)
	unwatch := context.AfterFunc(ctx, run.Kill)
	go func() {
		exit, err := exitOf(child.Wait())
		run.setKill(nil)
		killGroup() // what the program left behind
		exit, err = run.delivered(exit, err)
		unwatch()
		remove()
		run.settle(exit, err)
	}()
	return run, nil
}

func plainChild(cmd Command, root string) (*Run, *os.Process, error) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = null.Close() }()
	out, err := newOutput()
	if err != nil {
		return nil, nil, err
	}
	child, err := os.StartProcess(cmd.Path, append([]string{cmd.Name}, cmd.Args...), &os.ProcAttr{
		Dir: filepath.Join(root, policy.WorkDir), Env: plainEnv(cmd.Env, root),
		Files: []*os.File{null, out.child[0], out.child[1]}, Sys: &syscall.SysProcAttr{Setpgid: true},
	})
	if err != nil {
		out.close()
		return nil, nil, err
	}
	_, _ = out.child[0].Close(), out.child[1].Close() // the program has its own
	out.copy(cmd.Stdout, cmd.Stderr)
	return &Run{pid: child.Pid, out: out, done: make(chan struct{})}, child, nil
}

// exitOf reads what the system tells of an end.
func exitOf(state *os.ProcessState, err error) (Exit, error) {
	if err != nil {
		return Exit{Code: -1}, err
	}
	e := Exit{Code: state.ExitCode(), User: state.UserTime(), System: state.SystemTime()}
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		e.Signal = status.Signal()
	}
	if usage, ok := state.SysUsage().(*syscall.Rusage); ok {
		e.PeakRSS = int64(usage.Maxrss)
	}
	return e, nil
}

func openSelf() (int, error) { return -1, errors.New("this system has no such descriptors") }
