// Package local is the adapter of the terminal: a question from the command line
// becomes a message, and its outcome is printed.
//
// It vouches for nobody but the user of this machine, and it can only lower what
// that user may do. It does not read the terminal and does not print by itself.
package local

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"parlour/bridge"
	"parlour/bridge/ask"
	"parlour/tiers"
)

// The faults of a question from a terminal or a file. There, unlike in a chat,
// nothing is replaced in silence: the person can correct it.
var (
	ErrTooLong = fmt.Errorf("the question is longer than %d KiB", ask.MaxQuestion>>10)
	ErrEmpty   = errors.New("the question is empty")
	ErrNUL     = errors.New("the question holds a NUL byte")
	ErrUTF8    = errors.New("the question is not valid UTF-8")
)

// Message makes the message of a question from the terminal, asked as at most
// the tier most. The id must be new for each question.
func Message(id string, uid int, most tiers.Tier, question string, now time.Time) (bridge.Message, error) {
	switch {
	case len(question) > ask.MaxQuestion:
		return bridge.Message{}, ErrTooLong
	case strings.TrimSpace(question) == "":
		return bridge.Message{}, ErrEmpty
	case strings.Contains(question, "\x00"):
		return bridge.Message{}, fmt.Errorf("%w at byte %d", ErrNUL, strings.IndexByte(question, 0)+1)
	case !utf8.ValidString(question):
		marked := strings.ToValidUTF8(question, "\x00")
		return bridge.Message{}, fmt.Errorf("%w at byte %d", ErrUTF8, strings.IndexByte(marked, 0)+1)
	}
	return bridge.Message{
		ID:       "local:" + id,
		Identity: tiers.Identity{Platform: tiers.Local, User: strconv.Itoa(uid), Kind: tiers.Person},
		Place:    tiers.Place{Platform: tiers.Local, Channel: "terminal", Direct: true, Most: most},
		Lane:     "local:" + id, // each question of a terminal is a conversation of its own
		Text:     question,
		ReplyTo:  "terminal",
		At:       now,
	}, nil
}

// Terminal shows outcomes. It implements bridge.Sender.
type Terminal struct {
	show func(ask.Ended) error
	done chan ask.Ended
}

var _ bridge.Sender = (*Terminal)(nil)

// NewTerminal makes a sender that shows outcomes with show, which must not let
// control characters reach the terminal.
func NewTerminal(show func(ask.Ended) error) *Terminal {
	return &Terminal{show: show, done: make(chan ask.Ended, 1)}
}

// Done gives the outcome that was shown.
func (t *Terminal) Done() <-chan ask.Ended { return t.done }

// Deliver shows the outcome.
func (t *Terminal) Deliver(_ context.Context, _ ask.Job, ended ask.Ended) error {
	err := t.show(ended)
	select {
	case t.done <- ended:
	default:
	}
	return err
}
