package tiers

import (
	"slices"
	"time"
)

// search looks for what gives somebody a tier.
type search struct {
	world
	tier  Tier
	found []Way
}

// seek tries what lifts blocks and the limit of the place, alone and with each
// thing that makes a rule match; of several lifts only the first goes with others.
func (s *search) seek() {
	for i, block := range s.blockLifts() {
		unblocked := s.after(block...)
		places := unblocked.placeLifts(s.tier)
		if len(places) == 0 {
			s.from(block, followUp{moves: i == 0, others: i == 0})
			continue
		}
		s.from(block, followUp{moves: i == 0})
		for k, place := range places {
			s.from(slices.Concat(block, place), followUp{others: i+k == 0})
		}
	}
}

// followUp is what may come after a lift.
type followUp struct{ moves, others bool }

// from tries what can follow the steps that are done.
func (s *search) from(done []Doing, then followUp) {
	w := s.after(done...)
	if s.keep(w, done) {
		return
	}
	if then.others {
		for _, known := range w.lookups() {
			if known.Step == TellGroups {
				continue // it is told that they are in none
			}
			known := append(slices.Clone(done), known)
			if w := s.after(known...); !s.keep(w, known) {
				s.follow(w, known, w.memberships(s.tier))
			}
		}
		s.follow(w, done, w.memberships(s.tier))
	}
	if then.moves {
		s.follow(w, done, w.places(s.tier))
	}
	if then.others {
		s.follow(w, done, slices.Concat(w.lines(s.tier), w.additions(s.tier)))
	}
}

func (s *search) follow(w world, done, atoms []Doing) {
	for _, d := range atoms {
		if d, helps := s.narrow(&w, d); helps {
			s.keep(w.after(d), append(slices.Clone(done), d))
		}
	}
}

// needless says whether another way is a part of this one, and gives as much.
func (w Way) needless(other Way) bool {
	return len(other.All) <= len(w.All) && other.Tier >= w.Tier && !slices.ContainsFunc(other.All, func(part Doing) bool {
		return !slices.ContainsFunc(w.All, part.same)
	})
}

// same says whether two steps are one, in whatever words.
func (d Doing) same(other Doing) bool {
	d.Why, other.Why = "", ""
	return d.String() == other.String()
}

// keep notes the steps where they help, and no shorter way is a part of them.
func (s *search) keep(w world, steps []Doing) bool {
	d := w.decide()
	if d.Tier < s.tier || len(steps) == 0 || len(s.found) >= mostTried {
		return false
	}
	way := Way{Tier: d.Tier, Rule: d.Rule, All: slices.Clone(steps)}
	for i := len(steps) - 2; i >= 0; i-- {
		less := slices.Delete(slices.Clone(way.All), i, i+1)
		next := s.after(less...)
		if d := next.decide(); d.Tier >= way.Tier {
			way = Way{Tier: d.Tier, Rule: d.Rule, All: less}
		}
	}
	if !slices.ContainsFunc(s.found, way.needless) {
		s.found = append(s.found, way)
	}
	return true
}

// narrow leaves of the ids of a step those by which its line decides, all of them
// alike. Of a channel the category is not known, so it is said in which it may not be.
func (s *search) narrow(w *world, d Doing) (Doing, bool) {
	if len(d.IDs)+len(d.Categories) == 0 {
		return d, true
	}
	var all []tiered
	try := func(ids, categories []string) {
		single := d
		single.IDs, single.Categories = ids, categories
		next := w.after(single)
		if by := next.decide(); by.Tier >= s.tier && slices.Contains(d.Rules, by.Rule) {
			all = append(all, tiered{single, by.Tier})
		}
	}
	for _, id := range d.IDs[:min(len(d.IDs), mostTried)] {
		try([]string{id}, nil)
	}
	for _, id := range d.Categories[:min(len(d.Categories), mostTried)] {
		try(nil, []string{id})
	}
	if len(all) == 0 {
		return d, false
	}
	ids, categories := []string(nil), []string(nil)
	for _, t := range all {
		if t.tier == all[0].tier {
			ids, categories = append(ids, t.IDs...), append(categories, t.Categories...)
		}
	}
	d.IDs, d.Categories = slices.Compact(ids), slices.Compact(categories)
	if d.Step == AskIn && len(ids) > 0 {
		d.Unless = w.unless(d, all[0].tier)
	}
	return d, true
}

// unless gives the limits that another channel may be under by its category.
func (w *world) unless(d Doing, t Tier) (out []string) {
	workspace := w.where.Workspace
	if d.Workspace != "" {
		workspace = d.Workspace
	}
	for _, c := range w.caps {
		if c.Platform == w.who.Platform && c.Workspace == workspace && len(c.Categories) > 0 && c.Tier < t {
			out = append(out, c.Origin)
		}
	}
	return out
}

// tiered is a step with the tier that it gives.
type tiered struct {
	Doing
	tier Tier
}

// blockLifts gives what takes away every block that denies them; one that takes
// nothing where none does.
func (w *world) blockLifts() [][]Doing {
	var named, unknown []string
	for _, b := range w.blocks {
		alone := NewRules(nil, nil, b)
		by, why := alone.blocked(&w.who, &w.where)
		switch {
		case by == nil:
		case why == by.why:
			named = append(named, b.Origin)
		default:
			unknown = append(unknown, b.Origin)
		}
	}
	if len(named)+len(unknown) == 0 {
		return [][]Doing{nil}
	}
	var out [][]Doing
	if len(unknown) > 0 {
		for _, known := range w.lookups() {
			if lift := []Doing{known}; len(named) > 0 {
				out = append(out, append(lift, Doing{Step: Unblock, Rules: named}))
			} else {
				out = append(out, lift)
			}
		}
	}
	all := slices.Compact(append(slices.Clone(named), unknown...))
	return append(out, []Doing{{Step: Unblock, Rules: all}})
}

// placeLifts gives what makes the place allow the tier.
func (w *world) placeLifts(t Tier) (out [][]Doing) {
	if w.decide().Place >= t {
		return nil
	}
	other := Doing{Step: AskElsewhere, Platform: w.who.Platform, Workspace: w.where.Workspace}
	if w.where.Most < t {
		other.Why = "asking where the bot knows the channel and its category, and no strangers read along"
		if w.who.Platform == Slack {
			other.Why = "asking in a channel that is not shared with another organisation"
		}
	}
	for _, d := range []Doing{other, {Step: AskDirect}} {
		if next := w.after(d); (d.Step == AskDirect || w.where.Workspace != "") && next.decide().Place >= t {
			out = append(out, []Doing{d})
			break
		}
	}
	lift := Doing{Step: Unlimit}
	for _, c := range w.caps {
		if c.Tier < t && c.covers(&w.where) {
			lift.Rules = append(lift.Rules, c.Origin)
			if c.Channels == nil && c.Categories == nil {
				lift.Why = "from " + home(c.Platform, c.Workspace)
			}
		}
	}
	if w.where.Most >= t {
		out = append(out, []Doing{lift})
	}
	return out
}

// lookups gives what the platform could say of them and has not.
func (w *world) lookups() (out []Doing) {
	if w.who.External || w.where.Workspace == "" {
		return nil
	}
	roles, groups := "", ""
	for _, b := range w.blocks {
		if b.Platform == w.who.Platform && b.Workspace == w.where.Workspace {
			if len(b.Roles) > 0 {
				roles = "without a role that is blocked"
			}
			if len(b.Groups) > 0 {
				groups = "none of them blocked"
			}
		}
	}
	switch {
	case !w.who.Member:
		out = append(out, Doing{Step: BeMember, Platform: w.who.Platform, Workspace: w.where.Workspace, Why: roles})
	case w.who.Platform == Slack && !w.who.GroupsKnown && groups != "":
		out = append(out, Doing{Step: TellGroups, Why: groups})
	}
	return out
}

// memberships gives the roles and user groups that lines for this tier name.
func (w *world) memberships(t Tier) (out []Doing) {
	if w.who.External || !w.who.Member || w.where.Workspace == "" {
		return nil
	}
	for i := range w.built.rules {
		x := &w.built.rules[i]
		if x.Tier < t || x.Tier >= Owner || x.scope(&w.who, &w.where, w.now) != holds || len(out) >= mostTried {
			continue
		}
		if len(x.Roles) > 0 && w.who.Platform == Discord {
			out = append(out, Doing{Step: TakeRole, Rules: []string{x.Origin}, IDs: x.Roles})
		}
		if len(x.Groups) > 0 && w.who.Platform == Slack {
			d := Doing{Step: JoinGroup, Rules: []string{x.Origin}, IDs: x.Groups}
			if !w.who.GroupsKnown {
				d.Why = "Slack saying that they are in"
			}
			out = append(out, d)
		}
	}
	return out
}

// places gives where lines for this tier hold that name them already.
func (w *world) places(t Tier) (out []Doing) {
	if w.where.Direct && w.where.Workspace != "" {
		out = append(out, Doing{Step: AskElsewhere, Platform: w.who.Platform, Workspace: w.where.Workspace, Why: "asking in a channel"})
	}
	for _, list := range [][]rule{w.built.rules, w.built.grants} {
		for i := range list {
			if d, ok := list[i].place(w); ok && list[i].Tier >= t && len(out) < mostTried {
				out = append(out, d)
			}
		}
	}
	return out
}

// place gives where the rule would hold for somebody who is elsewhere.
func (r *rule) place(w *world) (Doing, bool) {
	d := Doing{Step: AskIn, Platform: r.Platform, Rules: []string{r.Origin}, IDs: r.Channels, Categories: r.Categories}
	_, listed := slices.BinarySearch(r.Users, w.who.User)
	switch here := r.Workspace == w.where.Workspace; {
	case r.Workspace == "", r.Channels != nil && len(r.Channels)+len(r.Categories) == 0:
		return d, false
	case here && within(r.Channels, r.Categories, &w.where) && !w.where.Direct:
		return d, false
	case here:
		return d, len(r.Channels)+len(r.Categories) > 0
	}
	d.Workspace = r.Workspace
	return d, listed && w.who.Platform == Discord && !w.who.External
}

// lines gives what could be changed in a line that would name them.
func (w *world) lines(t Tier) (out []Doing) {
	for i := range w.built.rules {
		x := &w.built.rules[i]
		if x.Tier < t || x.names(&w.who, &w.where) == byNothing || len(out) >= mostTried {
			continue
		}
		switch x.scope(&w.who, &w.where, w.now) {
		case ended:
			out = append(out, Doing{Step: Extend, Rules: []string{x.Origin}, Ended: x.Until.UTC().Format(time.RFC3339)})
		case outsider:
			if x.Tier == Guest && w.who.Platform == Slack {
				out = append(out, Doing{Step: Admit, Rules: []string{x.Origin}})
			}
		}
	}
	return out
}

// additions gives a new line and a new grant.
func (w *world) additions(t Tier) (out []Doing) {
	if d, ok := w.ownLine(t); ok {
		out = append(out, d)
	}
	g := Grant{
		Tier: t, Platform: w.who.Platform, Workspace: w.where.Workspace, User: w.who.User, External: w.who.External,
		Made: w.now, Until: w.now.Add(dayLong),
	}
	channel := w.where.Channel
	if w.where.Parent != "" {
		channel = w.where.Parent
	}
	if channel != elsewhere {
		g.Channels = []string{channel}
	}
	if !w.where.Direct && g.Check() == nil {
		out = append(out, Doing{Step: MakeGrant, Grant: &g})
	}
	return out
}

// ownLine gives a line that lists them, in the file of the tier. An id stands in
// one tier only, so it moves there from lower ones; from higher ones it does not.
func (w *world) ownLine(t Tier) (Doing, bool) {
	line := Rule{Tier: t, Platform: w.who.Platform, Workspace: w.where.Workspace, Users: []string{w.who.User}, Origin: "tiers/" + t.String() + ".yaml"}
	d := Doing{Step: AddLine, Tier: t, Line: &line}
	switch {
	case w.who.External:
		line.External = true
	case w.who.Platform == Discord && w.where.Workspace == "":
		d.Why = "without a guild: a line with one does not hold in a direct message"
	case w.who.Platform == Discord && !w.who.Member:
		line.Workspace, d.Why = "", "without a guild: a line with one is about its members only"
	}
	for again := true; again; {
		again, d.Rules = false, nil
		for i := range w.rules {
			x := &w.rules[i]
			_, listed := slices.BinarySearch(x.Users, w.who.User)
			apart := x.Workspace != line.Workspace && x.Workspace != "" && line.Workspace != ""
			switch {
			case !listed || x.Tier == t || apart || !x.Until.IsZero():
			case x.Tier > t:
				return d, false
			case x.Workspace == "" && line.Workspace != "": // what moves holds no less widely
				line.Workspace, again = "", true
			default:
				d.Rules = append(d.Rules, x.Origin)
			}
		}
	}
	return d, true
}
