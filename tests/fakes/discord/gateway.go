package discord

import (
	"encoding/json"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

// Gateway is how the gateway misbehaves. The zero Gateway behaves.
type Gateway struct {
	Heartbeat       time.Duration // the interval that HELLO names; 0: 41.25 s
	NoHello         bool          // the socket is opened and nothing is said
	NoAck           bool          // heartbeats are not answered
	NoReady         bool          // IDENTIFY is not answered
	CloseIdentify   int           // IDENTIFY is answered by closing with this code
	InvalidIdentify int           // so many IDENTIFYs are answered by op 9
	InvalidResume   bool          // RESUME is answered by op 9, not resumable
	ReconnectResume bool          // RESUME is answered by op 7
	RefuseUpgrade   int           // the HTTP status instead of a socket
}

// hub is the gateway.
type hub struct {
	*world
	faults Gateway
	conns  map[*wire]bool
	conned int
	ops    []int
}

// SetGateway sets the gateway's faults.
func (s *hub) SetGateway(g Gateway) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = g
}

// session is what survives a connection.
type session struct {
	id      string
	intents int
	seq     int64
	events  []packet
	wire    *wire // nil: not connected
}

// wire is one connection.
type wire struct {
	conn *websocket.Conn
	mu   sync.Mutex
}

type packet struct {
	Op   int             `json:"op"`
	Data json.RawMessage `json:"d"`
	Seq  *int64          `json:"s"`
	Type *string         `json:"t"`
}

func (w *wire) send(p packet) {
	w.mu.Lock()
	defer w.mu.Unlock()
	_ = w.conn.SetWriteDeadline(time.Now().Add(5 * time.Second))
	_ = w.conn.WriteJSON(p)
}

// drop cuts the connection without a word.
func (w *wire) drop() { _ = w.conn.NetConn().Close() }

func (w *wire) close(code int) {
	_ = w.conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, ""), time.Now().Add(time.Second))
	w.drop()
}

// dispatch records an event and sends it where somebody listens. The server's
// lock must be held.
func (s *session) dispatch(kind string, data json.RawMessage) {
	s.seq++
	seq := s.seq
	p := packet{Op: 0, Data: data, Seq: &seq, Type: &kind}
	s.events = append(s.events, p)
	if s.wire != nil {
		s.wire.send(p)
	}
}

func (s *hub) gateway(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	faults := s.faults
	s.mu.Unlock()
	if faults.RefuseUpgrade != 0 {
		w.WriteHeader(faults.RefuseUpgrade)
		return
	}
	up := websocket.Upgrader{CheckOrigin: func(*http.Request) bool { return true }}
	conn, err := up.Upgrade(w, r, nil)
	if err != nil {
		return
	}
	c := &wire{conn: conn}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		c.drop()
		return
	}
	s.conns[c] = true
	s.conned++
	s.running.Add(1)
	s.note()
	s.mu.Unlock()
	defer s.running.Done()
	defer s.forget(c)
	if !faults.NoHello {
		interval := faults.Heartbeat
		if interval == 0 {
			interval = 41250 * time.Millisecond
		}
		c.send(packet{Op: 10, Data: object(map[string]any{"heartbeat_interval": interval.Milliseconds(), "_trace": []string{}})})
	}
	s.read(c)
}

func (s *hub) forget(c *wire) {
	c.drop()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
	for _, session := range s.sessions {
		if session.wire == c {
			session.wire = nil
		}
	}
	s.note()
}

func (s *hub) read(c *wire) {
	for {
		_, raw, err := c.conn.ReadMessage()
		if err != nil {
			return
		}
		var p packet
		if json.Unmarshal(raw, &p) != nil || len(raw) > 4096 {
			c.close(4002)
			return
		}
		s.mu.Lock()
		s.ops = append(s.ops, p.Op)
		s.obey(c, p)
		s.note()
		s.mu.Unlock()
	}
}

// obey does what a packet of a client asks for. The lock is held.
func (s *hub) obey(c *wire, p packet) {
	switch p.Op {
	case 1:
		if !s.faults.NoAck {
			c.send(packet{Op: 11})
		}
	case 2:
		s.identify(c, p)
	case 6:
		s.resume(c, p)
	case 3, 4, 8, 14:
	default:
		c.close(4001)
	}
}

func (s *hub) identify(c *wire, p packet) {
	var d struct {
		Token      string         `json:"token"`
		Intents    *int           `json:"intents"`
		Properties map[string]any `json:"properties"`
	}
	_ = json.Unmarshal(p.Data, &d)
	switch {
	case s.faults.CloseIdentify != 0:
		c.close(s.faults.CloseIdentify)
	case bare(d.Token) != s.cfg.Token:
		c.close(4004)
	case d.Intents == nil || d.Properties == nil:
		c.close(4013)
	case s.faults.InvalidIdentify > 0:
		s.faults.InvalidIdentify--
		c.send(packet{Op: 9, Data: object(false)})
	case s.faults.NoReady:
	default:
		s.begin(c, *d.Intents)
	}
}

func (s *hub) begin(c *wire, intents int) {
	session := &session{id: "session-" + s.id(), intents: intents, wire: c}
	s.sessions[session.id] = session
	guilds := map[string][]*Channel{}
	for _, ch := range s.channels {
		if ch.Guild != "" {
			guilds[ch.Guild] = append(guilds[ch.Guild], ch)
		}
	}
	stubs := []any{}
	for id := range guilds {
		stubs = append(stubs, map[string]any{"id": id, "unavailable": true})
	}
	me := User{ID: s.cfg.Bot, Name: "parlour", Bot: true}.object()
	session.dispatch("READY", object(map[string]any{
		"v": 10, "user": me, "guilds": stubs, "session_id": session.id, "resume_gateway_url": "ws://" + s.addr + "/gateway/",
		"application": map[string]any{"id": s.cfg.Bot, "flags": 0}, "private_channels": []any{}, "shard": []int{0, 1},
	}))
	const intentGuilds = 1
	if intents&intentGuilds == 0 {
		return
	}
	for id, channels := range guilds {
		session.dispatch("GUILD_CREATE", guild(id, s.cfg.Bot, channels))
	}
}

func guild(id, bot string, channels []*Channel) json.RawMessage {
	places, threads := []any{}, []any{}
	for _, c := range channels {
		if c.Type == PublicThread || c.Type == PrivateThread {
			threads = append(threads, c.object())
			continue
		}
		places = append(places, c.object())
	}
	everyone := map[string]any{
		"id": id, "name": "@everyone", "color": 0, "hoist": false, "position": 0, "permissions": "1071698660937",
		"managed": false, "mentionable": false, "flags": 0,
	}
	return object(map[string]any{
		"id": id, "name": "guild", "icon": nil, "owner_id": "1", "roles": []any{everyone}, "emojis": []any{}, "stickers": []any{},
		"channels": places, "threads": threads, "presences": []any{}, "voice_states": []any{}, "stage_instances": []any{},
		"guild_scheduled_events": []any{}, "soundboard_sounds": []any{}, "features": []any{}, "member_count": 2, "large": false,
		"joined_at": "2020-01-01T00:00:00Z", "unavailable": false, "afk_timeout": 0, "verification_level": 0, "mfa_level": 0,
		"default_message_notifications": 0, "explicit_content_filter": 0, "premium_tier": 0, "preferred_locale": "en-US",
		"nsfw_level": 0, "system_channel_flags": 0, "premium_progress_bar_enabled": false,
		"members": []any{map[string]any{
			"user": User{ID: bot, Name: "parlour", Bot: true}.object(), "roles": []any{}, "joined_at": "2020-01-01T00:00:00Z",
			"deaf": false, "mute": false, "flags": 0,
		}},
	})
}

func (c *Channel) object() map[string]any {
	o := map[string]any{"id": c.ID, "type": c.Type, "name": c.Name, "position": 0, "permission_overwrites": []any{}, "flags": 0}
	if c.Guild != "" {
		o["guild_id"] = c.Guild
	}
	if c.Parent != "" {
		o["parent_id"] = c.Parent
	}
	if c.Type == PublicThread || c.Type == PrivateThread {
		o["owner_id"] = "1"
		o["thread_metadata"] = map[string]any{
			"archived": c.Archived, "locked": false, "auto_archive_duration": 1440, "archive_timestamp": "2020-01-01T00:00:00Z",
		}
	}
	return o
}

func (s *hub) resume(c *wire, p packet) {
	var d struct {
		Token   string `json:"token"`
		Session string `json:"session_id"`
		Seq     int64  `json:"seq"`
	}
	_ = json.Unmarshal(p.Data, &d)
	session := s.sessions[d.Session]
	switch {
	case bare(d.Token) != s.cfg.Token:
		c.close(4004)
	case s.faults.ReconnectResume:
		s.faults.ReconnectResume = false
		c.send(packet{Op: 7})
	case s.faults.InvalidResume || session == nil || d.Seq > session.seq:
		delete(s.sessions, d.Session)
		c.send(packet{Op: 9, Data: object(false)})
	default:
		session.wire = c
		for _, e := range session.events {
			if *e.Seq > d.Seq {
				c.send(e)
			}
		}
		session.dispatch("RESUMED", object(map[string]any{"_trace": []string{}}))
	}
}

// Reconnect asks every client to reconnect, by op 7.
func (s *hub) Reconnect() { s.each(func(w *wire) { w.send(packet{Op: 7}) }) }

// Invalidate tells every client that its session is not valid any more.
func (s *hub) Invalidate() {
	s.mu.Lock()
	clear(s.sessions)
	s.mu.Unlock()
	s.each(func(w *wire) { w.send(packet{Op: 9, Data: object(false)}) })
}

// CloseAll closes every connection with a code.
func (s *hub) CloseAll(code int) { s.each(func(w *wire) { w.close(code) }) }

// Drop cuts every connection without a word.
func (s *hub) Drop() { s.each(func(w *wire) { w.drop() }) }

// Replay sends the last n events of every session again.
func (s *hub) Replay(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, session := range s.sessions {
		for _, p := range session.events[max(0, len(session.events)-n):] {
			if session.wire != nil {
				session.wire.send(p)
			}
		}
	}
}

func (s *hub) each(do func(*wire)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for w := range s.conns {
		do(w)
	}
}

// Connections says how many connections were made and how many are open.
func (s *hub) Connections() (made, open int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.conned, len(s.conns)
}

// Listening says how many sessions have a connection.
func (s *hub) Listening() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, session := range s.sessions {
		if session.wire != nil {
			n++
		}
	}
	return n
}

// Sessions says how many sessions were begun and not made invalid.
func (s *hub) Sessions() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.sessions)
}

// Ops lists the operations that clients sent, but for heartbeats.
func (s *hub) Ops() []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.ops), func(op int) bool { return op == 1 })
}

// Intents lists the intents of the sessions that are valid.
func (s *hub) Intents() []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []int
	for _, session := range s.sessions {
		out = append(out, session.intents)
	}
	return out
}
