package sandbox

import (
	"errors"
	"net"
	"sync"
	"syscall"
	"time"
)

// Run is one started program.
type Run struct {
	pid      int
	listener net.Listener
	out      *output

	alive   sync.Mutex // guards killAll: a process id is only good until it is reaped
	killAll func()     // nil before the start and after the end

	settled sync.Once
	done    chan struct{} // closed when nothing of the run is left, or it is given up
	exit    Exit
	err     error
}

// endTime bounds each part of a run's end.
const endTime = 2 * time.Second

// errStays tells of a run that is not known to have ended in time.
var errStays = errors.New("the run was killed, and what is left of it did not end in " + endTime.String())

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
func (r *Run) PID() int { return r.pid }

// Kill ends the whole run at once. It may be called at any time and repeatedly.
func (r *Run) Kill() {
	r.whileAlive(func() { r.killAll() })
}

// Wait returns when the program has ended, no process of the run is alive and
// all output is delivered. The error is that of a writer, or of the kernel. A run
// that was killed and does not end, as where the kernel holds a process, is given
// up after a few seconds, and the error says so. It may be called repeatedly.
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

// whileAlive does something to the run's process, unless that is about to be reaped.
func (r *Run) whileAlive(do func()) {
	r.alive.Lock()
	defer r.alive.Unlock()
	if r.killAll != nil {
		do()
	}
}

// delivered waits for the output of a program that has ended.
func (r *Run) delivered(exit Exit, err error) (Exit, error) {
	held, lost := r.out.end()
	exit.Held = held
	if err == nil {
		err = lost
	}
	return exit, err
}

// settle says how the run ended. Only the first call counts.
func (r *Run) settle(exit Exit, err error) {
	r.settled.Do(func() {
		r.exit, r.err = exit, err
		close(r.done)
	})
}
