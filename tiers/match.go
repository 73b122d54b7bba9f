package tiers

import (
	"fmt"
	"slices"
	"time"
)

// way is by which part a rule names somebody.
type way uint8

const (
	byNothing way = iota
	byUser
	byRole
	byGroup
	byAnyone
	ways
)

func (w way) String() string {
	return [ways]string{"nothing", "their user id", "a role of theirs", "a user group of theirs", "anyone in this channel"}[w]
}

// miss is why a rule does not hold here and now for somebody.
type miss uint8

const (
	holds miss = iota
	otherPlatform
	otherWorkspace
	otherPlace
	notMember
	outsider
	ended
	direct
	early
)

func (m miss) String() string {
	return [...]string{"it holds here", "it is for another platform", "it is for another guild or workspace", "it is for other channels",
		"they are not known to be a member there", "it does not admit people of other organisations", "it has ended", "a grant does not hold in direct messages",
		"the grant was made later"}[m]
}

// write makes the sentences beforehand, so that deciding builds none.
func (r *rule) write() {
	for w := byUser; w < ways; w++ {
		r.why[w] = fmt.Sprintf("%s %s %s (%s)", r.by(w), verb(w, "makes them", "is"), r.Tier, r.Origin)
		if r.Tier > Guest && w != byUser {
			r.lowered[w] = fmt.Sprintf("%s %s %s (%s)%s", r.by(w), verb(w, "would make them", "is"), r.Tier, r.Origin, accountAtMost)
		}
		switch {
		case !r.External:
		case r.Tier > Guest:
			r.outside[w] = fmt.Sprintf("%s %s %s (%s), but %s", r.by(w), verb(w, "would make them", "is"), r.Tier, r.Origin, outsidersAtMost)
		case r.granted:
			r.outside[w] = r.why[w] + ", as somebody of another organisation"
		default:
			r.outside[w] = r.why[w] + ", people of other organisations too (external: guest)"
		}
	}
}

const (
	accountAtMost   = ", but a guest account is more than guest by its listed id only"
	outsidersAtMost = "people of other organisations are guests at most"
)

// by says by which part the rule names somebody.
func (r *rule) by(w way) string {
	switch {
	case w == byAnyone && len(r.Channels) == 0:
		return "anyone in this category"
	case w == byAnyone && len(r.Categories) > 0:
		return "anyone in this channel or its category"
	}
	return w.String()
}

func verb(w way, them, anyone string) string {
	if w == byAnyone {
		return anyone
	}
	return them
}

// names says by which part the rule names somebody, wherever they are. Only a
// user id can give owner.
// Guarded by tests/contract TestRolesAndGroupsNeverGiveOwner.
func (r *Rule) names(who *Identity, where *Place) way {
	if _, listed := slices.BinarySearch(r.Users, who.User); listed {
		return byUser
	}
	if r.Tier >= Owner || r.Workspace == "" || who.Workspace != r.Workspace && !who.External {
		return byNothing
	}
	switch {
	case who.Platform == Discord && !where.Direct && overlap(r.Roles, who.Roles):
		return byRole
	case who.Platform == Slack && !who.External && overlap(r.Groups, who.Groups):
		return byGroup
	case r.Anyone && !where.Direct && len(r.Channels)+len(r.Categories) > 0:
		return byAnyone
	}
	return byNothing
}

func overlap(sorted, held []string) bool {
	for _, id := range held {
		if _, found := slices.BinarySearch(sorted, id); found && id != "" {
			return true
		}
	}
	return false
}

// scope says why the rule does not hold for somebody here and now.
func (r *Rule) scope(who *Identity, where *Place, now time.Time) miss {
	switch {
	case r.Platform == "" || r.Platform != who.Platform:
		return otherPlatform
	case !r.Until.IsZero() && !now.Before(r.Until):
		return ended
	case who.External && !r.External:
		return outsider
	case r.Workspace == "":
		if r.Platform != Discord || r.Channels != nil || r.Categories != nil {
			return otherWorkspace
		}
		return holds
	case r.Workspace != where.Workspace || !who.External && who.Workspace != "" && r.Workspace != who.Workspace:
		return otherWorkspace
	case !within(r.Channels, r.Categories, where):
		return otherPlace
	case !who.Member && !who.External:
		return notMember
	}
	return holds
}

// scope of a grant leaves direct messages out: on Slack they are part of the
// workspace, and nobody reads along there. Nor does it hold before it was made.
// Guarded by tests/contract TestTheDecisionTable and
// TestAGrantDoesNotHoldBeforeItWasMade.
func (r *rule) scope(who *Identity, where *Place, now time.Time) miss {
	switch {
	case r.granted && where.Direct:
		return direct
	case r.granted && now.Before(r.since):
		return early
	}
	return r.Rule.scope(who, where, now)
}

// within says whether a place is one of the channels, a thread of one, or in one
// of the categories. Two nil lists mean everywhere; an empty one means nowhere.
func within(channels, categories []string, where *Place) bool {
	if channels == nil && categories == nil {
		return true
	}
	for _, id := range [...]string{where.Channel, where.Parent} {
		if _, found := slices.BinarySearch(channels, id); found && id != "" {
			return true
		}
	}
	_, found := slices.BinarySearch(categories, where.Category)
	return found && where.Category != ""
}

// gives is the tier that the rule has for somebody whom it names: no more than
// guest for people of other organisations, and for guest accounts that it does
// not list by id.
// Guarded by tests/contract TestTheDecisionTable.
func (r *Rule) gives(who *Identity, w way) Tier {
	if who.External || who.Restricted && w != byUser {
		return min(r.Tier, Guest)
	}
	return r.Tier
}
