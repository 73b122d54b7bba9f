package mock

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
)

// event is one event of a stream.
type event struct {
	name string
	data any
}

// dialect is one protocol.
type dialect struct {
	stream func(Turn) []event
	whole  func(Turn) any
	fail   func(kind, text string) any
	broken event // the protocol's own error inside a stream
}

func dialects(path string) (dialect, bool) {
	switch path {
	case "/v1/messages":
		return anthropic(), true
	case "/v1/responses":
		return openai(), true
	}
	return dialect{}, false
}

func wantsStream(body []byte) bool {
	var asked struct{ Stream bool }
	return json.Unmarshal(body, &asked) == nil && asked.Stream
}

func answer(w http.ResponseWriter, r *http.Request, d dialect, turn Turn, stream bool) {
	switch turn.Fault {
	case Unauthorized:
		fail(w, d, http.StatusUnauthorized, "authentication_error")
	case TooMany:
		if turn.RetryAfter > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(int(turn.RetryAfter.Seconds())))
		}
		fail(w, d, http.StatusTooManyRequests, "rate_limit_error")
	case Internal:
		fail(w, d, http.StatusInternalServerError, "api_error")
	case Overloaded:
		fail(w, d, 529, "overloaded_error")
	case Rejected:
		fail(w, d, http.StatusBadRequest, "invalid_request_error")
	case Redirect:
		w.Header().Set("Location", turn.To)
		w.WriteHeader(http.StatusTemporaryRedirect)
	case Hang:
		<-r.Context().Done()
	case Reset:
		hangUp(w)
	case Compressed:
		w.Header().Set("Content-Encoding", "zstd")
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = w.Write([]byte{0x28, 0xb5, 0x2f, 0xfd})
	default:
		if stream {
			streamed(w, r, d, turn)
			return
		}
		whole(w, r, d, turn)
	}
}

func fail(w http.ResponseWriter, d dialect, status int, kind string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(d.fail(kind, "key sk-mock of "+Leak+" said no"))
}

// hangUp closes the connection under the answer.
func hangUp(w http.ResponseWriter) {
	if h, ok := w.(http.Hijacker); ok {
		if conn, _, err := h.Hijack(); err == nil {
			_ = conn.Close()
		}
	}
}

func whole(w http.ResponseWriter, r *http.Request, d dialect, turn Turn) {
	body, err := json.Marshal(d.whole(turn))
	if err != nil {
		http.Error(w, "script", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if half(turn.Fault) {
		if turn.Fault != Cut {
			w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		}
		_, _ = w.Write(body[:len(body)/2])
		stop(w, r, turn.Fault)
		return
	}
	_, _ = w.Write(body)
}

func streamed(w http.ResponseWriter, r *http.Request, d dialect, turn Turn) {
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	events := d.stream(turn)
	if half(turn.Fault) {
		events = events[:max(len(events)-2, 1)]
	}
	for i, e := range events {
		if i == len(events)-1 {
			for _, extra := range turn.Extra {
				_, _ = w.Write([]byte(extra))
			}
		}
		if _, err := w.Write(e.bytes()); err != nil {
			return
		}
		flush(w)
	}
	if turn.Fault == StreamError {
		_, _ = w.Write(d.broken.bytes())
	}
	if half(turn.Fault) {
		stop(w, r, turn.Fault)
	}
}

// half says whether an answer stops in the middle.
func half(f Fault) bool { return f == Silence || f == Broken || f == Cut || f == StreamError }

func stop(w http.ResponseWriter, r *http.Request, f Fault) {
	flush(w)
	switch f {
	case Silence:
		<-r.Context().Done()
	case Broken:
		hangUp(w)
	}
}

func flush(w http.ResponseWriter) {
	if f, ok := w.(http.Flusher); ok {
		f.Flush()
	}
}

func (e event) bytes() []byte {
	data, err := json.Marshal(e.data)
	if err != nil {
		data = []byte("{}")
	}
	return []byte("event: " + e.name + "\ndata: " + string(data) + "\n\n")
}

// pieces cuts a text into about n pieces, none inside a character.
func pieces(text string, n int) []string {
	if n <= 0 {
		n = 4
	}
	size := len(text)/n + 1
	var out []string
	var b strings.Builder
	for _, r := range text {
		b.WriteRune(r)
		if b.Len() >= size {
			out = append(out, b.String())
			b.Reset()
		}
	}
	if b.Len() > 0 {
		out = append(out, b.String())
	}
	return out
}

func (c Call) input() json.RawMessage {
	if c.Input == "" {
		return json.RawMessage("{}")
	}
	return json.RawMessage(c.Input)
}

func (t Turn) usage() Usage {
	if t.Usage == (Usage{}) {
		return Usage{In: 10, Out: 7}
	}
	return t.Usage
}
