package discord

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
)

// limit is what one message holds. Discord's description says 4000, which is
// for people who pay.
const limit = 2000

// call is one request on its way.
type call struct {
	method string
	path   string // without /api/vN
	raw    string // as it was sent
	body   []byte
	ids    []string
	query  url.Values
}

// reply is what a route answers.
type reply struct {
	status int
	body   any
}

func refusal(status, code int, message string) reply {
	return reply{status, map[string]any{"code": code, "message": message}}
}

// desk is the REST side.
type desk struct {
	*world
	schema *schema
	rules  []*Rule
}

// route is one route of the REST side.
type route struct {
	method string
	path   *regexp.Regexp
	spec   string // the path in Discord's description, for the body
	serve  func(*desk, call) reply
}

const id = `(\d{1,20})`

func restRoutes() []route {
	at := func(p string) *regexp.Regexp { return regexp.MustCompile("^" + p + "$") }
	messages := "/channels/" + id + "/messages"
	return []route{
		{"GET", at("/gateway"), "", (*desk).getGateway},
		{"GET", at("/gateway/bot"), "", (*desk).getGateway},
		{"GET", at("/users/@me"), "", (*desk).getMe},
		{"GET", at("/channels/" + id), "", (*desk).getChannel},
		{"GET", at("/guilds/" + id + "/members/" + id), "", (*desk).getMember},
		{"GET", at(messages), "", (*desk).getMessages},
		{"POST", at(messages), "/channels/{channel_id}/messages", (*desk).postMessage},
		{"PATCH", at(messages + "/" + id), "/channels/{channel_id}/messages/{message_id}", (*desk).editMessage},
		{"DELETE", at(messages + "/" + id), "", (*desk).deleteMessage},
		{"PATCH", at("/channels/" + id), "/channels/{channel_id}", (*desk).editChannel},
		{"POST", at(messages + "/" + id + "/threads"), "/channels/{channel_id}/messages/{message_id}/threads", (*desk).postThread},
		{"PUT", at(messages + "/" + id + "/reactions/([^/]+)/@me"), "", (*desk).putReaction},
		{"POST", at("/channels/" + id + "/typing"), "", (*desk).postTyping},
	}
}

func (s *desk) routes() http.HandlerFunc {
	routes := restRoutes()
	return func(w http.ResponseWriter, r *http.Request) { s.api(w, r, routes) }
}

var version = regexp.MustCompile(`^/api/v(9|10)/`)

func (s *desk) api(w http.ResponseWriter, r *http.Request, routes []route) {
	body, _ := io.ReadAll(io.LimitReader(r.Body, 1<<22))
	c := call{method: r.Method, path: r.URL.Path, raw: r.URL.EscapedPath(), body: body, query: r.URL.Query()}
	if !version.MatchString(c.path) {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	c.path = strings.TrimPrefix(version.ReplaceAllString(c.path, "/"), "")
	s.mu.Lock()
	fault := s.rule(c.method, c.path)
	s.mu.Unlock()
	if fault != nil && fault.Delay > 0 {
		timer := time.NewTimer(fault.Delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-r.Context().Done():
			return
		}
	}
	answer := reply{}
	if fault == nil || fault.Status == 0 || fault.Perform {
		answer = s.serve(c, r.Header.Get("Authorization"), routes)
	}
	if fault != nil && fault.Status != 0 {
		answer.status = fault.Status
		answer.body = json.RawMessage(fault.Body)
		if fault.Body == "" {
			answer.body = map[string]any{}
		}
		for k, v := range fault.Header {
			w.Header().Set(k, v)
		}
	}
	s.mu.Lock()
	s.requests = append(s.requests, Request{
		At: time.Now(), Method: c.method, Path: c.path, Auth: r.Header.Get("Authorization"), Body: string(body), Status: answer.status,
	})
	s.note()
	s.mu.Unlock()
	write(w, answer)
}

func write(w http.ResponseWriter, answer reply) {
	if answer.status == http.StatusNoContent {
		w.WriteHeader(answer.status)
		return
	}
	if w.Header().Get("Content-Type") == "" {
		w.Header().Set("Content-Type", "application/json")
	}
	w.WriteHeader(answer.status)
	if raw, ok := answer.body.(json.RawMessage); ok {
		_, _ = w.Write(raw) // not always JSON: what stands in front of Discord answers in words
		return
	}
	_ = json.NewEncoder(w).Encode(answer.body)
}

func (s *desk) serve(c call, auth string, routes []route) reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range routes {
		found := r.path.FindStringSubmatch(c.path)
		if found == nil || r.method != c.method {
			continue
		}
		if auth != "Bot "+s.cfg.Token {
			return refusal(http.StatusUnauthorized, 0, "401: Unauthorized")
		}
		c.ids = found[1:]
		if r.spec != "" {
			if err := s.schema.check(c.method, r.spec, c.body); err != nil {
				return s.wrong(c, err.Error())
			}
		}
		return r.serve(s, c)
	}
	s.problems = append(s.problems, fmt.Sprintf("%s %s: the fake knows no such route", c.method, c.path))
	return refusal(http.StatusNotFound, 0, "404: Not Found")
}

// wrong refuses a body and keeps why.
func (s *desk) wrong(c call, why string) reply {
	s.problems = append(s.problems, fmt.Sprintf("%s %s: %s", c.method, c.path, why))
	return refusal(http.StatusBadRequest, 50035, "Invalid Form Body: "+why)
}

func bare(token string) string { return strings.TrimPrefix(token, "Bot ") }

func (s *desk) getGateway(call) reply {
	return reply{http.StatusOK, map[string]any{
		"url": "ws://" + s.addr + "/gateway/", "shards": 1,
		"session_start_limit": map[string]any{"total": 1000, "remaining": 999, "reset_after": 0, "max_concurrency": 1},
	}}
}

func (s *desk) getMe(call) reply {
	return reply{http.StatusOK, User{ID: s.cfg.Bot, Name: "parlour", Bot: true}.object()}
}

func (s *desk) getChannel(c call) reply {
	ch := s.channels[c.ids[0]]
	if ch == nil {
		return refusal(http.StatusNotFound, 10003, "Unknown Channel")
	}
	return reply{http.StatusOK, ch.object()}
}

// getMessages lists a channel as Discord does: the newest, or those right after
// a message, and newest first either way.
func (s *desk) getMessages(c call) reply {
	most, err := strconv.Atoi(c.query.Get("limit"))
	if err != nil {
		most = 50
	}
	if most < 1 || most > 100 {
		return s.wrong(c, "limit: int value should be between 1 and 100.")
	}
	after := c.query.Get("after")
	list := []any{}
	for _, m := range s.messages {
		if m.Channel == c.ids[0] && (after == "" || newer(m.ID, after)) {
			list = append(list, s.answer(m))
		}
	}
	if after != "" {
		list = list[:min(most, len(list))]
	}
	list = list[max(0, len(list)-most):]
	slices.Reverse(list)
	return reply{http.StatusOK, list}
}

func newer(a, b string) bool { return len(a) > len(b) || len(a) == len(b) && a > b }

type messageBody struct {
	Content  *string `json:"content"`
	Flags    int     `json:"flags"`
	Nonce    any     `json:"nonce"`
	Enforce  bool    `json:"enforce_nonce"`
	Mentions *struct {
		Parse *[]string `json:"parse"`
	} `json:"allowed_mentions"`
	Embeds    []any `json:"embeds"`
	Reference *struct {
		Message string `json:"message_id"`
		Must    *bool  `json:"fail_if_not_exists"`
	} `json:"message_reference"`
}

// faults checks what Discord's description does not: the length that a bot has,
// and that nobody is mentioned by accident.
func (b messageBody) faults() string {
	switch {
	case b.Content != nil && len(utf16.Encode([]rune(*b.Content))) > limit:
		return "content: Must be 2000 or fewer in length."
	case b.Mentions == nil || b.Mentions.Parse == nil || len(*b.Mentions.Parse) > 0:
		return "allowed_mentions: a send or an edit without parse [] lets everybody be mentioned"
	case b.Flags&(1<<15) != 0 && (b.Content != nil && *b.Content != "" || len(b.Embeds) > 0):
		return "flags: components v2 exclude content and embeds"
	}
	return ""
}

func (s *desk) postMessage(c call) reply {
	var b messageBody
	if json.Unmarshal(c.body, &b) != nil {
		return s.wrong(c, "not a message")
	}
	if why := b.faults(); why != "" {
		return s.wrong(c, why)
	}
	if b.Content == nil || strings.TrimSpace(*b.Content) == "" {
		return refusal(http.StatusBadRequest, 50006, "Cannot send an empty message")
	}
	if s.channels[c.ids[0]] == nil {
		return refusal(http.StatusNotFound, 10003, "Unknown Channel")
	}
	nonce := fmt.Sprint(b.Nonce)
	if m := s.nonces[nonce]; m != nil && b.Enforce && b.Nonce != nil {
		return reply{http.StatusOK, s.answer(m)}
	}
	if r := b.Reference; r != nil && s.find(r.Message) == nil && (r.Must == nil || *r.Must) {
		return refusal(http.StatusBadRequest, 50035, "MESSAGE_REFERENCE_UNKNOWN_MESSAGE")
	}
	m := &Message{
		ID: s.id(), Channel: c.ids[0], Content: strings.TrimSpace(*b.Content), Body: string(c.body),
		Author: User{ID: s.cfg.Bot, Name: "parlour", Bot: true},
	}
	if r := b.Reference; r != nil && s.find(r.Message) != nil {
		m.replyTo = r.Message
	}
	s.messages = append(s.messages, m)
	if b.Nonce != nil {
		s.nonces[nonce] = m
	}
	for _, session := range s.sessions {
		session.dispatch("MESSAGE_CREATE", s.create(m.said(), session.intents))
	}
	return reply{http.StatusOK, s.answer(m)}
}

// ForgetNonces lets time pass until Discord knows no nonce any more.
func (s *world) ForgetNonces() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.nonces)
}

func (s *desk) editMessage(c call) reply {
	var b messageBody
	if json.Unmarshal(c.body, &b) != nil {
		return s.wrong(c, "not a message")
	}
	if why := b.faults(); why != "" {
		return s.wrong(c, why)
	}
	m := s.find(c.ids[1])
	switch {
	case m == nil || m.Channel != c.ids[0]:
		return refusal(http.StatusNotFound, 10008, "Unknown Message")
	case m.Author.ID != s.cfg.Bot:
		return refusal(http.StatusForbidden, 50005, "Cannot edit a message authored by another user")
	case b.Content != nil && strings.TrimSpace(*b.Content) == "":
		return refusal(http.StatusBadRequest, 50006, "Cannot send an empty message")
	}
	if b.Content != nil {
		m.Content, m.Body = strings.TrimSpace(*b.Content), string(c.body)
	}
	for _, session := range s.sessions {
		session.dispatch("MESSAGE_UPDATE", s.create(m.said(), session.intents))
	}
	return reply{http.StatusOK, s.answer(m)}
}

// deleteMessage lets the bot delete its own messages; for others it would need a
// right that it does not have here.
func (s *desk) deleteMessage(c call) reply {
	m := s.find(c.ids[1])
	switch {
	case m == nil || m.Channel != c.ids[0]:
		return refusal(http.StatusNotFound, 10008, "Unknown Message")
	case m.Author.ID != s.cfg.Bot:
		return refusal(http.StatusForbidden, 50013, "Missing Permissions")
	}
	s.drop(m.ID)
	return reply{http.StatusNoContent, nil}
}

// editChannel lets the bot close the threads that it has made, and nothing else.
func (s *desk) editChannel(c call) reply {
	var b map[string]any
	ch := s.channels[c.ids[0]]
	if json.Unmarshal(c.body, &b) != nil {
		return s.wrong(c, "not a channel")
	}
	closed, isBool := b["archived"].(bool)
	switch {
	case ch == nil:
		return refusal(http.StatusNotFound, 10003, "Unknown Channel")
	case ch.Type != PublicThread || !ch.own || !isBool || len(b) != 1:
		return refusal(http.StatusForbidden, 50013, "Missing Permissions")
	}
	ch.Archived = closed
	for _, session := range s.sessions {
		session.dispatch("THREAD_UPDATE", object(ch.object()))
	}
	return reply{http.StatusOK, ch.object()}
}

func (s *desk) postThread(c call) reply {
	var b struct {
		Name string `json:"name"`
	}
	in, m := s.channels[c.ids[0]], s.find(c.ids[1])
	switch {
	case json.Unmarshal(c.body, &b) != nil || b.Name == "" || len([]rune(b.Name)) > 100:
		return s.wrong(c, "name: Must be between 1 and 100 in length.")
	case in == nil:
		return refusal(http.StatusNotFound, 10003, "Unknown Channel")
	case m == nil || m.Channel != in.ID:
		return refusal(http.StatusNotFound, 10008, "Unknown Message")
	case in.Type != Text && in.Type != News:
		return refusal(http.StatusBadRequest, 50024, "Cannot execute action on this channel type")
	case m.thread:
		return refusal(http.StatusBadRequest, 160004, "A thread has already been created for this message")
	}
	m.thread = true
	thread := &Channel{ID: m.ID, Guild: in.Guild, Type: PublicThread, Parent: in.ID, Name: b.Name, own: true}
	s.channels[thread.ID] = thread
	for _, session := range s.sessions {
		session.dispatch("THREAD_CREATE", object(thread.object()))
	}
	return reply{http.StatusCreated, thread.object()}
}

func (s *desk) putReaction(c call) reply {
	m := s.find(c.ids[1])
	if m == nil {
		return refusal(http.StatusNotFound, 10008, "Unknown Message")
	}
	m.reactions = append(m.reactions, c.ids[2])
	return reply{http.StatusNoContent, nil}
}

func (s *desk) postTyping(c call) reply {
	if s.channels[c.ids[0]] == nil {
		return refusal(http.StatusNotFound, 10003, "Unknown Channel")
	}
	return reply{http.StatusNoContent, nil}
}
