//go:build amd64 || arm64

package sandbox

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"

	"parlour/runner/sandbox/entry"
)

// rssUnit is the unit of the kernel's count of resident memory, in bytes.
const rssUnit = 1024

// launch is one child to start.
type launch struct {
	steps []entry.Step
	attr  *syscall.SysProcAttr
	cmd   Command
	group bool   // the child leads a process group, and all of it ends with the child
	ended func() // gives back what the run held; called exactly once, when all is over
}

// launch starts the child, hands it its steps and waits until it has become the
// program. On an error nothing is left.
func (e *Engine) launch(ctx context.Context, l launch) (*Run, error) {
	k, err := e.kit(l)
	if err != nil {
		l.ended()
		return nil, err
	}
	defer k.close()
	run := &Run{done: make(chan struct{}), cmd: e.exec(l, k)}
	life := life{run: run, launch: l, started: make(chan error), ready: make(chan struct{})}
	go life.live()
	if err := <-life.started; err != nil {
		<-run.done
		return nil, &StartError{"start the child", err}
	}
	k.handOver() // only the child holds its end now, so its exec shows as the end of the stream
	life.unwatch = context.AfterFunc(ctx, run.Kill)
	run.listener, err = handshake(k.status)
	if err != nil {
		run.Kill()
	}
	close(life.ready)
	if err == nil {
		return run, nil
	}
	<-run.done
	if ctx.Err() != nil {
		err = &StartError{"start", ctx.Err()}
	}
	return nil, err
}

// exec is the child's command: the bot's own program under the entry's name.
// Its environment only spares the Go runtime threads and a look at the cgroups;
// the program's environment is part of the last step.
func (e *Engine) exec(l launch, k *kit) *exec.Cmd {
	return &exec.Cmd{
		Path: e.cfg.Self, Args: []string{entry.Name}, Env: []string{"GOMAXPROCS=1", "GODEBUG=containermaxprocs=0"}, Dir: "/",
		Stdin: k.stdin, Stdout: piped(l.cmd.Stdout), Stderr: piped(l.cmd.Stderr),
		ExtraFiles: []*os.File{k.steps, k.childStatus}, SysProcAttr: l.attr, WaitDelay: waitDelay,
	}
}

// life is the goroutine that holds a run from its start to its end.
type life struct {
	launch
	run     *Run
	started chan error    // the result of the fork
	ready   chan struct{} // closed when launch has set what follows
	unwatch func() bool
}

// live keeps one thread of the bot for the run: the kernel ties the child to
// the thread that forked it, and a thread that ended would take the run with
// it. Guarded by tests/attacks TestRunOutlivesItsStartingGoroutine.
func (l *life) live() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer close(l.run.done)
	defer l.ended()
	if err := l.run.cmd.Start(); err != nil {
		l.started <- err
		return
	}
	pid := l.run.cmd.Process.Pid
	l.run.setKill(func() { l.kill(pid) })
	l.started <- nil
	awaitEnd(pid)
	if l.group {
		l.kill(pid)
	}
	l.run.setKill(nil)
	l.run.reap()
	<-l.ready
	l.unwatch()
	if l.run.listener != nil {
		_ = l.run.listener.Close()
	}
}

// kill ends the child, and in a box with it everything, because it is the first
// process of its namespace.
func (l *life) kill(pid int) {
	if l.group {
		pid = -pid
	}
	_ = unix.Kill(pid, unix.SIGKILL)
}

// awaitEnd returns when the process has ended but is not reaped, so that its id,
// and that of its group, still belong to it. Guarded by tests/attacks
// TestPlainChildLeavesNothing.
func awaitEnd(pid int) {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

// kit is what is opened for one start.
type kit struct {
	steps, stdin, childStatus *os.File
	status                    *net.UnixConn
}

func (e *Engine) kit(l launch) (*kit, error) {
	program, ok := entry.Encode(l.steps)
	if !ok {
		return nil, &StartError{"write the steps", errors.New("a step is malformed")}
	}
	k := &kit{}
	var err error
	if k.steps, err = sealed("parlour-steps", program); err != nil {
		return nil, &StartError{"write the steps", err}
	}
	if k.stdin, err = finite(l.cmd.Stdin); err != nil {
		k.close()
		return nil, &StartError{"check stdin", err}
	}
	if k.status, k.childStatus, err = pair(); err != nil {
		k.close()
		return nil, &StartError{"make the status socket", err}
	}
	return k, nil
}

// handOver closes what the child has its own copies of.
func (k *kit) handOver() {
	for _, f := range []*os.File{k.steps, k.stdin, k.childStatus} {
		if f != nil {
			_ = f.Close()
		}
	}
}

func (k *kit) close() {
	k.handOver()
	if k.status != nil {
		_ = k.status.Close()
	}
}
