package tiers

import (
	"fmt"
	"strings"
	"time"
)

// Finding is one rule, limit or block that has to do with somebody or their
// place, and what it does for them.
type Finding struct {
	Kind   string `json:"kind"` // rule, grant, cap, block
	Tier   Tier   `json:"tier"` // what it would give, or lower to
	Origin string `json:"origin"`
	Won    bool   `json:"won"`
	Why    string `json:"why"`
}

// Explanation is a decision with everything that it was weighed against.
type Explanation struct {
	Decision Decision  `json:"decision"`
	Findings []Finding `json:"findings"`
	Others   int       `json:"others"`         // rules that are about other people and places
	Next     Tier      `json:"next,omitempty"` // the next higher tier; None: there is none
	Ways     []string  `json:"ways"`           // what would bring them there
}

// Explain decides as Resolve does, and says of each rule that has to do with
// the person or the place whether it won, and else why not. It may take long
// where there are many rules.
func (r Rules) Explain(who Identity, where Place, now time.Time) Explanation {
	x := Explanation{Decision: r.Resolve(who, where, now), Findings: []Finding{}, Ways: []string{}}
	d := x.Decision
	for i := range r.blocks {
		r.blocks[i].find(&x, &who, &where)
	}
	for i := range r.rules {
		r.rules[i].find(&x, &who, &where, now)
	}
	for i := range r.grants {
		r.grants[i].find(&x, &who, &where, now)
	}
	for i := range r.caps {
		if c := &r.caps[i]; c.covers(&where) {
			why := c.why
			if d.Cap != c.Origin {
				why += ", which lowers them no further"
			}
			x.Findings = append(x.Findings, Finding{"cap", c.Tier, c.Origin, d.Cap == c.Origin, why})
		}
	}
	if d.Tier < Owner && unknown(&who, &where) == "" && who.Platform != Local {
		x.Next = d.Tier + 1
		x.Ways = r.waysTo(x.Next, d, &who, &where, now)
	}
	return x
}

func (b *denial) find(x *Explanation, who *Identity, where *Place) {
	won := x.Decision.Block == b.Origin
	if !won && !overlap(b.Users, []string{who.User}) && !overlap(b.Roles, who.Roles) && !overlap(b.Groups, who.Groups) {
		return
	}
	why := "it denies them everything"
	if !won {
		why = "it names them, but for another guild or workspace"
		if b.covers(who, where) {
			why = "it denies them too"
		}
	}
	x.Findings = append(x.Findings, Finding{"block", None, b.Origin, won, why})
}

// find adds the rule to an explanation, or counts it where it is about others.
func (r *rule) find(x *Explanation, who *Identity, where *Place, now time.Time) {
	by, missed := r.names(who, where), r.scope(who, where, now)
	f := Finding{Kind: r.kind(), Tier: r.Tier, Origin: r.Origin, Won: r.Origin != "" && x.Decision.Rule == r.Origin}
	switch {
	case f.Won:
		f.Why = by.String() + " matches"
		if !r.Until.IsZero() && !r.granted { // the name of a grant tells its end
			f.Why += ", until " + r.Until.UTC().Format(time.RFC3339)
		}
		if given := r.gives(who, by); given < r.Tier {
			f.Why += ", but gives them " + given.String() + " at most, being a guest account or of another organisation"
		}
	case by == byNothing && r.granted:
		x.Others++
		return
	case by == byNothing && missed == holds:
		f.Why = "it holds here, but for others: " + r.wants()
		if len(r.Groups) > 0 && !who.GroupsKnown {
			f.Why += groupsUnknown
		}
	case by == byNothing, by == byAnyone && missed != holds && missed != notMember && missed != outsider && missed != ended:
		x.Others++
		return
	case missed != holds:
		f.Why = by.String() + " would match, but " + missed.String()
	case x.Decision.Block != "":
		f.Why = by.String() + " matches, but a block wins over every rule"
	case r.gives(who, by) < r.Tier:
		f.Why = by.String() + " matches, but gives them " + r.gives(who, by).String() + " at most, being a guest account or of another organisation"
	default:
		f.Why = by.String() + " matches, but a higher rule or one before it wins"
	}
	x.Findings = append(x.Findings, f)
}

func (r *rule) kind() string {
	if r.granted {
		return "grant"
	}
	return "rule"
}

// wants says whom the rule names.
func (r *rule) wants() string {
	var parts []string
	if n := len(r.Users); n == 1 {
		parts = append(parts, "the user id "+r.Users[0])
	} else if n > 1 {
		parts = append(parts, fmt.Sprintf("%d listed user ids", n))
	}
	for _, id := range r.Roles {
		parts = append(parts, "role "+id)
	}
	for _, id := range r.Groups {
		parts = append(parts, "user group "+id)
	}
	if r.Anyone {
		parts = append(parts, "members outside of direct messages")
	}
	return strings.Join(parts, ", ")
}

// mostWays bounds what Explain proposes.
const mostWays = 8

// waysTo says what would bring somebody to a tier.
func (r *Rules) waysTo(next Tier, d Decision, who *Identity, where *Place, now time.Time) []string {
	switch {
	case d.Block != "":
		return []string{"the block at " + d.Block + " taken away: nothing else helps before"}
	case d.Tier < d.Person && d.Cap == askedThere:
		return []string{"asking where no strangers read along and nothing is quoted: the rules give them " + d.Person.String() + " already"}
	case d.Tier < d.Person:
		return []string{"asking elsewhere, or this place taken out of " + d.Cap + ": the rules give them " + d.Person.String() + " already"}
	case d.Place < next:
		return []string{"asking elsewhere first: this place allows at most " + d.Place.String() + placeOrigin(r, where)}
	case who.External && next > Guest:
		return []string{"nothing: people of other organisations are guests at most"}
	}
	var out []string
	for i := range r.rules {
		if x := &r.rules[i]; x.Tier == next && len(out) < mostWays-1 {
			out = append(out, x.waysIn(who, where, now)...)
		}
	}
	for i := range r.grants {
		if x := &r.grants[i]; x.Tier == next && len(out) < mostWays-1 {
			out = append(out, x.waysIn(who, where, now)...)
		}
	}
	id := "their user id " + who.User + " under users in tiers/" + next.String() + ".yaml"
	switch {
	case who.External:
		id += ", in a rule with external: guest"
	case !who.Member && where.Workspace != "" && who.Platform == Discord:
		id += ", in a rule without a guild"
	}
	return append(out[:min(len(out), mostWays-1)], id)
}

func placeOrigin(r *Rules, where *Place) string {
	if most, _ := r.place(where); most != nil && most.Tier < where.Most {
		return " (" + most.Origin + ")"
	}
	return ""
}

// waysIn says what would make the rule match somebody, where one thing would.
func (r *rule) waysIn(who *Identity, where *Place, now time.Time) (out []string) {
	by, missed := r.names(who, where), r.scope(who, where, now)
	if by == byNothing && missed == holds {
		for _, id := range r.Roles {
			out = append(out, "the role "+id+" ("+r.Origin+")")
		}
		for _, id := range r.Groups {
			out = append(out, "membership of the user group "+id+" ("+r.Origin+")")
		}
		return out
	}
	if by == byNothing {
		return nil
	}
	switch missed {
	case otherPlace:
		if !who.Member && !who.External {
			return nil
		}
		return []string{"asking in one of the channels of " + r.Origin}
	case ended:
		if r.granted {
			return []string{"another grant: " + r.Origin + " has ended"}
		}
		return []string{"a later until at " + r.Origin + ", which ended at " + r.Until.UTC().Format(time.RFC3339)}
	case notMember:
		return []string{"being a member of " + r.Workspace + " (" + r.Origin + ")"}
	case outsider:
		if r.granted {
			return []string{"another grant, with --external: " + r.Origin + " does not admit people of other organisations"}
		}
		return []string{"external: guest at " + r.Origin}
	}
	return nil
}
