package sandbox

import (
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// waitDelay is how long the output may stay open after the program's end. In a
// box nobody is left who could hold it.
const waitDelay = time.Second

// Run is one started program.
type Run struct {
	cmd      *exec.Cmd
	listener net.Listener

	alive   sync.Mutex // guards killAll: a process id is only good until it is reaped
	killAll func()     // nil before the start and after the end

	done chan struct{} // closed when nothing of the run is left
	exit Exit
	err  error
}

// Exit says how a run ended.
type Exit struct {
	Code   int            // exit status; -1 where a signal ended it
	Signal syscall.Signal // 0 where it exited by itself
	// PeakRSS is the largest resident memory of one process, in bytes. The kernel
	// counts what the bot held when it started the run as the least.
	PeakRSS int64
	User    time.Duration // processor time outside the kernel
	System  time.Duration // processor time in the kernel
	// Held says that somebody kept the output open after the program's end. What
	// was written before is complete.
	Held bool
}

// Listener gives the listening socket on policy.BrokerAddr inside the box, nil
// where the policy allows no model. It closes when the run ends.
func (r *Run) Listener() net.Listener { return r.listener }

// PID gives the process id as the host sees it.
func (r *Run) PID() int { return r.cmd.Process.Pid }

// Kill ends the whole run at once. It may be called at any time and repeatedly.
func (r *Run) Kill() {
	r.alive.Lock()
	defer r.alive.Unlock()
	if r.killAll != nil {
		r.killAll()
	}
}

// Wait returns when the program has ended, no process of the run is alive and
// all output is delivered. The error is that of a writer, or of the kernel. It
// may be called repeatedly.
func (r *Run) Wait() (Exit, error) {
	<-r.done
	return r.exit, r.err
}

// setKill says how to end the run; nil from the moment it is about to be reaped.
func (r *Run) setKill(kill func()) {
	r.alive.Lock()
	defer r.alive.Unlock()
	r.killAll = kill
}

// reap collects the program and its output.
func (r *Run) reap() {
	err := r.cmd.Wait()
	if r.cmd.ProcessState == nil {
		r.exit, r.err = Exit{Code: -1}, err
		return
	}
	r.exit = exitOf(r.cmd.ProcessState)
	var status *exec.ExitError
	switch {
	case errors.Is(err, exec.ErrWaitDelay):
		r.exit.Held = true
	case !errors.As(err, &status):
		r.err = err
	}
}

func exitOf(state *os.ProcessState) Exit {
	e := Exit{Code: state.ExitCode(), User: state.UserTime(), System: state.SystemTime()}
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		e.Signal = status.Signal()
	}
	if usage, ok := state.SysUsage().(*syscall.Rusage); ok {
		e.PeakRSS = int64(usage.Maxrss) * rssUnit
	}
	return e
}

// piped hides what a writer is. A file would otherwise be handed to the program
// itself, and with it a way to the terminal or the folder behind it.
func piped(w io.Writer) io.Writer {
	if w == nil {
		return nil
	}
	return struct{ io.Writer }{w}
}
