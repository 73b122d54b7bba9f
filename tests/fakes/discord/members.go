package discord

import "net/http"

// Join makes somebody a member of a guild with these roles, or gives a member
// other roles. Events tell them, and so does the REST side.
func (s *Server) Join(guild string, who User, roles ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.members[guild+"/"+who.ID] = member{who, append([]string{}, roles...)}
}

// Leave ends a membership.
func (s *Server) Leave(guild, user string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.members, guild+"/"+user)
}

// speaks makes somebody who posts in a guild a member of it. The lock is held.
func speaks(s *world, said Said) {
	c := s.channels[said.Channel]
	if c == nil || c.Guild == "" {
		return
	}
	key := c.Guild + "/" + said.Author.ID
	if _, known := s.members[key]; !known {
		s.members[key] = member{said.Author, []string{}}
	}
}

type member struct {
	user  User
	roles []string
}

// object is a member as events and the REST side tell of one. The role of
// everybody is not listed.
func (m member) object() map[string]any {
	return map[string]any{
		"roles": m.roles, "joined_at": "2020-01-01T00:00:00Z", "deaf": false, "mute": false, "flags": 0, "nick": m.user.Name,
	}
}

// memberOf gives somebody as an event tells of them.
func memberOf(s *world, guild string, who User) map[string]any {
	m, known := s.members[guild+"/"+who.ID]
	if !known {
		m = member{who, []string{}}
	}
	return m.object()
}

func (s *desk) getMember(c call) reply {
	known := false
	for _, ch := range s.channels {
		known = known || ch.Guild == c.ids[0]
	}
	m, joined := s.members[c.ids[0]+"/"+c.ids[1]]
	switch {
	case !known:
		return refusal(http.StatusNotFound, 10004, "Unknown Guild")
	case !joined:
		return refusal(http.StatusNotFound, 10007, "Unknown Member")
	}
	o := m.object()
	o["user"] = m.user.object()
	return reply{http.StatusOK, o}
}
