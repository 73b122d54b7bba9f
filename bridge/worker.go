package bridge

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"parlour/bridge/ask"
	"parlour/bridge/journal"
	"parlour/guardrail"
	"parlour/runner/policy"
	"parlour/tiers"
)

// WorkerConfig is everything that a Worker needs.
type WorkerConfig struct {
	Book     func() Rulebook
	Journal  *journal.Journal
	Delegate Delegate
	Outbox   *Outbox
	Secrets  guardrail.Redactor
	Aliases  Aliases       // nil: a provider is told of nobody, and the delegate may refuse to ask one
	Parallel int           // runs at a time in this process
	Grace    time.Duration // how long a run may go on after Serve was told to end; 0: not at all
	Log      *slog.Logger

	ReportAfter time.Duration // until the first report on a run; 0: 4s
	ReportEvery time.Duration // between two reports; 0: 10s
}

// Aliases names people and tiers to a model's provider, so that it can tell one
// asker from another and learns nothing else.
type Aliases interface {
	Asker(person string) string
	Cache(tier tiers.Tier) string
}

// Worker takes accepted questions from the journal, runs them and delivers
// their outcomes.
type Worker struct {
	cfg     WorkerConfig
	broken  chan error    // why the worker cannot go on
	changed chan struct{} // the rulebook may have changed
	held    holdings
}

// NewWorker checks the configuration.
func NewWorker(cfg WorkerConfig) (*Worker, error) {
	if cfg.Book == nil || cfg.Journal == nil || cfg.Delegate == nil || cfg.Outbox == nil || cfg.Log == nil {
		return nil, errors.New("worker: rulebook, journal, delegate, outbox and log are required")
	}
	if cfg.Parallel < 1 {
		return nil, errors.New("worker: at least one run at a time is required")
	}
	if cfg.ReportAfter <= 0 {
		cfg.ReportAfter = firstReport
	}
	if cfg.ReportEvery <= 0 {
		cfg.ReportEvery = nextReport
	}
	return &Worker{cfg: cfg, broken: make(chan error, 1), changed: make(chan struct{}, 1), held: holdings{book: cfg.Book, all: map[*held]bool{}}}, nil
}

// poll is the net under the journal's wake-up: how long a question can wait
// unnoticed, and how often a dead process's questions are looked for.
const poll = time.Second

// Serve works until ctx ends, then waits for the runs that it started. After the
// grace they are interrupted; their questions stay in the journal.
func (w *Worker) Serve(ctx context.Context) error {
	runs, interrupt := context.WithCancel(context.WithoutCancel(ctx))
	defer interrupt()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(w.cfg.Grace, interrupt) })()
	var running sync.WaitGroup
	defer running.Wait()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	running.Go(func() { w.deliverLate(ctx, runs) })
	running.Go(func() { w.review(ctx, runs) })
	slots := make(chan struct{}, w.cfg.Parallel)
	for {
		job, err := w.next(ctx, slots)
		if err != nil {
			time.AfterFunc(w.cfg.Grace, interrupt) // without its journal the bot ends, and its runs with it
			return err
		}
		if job == nil {
			return nil
		}
		running.Go(func() {
			defer func() { <-slots }()
			w.work(runs, *job)
		})
	}
}

// deliverLate runs the outbox beside the worker, so that no platform that hangs
// holds up a question.
// Guarded by tests/contract TestAPlatformThatHangsHoldsUpNobodyElse.
func (w *Worker) deliverLate(ctx, runs context.Context) {
	var left []journal.Delivery
	err := w.patient(ctx, "list undelivered outcomes", func() (err error) {
		left, err = w.cfg.Journal.Undelivered(ctx)
		return err
	})
	if err == nil {
		w.cfg.Outbox.serve(ctx, runs, w.cfg.Book, left)
		return
	}
	if ctx.Err() == nil {
		w.fail(err)
	}
}

// fail says why the worker cannot go on.
func (w *Worker) fail(err error) {
	select {
	case w.broken <- err:
	default:
	}
}

// next takes a slot and claims a question for it. It gives nil when ctx ends.
func (w *Worker) next(ctx context.Context, slots chan struct{}) (*ask.Job, error) {
	select {
	case slots <- struct{}{}:
	case err := <-w.broken:
		return nil, err
	case <-ctx.Done():
		return nil, nil
	}
	ticker := time.NewTicker(poll)
	defer ticker.Stop()
	for {
		job, err := w.claim(ctx)
		if ctx.Err() != nil {
			return nil, nil
		}
		if err != nil || job != nil {
			return job, err
		}
		select {
		case err := <-w.broken:
			return nil, err
		case <-w.cfg.Journal.Wake():
		case <-ticker.C:
			err := w.patient(ctx, "recover", func() error { return w.cfg.Journal.Recover(ctx) })
			if err != nil && ctx.Err() == nil {
				return nil, err
			}
		case <-ctx.Done():
			return nil, nil
		}
	}
}

func (w *Worker) claim(ctx context.Context) (job *ask.Job, err error) {
	err = w.patient(ctx, "claim", func() (err error) {
		job, err = w.cfg.Journal.Claim(ctx, w.running())
		return err
	})
	return job, err
}

// running is how many questions of one person run at a time: the smallest bound
// of all tiers, since a person's tier is decided again when the run starts.
func (w *Worker) running() int {
	running := []int{}
	for _, a := range w.cfg.Book().Asking {
		running = append(running, a.Running)
	}
	if len(running) == 0 {
		return 0
	}
	return slices.Min(running)
}

// work brings one question to its end. Where ctx ends during the run the
// question stays claimed, and the next start of the bot takes it up again.
func (w *Worker) work(ctx context.Context, job ask.Job) {
	log, metrics := w.cfg.Log.With("job", job.ID), w.cfg.Outbox.metrics
	metrics.runStarted()
	defer metrics.runStopped()
	shown := w.progress(ctx, job)
	defer shown.end()
	ended, err := w.run(ctx, job, shown)
	shown.stop()
	if ctx.Err() != nil && (err != nil || ended.Outcome.Cause == ask.Interrupted) {
		log.Debug("run interrupted by shutdown")
		shown.pause(ctx)
		return
	}
	if err != nil {
		log.Error("run", "err", err)
		ended = *ask.EndedBy(job, ask.Failed, err.Error())
	}
	// The run is over and paid for: its outcome is stored even if the bot is
	// told to stop meanwhile.
	ctx = context.WithoutCancel(ctx)
	switch err := w.store(ctx, job, ended); {
	case errors.Is(err, journal.ErrStale):
		log.Info("the question was ended meanwhile")
	case err != nil:
		// An outcome that is not stored is not delivered: it would be given
		// again after the restart. The bot cannot go on without its journal.
		w.fail(fmt.Errorf("store the outcome of job %s: %w", job.ID, err))
	default:
		metrics.questionEnded(job, ended)
		shown.end()
		w.cfg.Outbox.deliver(ctx, w.cfg.Book, job, ended)
	}
}

// The waits between tries of the journal: about ten seconds in all, longer than
// another process may hold the store.
const (
	firstWait = 40 * time.Millisecond
	lastWait  = 6 * time.Second
)

// patient keeps trying for a while: a full disk or a busy store may pass.
// Guarded by tests/contract TestAJournalThatFailsForAWhileEndsNothing.
func (w *Worker) patient(ctx context.Context, what string, do func() error) error {
	for wait := firstWait; ; wait *= 2 {
		err := do()
		lasting := errors.Is(err, journal.ErrStale) || errors.Is(err, journal.ErrMoved)
		if err == nil || lasting || wait > lastWait || ctx.Err() != nil {
			return err
		}
		w.cfg.Log.Warn(what, "err", err, "again_in", wait)
		select {
		case <-time.After(wait):
		case <-ctx.Done():
		}
	}
}

// store stores an outcome, with patience: the run cannot be repeated for nothing.
// Guarded by tests/contract TestAnOutcomeThatCannotBeStoredStopsTheWorker.
func (w *Worker) store(ctx context.Context, job ask.Job, ended ask.Ended) error {
	return w.patient(ctx, "store the outcome of job "+job.ID, func() error { return w.cfg.Journal.Finish(ctx, job, ended) })
}

// run makes the outcome of one question. A runner that fails is tried once more
// where that can help, then the tier's next one; the receipt says so. The
// built-in reader never stands in for a model in silence: then the failure is
// the outcome. A run whose person loses the right to it ends, and the question
// is decided again.
// Guarded by tests/contract TestAFailedRunnerIsTriedOnceMoreAndThenTheNext and
// TestT24ARunningQuestionOfWhomWasRevokedIsInterrupted.
func (w *Worker) run(ctx context.Context, job ask.Job, shown *progress) (ask.Ended, error) {
	intake := job.Decision
	t := trial{failures: map[string]int{}}
	seen := sight{looker: lookerOf(w.cfg.Outbox.sender, job)}
	for range maxAttempts {
		book := w.cfg.Book()
		if job.Decision = book.again(job, intake); job.Decision.Tier == tiers.None {
			return *ask.EndedBy(job, ask.NotAllowed, job.Decision.Why), nil
		}
		if job.Decision = w.fresh(ctx, book, job, &seen, &t); ctx.Err() != nil || job.Decision.Tier == tiers.None {
			return *ask.EndedBy(job, ask.NotAllowed, job.Decision.Why), ctx.Err()
		}
		held := w.held.hold(ctx, job, intake, book)
		ended, over, err := w.once(held.ctx, job, book, &t, shown)
		lost := w.held.release(held)
		switch {
		case lost && ctx.Err() != nil:
			return ask.Ended{}, ctx.Err() // decided again after the restart
		case lost:
			t.lost()
		case over || err != nil:
			return ended, err
		}
	}
	if t.last == nil {
		return *ask.EndedBy(job, ask.Failed, "the rights to this question changed too often while it ran"), nil
	}
	return *t.last, nil
}

// trial is how the attempts at one question went so far.
type trial struct {
	tried    []ask.Skip
	last     *ask.Ended // of a runner that failed
	spent    tally
	failures map[string]int
	before   string // the runner that failed last
}

// lost forgets what was tried with a right that is gone, but not what it cost.
func (t *trial) lost() {
	t.tried, t.last, t.failures, t.before = nil, nil, map[string]int{}, ""
	t.spent.notes = append(t.spent.notes, "an earlier run was stopped: the rights to it were taken away")
}

// once makes one attempt. It is over where the result is the question's outcome.
func (w *Worker) once(ctx context.Context, job ask.Job, book Rulebook, t *trial, shown *progress) (ended ask.Ended, over bool, err error) {
	delegate := w.delegate(book)
	plan, err := delegate.Plan(ctx, job.Decision.Tier, t.tried)
	switch {
	case ctx.Err() != nil:
		return ask.Ended{}, false, ctx.Err() // whatever Plan says now, it was not asked to the end
	case t.last != nil && (err != nil || plan.Choice.BuiltIn):
		return *t.last, true, nil
	case err != nil:
		ended, err = unplanned(job, plan, err)
		return ended, true, err
	}
	shown.runs(plan.Choice.Runner, t.before)
	ended, err = w.attempt(ctx, delegate, job, plan)
	t.spent.add(&ended.Receipt)
	cause := ended.Outcome.Cause
	if err != nil || plan.Choice.BuiltIn || !passing(cause) {
		return ended, true, err
	}
	t.last = &ended
	name := plan.Choice.Runner
	t.before = name
	if t.failures[name]++; t.failures[name] == 1 && worthRepeating(cause) {
		t.spent.notes = append(t.spent.notes, fmt.Sprintf("%s was tried once more: %s", name, cause))
		return ended, false, nil
	}
	t.tried = append(t.tried, ask.Skip{Runner: name, Reason: "it failed on this question: " + string(cause)})
	return ended, false, nil
}

// tally is what the runs of one question have used so far. Each receipt shows
// all of it, since it was spent for the same answer.
type tally struct {
	tokens int
	egress []string
	notes  []string
}

func (t *tally) add(r *ask.Receipt) {
	if r.Egress != "" {
		t.egress = append(t.egress, r.Egress)
	}
	t.tokens += r.Tokens
	r.Tokens, r.Egress = t.tokens, strings.Join(t.egress, " | ")
	r.Notes = append(r.Notes, t.notes...)
}

// maxAttempts bounds the runs of one question, whatever the delegate says.
const maxAttempts = 12

// passing says whether another runner may do better after this cause.
func passing(c ask.Cause) bool {
	switch c {
	case ask.ModelDenied, ask.Failed, ask.NotStarted:
		return true
	}
	return worthRepeating(c)
}

// worthRepeating says whether the same runner may do better at once.
func worthRepeating(c ask.Cause) bool {
	return c == ask.ModelBusy || c == ask.ModelDown || c == ask.Empty
}

// attempt runs the question once by the plan.
func (w *Worker) attempt(ctx context.Context, delegate Delegate, job ask.Job, plan ask.Plan) (ask.Ended, error) {
	prompt, marker, err := render(job.Decision.Tier, plan.Policy, job.Question.Text)
	if err != nil {
		return ask.Ended{}, err
	}
	head := header(job.Decision.Tier, plan, prompt)
	if w.cfg.Aliases != nil && plan.Policy.Network() == policy.ModelOnly {
		prompt.Asker, prompt.Cache = w.cfg.Aliases.Asker(job.Person), w.cfg.Aliases.Cache(job.Decision.Tier)
		head.Asker = prompt.Asker // the operator's way from a complaint of the provider to a person
	}
	// What the model will be shown is committed before it is shown.
	if err := w.cfg.Journal.Append(ctx, job.ID, ask.EventRequest, head); err != nil {
		return ask.Ended{}, err
	}
	result := delegate.Run(ctx, plan, prompt)
	return w.judge(job, plan, result, marker), nil
}

func unplanned(job ask.Job, plan ask.Plan, err error) (ask.Ended, error) {
	var none *ask.NoRunnerError
	var refused *policy.RefusedError
	cause := ask.NoCause
	switch {
	case errors.As(err, &none):
		cause = ask.NoRunner
	case errors.As(err, &refused):
		cause = ask.NoSandbox
	default:
		return ask.Ended{}, fmt.Errorf("plan the run: %w", err)
	}
	ended := ask.EndedBy(job, cause, err.Error())
	ended.Receipt.Choice = plan.Choice
	return *ended, nil
}

// render prints the policy text from the plan's own policy and fences the
// question with a marker of this run.
func render(tier tiers.Tier, e policy.Effective, question string) (ask.Prompt, string, error) {
	text, err := guardrail.Policy(tier, e)
	if err != nil {
		return ask.Prompt{}, "", err
	}
	random := make([]byte, 16)
	_, _ = rand.Read(random) // never fails, by its contract
	marker := hex.EncodeToString(random)
	fenced, err := guardrail.Fence(marker, question)
	return ask.Prompt{Policy: text, Question: question, Fenced: fenced}, marker, err
}

func header(tier tiers.Tier, plan ask.Plan, p ask.Prompt) ask.RequestHeader {
	sum := sha256.Sum256([]byte(p.Policy + p.Fenced))
	return ask.RequestHeader{
		Tier: tier, Runner: plan.Choice.Runner,
		Policy: p.Policy, PolicyLine: plan.Policy.String(), PolicyHash: plan.Policy.Hash(),
		Fenced: p.Fenced, SHA256: hex.EncodeToString(sum[:]),
	}
}

// judge turns what a run gave back into the outcome. Only the type of the
// result decides; an answer that reads like one of our sentences is an answer.
func (w *Worker) judge(job ask.Job, plan ask.Plan, r ask.Result, marker string) ask.Ended {
	screened := guardrail.Screen(r.Answer, guardrail.Screening{
		Limit: plan.Policy.Limits().Answer, Secret: w.cfg.Secrets, Marker: marker,
	})
	cause, detail := r.Cause, r.Detail
	if cause == ask.NoCause && screened.Text == "" {
		cause, detail = ask.Empty, "nothing of the answer was left after screening"
	}
	ended := *ask.EndedBy(job, cause, detail)
	if cause == ask.NoCause {
		ended.Outcome.Text = screened.Text
	}
	ended.Receipt.Choice = plan.Choice
	ended.Receipt.Rung = plan.Policy.Rung().String()
	ended.Receipt.PolicyHash = plan.Policy.Hash()
	ended.Receipt.Notes = append(plan.Policy.Notes(), plan.Notes...)
	ended.Receipt.Took = r.Took
	ended.Receipt.Redacted = screened.Redacted
	ended.Receipt.Egress, ended.Receipt.Tokens = r.Egress, r.Tokens
	return ended
}
