package runner

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"time"

	"parlour/bridge/ask"
	"parlour/runner/broker"
	"parlour/runner/docs"
	"parlour/runner/policy"
	"parlour/runner/sandbox"
	"parlour/runner/spec"
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
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	life := newLife(plan.Policy.Limits().Stall, func() { stop(errStalled) })
	defer life.end()
	session, err := r.gateway(ctx, plan, prompt, broker.Hooks{Alive: life.sign, End: stop})
	if err != nil {
		return ask.Result{Cause: ask.NotStarted, Detail: err.Error()}
	}
	command, err := r.command(ctx, plan, prompt, token(session))
	if cause, stopped := stopCause(ctx); stopped {
		return ask.Result{Cause: cause, Detail: "stopped before the start"}
	}
	if err != nil {
		return ask.Result{Cause: ask.NotStarted, Detail: err.Error()}
	}
	return r.watch(ctx, plan.Policy, r.specs[plan.Choice.Runner].Answer, session, life, command)
}

// token gives the run's token for the program, which is worth nothing outside
// of its own sandbox and after its end.
func token(session *broker.Session) string {
	if session == nil {
		return ""
	}
	return session.Token().Reveal()
}

func (r *Runner) command(ctx context.Context, plan ask.Plan, p ask.Prompt, token string) (sandbox.Command, error) {
	s, ok := r.specs[plan.Choice.Runner]
	if !ok {
		return sandbox.Command{}, fmt.Errorf("unknown runner %q", plan.Choice.Runner)
	}
	if !s.BuiltIn {
		return r.invoke(s, plan, p, token)
	}
	index, err := docs.Ensure(ctx, r.cfg.Handbook, r.cfg.Index)
	if err != nil {
		return sandbox.Command{}, fmt.Errorf("prepare the handbook: %w", err)
	}
	return built(r.cfg.Self, plan.Policy, p, index), nil
}

// watch starts the command and holds it to the limits of wall clock, silence
// and output. Every way out leaves no process behind; that is the sandbox's
// promise, and Wait keeps it.
func (r *Runner) watch(ctx context.Context, e policy.Effective, format spec.Format, session *broker.Session, l *life, cmd sandbox.Command) ask.Result {
	ctx, cancel := context.WithTimeoutCause(ctx, e.Limits().Wall, errWall)
	defer cancel()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	if l == nil {
		l = newLife(0, nil)
	}
	out := &capped{limit: outputLimit(e, format), life: l, over: func() { stop(errTooMuch) }}
	noise := &capped{limit: maxNoise, life: l, over: func() { stop(errTooMuch) }}
	cmd.Stdout, cmd.Stderr = out, noise

	run, err := r.cfg.Engine.Start(ctx, e, cmd)
	if err != nil {
		if cause, stopped := stopCause(ctx); stopped {
			return ask.Result{Cause: cause, Detail: context.Cause(ctx).Error() + "; " + err.Error()}
		}
		return ask.Result{Cause: ask.NotStarted, Detail: err.Error()}
	}
	serve(session, run.Listener())
	exit, err := run.Wait()
	result := ask.Result{}
	if session != nil {
		_ = session.Close() // the listener is the run's and has ended with it
		res := session.Result()
		result.Egress, result.Tokens = res.Receipt.String(), res.Usage.Total()
		if cause, known := modelCause(seen(res)); known {
			result.Cause, result.Detail = cause, describe(seen(res), exit, noise)
			return result
		}
	}
	if cause, stopped := stopCause(ctx); stopped {
		result.Cause, result.Detail = cause, describe(context.Cause(ctx), exit, noise)
		if err != nil {
			result.Detail += "; " + err.Error()
		}
		return result
	}
	said := decode(format, out.String())
	if err != nil || exit.Code != 0 || exit.Signal != 0 || said.failed != "" {
		result.Cause, result.Detail = ask.Failed, describe(err, exit, noise)
		return result
	}
	return answered(result, said, session, describe(nil, exit, noise))
}

// outputLimit bounds what a program prints. A format that repeats the answer in
// pieces may print it several times over.
func outputLimit(e policy.Effective, format spec.Format) int64 {
	if format == spec.Text {
		return e.Limits().Answer
	}
	return 32*e.Limits().Answer + 8<<20
}

// answered takes the answer from where it cannot be forged: from what the
// gateway relayed, and from standard output only where there is no model.
func answered(result ask.Result, said report, session *broker.Session, detail string) ask.Result {
	answer := said.answer
	if session != nil {
		answer = session.Result().Answer
	}
	if strings.Trim(answer, " \t\r\n\ufeff") == "" || !said.ended {
		result.Cause, result.Detail = ask.Empty, detail
		return result
	}
	result.Answer = answer
	return result
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
	if cause, known := modelCause(context.Cause(ctx)); known {
		return cause, true
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
	if exit.Held {
		text += "; its output was held open after its end"
	}
	if body := noise.String(); body != "" {
		sum := sha256.Sum256([]byte(body))
		text += fmt.Sprintf("; stderr %d bytes, sha256 %x", len(body), sum[:8])
	}
	return text
}
