package discord

import (
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// Message is one message of the platform.
type Message struct {
	ID, Channel, Content string
	Author               User
	Body                 string // the request that posted it; empty for what people say
	reactions            []string
	thread               bool
	replyTo              string
}

// Said is what somebody posts. Raw fields replace those that the fake would make.
type Said struct {
	ID      string // empty: a new one
	Channel string
	Author  User
	Content string
	ReplyTo string         // the id of the message it answers
	Ping    bool           // a reply that mentions its author
	Raw     map[string]any // fields of MESSAGE_CREATE to set or, with nil, to leave out
	Type    string         // the event; empty: MESSAGE_CREATE
	Times   int            // how often it is dispatched; 0: once
}

// Say posts a message and tells every session. It gives the message's id.
func (s *world) Say(said Said) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if said.ID == "" {
		said.ID = s.id()
	}
	if said.Type == "" {
		said.Type = "MESSAGE_CREATE"
		s.messages = append(s.messages, &Message{ID: said.ID, Channel: said.Channel, Content: said.Content, Author: said.Author})
		speaks(s, said)
	}
	for range max(said.Times, 1) {
		for _, session := range s.sessions {
			session.dispatch(said.Type, s.create(said, session.intents))
		}
	}
	s.note()
	return said.ID
}

const intentContent = 1 << 15

// create makes the data of MESSAGE_CREATE as a session with these intents sees
// it: without the privileged one, the text of what is not for the bot is empty.
func (s *world) create(said Said, intents int) json.RawMessage {
	data := s.shown(said)
	forBot := said.Author.ID == s.cfg.Bot || data["guild_id"] == nil || strings.Contains(string(object(data["mentions"])), s.cfg.Bot)
	if intents&intentContent == 0 && !forBot {
		for field, empty := range map[string]any{"content": "", "embeds": []any{}, "attachments": []any{}, "components": []any{}} {
			data[field] = empty
		}
	}
	for field, value := range said.Raw {
		data[field] = value
		if value == nil {
			delete(data, field)
		}
	}
	return object(data)
}

func (s *world) shown(said Said) map[string]any {
	data := map[string]any{
		"id": said.ID, "channel_id": said.Channel, "content": said.Content, "type": 0, "flags": 0, "tts": false, "pinned": false,
		"timestamp": time.Now().UTC().Format(time.RFC3339Nano), "edited_timestamp": nil, "mention_everyone": false,
		"author": said.Author.object(), "mentions": s.mentioned(said), "mention_roles": []any{}, "embeds": []any{},
		"attachments": []any{}, "components": []any{}, "nonce": said.ID, "channel_type": 0,
	}
	if c := s.channels[said.Channel]; c != nil {
		data["channel_type"] = c.Type
	}
	if c := s.channels[said.Channel]; c != nil && c.Guild != "" {
		data["guild_id"] = c.Guild
		data["member"] = memberOf(s, c.Guild, said.Author)
	}
	if m := s.find(said.ReplyTo); m != nil {
		data["type"] = 19
		data["message_reference"] = map[string]any{"type": 0, "message_id": m.ID, "channel_id": m.Channel}
		data["referenced_message"] = s.shown(Said{ID: m.ID, Channel: m.Channel, Author: m.Author, Content: m.Content})
	}
	return data
}

// mentioned lists whom a text mentions, in the spellings that Discord knows.
func (s *world) mentioned(said Said) []any {
	out := []any{}
	ids := []string{}
	for _, piece := range strings.Split(said.Content, "<@")[1:] {
		id, _, ok := strings.Cut(strings.TrimPrefix(piece, "!"), ">")
		if ok && strings.Trim(id, "0123456789") == "" && id != "" {
			ids = append(ids, id)
		}
	}
	if m := s.find(said.ReplyTo); m != nil && said.Ping {
		ids = append(ids, m.Author.ID)
	}
	slices.Sort(ids)
	for _, id := range slices.Compact(ids) {
		out = append(out, User{ID: id, Name: "user", Bot: id == s.cfg.Bot}.object())
	}
	return out
}

func (s *world) find(id string) *Message {
	for _, m := range s.messages {
		if id != "" && m.ID == id {
			return m
		}
	}
	return nil
}

func (u User) object() map[string]any {
	o := map[string]any{
		"id": u.ID, "username": u.Name, "global_name": u.Name, "discriminator": "0", "avatar": nil, "public_flags": 0, "flags": 0,
	}
	if u.Bot {
		o["bot"] = true
	}
	if u.System {
		o["system"] = true
	}
	return o
}

// said gives a message of the bot as something that was said.
func (m *Message) said() Said {
	return Said{ID: m.ID, Channel: m.Channel, Author: m.Author, Content: m.Content, ReplyTo: m.replyTo}
}

// answer is a message as the REST side gives it back.
func (s *world) answer(m *Message) map[string]any {
	data := s.shown(m.said())
	for _, gatewayOnly := range []string{"guild_id", "member", "nonce", "channel_type"} {
		delete(data, gatewayOnly)
	}
	return data
}
