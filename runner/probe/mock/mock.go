// Package mock is the built-in model that answers from a script: it speaks
// Anthropic Messages and OpenAI Responses, streamed and whole, and remembers
// every request byte for byte.
//
// It proves what a CLI and the broker do when the model misbehaves. It is not a
// model: it understands nothing that it is asked, checks no key, and refuses
// every path but the two of its protocols. It opens no connection and keeps no
// state outside of a Model.
package mock

import (
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Leak stands in the response headers and error bodies of every answer, as
// account ids and key fragments do in those of a real provider. It must not get
// past the broker.
const Leak = "MOCK-LEAK-org-1f0c"

// maxBody is the longest request that is kept.
const maxBody = 64 << 20

// Fault is how one answer goes wrong. The zero Fault is none.
type Fault int

// The faults.
const (
	NoFault      Fault = iota
	Unauthorized       // 401
	TooMany            // 429, with Turn.RetryAfter
	Internal           // 500
	Overloaded         // 529
	Rejected           // 400
	Redirect           // 307 to Turn.To
	Hang               // takes the request and never answers
	Reset              // closes the connection instead of an answer
	Silence            // stops in the middle and keeps the connection open
	Broken             // closes the connection in the middle
	Cut                // ends in the middle as if that were the end
	Empty              // a complete answer without any content
	Compressed         // says that the answer is compressed
	StreamError        // the protocol's own error in the middle of the stream
)

// Call is one tool call of an answer.
type Call struct {
	Name      string
	Namespace string // OpenAI only; empty: none
	Input     string // JSON, or free text where Custom is set; empty: {}
	Custom    bool   // OpenAI only: a custom tool call
	Type      string // another type of block or item, such as server_tool_use; empty: the ordinary one
}

// Turn is the answer to one model request.
type Turn struct {
	Thinking   string
	Text       string
	Calls      []Call
	Fault      Fault
	RetryAfter time.Duration // with TooMany; 0: no header
	To         string        // with Redirect
	Stop       string        // another stop reason of Anthropic, or reason of being incomplete of OpenAI
	NoUsage    bool          // says nothing about tokens
	Usage      Usage         // zero: 10 in, 7 out
	Extra      []string      // whole events that are put before the end of a stream
	Pieces     int           // into how many pieces the text is cut; 0: four

	n int // which answer it is: its ids are its own
}

// Usage is what an answer says about tokens.
type Usage struct{ In, Out, CacheRead, CacheWrite int }

// Long gives a turn whose answer has the number of bytes.
func Long(bytes int) Turn { return Turn{Text: strings.Repeat("a", bytes)} }

// Request is one recorded request.
type Request struct {
	Method string
	Target string // the request line's target, raw
	Host   string
	Header http.Header
	Body   []byte
}

// Model is the mock model. It is safe for parallel use.
type Model struct {
	mu       sync.Mutex
	script   []Turn
	at       map[int]Turn
	requests []Request
	asked    int
}

var _ http.Handler = (*Model)(nil)

// New makes a model that gives the turns in order and then the last one for
// ever. Without turns it says "mock answer".
func New(turns ...Turn) *Model {
	if len(turns) == 0 {
		turns = []Turn{{Text: "mock answer"}}
	}
	return &Model{script: slices.Clone(turns), at: map[int]Turn{}}
}

// At sets the answer to one model request, counted from 0, whatever the script
// says.
func (m *Model) At(index int, turn Turn) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.at[index] = turn
}

// Requests gives what was received so far, other paths than the model's
// included.
func (m *Model) Requests() []Request {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.requests)
}

// Asked gives the number of model requests so far.
func (m *Model) Asked() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.asked
}

// ServeHTTP records the request and answers it by the script.
func (m *Model) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody))
	if err != nil {
		http.Error(w, "body", http.StatusBadRequest)
		return
	}
	d, known := dialects(r.URL.Path)
	turn := m.record(Request{
		Method: r.Method, Target: r.RequestURI, Host: r.Host, Header: r.Header.Clone(), Body: body,
	}, known)
	if !known {
		http.NotFound(w, r)
		return
	}
	leak(w.Header())
	answer(w, r, d, turn, wantsStream(body))
}

// record keeps a request and gives the turn that answers it.
func (m *Model) record(r Request, known bool) Turn {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.requests = append(m.requests, r)
	if !known {
		return Turn{}
	}
	n := m.asked
	m.asked++
	turn, ok := m.at[n]
	if !ok {
		turn = m.script[min(n, len(m.script)-1)]
	}
	turn.n = n
	return turn
}

// id gives an id of the answer, and of a part of it.
func (t Turn) id(prefix string, part ...int) string {
	id := prefix + "_mock" + strconv.Itoa(t.n)
	for _, p := range part {
		id += "_" + strconv.Itoa(p)
	}
	return id
}

// leak sets the headers that a real provider sends along.
func leak(h http.Header) {
	h.Set("Anthropic-Organization-Id", Leak)
	h.Set("Openai-Organization", Leak)
	h.Set("Set-Cookie", "session="+Leak)
	h.Set("X-Ratelimit-Limit-Requests", Leak)
	h.Set("Request-Id", "req_mock1")
	h.Set("X-Request-Id", "req_mock1")
}
