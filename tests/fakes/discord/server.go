// Package discord stands in for Discord: its REST routes and its gateway, with
// faults on demand. It records every request, checks bodies against Discord's own
// description where that is present, and has rules of its own where the
// description is too lax. It is for tests only and is never a referee of itself:
// tests/crosscheck/discord lets discord.js talk to it.
package discord

import (
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"
)

// Config says who is on the platform.
type Config struct {
	Token   string // the bot's token
	Bot     string // the bot's user id
	OpenAPI string // path of Discord's description; empty or missing: bodies are not checked with it
}

// Channel is a place. A thread has the type 11 and a parent.
type Channel struct {
	ID     string
	Guild  string
	Type   int
	Parent string
	Name   string

	Archived bool // a thread that was closed
	own      bool // the bot has made it
}

// The types of channels.
const (
	Text          = 0
	Direct        = 1
	Voice         = 2
	News          = 5
	PublicThread  = 11
	PrivateThread = 12
)

// User is the author of a message.
type User struct {
	ID     string
	Name   string
	Bot    bool
	System bool
}

// Request is one recorded call.
type Request struct {
	At     time.Time
	Method string
	Path   string // without /api/vN
	Auth   string
	Body   string
	Status int
}

// Server is one fake platform. It listens on a free port of the loopback.
type Server struct {
	*world
	*hub
	*desk
	http *http.Server
}

// world is who and what is on the platform, and what was asked of it.
type world struct {
	cfg     Config
	addr    string
	running sync.WaitGroup

	mu       sync.Mutex
	serial   int64
	channels map[string]*Channel
	messages []*Message
	nonces   map[string]*Message
	members  map[string]member // by guild and user
	requests []Request
	problems []string
	sessions map[string]*session
	closed   bool
	changed  chan struct{}
}

// New starts a fake.
func New(cfg Config) (*Server, error) {
	if cfg.Token == "" || cfg.Bot == "" {
		return nil, errors.New("a token and the bot's id are required")
	}
	described, err := loadSchema(cfg.OpenAPI)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	w := &world{
		cfg: cfg, addr: listener.Addr().String(), serial: time.Now().UnixMilli(), channels: map[string]*Channel{},
		nonces: map[string]*Message{}, members: map[string]member{}, sessions: map[string]*session{}, changed: make(chan struct{}),
	}
	s := &Server{world: w, hub: &hub{world: w, conns: map[*wire]bool{}}, desk: &desk{world: w, schema: described}}
	mux := http.NewServeMux()
	mux.HandleFunc("/gateway/", s.gateway)
	mux.HandleFunc("/", s.routes())
	s.http = &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	s.running.Go(func() { _ = s.http.Serve(listener) })
	return s, nil
}

// Described says whether bodies are checked with Discord's own description.
func (s *desk) Described() bool { return s.schema != nil }

// URL is what stands for https://discord.com.
func (s *world) URL() string { return "http://" + s.addr }

// Close ends everything.
func (s *Server) Close() {
	s.mu.Lock()
	s.closed = true
	for w := range s.conns {
		w.drop()
	}
	s.mu.Unlock()
	_ = s.http.Close()
	s.running.Wait()
}

// note says that something changed. The lock must be held.
func (s *world) note() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// Wait waits until ok, which is called with the lock free, or the limit. It says
// whether ok held.
func (s *world) Wait(limit time.Duration, ok func() bool) bool {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for {
		s.mu.Lock()
		changed := s.changed
		s.mu.Unlock()
		if ok() {
			return true
		}
		tick := time.NewTimer(20 * time.Millisecond) // ok may look at more than the fake
		select {
		case <-changed:
		case <-tick.C:
		case <-timer.C:
			tick.Stop()
			return ok()
		}
		tick.Stop()
	}
}

// AddChannel makes a place known.
func (s *world) AddChannel(c Channel) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.channels[c.ID] = &c
}

// ID makes a new snowflake of now.
func (s *world) ID() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.id()
}

const epoch = 1420070400000

func (s *world) id() string {
	s.serial = max(s.serial+1, time.Now().UnixMilli())
	return strconv.FormatInt((s.serial-epoch)<<22, 10)
}

// Requests gives the recorded calls of a method whose path match accepts; an
// empty method is any.
func (s *world) Requests(method string, match func(path string) bool) []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.requests), func(r Request) bool {
		return method != "" && r.Method != method || match != nil && !match(r.Path)
	})
}

// Problems lists what a request got wrong by Discord's description or the fake's
// own rules.
func (s *world) Problems() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.problems)
}

// Posted gives the messages that the bot posted in a channel, in order.
func (s *world) Posted(channel string) []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Message
	for _, m := range s.messages {
		if m.Body != "" && (channel == "" || m.Channel == channel) {
			out = append(out, *m)
		}
	}
	return out
}

// Reactions gives the bot's reactions to a message.
func (s *world) Reactions(message string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.messages {
		if m.ID == message {
			return slices.Clone(m.reactions)
		}
	}
	return nil
}

// Delete takes a message away, as its author can.
func (s *world) Delete(message string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(message)
}

// drop takes a message away and tells every session. The lock must be held.
func (s *world) drop(message string) {
	m := s.find(message)
	if m == nil {
		return
	}
	s.messages = slices.DeleteFunc(s.messages, func(x *Message) bool { return x == m })
	data := map[string]any{"id": m.ID, "channel_id": m.Channel}
	if c := s.channels[m.Channel]; c != nil && c.Guild != "" {
		data["guild_id"] = c.Guild
	}
	for _, session := range s.sessions {
		session.dispatch("MESSAGE_DELETE", object(data))
	}
	s.note()
}

// Archived says whether a thread was closed.
func (s *world) Archived(thread string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.channels[thread]
	return c != nil && c.Archived
}

// Rule is a fault of the REST side. It is used Times times; 0 is for ever.
type Rule struct {
	Method  string
	Match   func(path string) bool // nil: every path
	Times   int
	Skip    int // this many calls pass first
	Delay   time.Duration
	Status  int // 0: the request is served after the delay
	Header  map[string]string
	Body    string // of the answer; empty: {}
	Perform bool   // the request is served all the same, and only its answer is lost
}

// Fail adds a fault.
func (s *desk) Fail(r Rule) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rules = append(s.rules, &r)
}

// Heal takes all faults back, those of the gateway too.
func (s *Server) Heal() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rules, s.faults = nil, Gateway{}
}

// rule gives the fault that a call meets. The lock must be held.
func (s *desk) rule(method, path string) *Rule {
	for i, r := range s.rules {
		if r.Method != "" && r.Method != method || r.Match != nil && !r.Match(path) {
			continue
		}
		if r.Skip > 0 {
			r.Skip--
			continue
		}
		if r.Times == 1 {
			s.rules = slices.Delete(s.rules, i, i+1)
		}
		if r.Times > 1 {
			r.Times--
		}
		return r
	}
	return nil
}

func object(v any) json.RawMessage {
	b, _ := json.Marshal(v)
	return b
}
