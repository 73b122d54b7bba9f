package slack

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

// socket is one open connection of Socket Mode.
type socket struct {
	id   int
	conn *websocket.Conn
	mu   sync.Mutex
	gone chan struct{}
	once sync.Once
}

const writeTimeout = 5 * time.Second

func (k *socket) send(v any) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	_ = k.conn.SetWriteDeadline(time.Now().Add(writeTimeout))
	return k.conn.WriteJSON(v) == nil
}

func (k *socket) drop() {
	k.once.Do(func() {
		close(k.gone)
		_ = k.conn.NetConn().Close()
	})
}

// link is the address that apps.connections.open hands out. Each is good once.
func (s *Line) link(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	ticket := r.URL.Query().Get("ticket")
	good := s.tickets[ticket]
	delete(s.tickets, ticket)
	s.mu.Unlock()
	if !good || !s.begin() {
		http.Error(w, "invalid ticket", http.StatusForbidden)
		return
	}
	defer s.work.Done()
	up := upgrader()
	conn, err := up.Upgrade(w, r, nil)
	if err != nil {
		return
	}
	k := &socket{conn: conn, gone: make(chan struct{})}
	defer k.drop()
	if s.open(k) {
		s.spawn(func() { s.pings(k) })
		s.read(k)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sockets = slices.DeleteFunc(s.sockets, func(x *socket) bool { return x == k })
	s.changes()
}

// open says hello and hands over what has waited for a socket.
func (s *Line) open(k *socket) bool {
	s.mu.Lock()
	s.opened++
	k.id = s.opened
	s.sockets = append(s.sockets, k)
	n, mute, waiting := len(s.sockets), s.mute, s.waiting
	s.waiting = nil
	s.changes()
	s.mu.Unlock()
	if n > s.cfg.MaxSockets {
		k.send(map[string]any{"type": "disconnect", "reason": "too_many_websockets"})
		return false
	}
	if mute {
		return true
	}
	k.send(map[string]any{
		"type": "hello", "num_connections": n, "connection_info": map[string]any{"app_id": "A0000000001"},
		"debug_info": map[string]any{"host": "applink-fake", "build_number": 1, "approximate_connection_time": 18060},
	})
	for _, e := range waiting {
		s.dispatch(e)
	}
	return true
}

func (s *Line) pings(k *socket) {
	ticker := time.NewTicker(s.cfg.Ping)
	defer ticker.Stop()
	for n := 0; ; n++ {
		select {
		case <-ticker.C:
			s.mu.Lock()
			still := s.still
			s.mu.Unlock()
			if !still {
				_ = k.conn.WriteControl(websocket.PingMessage, fmt.Appendf(nil, "Ping from applink-%d", n), time.Now().Add(writeTimeout))
			}
		case <-k.gone:
			return
		}
	}
}

// read notes acknowledgements until the socket ends.
func (s *Line) read(k *socket) {
	for {
		_, data, err := k.conn.ReadMessage()
		if err != nil {
			return
		}
		var ack struct {
			Envelope string `json:"envelope_id"`
		}
		if json.Unmarshal(data, &ack) != nil || ack.Envelope == "" {
			continue
		}
		s.mu.Lock()
		e := s.sent[ack.Envelope]
		s.acks = append(s.acks, Ack{Envelope: ack.Envelope, Event: e.event, Socket: k.id, At: time.Now()})
		s.changes()
		s.mu.Unlock()
	}
}

// envelope is an event on its way to a socket.
type envelope struct {
	id      string
	event   string
	payload map[string]any
	attempt int
	reason  string
	kind    string
}

// Send gives an Events API payload to one open socket, or to the next that
// opens, and returns the id of the envelope.
func (s *Line) Send(payload map[string]any) string { return s.SendAgain(payload, 0, "") }

// SendAgain is Send with the marks of a repetition.
func (s *Line) SendAgain(payload map[string]any, attempt int, reason string) string {
	e := s.wrap(payload, "events_api", attempt, reason)
	s.dispatch(e)
	return e.id
}

// SendEnvelope sends an envelope of another type, such as slash_commands.
func (s *Line) SendEnvelope(kind string, payload map[string]any) string {
	e := s.wrap(payload, kind, 0, "")
	s.dispatch(e)
	return e.id
}

// SendFrame sends any text to every open socket.
func (s *Line) SendFrame(text string) {
	s.mu.Lock()
	open := append([]*socket(nil), s.sockets...)
	s.mu.Unlock()
	for _, k := range open {
		k.mu.Lock()
		_ = k.conn.WriteMessage(websocket.TextMessage, []byte(text))
		k.mu.Unlock()
	}
}

func (s *Line) wrap(payload map[string]any, kind string, attempt int, reason string) envelope {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.serial++
	event, _ := payload["event_id"].(string)
	return envelope{
		id: fmt.Sprintf("envelope-%d", s.serial), event: event, payload: maps.Clone(payload), attempt: attempt, reason: reason, kind: kind,
	}
}

// dispatch gives an envelope to one socket, in turn.
func (s *Line) dispatch(e envelope) {
	s.mu.Lock()
	s.sent[e.id] = e
	if len(s.sockets) == 0 {
		s.waiting = append(s.waiting, e)
		s.mu.Unlock()
		return
	}
	s.turn++
	k := s.sockets[s.turn%len(s.sockets)]
	s.changes()
	s.mu.Unlock()
	k.send(map[string]any{
		"type": e.kind, "envelope_id": e.id, "payload": e.payload, "accepts_response_payload": false,
		"retry_attempt": e.attempt, "retry_reason": e.reason,
	})
	s.again(e)
}

// again sends an event anew, in a new envelope, when it is not acknowledged.
func (s *Line) again(e envelope) {
	if e.attempt >= len(s.cfg.Retries) || e.kind != "events_api" {
		return
	}
	s.spawn(func() {
		timer := time.NewTimer(s.cfg.Retries[e.attempt])
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-s.closed:
			return
		}
		if !slices.ContainsFunc(s.Acks(), func(a Ack) bool { return a.Event == e.event }) {
			s.SendAgain(e.payload, e.attempt+1, "timeout")
		}
	})
}

// Unacknowledged lists the envelopes that were sent and not acknowledged.
func (s *Line) Unacknowledged() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var open []string
	for id := range s.sent {
		if !slices.ContainsFunc(s.acks, func(a Ack) bool { return a.Envelope == id }) {
			open = append(open, id)
		}
	}
	slices.Sort(open)
	return open
}

// Forget drops what was not acknowledged, as Slack does in the end.
func (s *Line) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.sent)
	s.waiting = nil
}
