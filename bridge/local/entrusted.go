package local

import (
	"errors"
	"strings"
	"time"

	"parlour/bridge"
	"parlour/tiers"
)

// ErrMessageID is the fault of a message id that could not be printed in a line.
var ErrMessageID = errors.New("the message id must be 1 to 200 printable characters without spaces")

const mostMessageID = 200

// Entrusted makes the message of a question that another gateway received: its
// answer is fetched by the job's id. message is that platform's own id of it;
// empty: id, which must be new each time. What is not fit for a run is replaced
// at the gate, as in every chat.
func Entrusted(message, id string, who tiers.Identity, where tiers.Place, question string, now time.Time) (bridge.Message, error) {
	if message == "" {
		message = id
	}
	if len(message) > mostMessageID || strings.ContainsFunc(message, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return bridge.Message{}, ErrMessageID
	}
	if strings.TrimSpace(question) == "" {
		return bridge.Message{}, ErrEmpty
	}
	// The platform's own adapter names messages otherwise, so none can be taken
	// for one of its own; and nobody gets another person's answer by its id.
	key := "entrusted:" + who.Key() + ":" + where.Channel + ":" + message
	return bridge.Message{ID: key, Identity: who, Place: where, Lane: key, Text: question, At: now, Entrusted: true}, nil
}
