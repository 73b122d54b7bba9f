//go:build amd64 || arm64

package sandbox

import (
	"errors"
	"net"
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"parlour/runner/sandbox/entry"
)

// life is the goroutine that holds a run from its start to its end.
type life struct {
	launch
	run     *Run
	begin   func() (pid int, err error)
	program *entry.Program // kept for as long as a clone may read it
	status  *net.UnixConn  // where the child is listened to
	leash   *os.File       // byKeeper: the run ends when it is closed
	started chan error     // the result of the fork
	ready   chan struct{}  // closed when launch has set what follows
	unwatch func() bool
	inside  insider     // who spoke on the status socket
	late    *time.Timer // from the first kill on: what is done when the end takes too long
}

// live keeps one thread of the bot for the run: the kernel ties the child to
// the thread that forked it, and a thread that ended would take the run with
// it. Guarded by tests/attacks TestRunOutlivesItsStartingGoroutine.
func (l *life) live() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	exit, err := l.pass()
	if l.late != nil {
		l.late.Stop()
	}
	l.release()
	l.ended()
	l.run.settle(exit, err)
}

// pass starts the child and sees it to its end.
func (l *life) pass() (Exit, error) {
	pid, err := l.begin()
	if err != nil {
		l.run.out.close()
		l.started <- err
		return Exit{}, nil
	}
	l.run.pid = pid
	l.run.setKill(func() {
		l.strike(pid)
		if l.late == nil {
			l.late = time.AfterFunc(endTime, func() { l.insist(pid) })
		}
	})
	l.started <- nil
	killed := awaitEnd(pid)
	if l.ties == byGroup || l.ties == byMaker {
		l.strike(pid)
	}
	l.run.setKill(nil)
	go l.group.leave() // nobody is in it any more, and the output takes its own time
	l.hush(endTime)
	<-l.ready
	gone := l.finish(killed)
	exit, err := l.run.delivered(reap(pid))
	runtime.KeepAlive(l.program)
	l.unwatch()
	if l.run.listener != nil {
		_ = l.run.listener.Close()
	}
	if err == nil && !gone {
		err = errStays
	}
	return exit, err
}

// strike ends everything of the run. In a namespace of its own the end of the
// first process is the end of all. A child that has no group yet is alone. A
// maker's child is in the maker's group until it is tied to the maker, which may
// well die before that and would leave it behind: it waits for the maker's word
// then, for ever, and holds what the bot listens to. A keeper is not killed: it
// ends the run when the leash is let go, and itself last.
// Guarded by tests/attacks TestNobodySurvivesAKillAtAnyMoment.
func (l *life) strike(pid int) {
	switch l.ties {
	case byKeeper:
		l.release()
	case byGroup, byMaker:
		_ = unix.Kill(-pid, unix.SIGKILL)
		_ = unix.Kill(pid, unix.SIGKILL)
	case byNamespace:
		_ = unix.Kill(pid, unix.SIGKILL)
	}
}

// insist ends a run whose end takes too long after a kill: a keeper that does
// nothing is killed, nobody is listened to any more, and at last the run is given
// up. What it held is given back only when the kernel lets go of it. Guarded by
// tests/attacks TestAStoppedKeeperDoesNotHoldTheEnd and TestAKilledRunEndsInTime.
func (l *life) insist(pid int) {
	l.run.whileAlive(func() { _ = unix.Kill(pid, unix.SIGKILL) })
	l.hush(0)
	time.AfterFunc(endTime, func() { l.run.settle(Exit{Code: -1, Signal: unix.SIGKILL}, errStays) })
}

// hush bounds how long the child is still listened to. Whoever holds its end of
// the socket after the end is nobody that the bot waits for.
// Guarded by tests/attacks TestAHeldSocketDoesNotHoldTheEnd.
func (l *life) hush(after time.Duration) { _ = l.status.SetReadDeadline(time.Now().Add(after)) }

// finish ends what outlives a child that was killed: the box of a maker, which
// dies with it but not before it, and the group of a keeper. It says whether that
// is known to be gone. Guarded by tests/attacks TestNoProcessSurvivesOnAnyRung.
func (l *life) finish(killed bool) (gone bool) {
	defer l.inside.close()
	if !killed {
		return true
	}
	switch l.ties {
	case byMaker:
		return l.inside.end()
	case byKeeper:
		l.inside.endGroup()
	case byNamespace, byGroup:
	}
	return true
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

// rssUnit is the unit of the kernel's count of resident memory, in bytes.
const rssUnit = 1024

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
