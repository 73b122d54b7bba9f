// Package ask holds the words that bridge, runner and journal share: a question,
// the choice of a runner, the one outcome of a run, its receipt, and the events
// of a conversation.
//
// It holds no behaviour beyond naming and printing. Fixed sentences for chat
// are defined in sentences.go and nowhere else.
package ask

import (
	"encoding/json"
	"fmt"
	"time"

	"parlour/runner/policy"
	"parlour/tiers"
)

// Tier is tiers.Tier, for packages that know the shared words only.
type Tier = tiers.Tier

// Question is what an accepted message asks.
type Question struct {
	Text string // valid UTF-8 without NUL, at most MaxQuestion bytes
}

// MaxQuestion is the size limit of a question in bytes.
const MaxQuestion = 64 << 10

// Skip names a runner that was not used, and why, in one operator's sentence.
type Skip struct {
	Runner string `json:"runner"`
	Reason string `json:"reason"`
}

// Choice is the result of picking a runner.
type Choice struct {
	Runner  string `json:"runner"`   // empty: none is safe and installed
	Path    string `json:"path"`     // absolute path of the program
	Skipped []Skip `json:"skipped"`  // in the order of the list
	Origin  string `json:"origin"`   // where the order came from: environment, config, manifest
	Proven  bool   `json:"proven"`   // the program passed the canary battery on this host
	BuiltIn bool   `json:"built_in"` // the bot's own reader of documents
	Model   string `json:"model,omitempty"`
}

// Plan is a choice together with the policy under which exactly it will run.
type Plan struct {
	Choice Choice
	Policy policy.Effective
	Notes  []string // what is known of the sandbox on this host, for the receipt
}

// NoRunnerError means that no runner is safe, installed and allowed. Choice says
// why for each.
type NoRunnerError struct{ Choice Choice }

// Error gives the number of runners that were skipped; Choice has the reasons.
func (e *NoRunnerError) Error() string {
	return fmt.Sprintf("no safe runner is installed (%d skipped)", len(e.Choice.Skipped))
}

// Prompt is what a run is given. Policy is rendered from the Effective of the
// same Plan.
type Prompt struct {
	Policy   string // the guardrail text, for the CLI's highest role
	Question string // the question as the person wrote it
	Fenced   string // the question inside its fence
	Asker    string // who asks, as the model's provider may know it; empty where there is no model
	Cache    string // key of the tier's prompt cache at the provider
}

// Result is what a run gave back. Exactly one of an answer and a cause is set.
type Result struct {
	Answer string
	Cause  Cause  // NoCause: answered
	Detail string // for the operator's log, never for chat
	Egress string // what left the sandbox for the model, in one line; empty: nothing could
	Tokens int    // of the model, all kinds together
	Took   time.Duration
}

// Kind is how an accepted message ended. The zero Kind is not an end.
type Kind string

// The five ends of a message.
const (
	Answered    Kind = "answered"
	Refused     Kind = "refused"
	Unavailable Kind = "unavailable"
	Cancelled   Kind = "cancelled"
	Expired     Kind = "expired"
)

// Cause says why a message was not answered. Each has one sentence.
type Cause string

// The causes.
const (
	NoCause     Cause = ""
	NoRunner    Cause = "no-runner"    // none is safe, installed and allowed
	NoSandbox   Cause = "no-sandbox"   // the host cannot enforce the policy
	NotAllowed  Cause = "not-allowed"  // the tier is none
	Lowered     Cause = "lowered"      // the tier was lowered after the answer was made
	Unchecked   Cause = "unchecked"    // the right to the answer could not be checked again
	TooLong     Cause = "too-long"     // the question is longer than MaxQuestion
	TooFast     Cause = "too-fast"     // this person asked too often within a minute
	Busy        Cause = "busy"         // this person has too many questions waiting
	WallClock   Cause = "wall-clock"   // the whole run took too long
	Stalled     Cause = "stalled"      // nothing came for too long
	TooMuch     Cause = "too-much"     // more output than the limit
	Empty       Cause = "empty"        // exit 0 without an answer
	Failed      Cause = "failed"       // the program failed
	ModelDenied Cause = "model-denied" // the provider refused the key
	ModelBusy   Cause = "model-busy"   // the provider asked to come later
	ModelDown   Cause = "model-down"   // the provider did not answer, or broke off
	ModelLimit  Cause = "model-limit"  // requests, bytes or tokens of the run were used up
	ToolCall    Cause = "tool-call"    // the model called a tool that the run does not have
	NotStarted  Cause = "not-started"  // the program or its sandbox did not start
	AskerGone   Cause = "asker-gone"   // the terminal that asked is gone
	Interrupted Cause = "interrupted"  // the person or the operator stopped it
	GaveUp      Cause = "gave-up"      // the bot died over it too often
	Taken       Cause = "taken"        // another process answers it; never the end of a question
	NotTaken    Cause = "not-taken"    // it was entrusted, and nobody came for it
)

// Outcome is the end of an accepted message.
type Outcome struct {
	Kind  Kind   `json:"kind"`
	Cause Cause  `json:"cause,omitempty"`
	Text  string `json:"text"` // what the person reads: the screened answer or a fixed sentence
}

// Receipt says how an answer came about.
type Receipt struct {
	Job        string        `json:"job"`
	Tier       tiers.Tier    `json:"tier"`
	Rule       string        `json:"rule,omitempty"`
	Choice     Choice        `json:"choice"`
	Rung       string        `json:"rung"`
	PolicyHash string        `json:"policy_hash,omitempty"`
	Notes      []string      `json:"notes,omitempty"`
	Took       time.Duration `json:"took_ns"`
	Redacted   int           `json:"redacted,omitempty"` // secrets taken out of the answer
	Egress     string        `json:"egress,omitempty"`
	Tokens     int           `json:"tokens,omitempty"`
}

// Event is one line of a conversation's log. Data is JSON of a type that
// belongs to Kind.
type Event struct {
	Seq  int64           `json:"seq"` // given by the journal, rising
	Job  string          `json:"job"`
	Kind string          `json:"kind"`
	At   time.Time       `json:"at"`
	Data json.RawMessage `json:"data"`
}

// The kinds of event.
const (
	EventAccepted  = "message/accepted" // Accepted
	EventDecided   = "message/decided"  // tiers.Decision
	EventMode      = "sandbox/mode"     // ModeSet
	EventRequest   = "request/header"   // RequestHeader
	EventRequeued  = "run/requeued"     // no data: the bot died while it ran
	EventOutcome   = "run/outcome"      // Ended
	EventDelivered = "answer/delivered" // no data
)

// Accepted is the data of EventAccepted.
type Accepted struct {
	Message string `json:"message"` // the platform-scoped message id
	Person  string `json:"person"`
	Bytes   int    `json:"bytes"`
}

// ModeSet is the data of EventMode.
type ModeSet struct {
	Mode string `json:"mode"`
	By   string `json:"by"`
}

// RequestHeader is the data of EventRequest: the exact text that the model is
// shown, committed before the run starts.
type RequestHeader struct {
	Tier       tiers.Tier `json:"tier"`
	Runner     string     `json:"runner"`
	Policy     string     `json:"policy"`      // the guardrail text, byte for byte
	PolicyLine string     `json:"policy_line"` // policy.Effective.String
	PolicyHash string     `json:"policy_hash"`
	Fenced     string     `json:"fenced"`          // the question inside its fence
	SHA256     string     `json:"sha256"`          // of Policy followed by Fenced
	Asker      string     `json:"asker,omitempty"` // who asks, as the model's provider is told
}

// Ended is the data of EventOutcome.
type Ended struct {
	Outcome Outcome `json:"outcome"`
	Receipt Receipt `json:"receipt"`
	Detail  string  `json:"detail,omitempty"`
}

// Job is one accepted message on its way to its end.
type Job struct {
	ID       string         `json:"id"`      // unique, sortable by time of acceptance
	Origin   string         `json:"origin"`  // which process may run it: "serve", or "ask:" and an id of its own
	Message  string         `json:"message"` // platform-scoped message id; the same message is accepted once
	Person   string         `json:"person"`  // tiers.Identity.Key
	Lane     string         `json:"lane"`    // conversation; one job of a lane runs at a time
	Question Question       `json:"question"`
	Identity tiers.Identity `json:"identity"`
	Place    tiers.Place    `json:"place"`
	Decision tiers.Decision `json:"decision"`
	ReplyTo  string         `json:"reply_to"` // the adapter's own address for the answer
	// Entrusted says that the program of another gateway holds the conversation
	// and comes for the answer with the job's id.
	Entrusted bool      `json:"entrusted,omitempty"`
	Attempt   int       `json:"attempt"` // given by the journal: 1 for the first run
	At        time.Time `json:"at"`
}
