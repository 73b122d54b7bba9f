package broker

import (
	"encoding/json"
	"errors"
	"fmt"
)

// turn is one answer of the model while it is relayed. It is told what came and
// says what goes on to the CLI: the same thing written anew from the fields that
// are known here, so that nobody reads it differently.
type turn interface {
	// event takes one event of a stream. Nothing to relay: nil.
	event(data []byte) (out []byte, err error)
	// whole takes an answer that is not a stream.
	whole(data []byte) (out []byte, err error)
	// account gives what is known of the answer so far.
	account() *account
}

// account is what the relayed bytes said.
type account struct {
	text     string // of the answer, without thinking and comments between calls
	calls    int    // tool calls that were relayed
	stop     string
	done     bool // the protocol's own end was seen
	usage    Usage
	measured bool // the number of output tokens was said at the end
	dropped  []string
}

// leaveOut remembers a kind of event that is not relayed.
func (a *account) leaveOut(what string) {
	if len(a.dropped) < maxFaults {
		a.dropped = append(a.dropped, word(what))
	}
}

// errBroken says that a stream does not keep to its protocol.
var errBroken = errors.New("the answer does not keep to its protocol")

// errUpstream is an error that the provider put into a stream.
type errUpstream struct{ kind string }

func (e *errUpstream) Error() string { return "the provider reports " + e.kind }

// ViolationError says that the model called a tool that the run may not use, or
// one that the provider itself would run. The call was not relayed and ends the
// run.
type ViolationError struct{ Tool string }

// Error names the tool.
func (e *ViolationError) Error() string {
	return fmt.Sprintf("the model called %s, which this run may not use", e.Tool)
}

// decode reads one piece of an answer, which must be one strict JSON value.
func decode(data []byte, into any) error {
	n, err := parseJSON(data)
	if err != nil || n.kind != kindObject {
		return errBroken
	}
	if err := json.Unmarshal(n.append(nil), into); err != nil {
		return errBroken
	}
	return nil
}

// most a provider can say about the tokens of one answer.
const mostTokens = 1 << 30

func sane(tokens int) int { return min(max(tokens, 0), mostTokens) }
