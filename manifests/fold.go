package manifests

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"parlour/tiers"
)

// The bounds of what is remembered without consent: so many states one by one,
// and of those that were folded into one so many rights of one person in one
// place, in so many bytes.
const (
	mostUnder  = 16
	mostClaims = 1 << 20
	mostFolded = 8 << 20
)

// remember adds a state to those underneath. Those that give all that it gives
// and more say nothing beside it. It takes the place of the first of them, since
// where states differ without one being less, the earliest holds. Beyond
// mostUnder all are folded into one.
// Guarded by tests/contract TestT13WithoutConsentNobodyHasMoreThanEveryStateGave
// and TestT13TheNameThatWasAcceptedOutlivesTheStatesAfterIt.
func remember(under []*Set, set *Set) (list []*Set, folded bool) {
	placed := false
	for _, before := range under {
		switch {
		case len(more(before, set)) > 0:
			list = append(list, before)
		case !placed:
			list, placed = append(list, set), true
		}
	}
	if !placed {
		list = append(list, set)
	}
	if len(list) <= mostUnder {
		return list, false
	}
	return []*Set{fold(list)}, true
}

// foldedName is where the Texts of a folded state hold all of it. No tier file has
// such a name.
const foldedName = "(folded)"

// folded is how a state is written that stands for several: no tier file says it.
// The numbers in it mean what they mean to this form.
type folded struct {
	Form   int                 `json:"form"`
	Rules  []tiers.Rule        `json:"rules"`
	Caps   []tiers.Cap         `json:"caps"`
	Blocks []tiers.Block       `json:"blocks"`
	Tiers  map[tiers.Tier]Tier `json:"tiers"`
}

// foldedForm is raised with each change of what a folded state means.
const foldedForm = 1

// fold gives a Set that gives nobody more than any of the Sets gives, in one. It
// may give less: where two differ in ways that no one line can say, neither
// counts. What would be too large to be kept gives nothing.
func fold(sets []*Set) *Set {
	rules, last := sets[0].rules, len(sets)-1
	for _, s := range sets[1:] {
		rules = lesserRules(rules, s.rules)
	}
	f := folded{Form: foldedForm, Rules: rules.All(), Caps: rules.Caps(), Blocks: rules.Blocks(), Tiers: map[tiers.Tier]Tier{}}
	for _, t := range tiers.All() {
		if tier, ok := InForce(sets[last], sets[:last]...).Tier(t); ok {
			f.Tiers[t] = tier
		}
	}
	text, err := json.Marshal(f)
	if err != nil || len(text) > mostFolded {
		return Nothing()
	}
	return f.set(text)
}

// unfold reads a folded state. A form of another program is a fault.
// Guarded by TestAFoldedStateIsReadAsItWasWritten.
func unfold(text string) (*Set, error) {
	var f folded
	if err := json.Unmarshal([]byte(text), &f); err != nil {
		return nil, fmt.Errorf("a folded state: %w", err)
	}
	if f.Form != foldedForm {
		return nil, fmt.Errorf("a folded state of form %d, and this program knows form %d", f.Form, foldedForm)
	}
	return f.set([]byte(text)), nil
}

func (f folded) set(text []byte) *Set {
	s := SetOf()
	if text == nil {
		text = fmt.Appendf(nil, `{"form":%d}`, foldedForm)
	}
	s.own.tiers = []source{{name: foldedName, text: text}}
	s.rules = tiers.NewRules(f.Rules, f.Caps, f.Blocks...)
	for t, tier := range f.Tiers {
		s.tiers[t] = tier
	}
	return s
}

// lesserRules gives rules by which nobody has more than by either: the rights that
// both give, and the limits and blocks of both.
// Guarded by TestNobodyHasMoreByLesserRules.
func lesserRules(a, b tiers.Rules) tiers.Rules {
	rights := grantedByBoth(a, b)
	caps := unique(slices.Concat(a.Caps(), b.Caps()), sayCap)
	for i := range caps {
		caps[i].Audience = tiers.None // that is a right: it has to be given by both
	}
	var rules []tiers.Rule
	groups := map[string]int{}
	for _, c := range rights {
		if c.kind == "audience" {
			caps = append(caps, tiers.Cap{Tier: tiers.Owner, Platform: c.platform, Workspace: c.workspace,
				Channels: c.channels, Categories: c.categories, Audience: c.tier, Origin: c.origin})
			continue
		}
		key := fmt.Sprint(c.kind == "anyone", c.platform, c.workspace, c.where(), c.tier, c.until.UnixNano(), c.external, c.origin)
		at, known := groups[key]
		if !known {
			at, groups[key] = len(rules), len(rules)
			rules = append(rules, tiers.Rule{Tier: c.tier, Platform: c.platform, Workspace: c.workspace, Channels: c.channels,
				Categories: c.categories, Until: c.until, External: c.external, Origin: c.origin})
		}
		c.name(&rules[at])
	}
	return tiers.NewRules(rules, caps, unique(slices.Concat(a.Blocks(), b.Blocks()), sayBlock)...)
}

// name puts whom a claim is about into a rule.
func (c claim) name(r *tiers.Rule) {
	switch c.kind {
	case "user":
		r.Users = append(r.Users, c.id)
	case "role":
		r.Roles = append(r.Roles, c.id)
	case "group":
		r.Groups = append(r.Groups, c.id)
	case "anyone":
		r.Anyone = true
	}
}

// where tells one place from another.
func (c claim) where() string {
	return fmt.Sprintf("%q %q %t", c.channels, c.categories, c.channels == nil && c.categories == nil)
}

// grantedByBoth gives what of the rights both rules give, each for one place.
func grantedByBoth(a, b tiers.Rules) (out []claim) {
	other := byKey(single(granted(b.All(), b.Caps(), nil)))
	found := map[claimKey][]claim{}
	var order []claimKey
	for _, c := range single(granted(a.All(), a.Caps(), nil)) {
		for _, d := range other[c.key()] {
			both, ok := c.and(d)
			if !ok || covered(found[c.key()], both) {
				continue
			}
			if found[c.key()] == nil {
				order = append(order, c.key())
			}
			found[c.key()] = append(slices.DeleteFunc(found[c.key()], both.covers), both)
		}
	}
	for _, key := range order {
		out = append(out, found[key]...)
	}
	return out
}

func covered(list []claim, c claim) bool {
	return slices.ContainsFunc(list, func(had claim) bool { return had.covers(c) })
}

// covers says whether a claim gives all that another of the same key gives.
func (c claim) covers(less claim) bool {
	both, ok := c.and(less)
	return ok && both.tier == less.tier && both.external == less.external && both.until.Equal(less.until) &&
		both.workspace == less.workspace && both.where() == less.where()
}

// single splits claims that hold in several places. Too many are none.
func single(claims []claim) (out []claim) {
	n := 0
	for _, c := range claims {
		if n += max(1, len(c.channels)+len(c.categories)); n > mostClaims {
			return nil
		}
	}
	for _, c := range claims {
		if c.channels == nil && c.categories == nil {
			out = append(out, c)
			continue
		}
		for _, id := range c.channels {
			one := c
			one.channels, one.categories = []string{id}, nil
			out = append(out, one)
		}
		for _, id := range c.categories {
			one := c
			one.channels, one.categories = nil, []string{id}
			out = append(out, one)
		}
	}
	return out
}

// and gives what two claims of one key give alike. It is false where that is
// nothing, and where no one line says it, as with a channel and a category.
func (c claim) and(d claim) (claim, bool) {
	if d.workspace == "" || d.channels == nil && d.categories == nil && d.workspace == c.workspace {
		c, d = d, c // now c is the wider place, if one is
	}
	switch {
	case c.workspace != "" && c.workspace != d.workspace:
		return claim{}, false
	case (c.channels != nil || c.categories != nil) && (c.workspace != d.workspace || c.where() != d.where()):
		return claim{}, false
	}
	both := d
	if c.tier < d.tier {
		both.origin = c.origin
	}
	both.tier, both.external = min(c.tier, d.tier), c.external && d.external
	both.until = earlier(c.until, d.until)
	return both, true
}

// earlier knows that no time is never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// unique gives each value once, by what it says.
func unique[T any](list []T, says func(T) string) (out []T) {
	seen := map[string]bool{}
	for _, x := range list {
		if key := says(x); !seen[key] {
			out, seen[key] = append(out, x), true
		}
	}
	return out
}

func sayCap(c tiers.Cap) string {
	return fmt.Sprintf("%d %q %q %s", c.Tier, c.Platform, c.Workspace, claim{channels: c.Channels, categories: c.Categories}.where())
}

func sayBlock(b tiers.Block) string {
	b.Origin = ""
	return fmt.Sprintf("%q", b)
}
