package slack

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

type object = map[string]any

func failed(code string) object { return object{"ok": false, "error": code} }

// method answers one call of the Web API.
func (s *Server) method(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("method")
	form, err := arguments(r)
	if err != nil {
		reply(w, failed("invalid_form_data"))
		return
	}
	token := bearer(r)
	if token == "" {
		token = form.Get("token")
	}
	form.Del("token")
	s.mu.Lock()
	s.calls = append(s.calls, Call{Method: name, Form: form, Token: token, At: time.Now()})
	fault := s.fault(name)
	s.changes()
	s.mu.Unlock()
	if fault != nil && fault.Slow != nil {
		select {
		case <-fault.Slow:
		case <-r.Context().Done():
			mustAbort()
		case <-s.closed:
			mustAbort()
		}
		fault = nil
	}
	if fault != nil && !fault.LoseAnswer {
		s.spoil(w, r, *fault)
		return
	}
	answer := s.call(name, token, form)
	if fault != nil {
		mustAbort()
	}
	reply(w, answer)
}

// mustAbort ends a handler in the way that net/http knows: without an answer.
func mustAbort() { panic(http.ErrAbortHandler) }

// arguments reads a form or JSON. Slack's libraries send one or the other.
func arguments(r *http.Request) (url.Values, error) {
	if !strings.HasPrefix(r.Header.Get("Content-Type"), "application/json") {
		err := r.ParseForm()
		return r.Form, err
	}
	body := object{}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil && r.ContentLength > 5 {
		return nil, err
	}
	form := url.Values{}
	for k, v := range body {
		if text, ok := v.(string); ok {
			form.Set(k, text)
			continue
		}
		text, err := json.Marshal(v)
		if err != nil {
			return nil, err
		}
		form.Set(k, string(text))
	}
	return form, nil
}

// truth reads a boolean argument: slack-go writes 1, Bolt true.
func truth(s string) bool { return s == "1" || s == "true" }

func reply(w http.ResponseWriter, answer object) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	_ = json.NewEncoder(w).Encode(answer)
}

// fault takes the next fault of a method. The lock is held.
func (s *Server) fault(name string) *Fault {
	list := s.faults[name]
	if len(list) == 0 {
		return nil
	}
	f := *list[0]
	if list[0].Times--; list[0].Times == 0 {
		s.faults[name] = list[1:]
	}
	return &f
}

func (s *Server) spoil(w http.ResponseWriter, r *http.Request, f Fault) {
	switch {
	case f.Hang:
		select {
		case <-r.Context().Done():
		case <-s.closed:
		}
		mustAbort()
	case f.Body != "":
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(f.Body))
	case f.Code != "":
		if f.RetryAfter != "" {
			w.Header().Set("Retry-After", f.RetryAfter)
		}
		answer := failed(f.Code)
		if f.Needed != "" {
			answer["needed"], answer["provided"] = f.Needed, "chat:write"
		}
		reply(w, answer)
	case f.Status != 0:
		if f.Location != "" {
			w.Header().Set("Location", f.Location)
		}
		w.WriteHeader(f.Status)
		_, _ = w.Write([]byte("<html>fault</html>"))
	default:
		if f.RetryAfter != "" {
			w.Header().Set("Retry-After", f.RetryAfter)
		}
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = w.Write([]byte(`{"ok":false,"error":"ratelimited"}`))
	}
}

func (s *Server) call(name, token string, form url.Values) object {
	want := s.cfg.BotToken
	if name == "apps.connections.open" {
		want = s.cfg.AppToken
	}
	switch {
	case token == "":
		return failed("not_authed")
	case token != want && strings.HasPrefix(token, "xapp-") != strings.HasPrefix(want, "xapp-"):
		return failed("not_allowed_token_type")
	case token != want:
		return failed("invalid_auth")
	}
	switch name {
	case "auth.test":
		answer := object{"ok": true, "url": "https://fake.slack.com/", "team": "Fake", "user": "parlour",
			"team_id": s.cfg.Team, "user_id": s.cfg.BotUser, "bot_id": s.cfg.BotID, "is_enterprise_install": false}
		if s.cfg.Enterprise != "" {
			answer["enterprise_id"] = s.cfg.Enterprise
		}
		return answer
	case "apps.connections.open":
		return s.connection()
	case "chat.postMessage":
		answer, m := s.postMessage(form)
		if m.TS != "" {
			s.echo(m)
		}
		return answer
	case "chat.update":
		answer, m := s.update(form)
		if m.TS != "" {
			s.tell(m, "message_changed")
		}
		return answer
	case "chat.delete":
		answer, m := s.delete(form)
		if m.TS != "" {
			s.tell(m, "message_deleted")
		}
		return answer
	case "reactions.add":
		return s.react(form)
	case "users.info":
		return s.userInfo(form.Get("user"))
	case "usergroups.list":
		return s.listGroups(form)
	case "conversations.info":
		return s.channelInfo(form.Get("channel"))
	case "conversations.replies":
		return s.replies(form)
	}
	return failed("unknown_method")
}

func (s *Line) connection() object {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.serial++
	ticket := fmt.Sprintf("ticket-secret-%d", s.serial)
	s.tickets[ticket] = true
	return object{"ok": true, "url": "ws://" + s.addr + "/link?ticket=" + ticket + "&app_id=A0000000001"}
}

func (s *Workspace) postMessage(form url.Values) (object, Message) {
	s.mu.Lock()
	if code := s.unfit(form); code != "" {
		s.mu.Unlock()
		return failed(code), Message{}
	}
	m := Message{
		Channel: form.Get("channel"), TS: s.nextTS(), Thread: form.Get("thread_ts"), User: s.cfg.BotUser, BotID: s.cfg.BotID,
		Text: form.Get("text"),
	}
	if text := form.Get("metadata"); text != "" {
		m.Metadata = json.RawMessage(text)
	}
	s.messages = append(s.messages, m)
	s.changes()
	s.mu.Unlock()
	return object{"ok": true, "channel": m.Channel, "ts": m.TS, "message": m.json(false)}, m
}

func (s *Workspace) update(form url.Values) (object, Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if code := s.unfit(form); code != "" {
		return failed(code), Message{}
	}
	m := s.at(form)
	switch {
	case m == nil:
		return failed("message_not_found"), Message{}
	case m.BotID != s.cfg.BotID:
		return failed("cant_update_message"), Message{}
	}
	m.Text, m.Edits = form.Get("text"), m.Edits+1
	if text := form.Get("metadata"); text != "" {
		m.Metadata = json.RawMessage(text)
	}
	s.changes()
	return object{"ok": true, "channel": m.Channel, "ts": m.TS, "text": m.Text}, *m
}

func (s *Workspace) delete(form url.Values) (object, Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.channels[form.Get("channel")]; !known {
		return failed("channel_not_found"), Message{}
	}
	m := s.at(form)
	switch {
	case m == nil:
		return failed("message_not_found"), Message{}
	case m.BotID != s.cfg.BotID:
		return failed("cant_delete_message"), Message{}
	}
	gone := *m
	s.messages = slices.DeleteFunc(s.messages, func(x Message) bool { return x.Channel == gone.Channel && x.TS == gone.TS })
	s.changes()
	return object{"ok": true, "channel": gone.Channel, "ts": gone.TS}, gone
}

// at finds the message that a call is about. The lock is held.
func (s *Workspace) at(form url.Values) *Message {
	for i, m := range s.messages {
		if m.Channel == form.Get("channel") && m.TS == form.Get("ts") {
			return &s.messages[i]
		}
	}
	return nil
}

// unfit says which limit of Slack a post breaks. The lock is held.
func (s *Workspace) unfit(form url.Values) string {
	_, known := s.channels[form.Get("channel")]
	text, blocks := form.Get("text"), form.Get("blocks")
	switch {
	case !known:
		return "channel_not_found"
	case strings.TrimSpace(text) == "" && blocks == "":
		return "no_text"
	case utf8.RuneCountInString(text) > 40_000:
		return "msg_too_long"
	case form.Get("thread_ts") != "" && s.author(form.Get("channel"), form.Get("thread_ts")) == "":
		return "thread_not_found"
	}
	if meta := form.Get("metadata"); meta != "" {
		var m struct {
			Type    string `json:"event_type"`
			Payload object `json:"event_payload"`
		}
		if json.Unmarshal([]byte(meta), &m) != nil || m.Type == "" || m.Payload == nil {
			return "invalid_metadata_format"
		}
	}
	return tooBig(blocks)
}

// block is the part of a block whose size is limited.
type block struct {
	Type     string            `json:"type"`
	Text     json.RawMessage   `json:"text"`
	Fields   []json.RawMessage `json:"fields"`
	Elements []json.RawMessage `json:"elements"`
}

// tooBig says which limit the blocks break.
func tooBig(blocks string) string {
	if blocks == "" {
		return ""
	}
	var list []block
	if json.Unmarshal([]byte(blocks), &list) != nil {
		return "invalid_blocks_format"
	}
	total := 0
	for _, b := range list {
		n := utf8.RuneCountInString(blockText(b.Text))
		total += n
		most := map[string]int{"section": 3000, "markdown": 12_000, "header": 150}[b.Type]
		elements := map[string]int{"actions": 25, "context": 10}[b.Type]
		if most > 0 && n > most || elements > 0 && len(b.Elements) > elements || len(b.Fields) > 10 {
			return "invalid_blocks"
		}
	}
	switch {
	case len(list) > 50:
		return "invalid_blocks"
	case total > 13_200:
		return "msg_blocks_too_long"
	}
	return ""
}

// blockText reads a text that is a string or an object with one.
func blockText(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	var o struct {
		Text string `json:"text"`
	}
	_ = json.Unmarshal(raw, &o)
	return o.Text
}

func (s *Workspace) react(form url.Values) object {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := Reaction{form.Get("channel"), form.Get("timestamp"), form.Get("name")}
	switch {
	case r.Name == "":
		return failed("no_reaction")
	case s.author(r.Channel, r.TS) == "":
		return failed("message_not_found")
	case slices.Contains(s.reactions, r):
		return failed("already_reacted")
	}
	s.reactions = append(s.reactions, r)
	s.changes()
	return object{"ok": true}
}

func (s *Workspace) userInfo(id string) object {
	s.mu.Lock()
	defer s.mu.Unlock()
	u, ok := s.users[id]
	if !ok {
		return failed("user_not_found")
	}
	user := object{
		"id": u.ID, "team_id": u.Team, "name": u.Name, "deleted": u.Deleted, "is_bot": u.Bot, "is_restricted": u.Restricted,
		"is_ultra_restricted": u.UltraRestricted, "profile": object{"display_name": u.Name, "email": "x@ourcompany.example"},
	}
	if u.Stranger {
		user["is_stranger"] = true
	}
	if u.EnterpriseID != "" {
		user["enterprise_user"] = object{"id": u.ID, "enterprise_id": u.EnterpriseID, "teams": u.EnterpriseTeams}
	}
	return object{"ok": true, "user": user}
}

func (s *Workspace) channelInfo(id string) object {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, ok := s.channels[id]
	if !ok {
		return failed("channel_not_found")
	}
	return object{"ok": true, "channel": object{"id": c.ID, "is_im": c.Direct, "is_channel": !c.Direct, "is_ext_shared": c.Shared}}
}

// replies is conversations.replies: the first post of a thread and what follows.
func (s *Workspace) replies(form url.Values) object {
	s.mu.Lock()
	defer s.mu.Unlock()
	channel, thread := form.Get("channel"), form.Get("ts")
	if _, ok := s.channels[channel]; !ok {
		return failed("channel_not_found")
	}
	if s.author(channel, thread) == "" {
		return failed("thread_not_found")
	}
	oldest := form.Get("oldest")
	var all []object
	for _, m := range s.messages {
		late := oldest == "" || m.TS > oldest || m.TS == oldest && truth(form.Get("inclusive"))
		if m.Channel == channel && (m.TS == thread || m.Thread == thread && late) {
			all = append(all, m.json(truth(form.Get("include_all_metadata"))))
		}
	}
	limit, err := strconv.Atoi(form.Get("limit"))
	if err != nil || limit <= 0 {
		limit = 100
	}
	from, _ := strconv.Atoi(form.Get("cursor"))
	from = min(from, len(all))
	to := min(from+limit, len(all))
	answer := object{"ok": true, "messages": all[from:to], "has_more": to < len(all), "response_metadata": object{"next_cursor": ""}}
	if to < len(all) {
		answer["response_metadata"] = object{"next_cursor": strconv.Itoa(to)}
	}
	return answer
}

func (m Message) json(metadata bool) object {
	o := object{"type": "message", "user": m.User, "text": m.Text, "ts": m.TS}
	if m.Thread != "" {
		o["thread_ts"] = m.Thread
	}
	if m.BotID != "" {
		o["bot_id"] = m.BotID
	}
	if metadata && m.Metadata != nil {
		o["metadata"] = m.Metadata
	}
	return o
}
