//go:build amd64 || arm64

package sandbox

import (
	"cmp"
	"context"
	"errors"
	"os"
	"runtime"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"parlour/runner/sandbox/entry"
)

// rssUnit is the unit of the kernel's count of resident memory, in bytes.
const rssUnit = 1024

// launch is one child to start.
type launch struct {
	steps  []entry.Step
	cmd    Command
	spaces uintptr // the namespaces that the child gets of its own
	group  *group  // the control groups that the child joins; nil: none
	by     maker   // who makes the child's namespaces, where it is not the bot
	ties   ties    // what ends the run besides the end of the child
	ended  func()  // gives back what the run held; called exactly once, when all is over
}

// maker is a program that starts the child in a box that it builds.
type maker struct {
	path string // empty: the bot starts the child itself
	argv []string
	data []string // contents of the files that it is handed
}

// ties are how a run hangs together with its child.
type ties int8

const (
	byNamespace ties = iota // the child is the first process of a process namespace
	byGroup                 // the child leads a process group, and all of it ends with the child
	byKeeper                // the child keeps the run, and ends it all when the bot lets go
	byMaker                 // as byNamespace, but the bot's child is the maker, and outside of it
)

// child is a process that performs its steps, and all that is open for it.
type child struct {
	*kit
	life *life
}

// begin starts the child. On an error nothing is left.
func (l launch) begin(e *Engine) (*child, error) {
	k, err := newKit(e.cfg.Self, e.self, l)
	if err != nil {
		l.ended()
		return nil, err
	}
	run := &Run{done: make(chan struct{}), out: k.out}
	c := &child{kit: k, life: &life{
		run: run, launch: l, begin: k.begin, program: k.program, leash: k.leash,
		started: make(chan error), ready: make(chan struct{}), unwatch: func() bool { return true },
	}}
	k.leash = nil
	go c.life.live()
	if err := <-c.life.started; err != nil {
		<-run.done
		k.close()
		return nil, &StartError{"start the child", err}
	}
	k.handOver() // only the child holds its end now, so its exec shows as the end of the stream
	return c, nil
}

// complete waits until the child has become the program. On an error nothing is
// left.
func (c *child) complete(ctx context.Context, cmd Command) (*Run, error) {
	defer c.close()
	run := c.life.run
	run.out.copy(cmd.Stdout, cmd.Stderr)
	c.life.unwatch = context.AfterFunc(ctx, run.Kill)
	err := c.handshake()
	run.listener, c.life.inside = c.talk.listener, c.talk.who
	if err != nil {
		run.Kill()
	}
	if err == nil {
		prefer(cmp.Or(c.life.inside.pid, run.pid))
	}
	close(c.life.ready)
	if err == nil {
		return run, nil
	}
	<-run.done
	if ctx.Err() != nil {
		err = &StartError{"start", ctx.Err()}
	}
	return nil, err
}

// start starts the child and waits until it has become the program.
func (l launch) start(ctx context.Context, e *Engine) (*Run, error) {
	c, err := l.begin(e)
	if err != nil {
		return nil, err
	}
	return c.complete(ctx, l.cmd)
}

// life is the goroutine that holds a run from its start to its end.
type life struct {
	launch
	run     *Run
	begin   func() (pid int, err error)
	program *entry.Program // kept for as long as a clone may read it
	leash   *os.File       // byKeeper: the run ends when it is closed
	started chan error     // the result of the fork
	ready   chan struct{}  // closed when launch has set what follows
	unwatch func() bool
	inside  insider // who spoke on the status socket
}

// live keeps one thread of the bot for the run: the kernel ties the child to
// the thread that forked it, and a thread that ended would take the run with
// it. Guarded by tests/attacks TestRunOutlivesItsStartingGoroutine.
func (l *life) live() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer close(l.run.done)
	defer l.ended()
	defer l.release()
	pid, err := l.begin()
	if err != nil {
		l.run.out.close()
		l.started <- err
		return
	}
	l.run.pid = pid
	l.run.setKill(func() { l.kill(pid) })
	l.started <- nil
	killed := awaitEnd(pid)
	if l.ties == byGroup {
		l.kill(pid)
	}
	l.run.setKill(nil)
	go l.group.leave() // nobody is in it any more, and the output takes its own time
	<-l.ready
	l.finish(killed)
	l.run.setEnd(reap(pid))
	runtime.KeepAlive(l.program)
	l.unwatch()
	if l.run.listener != nil {
		_ = l.run.listener.Close()
	}
}

// kill ends everything of the run. In a namespace of its own the end of the
// first process is the end of all. A keeper is not killed: it ends the run when
// the leash is let go, and itself last.
func (l *life) kill(pid int) {
	switch l.ties {
	case byKeeper:
		l.release()
	case byGroup:
		_ = unix.Kill(-pid, unix.SIGKILL)
	case byNamespace, byMaker:
		_ = unix.Kill(pid, unix.SIGKILL)
	}
}

// finish ends what outlives a child that was killed: the box of a maker, which
// dies with it but not before it, and the group of a keeper. Guarded by
// tests/attacks TestNoProcessSurvivesOnAnyRung.
func (l *life) finish(killed bool) {
	defer l.inside.close()
	if !killed {
		return
	}
	switch l.ties {
	case byMaker:
		l.inside.end()
	case byKeeper:
		l.inside.endGroup()
	case byNamespace, byGroup:
	}
}

// release lets go of the leash.
func (l *life) release() {
	if l.leash != nil {
		_ = l.leash.Close()
	}
}

// awaitEnd returns when the process has ended but is not reaped, so that its id,
// and that of its group, still belong to it. It says whether a signal ended it.
// Guarded by tests/attacks TestPlainChildLeavesNothing.
func awaitEnd(pid int) (killed bool) {
	for {
		var info unix.Siginfo
		err := unix.Waitid(unix.P_PID, pid, &info, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return err != nil || info.Code != cldExited
		}
	}
}

// cldExited is the kernel's CLD_EXITED.
const cldExited = 1

// reap collects the program's end.
func reap(pid int) (Exit, error) {
	var status unix.WaitStatus
	var usage unix.Rusage
	for {
		_, err := unix.Wait4(pid, &status, 0, &usage)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return Exit{Code: -1}, err
		}
		break
	}
	exit := Exit{
		Code: status.ExitStatus(), PeakRSS: int64(usage.Maxrss) * rssUnit,
		User: time.Duration(usage.Utime.Nano()), System: time.Duration(usage.Stime.Nano()),
	}
	if status.Signaled() {
		exit.Code, exit.Signal = -1, status.Signal()
	}
	return exit, nil
}

// prefer makes the run what the kernel ends first where memory is short: it would
// take the bot, which is larger than each process of a run. The bot says it, once
// the program has memory of its own: while the child shared the bot's, it would
// have been said of the bot. Without /proc it is left as it is.
// Guarded by tests/attacks TestTheRunIsWhatGoesWhereMemoryIsShort.
func prefer(pid int) {
	_ = os.WriteFile("/proc/"+strconv.Itoa(pid)+"/oom_score_adj", []byte("1000"), 0)
}
