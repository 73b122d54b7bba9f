// Package slack stands in for Slack: the Web API methods and the Socket Mode
// that a bot uses, with faults on request. It records everything that it is
// told and enforces the limits that Slack documents. It judges nothing, keeps
// no state between servers and is never part of the bot. tests/crosscheck/slack
// shows it to Slack's own client library.
package slack

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

// Config is who the workspace and its bot are. Start fills in what is empty.
type Config struct {
	AppToken, BotToken string
	Team, Enterprise   string
	BotUser, BotID     string
	Ping               time.Duration   // between pings of a socket; default 100 ms
	Retries            []time.Duration // an event that is not acknowledged is sent again after each; default none
	MaxSockets         int             // default 10, as in Slack
}

// The ids of a server whose Config leaves them empty.
const (
	HomeTeam = "T0HOME001"
	BotUser  = "U0BOT00001"
	BotID    = "B0SELF001"
	AppToken = "xapp-1-A0000000001-1111111111-fakefakefakefake"
	BotToken = "xoxb-111111111111-222222222222-fakefakefakefake"
)

// User is what users.info tells of somebody.
type User struct {
	ID, Team                    string
	Bot, Deleted, Stranger      bool
	Restricted, UltraRestricted bool
	Name                        string
	EnterpriseID                string
	EnterpriseTeams             []string
}

// Message is a post that the workspace holds.
type Message struct {
	Channel, TS, Thread, User, BotID, Text string
	Metadata                               json.RawMessage
	Edits                                  int // how often it was changed
}

// Call is one call of the Web API.
type Call struct {
	Method string
	Form   url.Values // without the token
	Token  string
	At     time.Time
}

// Ack is an acknowledgement that came over a socket.
type Ack struct {
	Envelope string
	Event    string // the event id of the envelope
	Socket   int
	At       time.Time
}

// Fault is how the next calls of a method go wrong.
type Fault struct {
	Times      int             // calls; 0: once
	Status     int             // an HTTP status with an HTML body
	Location   string          // header, for a redirect
	RetryAfter string          // header; with Status 0: a 429
	Code       string          // ok:false with this error
	Needed     string          // with Code: the scope that Slack names
	Body       string          // an answer of its own
	Slow       <-chan struct{} // the true answer, once this is closed
	Hang       bool            // no answer until the server is closed or the caller goes
	LoseAnswer bool            // the call has its effect, then the connection breaks
}

// heart is what the parts of a server share: one lock, and one end.
type heart struct {
	cfg    Config
	addr   string
	closed chan struct{}
	work   sync.WaitGroup

	mu      sync.Mutex
	changed chan struct{} // closed and replaced at every change
	serial  int
}

// Server is a running stand-in.
type Server struct {
	*heart
	*Workspace
	*Line
	web    *http.Server
	calls  []Call
	faults map[string][]*Fault
	quiet  bool // the bot's own posts make no events
}

// Workspace holds people, places and posts.
type Workspace struct {
	*heart
	users     map[string]User
	channels  map[string]Channel
	groups    []UserGroup
	messages  []Message
	reactions []Reaction
}

// Line is Socket Mode: the sockets, and what goes over them.
type Line struct {
	*heart
	acks    []Ack
	tickets map[string]bool
	sockets []*socket
	waiting []envelope          // events that came while no socket was open
	sent    map[string]envelope // by envelope id
	opened  int                 // sockets ever opened
	turn    int
	mute    bool // sockets get no hello
	still   bool // sockets get no pings
}

// Channel is a place in the workspace.
type Channel struct {
	ID     string
	Direct bool
	Shared bool // with another organisation
}

// Reaction is one that was set.
type Reaction struct{ Channel, TS, Name string }

// Start runs a server on a free port of this machine.
func Start(cfg Config) (*Server, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	h := &heart{cfg: cfg.complete(), addr: listener.Addr().String(), closed: make(chan struct{}), changed: make(chan struct{})}
	s := &Server{
		heart:     h,
		Workspace: &Workspace{heart: h, users: map[string]User{}, channels: map[string]Channel{}},
		Line:      &Line{heart: h, tickets: map[string]bool{}, sent: map[string]envelope{}},
		faults:    map[string][]*Fault{},
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/api/{method}", s.method)
	mux.HandleFunc("/link", s.link)
	s.web = &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	s.spawn(func() { _ = s.web.Serve(listener) })
	return s, nil
}

// begin counts a piece of work that Close waits for. It is false after Close.
func (s *heart) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.closed:
		return false
	default:
	}
	s.work.Add(1)
	return true
}

func (s *heart) spawn(f func()) {
	if s.begin() {
		go func() {
			defer s.work.Done()
			f()
		}()
	}
}

func (c Config) complete() Config {
	for into, value := range map[*string]string{
		&c.AppToken: AppToken, &c.BotToken: BotToken, &c.Team: HomeTeam, &c.BotUser: BotUser, &c.BotID: BotID,
	} {
		if *into == "" {
			*into = value
		}
	}
	if c.Ping == 0 {
		c.Ping = 100 * time.Millisecond
	}
	if c.MaxSockets == 0 {
		c.MaxSockets = 10
	}
	return c
}

// API is the base URL of the Web API.
func (s *Server) API() string { return "http://" + s.addr + "/api" }

// Close ends every connection and waits for what the server has started.
func (s *Server) Close() {
	s.mu.Lock()
	open := append([]*socket(nil), s.sockets...)
	select {
	case <-s.closed:
	default:
		close(s.closed)
	}
	s.mu.Unlock()
	_ = s.web.Close()
	for _, k := range open {
		k.drop()
	}
	s.work.Wait()
}

// changes notes a change, for Wait. The lock is held.
func (s *heart) changes() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// Wait returns when what holds, which it looks at after every change.
func (s *heart) Wait(ctx context.Context, what func() bool) error {
	for {
		s.mu.Lock()
		next := s.changed
		s.mu.Unlock()
		if what() {
			return nil
		}
		select {
		case <-next:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// AddUser makes somebody known to users.info.
func (s *Workspace) AddUser(u User) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if u.Team == "" {
		u.Team = s.cfg.Team
	}
	s.users[u.ID] = u
}

// AddChannel makes a place to post to.
func (s *Workspace) AddChannel(c Channel) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.channels[c.ID] = c
}

// Fail makes the next calls of a method go wrong. Faults of one method happen
// one after the other.
func (s *Server) Fail(method string, f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f.Times = max(f.Times, 1)
	s.faults[method] = append(s.faults[method], &f)
}

// Heal forgets the faults that have not happened yet.
func (s *Server) Heal() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.faults)
}

// Calls lists the calls of a method, or all with "".
func (s *Server) Calls(method string) []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Call
	for _, c := range s.calls {
		if method == "" || c.Method == method {
			out = append(out, c)
		}
	}
	return out
}

// Answers lists what the bot has posted, oldest first.
func (s *Workspace) Answers() []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Message
	for _, m := range s.messages {
		if m.BotID == s.cfg.BotID {
			out = append(out, m)
		}
	}
	return out
}

// Remove takes somebody's message away, as its author can.
func (s *Workspace) Remove(channel, ts string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.messages = slices.DeleteFunc(s.messages, func(m Message) bool { return m.Channel == channel && m.TS == ts })
	s.changes()
}

// Amend changes each post that the workspace holds, as no call of the bot can.
func (s *Workspace) Amend(change func(*Message)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.messages {
		change(&s.messages[i])
	}
}

// Acks lists the acknowledgements in their order.
func (s *Line) Acks() []Ack {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Ack(nil), s.acks...)
}

// Reactions lists the reactions that were set.
func (s *Workspace) Reactions() []Reaction {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Reaction(nil), s.reactions...)
}

// Sockets says how many sockets are open, and how many ever were.
func (s *Line) Sockets() (open, ever int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.sockets), s.opened
}

// Mute lets sockets open without a hello from now on.
func (s *Line) Mute(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mute = on
}

// Still stops the pings of all sockets, so that they look half dead.
func (s *Line) Still(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.still = on
}

// Quiet stops the events about the bot's own posts.
func (s *Server) Quiet(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.quiet = on
}

// Drop breaks every open socket without a word.
func (s *Line) Drop() {
	s.mu.Lock()
	open := append([]*socket(nil), s.sockets...)
	s.mu.Unlock()
	for _, k := range open {
		k.drop()
	}
}

// Disconnect asks every open socket to reconnect, with Slack's reason: warning,
// refresh_requested, too_many_websockets or link_disabled.
func (s *Line) Disconnect(reason string) {
	s.mu.Lock()
	open := append([]*socket(nil), s.sockets...)
	s.mu.Unlock()
	for _, k := range open {
		k.send(map[string]any{"type": "disconnect", "reason": reason, "debug_info": map[string]any{"host": "applink-fake"}})
	}
}

func upgrader() websocket.Upgrader {
	return websocket.Upgrader{CheckOrigin: func(*http.Request) bool { return true }}
}

func bearer(r *http.Request) string {
	return strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
}
