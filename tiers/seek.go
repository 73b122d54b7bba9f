package tiers

import (
	"cmp"
	"slices"
	"time"
)

// world is a state of rules in which somebody asks somewhere. What would make
// them more is tried in a copy of it, so nothing is proposed that does not help.
type world struct {
	rules  []Rule
	caps   []Cap
	blocks []Block
	grants []rule
	who    Identity
	where  Place
	now    time.Time
	built  Rules
}

// worldOf holds what of the rules can be about somebody.
func (r *Rules) worldOf(who Identity, where Place, now time.Time) world {
	w := world{who: who, where: where, now: now, grants: r.grants}
	for i := range r.rules {
		x := &r.rules[i]
		_, listed := slices.BinarySearch(x.Users, who.User)
		if x.Platform == who.Platform && (listed || x.Anyone || len(x.Roles)+len(x.Groups) > 0) {
			w.rules = append(w.rules, x.Rule)
		}
	}
	w.caps, w.blocks = r.Caps(), r.Blocks()
	w.build()
	return w
}

func (w *world) build() {
	w.built = NewRules(w.rules, w.caps, w.blocks...)
	w.built.grants, w.built.grantees = w.grants, map[string][]int32{}
	for i := range w.grants {
		index(w.built.grantees, i, w.grants[i].Users)
	}
}

func (w *world) decide() Decision { return w.built.Resolve(w.who, w.where, w.now) }

// elsewhere is a channel that no line names.
const elsewhere = "elsewhere"

// after is the world once all of it is done.
func (w *world) after(steps ...Doing) world {
	next, edited := *w, false
	for i := range steps {
		d := &steps[i]
		switch d.Step {
		case TakeRole:
			next.who.Roles = append(slices.Clone(next.who.Roles), d.IDs[0])
		case JoinGroup:
			next.who.Groups = append(slices.Clone(next.who.Groups), d.IDs[0])
		case AskIn, AskElsewhere, AskDirect:
			next.move(d)
		case TellGroups:
			next.who.GroupsKnown = true
		case BeMember:
			next.who.Member, next.who.Workspace = true, d.Workspace
		default:
			next.edit(d)
			edited = true
		}
	}
	if edited {
		next.build()
	}
	return next
}

// move asks somewhere else, of which all is known.
func (w *world) move(d *Doing) {
	w.where = Place{Platform: w.where.Platform, Workspace: w.where.Workspace, Channel: elsewhere, Most: Owner}
	switch {
	case d.Step == AskDirect:
		w.where.Direct = true
		if w.who.Platform == Discord {
			w.where.Workspace, w.who.Workspace, w.who.Member, w.who.Roles = "", "", false, nil
		}
		return
	case d.Step == AskElsewhere:
		return
	case len(d.IDs) > 0:
		w.where.Channel = d.IDs[0]
	case len(d.Categories) > 0:
		w.where.Category = d.Categories[0]
	}
	if d.Workspace != "" {
		w.where.Workspace, w.who.Workspace, w.who.Member, w.who.Roles = d.Workspace, d.Workspace, true, nil
	}
}

// edit changes the rules.
func (w *world) edit(d *Doing) {
	of := func(origin string) bool { return slices.Contains(d.Rules, origin) }
	switch d.Step {
	case Unblock:
		w.blocks = slices.DeleteFunc(slices.Clone(w.blocks), func(b Block) bool { return of(b.Origin) })
	case Unlimit:
		w.caps = slices.DeleteFunc(slices.Clone(w.caps), func(c Cap) bool { return of(c.Origin) && c.covers(&w.where) })
	case MakeGrant:
		w.grants = append(slices.Clone(w.grants), d.Grant.rule())
		return
	}
	w.rules = slices.Clone(w.rules)
	for i := range w.rules {
		x := &w.rules[i]
		switch {
		case !of(x.Origin):
		case d.Step == Extend:
			x.Until = time.Time{}
		case d.Step == Admit:
			x.External = true
		case d.Step == AddLine:
			x.Users = slices.DeleteFunc(slices.Clone(x.Users), func(id string) bool { return id == w.who.User })
		}
	}
	if d.Step == AddLine {
		w.rules = append(w.rules, *d.Line)
	}
}

// mostWays bounds the ways to one tier, mostTried those that are looked for.
const (
	mostWays  = 8
	mostTried = 64
)

// paths says what would make somebody more, by the tier that they would have.
// Owner is looked for only where it is the next tier.
func (w *world) paths(d Decision) []Path {
	var found []Way
	for t := d.Tier + 1; t <= max(Team, d.Tier+1) && t <= Owner; t++ {
		s := search{world: *w, tier: t}
		s.seek()
		for _, way := range s.found {
			if !slices.ContainsFunc(found, way.needless) {
				found = append(slices.DeleteFunc(found, func(f Way) bool { return f.needless(way) }), way)
			}
		}
	}
	var out []Path
	for t := d.Tier + 1; t <= Owner; t++ {
		p := Path{Tier: t, Ways: pick(t, found)}
		if t > max(Team, d.Tier+1) && len(p.Ways) == 0 {
			continue
		}
		w.explain(&p, found)
		if len(p.Ways) > 0 || p.Cannot != "" {
			out = append(out, p)
		}
	}
	return out
}

// pick takes the ways to a tier, the shortest first; what stands in no file yet
// has its place in the list too.
func pick(t Tier, found []Way) []Way {
	out, new := []Way{}, []Way{}
	for _, way := range found {
		last := way.All[len(way.All)-1].Step
		switch {
		case way.Tier != t:
		case last == AddLine || last == MakeGrant:
			new = append(new, way)
		default:
			out = append(out, way)
		}
	}
	shorter := func(a, b Way) int { return cmp.Compare(len(a.All), len(b.All)) }
	slices.SortStableFunc(out, shorter)
	slices.SortStableFunc(new, shorter)
	new = new[:min(len(new), mostWays/2)]
	return append(out[:min(len(out), mostWays-len(new))], new...)
}

// explain says why there is no way, or what bounds those that there are.
func (w *world) explain(p *Path, found []Way) {
	higher := slices.ContainsFunc(found, func(f Way) bool { return f.Tier > p.Tier })
	switch {
	case w.who.External && p.Tier > Guest:
		p.Cannot = outsidersAtMost
	case len(p.Ways) == 0 && !higher:
		p.Cannot = "nothing that these files and flags tell of would do it"
	case w.who.Restricted && p.Tier > Guest:
		p.Note = "a guest account is more than guest by its listed id only"
	}
}
