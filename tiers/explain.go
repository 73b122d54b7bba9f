package tiers

import (
	"fmt"
	"strings"
	"time"
)

// Finding is one rule, limit or block that has to do with somebody or their
// place, and what it does for them.
type Finding struct {
	Kind    string `json:"kind"` // rule, grant, cap, block
	Tier    Tier   `json:"tier"` // what it would give, or lower to
	Origin  string `json:"origin"`
	Won     bool   `json:"won"`     // it had a part in the decision
	Verdict string `json:"verdict"` // what it did, in two or three words
	Why     string `json:"why"`
}

// The verdicts.
const (
	decided    = "decided"
	notThem    = "not this person"
	notHere    = "not here"
	overNow    = "has ended"
	butLower   = "matches, but lower"
	butBlocked = "matches, but blocked"
	butNobody  = "matches, but no person"
	placeLimit = "limit of the place"
)

// Explanation is a decision with everything that it was weighed against.
type Explanation struct {
	Decision Decision  `json:"decision"`
	Findings []Finding `json:"findings"`
	Others   int       `json:"others"`         // rules of this platform that are about other people and places
	Next     Tier      `json:"next,omitempty"` // the lowest tier of Paths to which there are ways
	Ways     []string  `json:"ways"`           // the sentences of those
	Paths    []Path    `json:"paths"`          // what would make them more, by tier
}

// Explain decides as Resolve does, and says of each rule that has to do with
// the person or the place what it does for them, and what would make them more.
// It may take long where there are many rules.
func (r Rules) Explain(who Identity, where Place, now time.Time) Explanation {
	x := Explanation{Decision: r.Resolve(who, where, now), Findings: []Finding{}, Ways: []string{}, Paths: []Path{}}
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
			x.Findings = append(x.Findings, c.finding(x.Decision.Cap == c.Origin))
		}
	}
	why := unknown(&who, &where)
	switch {
	case x.Decision.Tier >= Owner || who.Platform == Local:
	case why != "":
		x.Paths = []Path{{Tier: x.Decision.Tier + 1, Ways: []Way{}, Cannot: why}}
	default:
		w := r.worldOf(who, where, now)
		x.Lead(w.paths(x.Decision)...)
	}
	return x
}

// Lead sets what would make them more.
func (x *Explanation) Lead(paths ...Path) {
	x.Paths, x.Next, x.Ways = append([]Path{}, paths...), None, []string{}
	for _, p := range paths {
		if len(p.Ways) > 0 {
			x.Next = p.Tier
			for _, w := range p.Ways {
				x.Ways = append(x.Ways, w.String())
			}
			return
		}
	}
}

func (b *denial) find(x *Explanation, who *Identity, where *Place) {
	won := x.Decision.Block == b.Origin
	if !won && !overlap(b.Users, []string{who.User}) && !overlap(b.Roles, who.Roles) && !overlap(b.Groups, who.Groups) {
		return
	}
	f := Finding{"block", None, b.Origin, won, decided, "it denies them everything"}
	if !won {
		f.Verdict, f.Why = notHere, "it names them, but for another guild or workspace"
		if b.covers(who, where) {
			f.Verdict, f.Why = butBlocked, "it denies them too"
		}
	}
	x.Findings = append(x.Findings, f)
}

func (c *limit) finding(won bool) Finding {
	why := "nobody is more than " + c.Tier.String() + " here"
	if !won {
		why += ", which lowers them no further"
	}
	return Finding{"cap", c.Tier, c.Origin, won, placeLimit, why}
}

// find adds the rule to an explanation, or counts it where it is about others.
func (r *rule) find(x *Explanation, who *Identity, where *Place, now time.Time) {
	by, missed := r.names(who, where), r.scope(who, where, now)
	f := Finding{Kind: r.kind(), Tier: r.Tier, Origin: r.Origin, Won: r.Origin != "" && x.Decision.Rule == r.Origin}
	elsewhere := missed == otherPlatform || missed == otherWorkspace || missed == otherPlace || missed == direct
	switch {
	case f.Won:
		f.Verdict, f.Why = decided, r.matches(by)+r.atMost(who, by)
		if !r.Until.IsZero() && !r.granted { // the name of a grant tells its end
			f.Why += ", until " + r.Until.UTC().Format(time.RFC3339)
		}
	case by == byNothing && missed == holds && !r.granted:
		f.Verdict, f.Why = notThem, "for this place, but "+r.lacks(who)
	case by == byNothing, by == byAnyone && elsewhere:
		if missed != otherPlatform {
			x.Others++
		}
		return
	case missed == ended:
		f.Verdict, f.Why = overNow, r.by(by)+" would match, but it has ended at "+r.Until.UTC().Format(time.RFC3339)
	case missed != holds:
		f.Verdict, f.Why = notHere, r.by(by)+" would match, but "+missed.String()
	default:
		f.Verdict, f.Why = r.beaten(x.Decision, who, where, by)
	}
	x.Findings = append(x.Findings, f)
}

func (r *rule) kind() string {
	if r.granted {
		return "grant"
	}
	return "rule"
}

// matches says by which part the rule is about them.
func (r *rule) matches(by way) string {
	switch by {
	case byUser:
		return "it lists their user id"
	case byRole:
		return "it names a role of theirs"
	case byGroup:
		return "it names a user group of theirs"
	}
	return "for " + r.by(by)
}

// atMost says what keeps somebody from the whole of the rule.
func (r *rule) atMost(who *Identity, by way) string {
	switch {
	case r.gives(who, by) == r.Tier:
		return ""
	case who.External:
		return ", but " + outsidersAtMost
	}
	return accountAtMost
}

// beaten says why a rule that matches has not decided.
func (r *rule) beaten(d Decision, who *Identity, where *Place, by way) (verdict, why string) {
	gives := r.gives(who, by)
	switch stop := unknown(who, where); {
	case stop != "":
		return butNobody, r.matches(by) + ", but " + stop
	case d.Block != "":
		return butBlocked, r.matches(by) + ", but the block " + d.Block + " wins over every rule"
	case gives < d.Person:
		return butLower, r.matches(by) + r.atMost(who, by) + "; " + d.Rule + " gives them more"
	}
	return butLower, r.matches(by) + r.atMost(who, by) + "; it gives no more than " + d.Rule + " does already"
}

// lacks says whom the rule names in their place.
func (r *rule) lacks(who *Identity) string {
	var parts []string
	if n := len(r.Users); n > 0 && n <= mostNamed {
		parts = append(parts, "it names other people: "+strings.Join(r.Users, ", "))
	} else if n > mostNamed {
		parts = append(parts, fmt.Sprintf("it names %d other people", n))
	}
	if len(r.Roles) > 0 {
		parts = append(parts, "they lack "+oneOf("the role", "the roles", r.Roles))
	}
	if len(r.Groups) > 0 && who.Platform == Slack && !who.GroupsKnown {
		parts = append(parts, "it is not known whether they are in "+oneOf("the user group", "one of the user groups", r.Groups))
	} else if len(r.Groups) > 0 {
		parts = append(parts, "they are not in "+oneOf("the user group", "the user groups", r.Groups))
	}
	if r.Anyone {
		parts = append(parts, "everybody only outside of direct messages")
	}
	if len(parts) == 0 {
		return "it names nobody"
	}
	return strings.Join(parts, ", and ")
}
