package tiers

import (
	"fmt"
	"slices"
)

// Rule gives a tier to the people that it matches. The zero Rule matches nobody.
type Rule struct {
	Tier      Tier
	Platform  Platform
	Workspace string   // required on Slack; on Discord empty means any place, for Users only
	Channels  []string // nil: every channel of the workspace, for Users only; empty: none
	Users     []string // exact user ids
	Anyone    bool     // every person in Channels; needs Workspace and Channels
	Origin    string   // file:line, for explanations
}

// Cap lowers everybody in a place to at most a tier. It never raises anybody.
type Cap struct {
	Tier      Tier
	Platform  Platform
	Workspace string
	Channels  []string // nil: every channel of the workspace
	Origin    string
}

// Rules is an immutable set of rules and caps. The zero Rules match nobody.
type Rules struct {
	rules []Rule // owner first
	caps  []Cap
}

// NewRules copies rules and caps. Rules are tried from owner down, in the order
// given within a tier.
func NewRules(rules []Rule, caps []Cap) Rules {
	r := Rules{rules: slices.Clone(rules), caps: slices.Clone(caps)}
	for i := range r.rules {
		r.rules[i].Channels = slices.Clone(r.rules[i].Channels)
		r.rules[i].Users = slices.Clone(r.rules[i].Users)
	}
	for i := range r.caps {
		r.caps[i].Channels = slices.Clone(r.caps[i].Channels)
	}
	slices.SortStableFunc(r.rules, func(a, b Rule) int { return int(b.Tier) - int(a.Tier) })
	return r
}

// Count says how many rules give the tier.
func (r Rules) Count(t Tier) int {
	n := 0
	for _, rule := range r.rules {
		if rule.Tier == t {
			n++
		}
	}
	return n
}

// Decision is the tier of a message and why. The zero Decision refuses.
type Decision struct {
	Tier   Tier   `json:"tier"`           // min(Person, Place)
	Person Tier   `json:"person"`         // what the rules give the person here
	Place  Tier   `json:"place"`          // the most that this place allows
	Rule   string `json:"rule,omitempty"` // origin of the rule that gave Person; empty: none did
	Cap    string `json:"cap,omitempty"`  // origin of the limit that lowered the person; empty: none did
	Why    string `json:"why"`            // one sentence for the operator
}

// Resolve decides the tier of a message from the ids of its sender and place.
// It is total: whatever it does not know is None.
// Guarded by tests/contract TestNamesBotsAndDirectMessagesGetNothing.
func (r Rules) Resolve(who Identity, where Place) Decision {
	if why := unknown(who, where); why != "" {
		return Decision{Why: why}
	}
	d := Decision{}
	d.Person, d.Rule, d.Why = r.person(who, where)
	most, origin := r.place(where)
	d.Place = most
	d.Tier = min(d.Person, most)
	if d.Tier < d.Person {
		d.Cap = origin
		d.Why = fmt.Sprintf("%s; this place allows at most %s (%s)", d.Why, most, origin)
	}
	return d
}

func unknown(who Identity, where Place) string {
	switch {
	case who.Platform == "" || who.User == "":
		return "the sender has no id"
	case who.Kind != Person:
		return "only people are answered, not bots or webhooks"
	case where.Platform != who.Platform:
		return "sender and place are of different platforms"
	case where.Channel == "":
		return "the place has no id"
	case where.Most == None:
		return "nobody is let in here"
	case who.External:
		return "the sender belongs to another organisation"
	}
	return ""
}

func (r Rules) person(who Identity, where Place) (Tier, string, string) {
	if who.Platform == Local {
		return Owner, "", "the terminal of this machine"
	}
	for i := range r.rules {
		if how := r.rules[i].match(who, where); how != "" {
			rule := &r.rules[i]
			return rule.Tier, rule.Origin, fmt.Sprintf("%s makes them %s (%s)", how, rule.Tier, rule.Origin)
		}
	}
	return None, "", "no rule matches this person here"
}

// match gives the way in which the rule matches, or nothing.
func (r *Rule) match(who Identity, where Place) string {
	if r.Platform == "" || r.Platform != who.Platform || !r.covers(who, where) {
		return ""
	}
	if slices.Contains(r.Users, who.User) {
		return "their user id"
	}
	// A rule for everybody needs a named channel and never reaches into
	// direct messages, and it never gives owner.
	if r.Anyone && r.Tier < Owner && r.Workspace != "" && len(r.Channels) > 0 && !where.Direct {
		return "being a person in this channel"
	}
	return ""
}

func (r *Rule) covers(who Identity, where Place) bool {
	if r.Workspace == "" {
		return r.Platform == Discord && r.Channels == nil
	}
	if r.Workspace != where.Workspace || (who.Workspace != "" && r.Workspace != who.Workspace) {
		return false
	}
	return r.Channels == nil || slices.ContainsFunc(r.Channels, where.in)
}

func (r Rules) place(where Place) (Tier, string) {
	most, origin := where.Most, "set by where it was asked"
	for _, c := range r.caps {
		if c.Platform != where.Platform || c.Workspace != where.Workspace || c.Tier >= most {
			continue
		}
		if c.Channels == nil || slices.ContainsFunc(c.Channels, where.in) {
			most, origin = c.Tier, c.Origin
		}
	}
	return most, origin
}
