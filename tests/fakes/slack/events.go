package slack

import (
	"fmt"
	"strings"
)

// Post is what a person writes.
type Post struct {
	Channel, User, Text, Thread string
	ClientID                    string
}

// Event makes an Events API payload around an inner event, as it would come for
// the bot's own workspace. Its parts may be changed before Send.
func (s *Server) Event(inner map[string]any) map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.serial++
	channel, _ := inner["channel"].(string)
	return map[string]any{
		"token": "verification", "team_id": s.cfg.Team, "api_app_id": "A0000000001", "type": "event_callback",
		"event_id": fmt.Sprintf("Ev%06d", s.serial), "event_time": 1789045151, "event": inner,
		"is_ext_shared_channel": s.channels[channel].Shared,
		"authorizations": []any{map[string]any{
			"enterprise_id": nil, "team_id": s.cfg.Team, "user_id": s.cfg.BotUser, "is_bot": true, "is_enterprise_install": false,
		}},
	}
}

// NextTS gives a time stamp that no message has yet.
func (s *Workspace) NextTS() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.nextTS()
}

func (s *Workspace) nextTS() string {
	s.serial++
	return fmt.Sprintf("1789045151.%06d", s.serial)
}

// Write stores a person's post and gives the inner events that Slack makes of
// it, app_mention first where it names the bot.
func (s *Workspace) Write(p Post) (ts string, events []map[string]any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ts = s.nextTS()
	s.messages = append(s.messages, Message{Channel: p.Channel, TS: ts, Thread: p.Thread, User: p.User, Text: p.Text})
	if p.ClientID == "" {
		p.ClientID = fmt.Sprintf("client-%d", s.serial)
	}
	base := func(kind string) map[string]any {
		e := map[string]any{
			"type": kind, "user": p.User, "text": p.Text, "ts": ts, "event_ts": ts, "channel": p.Channel,
			"client_msg_id": p.ClientID, "team": s.cfg.Team,
		}
		if p.Thread != "" {
			e["thread_ts"] = p.Thread
			e["parent_user_id"] = s.author(p.Channel, p.Thread)
		}
		return e
	}
	c := s.channels[p.Channel]
	named := strings.Contains(p.Text, "<@"+s.cfg.BotUser)
	if named && !c.Direct {
		events = append(events, base("app_mention"))
	}
	m := base("message")
	m["channel_type"] = "channel"
	if c.Direct {
		m["channel_type"] = "im"
	}
	return ts, append(events, m)
}

func (s *Workspace) author(channel, ts string) string {
	for _, m := range s.messages {
		if m.Channel == channel && m.TS == ts {
			return m.User
		}
	}
	return ""
}

// Say is a person who posts, with every event that Slack makes of it.
func (s *Server) Say(p Post) string {
	ts, events := s.Write(p)
	for _, e := range events {
		s.Send(s.Event(e))
	}
	return ts
}

// echo is the event that Slack sends about a post of the bot itself.
func (s *Server) echo(m Message) {
	s.mu.Lock()
	quiet := s.quiet
	s.mu.Unlock()
	if quiet {
		return
	}
	inner := map[string]any{
		"type": "message", "user": m.User, "bot_id": m.BotID, "text": m.Text, "ts": m.TS, "channel": m.Channel,
		"channel_type": "channel", "bot_profile": map[string]any{"id": m.BotID, "app_id": "A0000000001"}, "team": s.cfg.Team,
	}
	if m.Thread != "" {
		inner["thread_ts"] = m.Thread
	}
	s.Send(s.Event(inner))
}

// tell is the event that Slack sends about a post that was changed or deleted.
func (s *Server) tell(m Message, what string) {
	s.mu.Lock()
	quiet := s.quiet
	at := s.nextTS()
	s.mu.Unlock()
	if quiet {
		return
	}
	inner := map[string]any{
		"type": "message", "subtype": what, "hidden": true, "channel": m.Channel, "channel_type": "channel", "ts": at, "event_ts": at,
	}
	post := m.json(false)
	if what == "message_deleted" {
		inner["deleted_ts"], inner["previous_message"] = m.TS, post
	} else {
		post["edited"] = map[string]any{"user": m.User, "ts": at}
		inner["message"] = post
	}
	s.Send(s.Event(inner))
}
