package runner

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"time"

	"parlour/bridge/ask"
	"parlour/runner/docs"
	"parlour/runner/policy"
	"parlour/runner/sandbox"
)

// maxNoise is how much a run may print on stderr before it is stopped.
const maxNoise = 1 << 20

// The reasons for which a run is stopped, as causes of its context.
var (
	errWall    = errors.New("wall clock limit")
	errStalled = errors.New("stall limit")
	errTooMuch = errors.New("output limit")
)

// Run runs the prompt once under exactly the plan's policy. It returns an answer
// or one cause; the output of a run that failed is not part of the result.
func (r *Runner) Run(ctx context.Context, plan ask.Plan, prompt ask.Prompt) ask.Result {
	start := time.Now()
	result := r.run(ctx, plan, prompt)
	result.Took = time.Since(start)
	return result
}

func (r *Runner) run(ctx context.Context, plan ask.Plan, prompt ask.Prompt) ask.Result {
	command, err := r.command(ctx, plan, prompt)
	if err != nil {
		return ask.Result{Cause: ask.NotStarted, Detail: err.Error()}
	}
	return r.watch(ctx, plan.Policy, command)
}

func (r *Runner) command(ctx context.Context, plan ask.Plan, p ask.Prompt) (sandbox.Command, error) {
	s, ok := r.specs[plan.Choice.Runner]
	if !ok {
		return sandbox.Command{}, fmt.Errorf("unknown runner %q", plan.Choice.Runner)
	}
	if !s.BuiltIn {
		return r.invoke(s, plan.Choice.Path, "", plan.Policy, p)
	}
	index, err := docs.Ensure(ctx, r.cfg.Handbook, r.cfg.Index)
	if err != nil {
		return sandbox.Command{}, fmt.Errorf("prepare the handbook: %w", err)
	}
	return r.built(plan.Policy, p, index), nil
}

// watch starts the command and holds it to the limits of wall clock, silence
// and output. Every way out leaves no process behind; that is the sandbox's
// promise, and Wait keeps it.
func (r *Runner) watch(ctx context.Context, e policy.Effective, cmd sandbox.Command) ask.Result {
	limits := e.Limits()
	ctx, cancel := context.WithTimeoutCause(ctx, limits.Wall, errWall)
	defer cancel()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)

	life := newLife(limits.Stall, func() { stop(errStalled) })
	defer life.end()
	out := &capped{limit: limits.Answer, life: life, over: func() { stop(errTooMuch) }}
	noise := &capped{limit: maxNoise, life: life, over: func() { stop(errTooMuch) }}
	cmd.Stdout, cmd.Stderr = out, noise

	run, err := r.cfg.Engine.Start(ctx, e, cmd)
	if err != nil {
		if cause, stopped := stopCause(ctx); stopped {
			return ask.Result{Cause: cause, Detail: context.Cause(ctx).Error()}
		}
		return ask.Result{Cause: ask.NotStarted, Detail: err.Error()}
	}
	exit, err := run.Wait()
	if cause, stopped := stopCause(ctx); stopped {
		return ask.Result{Cause: cause, Detail: describe(context.Cause(ctx), exit, noise)}
	}
	if err != nil || exit.Code != 0 || exit.Signal != 0 {
		return ask.Result{Cause: ask.Failed, Detail: describe(err, exit, noise)}
	}
	answer := out.String()
	if strings.Trim(answer, " \t\r\n\ufeff") == "" {
		return ask.Result{Cause: ask.Empty, Detail: describe(nil, exit, noise)}
	}
	return ask.Result{Answer: answer}
}

// stopCause gives the cause for which the run was stopped, if it was.
func stopCause(ctx context.Context) (ask.Cause, bool) {
	switch err := context.Cause(ctx); {
	case err == nil:
		return ask.NoCause, false
	case errors.Is(err, errWall):
		return ask.WallClock, true
	case errors.Is(err, errStalled):
		return ask.Stalled, true
	case errors.Is(err, errTooMuch):
		return ask.TooMuch, true
	}
	return ask.Interrupted, true
}

// describe gives the operator's detail. What a program prints on stderr can
// hold the question and the answer, so only its size and hash are given.
func describe(err error, exit sandbox.Exit, noise *capped) string {
	text := fmt.Sprintf("exit %d", exit.Code)
	if exit.Signal != 0 {
		text = "signal " + exit.Signal.String()
	}
	if err != nil {
		text = err.Error() + "; " + text
	}
	if body := noise.String(); body != "" {
		sum := sha256.Sum256([]byte(body))
		text += fmt.Sprintf("; stderr %d bytes, sha256 %x", len(body), sum[:8])
	}
	return text
}
