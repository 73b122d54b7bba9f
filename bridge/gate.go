package bridge

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"parlour/bridge/ask"
	"parlour/bridge/journal"
	"parlour/tiers"
)

// ErrEmpty means that a message holds no question; it is not accepted.
var ErrEmpty = errors.New("the message holds no question")

// Asking bounds how much one person may ask. The zero Asking admits nothing.
type Asking struct {
	PerMinute int
	Running   int
	Waiting   int
}

// Gate is the one way in.
type Gate struct {
	book    func() Rulebook
	journal *journal.Journal
	outbox  *Outbox
}

// NewGate makes a gate that decides by the rulebook that book gives at the time.
func NewGate(book func() Rulebook, j *journal.Journal, out *Outbox) (*Gate, error) {
	if book == nil || j == nil || out == nil {
		return nil, errors.New("gate: rulebook, journal and outbox are required")
	}
	return &Gate{book, j, out}, nil
}

// Accept decides who asks and stores the message with its decision in one
// transaction. A refused message is stored as already ended, and its outcome is
// delivered like any other. The same message is accepted once.
func (g *Gate) Accept(ctx context.Context, m Message) (Accepted, error) {
	text := strings.TrimSpace(Readable(m.Text))
	if text == "" {
		return Accepted{}, ErrEmpty
	}
	if m.ID == "" || m.Lane == "" {
		return Accepted{}, errors.New("the message has no id or no conversation")
	}
	book := g.book()
	d := book.Decide(m.Identity, m.Place)
	job := ask.Job{
		Message: m.ID, Person: m.Identity.Key(), Lane: m.Lane, ReplyTo: m.ReplyTo, At: m.At,
		Identity: m.Identity, Place: m.Place, Decision: d, Entrusted: m.Entrusted,
		Question: ask.Question{Text: text},
	}
	var refuse *ask.Ended
	switch {
	case d.Tier == tiers.None:
		refuse = ask.EndedBy(job, ask.NotAllowed, d.Why)
	case len(text) > ask.MaxQuestion:
		job.Question.Text = truncate(text)
		refuse = ask.EndedBy(job, ask.TooLong, fmt.Sprintf("%d bytes", len(text)))
	}
	asking := book.Asking[d.Tier]
	caps := journal.Caps{Waiting: asking.Waiting, PerMinute: asking.PerMinute}
	if m.Identity.Platform == tiers.Local {
		caps.PerMinute = math.MaxInt // whoever has the terminal may ask as fast as they like
	}
	g.outbox.arrived.note(m.ID) // a worker may have it before Accept returns
	accepted, err := g.journal.Accept(ctx, job, caps, refuse)
	if err != nil || accepted.Duplicate {
		g.outbox.arrived.forget(m.ID) // what is stored was told at another time
	}
	if err == nil && !accepted.Duplicate {
		g.outbox.metrics.questionAccepted(accepted.Job)
	}
	if err == nil && accepted.Ended != nil && !accepted.Duplicate {
		g.outbox.metrics.questionEnded(accepted.Job, *accepted.Ended)
		g.outbox.deliver(context.WithoutCancel(ctx), g.book, accepted.Job, *accepted.Ended)
	}
	return accepted, err
}

// Readable makes text from a chat fit for a run: valid UTF-8 without NUL. What
// was not is replaced, so that no message can make every spawn fail.
func Readable(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	return strings.ReplaceAll(text, "\x00", "\uFFFD")
}

func truncate(text string) string {
	n := ask.MaxQuestion
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}
