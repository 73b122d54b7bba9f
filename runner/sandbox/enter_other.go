//go:build !linux || !(amd64 || arm64)

package sandbox

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"

	"parlour/runner/policy"
)

// rssUnit is the unit of the kernel's count of resident memory, in bytes.
const rssUnit = 1

// facts are nothing here.
type facts struct{}

func gather() (facts, error) { return facts{}, nil }

func (e *Engine) measure(context.Context) policy.Capabilities {
	return policy.Capabilities{
		Why:  "no sandbox on " + runtime.GOOS + "/" + runtime.GOARCH,
		Cure: "run the bot on Linux 5.12 or newer, on amd64 or arm64; here only the built-in handbook can answer",
	}
}

func (e *Engine) startBox(context.Context, policy.Effective, Command) (*Run, error) {
	return nil, &StartError{"build the box", errors.New("no sandbox on " + runtime.GOOS)}
}

// startPlain runs the bot's own program with an own process group and folder.
// This system gives no more.
func (e *Engine) startPlain(ctx context.Context, _ policy.Effective, cmd Command) (*Run, error) {
	if len(cmd.Stdin) > 0 {
		return nil, &StartError{"check stdin", errors.New("this system has no sealed files")}
	}
	root, err := plainFolder(e.cfg.Temp, cmd)
	if err != nil {
		_ = os.RemoveAll(root)
		return nil, &StartError{"make the run's folder", err}
	}
	child := &exec.Cmd{
		Path: cmd.Path, Args: append([]string{cmd.Name}, cmd.Args...), Env: plainEnv(cmd.Env, root),
		Dir: filepath.Join(root, policy.WorkDir), Stdout: piped(cmd.Stdout), Stderr: piped(cmd.Stderr),
		SysProcAttr: &syscall.SysProcAttr{Setpgid: true}, WaitDelay: waitDelay,
	}
	if err := child.Start(); err != nil {
		_ = os.RemoveAll(root)
		return nil, &StartError{"start the program", err}
	}
	run := &Run{cmd: child, done: make(chan struct{})}
	killGroup := func() { _ = syscall.Kill(-child.Process.Pid, syscall.SIGKILL) }
	run.setKill(killGroup)
	unwatch := context.AfterFunc(ctx, run.Kill)
	go func() {
		defer close(run.done)
		run.reap()
		run.setKill(nil)
		killGroup() // what the program left behind
		unwatch()
		_ = os.RemoveAll(root)
	}()
	return run, nil
}
