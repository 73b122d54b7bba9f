// Package bridge carries a question from an adapter through the one gate to a
// sandboxed run and its answer back.
//
// Every way in ends in Gate.Accept; there is no second one. The package decides
// no tier itself (tiers does), starts no process (it cannot import runner), and
// never drops an accepted message: each ends in exactly one outcome, which is
// stored before it is delivered.
package bridge

import (
	"context"
	"time"

	"parlour/bridge/ask"
	"parlour/bridge/journal"
	"parlour/tiers"
)

// Message is what an adapter makes of a platform's event: ids only, and no
// decision.
type Message struct {
	ID       string // unique within the platform; the same event always has the same
	Identity tiers.Identity
	Place    tiers.Place
	Lane     string // conversation; its questions are answered one after the other
	Text     string
	ReplyTo  string // the adapter's own address for the answer
	At       time.Time
	// Entrusted says that the answer is not delivered to a place, but fetched by
	// whoever names the job.
	Entrusted bool
}

// Delegate runs a prompt under a policy. The policy that Plan gives is the one
// from which the prompt's text is rendered and under which Run runs it.
type Delegate interface {
	// Plan picks a runner, and none of those that were tried before for the same
	// question. It fails with an *ask.NoRunnerError or a *policy.RefusedError;
	// the plan then holds what is known of the choice.
	Plan(ctx context.Context, tier tiers.Tier, tried []ask.Skip) (ask.Plan, error)
	Run(ctx context.Context, plan ask.Plan, prompt ask.Prompt) ask.Result
}

// Accepted is what became of a message at the gate.
type Accepted = journal.Accepted

// Sender delivers an outcome to the place of its question. A delivery may be
// repeated after a crash, so it must bear that. An error with a method
// Permanent() bool that gives true ends the delivery; any other is tried again.
type Sender interface {
	Deliver(ctx context.Context, job ask.Job, ended ask.Ended) error
}

// Reporter is a Sender that can also show that a question is still worked on: by
// one message, in the place where the outcome will be, which each further report
// edits and Deliver takes away. Report does not wait for a platform that is busy.
type Reporter interface {
	Report(ctx context.Context, job ask.Job, p ask.Progress) error
}
