package slack

import "net/url"

// UserGroup is what usergroups.list tells of a user group. The zero Team is the
// home workspace.
type UserGroup struct {
	ID, Team string
	Users    []string
	Disabled bool // or deleted: Slack has one word for both
	External bool
}

// AddGroup makes a user group known, or changes one.
func (s *Server) AddGroup(g UserGroup) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if g.Team == "" {
		g.Team = s.cfg.Team
	}
	for i, known := range s.groups {
		if known.ID == g.ID && known.Team == g.Team {
			s.groups[i] = g
			return
		}
	}
	s.groups = append(s.groups, g)
}

// listGroups is usergroups.list. There are no pages; disabled groups and members
// are there for who asks for them.
func (s *Workspace) listGroups(form url.Values) object {
	s.mu.Lock()
	defer s.mu.Unlock()
	team := s.cfg.Team
	if asked := form.Get("team_id"); asked != "" && asked != team {
		return failed("team_not_found")
	}
	list := []object{}
	for _, g := range s.groups {
		if g.Disabled && !truth(form.Get("include_disabled")) {
			continue
		}
		deleted := 0
		if g.Disabled {
			deleted = 1700000000
		}
		o := object{
			"id": g.ID, "team_id": g.Team, "is_usergroup": true, "is_subteam": true, "name": "Team", "handle": "team", "description": "",
			"is_external": g.External, "date_create": 1600000000, "date_update": 1600000000, "date_delete": deleted,
			"auto_type": nil, "created_by": "U0ADMIN001", "updated_by": "U0ADMIN001", "deleted_by": nil,
			"prefs": object{"channels": []string{}, "groups": []string{}}, "user_count": len(g.Users),
		}
		if truth(form.Get("include_users")) {
			o["users"] = append([]string{}, g.Users...)
		}
		list = append(list, o)
	}
	return object{"ok": true, "usergroups": list}
}
