//go:build amd64 || arm64

package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"

	"parlour/runner/sandbox/entry"
)

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
		run: run, launch: l, begin: k.begin, program: k.program, status: k.status, leash: k.leash,
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
	_, lost := run.Wait()
	stays := errors.Is(lost, errStays) || errors.Is(err, os.ErrDeadlineExceeded)
	if ctx.Err() != nil {
		err = &StartError{"start", ctx.Err()}
	}
	if stays {
		err = &StartError{"end what did not start", fmt.Errorf("%w: %w", errStays, err)}
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

// prefer makes the run what the kernel ends first where memory is short: it would
// take the bot, which is larger than each process of a run. The bot says it, once
// the program has memory of its own: while the child shared the bot's, it would
// have been said of the bot. Without /proc it is left as it is.
// Guarded by tests/attacks TestTheRunIsWhatGoesWhereMemoryIsShort.
func prefer(pid int) {
	_ = os.WriteFile("/proc/"+strconv.Itoa(pid)+"/oom_score_adj", []byte("1000"), 0)
}
