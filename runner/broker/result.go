package broker

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"parlour/runner/policy"
)

// Usage is a number of tokens by kind. Input leaves out what came from the
// provider's cache or was written to it.
type Usage struct {
	Input      int `json:"input"`
	Output     int `json:"output"`
	CacheRead  int `json:"cache_read,omitempty"`
	CacheWrite int `json:"cache_write,omitempty"`
	// Guessed says that an answer did not tell its tokens: its output counts as
	// all that was reserved, its input as one token for each byte.
	Guessed bool `json:"guessed,omitempty"`
}

// Total gives all tokens together.
func (u Usage) Total() int { return u.Input + u.Output + u.CacheRead + u.CacheWrite }

func (u Usage) plus(v Usage) Usage {
	return Usage{
		u.Input + v.Input, u.Output + v.Output, u.CacheRead + v.CacheRead, u.CacheWrite + v.CacheWrite, u.Guessed || v.Guessed,
	}
}

// FailureKind is how the provider failed. The zero FailureKind is not at all.
type FailureKind string

// The kinds of failure.
const (
	Unauthorized FailureKind = "unauthorized" // 401, 403: the key
	RateLimited  FailureKind = "rate-limited" // 429
	Overloaded   FailureKind = "overloaded"   // 503, 529
	ServerError  FailureKind = "server-error" // other 5xx
	Rejected     FailureKind = "rejected"     // other 4xx: the model, the size
	Redirected   FailureKind = "redirected"   // 3xx: never followed
	Unreachable  FailureKind = "unreachable"  // no connection
	Untrusted    FailureKind = "untrusted"    // the certificate does not hold
	Reset        FailureKind = "reset"        // the connection ended instead of an answer
	Silent       FailureKind = "silent"       // no byte for Grant.Silence
	BrokenStream FailureKind = "broken-stream"
)

// Failure is how a model request failed, for the operator. It holds nothing of
// the provider's own text.
type Failure struct {
	Kind       FailureKind   `json:"kind"`
	Status     int           `json:"status,omitempty"`
	Reason     string        `json:"reason,omitempty"`     // the provider's code, where it is a known one
	RequestID  string        `json:"request_id,omitempty"` // for the provider's support
	RetryAfter time.Duration `json:"retry_after_ns,omitempty"`
}

// Error gives the failure in one line.
func (f *Failure) Error() string {
	words := []string{"the model failed: " + string(f.Kind)}
	if f.Status > 0 {
		words = append(words, fmt.Sprintf("status %d", f.Status))
	}
	if f.Reason != "" {
		words = append(words, f.Reason)
	}
	if f.RetryAfter > 0 {
		words = append(words, "retry after "+f.RetryAfter.String())
	}
	if f.RequestID != "" {
		words = append(words, "request "+f.RequestID)
	}
	return strings.Join(words, ", ")
}

// LimitError says which limit of the grant the run reached.
type LimitError struct{ What string }

// Error names the limit.
func (e *LimitError) Error() string { return "the run reached its limit of " + e.What }

// Result is what the broker saw of a run.
type Result struct {
	// Answer is the text of the last answer, if it is complete and calls no tool.
	Answer    string
	Stop      string // why it ended, in the provider's word, such as max_tokens
	Usage     Usage
	Requests  int             // that were sent to the provider
	Failure   *Failure        // the first; nothing is forwarded after it
	Violation *ViolationError // nil: none
	Limit     *LimitError     // nil: none was reached
	Receipt   EgressReceipt
}

// Count is a thing and how often it occurred.
type Count struct {
	Name  string `json:"name"`
	Times int    `json:"times"`
}

// EgressReceipt says what left the sandbox and what came back. It holds no text
// of a request or an answer.
type EgressReceipt struct {
	Host     string  `json:"host"`
	Model    string  `json:"model"`
	Paths    []Count `json:"paths"`
	Requests int     `json:"requests"`
	Sent     int64   `json:"sent"`     // bytes from the CLI
	Received int64   `json:"received"` // bytes to the CLI
	Usage    Usage   `json:"usage"`
	Removed  []Count `json:"removed_tools,omitempty"`
	Dropped  []Count `json:"dropped_fields,omitempty"`
	Refused  []Count `json:"refused,omitempty"`
	Ended    string  `json:"ended,omitempty"` // violation or limit
	Failure  string  `json:"failure,omitempty"`
}

// String gives the receipt in one line.
func (r EgressReceipt) String() string {
	words := []string{
		fmt.Sprintf("model %s at %s", r.Model, r.Host),
		fmt.Sprintf("%d requests", r.Requests),
		"sent " + policy.Size(r.Sent), "received " + policy.Size(r.Received),
		fmt.Sprintf("tokens %d in, %d out", r.Usage.Total()-r.Usage.Output, r.Usage.Output),
	}
	if r.Usage.Guessed {
		words[len(words)-1] += " (guessed in part)"
	}
	for _, part := range []struct {
		name   string
		counts []Count
	}{{"paths", r.Paths}, {"removed tools", r.Removed}, {"dropped", r.Dropped}, {"refused", r.Refused}} {
		if len(part.counts) > 0 {
			words = append(words, part.name+": "+list(part.counts))
		}
	}
	if r.Ended != "" {
		words = append(words, r.Ended)
	}
	if r.Failure != "" {
		words = append(words, r.Failure)
	}
	return strings.Join(words, "; ")
}

func list(counts []Count) string {
	words := make([]string, len(counts))
	for i, c := range counts {
		words[i] = fmt.Sprintf("%s ×%d", c.Name, c.Times)
	}
	return strings.Join(words, ", ")
}

// mostKinds is how many different things of one kind a receipt names; the rest
// is counted together.
const mostKinds = 32

const others = "others"

// tally counts things by name, at most mostKinds of them.
type tally struct{ counts []Count }

func (t *tally) add(name string) {
	find := func(name string) int {
		return slices.IndexFunc(t.counts, func(c Count) bool { return c.Name == name })
	}
	i := find(name)
	if i < 0 && len(t.counts) >= mostKinds {
		name = others
		i = find(name)
	}
	if i < 0 {
		t.counts = append(t.counts, Count{Name: name})
		i = len(t.counts) - 1
	}
	t.counts[i].Times++
}

func (t *tally) list() []Count { return slices.Clone(t.counts) }
