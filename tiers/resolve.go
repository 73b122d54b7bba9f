package tiers

import "time"

// Decision is the tier of a message and why. The zero Decision refuses.
type Decision struct {
	Tier   Tier   `json:"tier"`            // min(Person, Place), or none for the blocked
	Person Tier   `json:"person"`          // what the rules give the person here
	Place  Tier   `json:"place"`           // the most that this place allows
	Rule   string `json:"rule,omitempty"`  // origin of the rule that gave Person; empty: none did
	Cap    string `json:"cap,omitempty"`   // origin of the limit that lowered the person; empty: none did
	Block  string `json:"block,omitempty"` // origin of the block that denied the person; empty: none did
	// Audience is what everybody is known to be who can read the answer: the
	// asker's tier in a direct message, team where the operator says so and the
	// adapter does not know better. None: strangers may read along.
	Audience Tier   `json:"audience,omitempty"`
	Why      string `json:"why"` // one sentence for the operator
}

// Resolve decides the tier of a message from the ids of its sender and place, at
// a time: blocks first, then the highest rule that matches, then the limit of
// the place. The zero time is before every end. It is total: whatever it does
// not know is None.
// Guarded by tests/contract TestNamesBotsAndDirectMessagesGetNothing.
func (r Rules) Resolve(who Identity, where Place, now time.Time) Decision {
	if why := unknown(&who, &where); why != "" {
		return Decision{Why: why}
	}
	d := Decision{Place: where.Most}
	if b, why := r.blocked(&who, &where); b != nil {
		d.Block, d.Why = b.Origin, why
		return d
	}
	d.Person, d.Rule, d.Why = r.person(&who, &where, now)
	if d.Person < Team && r.groupsMatter(&who, &where) {
		d.Why += groupsUnknown
	}
	most, audience := r.place(&where)
	if most != nil && most.Cap.Tier < where.Most {
		d.Place = most.Cap.Tier
	}
	d.Tier = min(d.Person, d.Place)
	switch {
	case d.Tier == d.Person:
	case d.Place == where.Most:
		d.Cap, d.Why = askedThere, whereAsked(where.Most)
	default:
		d.Cap, d.Why = most.Origin, most.why
	}
	d.Audience = min(audience, d.Place)
	if where.Direct {
		d.Audience = d.Tier
	}
	return d
}

// askedThere stands for the adapter's own limit, where a file and line stand for
// the operator's.
const askedThere = "set by where it was asked"

func whereAsked(most Tier) string {
	if most == Guest {
		return "where it was asked, nobody is more than guest (set by where it was asked)"
	}
	return "where it was asked, nobody is more than team (set by where it was asked)"
}

func unknown(who *Identity, where *Place) string {
	switch {
	case who.Platform == "" || who.User == "":
		return "the sender has no id"
	case who.Kind != Person:
		return "only people are answered, not bots or webhooks"
	case where.Platform != who.Platform:
		return "sender and place are of different platforms"
	case where.Channel == "":
		return "the place has no id"
	case where.Most <= None || where.Most > Owner:
		return "nobody is let in here"
	}
	return ""
}

const (
	noRule      = "no rule matches this person here"
	noOutsiders = "they belong to another organisation, and no rule here admits those"
	noMember    = "no rule matches this person here, who is not known to be a member"
)

// person gives what the rules give somebody here, by which rule, and why.
func (r *Rules) person(who *Identity, where *Place, now time.Time) (Tier, string, string) {
	if who.Platform == Local {
		return Owner, "", "the terminal of this machine"
	}
	best, by, tier := int32(-1), byNothing, None
	try := func(list []int32) {
		for _, n := range list {
			x := &r.rules[n]
			w := x.names(who, where)
			if w == byNothing || x.scope(who, where, now) != holds {
				continue
			}
			if t := x.gives(who, w); t > tier || t == tier && n < best {
				best, by, tier = n, w, t
			}
		}
	}
	try(r.users[who.User])
	for _, id := range who.Roles {
		try(r.roles[id])
	}
	for _, id := range who.Groups {
		try(r.groups[id])
	}
	for _, id := range [...]string{where.Channel, where.Parent, where.Category} {
		if id != "" {
			try(r.places[id])
		}
	}
	won := (*rule)(nil)
	if best >= 0 {
		won = &r.rules[best]
	}
	for _, n := range r.grantees[who.User] {
		g := &r.grants[n]
		if t := g.gives(who, byUser); t > tier && g.scope(who, where, now) == holds {
			won, by, tier = g, byUser, t
		}
	}
	switch {
	case won != nil && who.External:
		return tier, won.Origin, won.outside[by]
	case won != nil && tier < won.Tier:
		return tier, won.Origin, won.lowered[by]
	case won != nil:
		return tier, won.Origin, won.why[by]
	case who.External:
		return None, "", noOutsiders
	case !who.Member && where.Workspace != "":
		return None, "", noMember
	}
	return None, "", noRule
}

// place gives the lowest limit of a place, and what its readers are known to be.
func (r *Rules) place(where *Place) (most *limit, audience Tier) {
	for _, id := range [...]string{where.Channel, where.Parent, where.Category, where.Workspace} {
		for _, n := range r.limits[id] {
			c := &r.caps[n]
			if id == "" || !c.covers(where) {
				continue
			}
			if most == nil || c.Tier < most.Tier {
				most = c
			}
			audience = max(audience, c.Audience)
		}
	}
	return most, audience
}

func (c *Cap) covers(where *Place) bool {
	return c.Platform == where.Platform && c.Workspace == where.Workspace && within(c.Channels, c.Categories, where)
}

// blocked gives the block that denies somebody here, and why.
// Guarded by tests/contract TestTheDecisionTable.
func (r *Rules) blocked(who *Identity, where *Place) (*denial, string) {
	for _, n := range r.deniedUsers[who.User] {
		if b := &r.blocks[n]; b.covers(who, where) {
			return b, b.why
		}
	}
	if where.Workspace == "" {
		return nil, "" // roles and user groups count in their guild or workspace only
	}
	for _, n := range r.deniedRoles[where.Workspace] {
		b := &r.blocks[n]
		switch {
		case !b.covers(who, where):
		case len(b.Roles) > 0 && (!who.Member || who.Workspace != b.Workspace):
			return b, b.unknown
		case overlap(b.Roles, who.Roles), b.Platform == Slack && overlap(b.Groups, who.Groups):
			return b, b.why
		case b.Platform == Slack && len(b.Groups) > 0 && !who.GroupsKnown:
			return b, b.unknownGroups
		}
	}
	return nil, ""
}

// covers says whether a block is about this place or the workspace that
// somebody comes from: a denial is read widely.
func (b *Block) covers(who *Identity, where *Place) bool {
	return b.Platform == who.Platform &&
		(b.Workspace == where.Workspace || b.Workspace == who.Workspace || b.Workspace == "" && b.Platform == Discord)
}
