package manifests

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"parlour/tiers"
)

// claim is the smallest part of a rule, limit or block that can come or go: one
// id in one scope.
type claim struct {
	kind       string // user, role, group, anyone, place, audience, block
	platform   tiers.Platform
	id         string // of the person, role or group; of the channel or category for what is about places
	workspace  string // empty: everywhere
	channels   []string
	categories []string
	tier       tiers.Tier
	until      time.Time
	external   bool
	origin     string
}

type claimKey struct {
	kind     string
	platform tiers.Platform
	id       string
}

func (c claim) key() claimKey { return claimKey{c.kind, c.platform, c.id} }

// grants gives the claims to rights that are in the new rules and that the old
// ones do not hold as well.
func grants(old, new tiers.Rules, e Effect) (out Changes) {
	before, after := old.All(), new.All()
	claims := granted(others(after, before), new.Caps(), nil)
	have := byKey(granted(before, old.Caps(), wanted(claims)))
	for _, c := range claims {
		enough := func(had claim) bool {
			lasts := had.until.IsZero() || !c.until.IsZero() && !c.until.After(had.until)
			return had.tier >= c.tier && lasts && (had.external || !c.external)
		}
		if !c.held(have[c.key()], enough) {
			out = append(out, c.change(e, have[c.key()]))
		}
	}
	return out
}

// denials gives the limits and blocks that are in the old rules and that the new
// ones do not hold as well.
// Guarded by TestT13WhatIsNoGainWidensNobody.
func denials(new, old tiers.Rules, e Effect) (out Changes) {
	have := byKey(denied(new))
	for _, c := range denied(old) {
		has := have[c.key()]
		if c.kind == "place" { // a limit of the whole workspace holds in its channels too; a block is of one id
			has = slices.Concat(has, have[claimKey{c.kind, c.platform, c.workspace}])
		}
		if !c.held(has, func(h claim) bool { return h.tier <= c.tier }) {
			out = append(out, c.change(e, nil))
		}
	}
	return out
}

// others gives the rules that are not also among those of before. Whatever a rule
// gives, the same rule gave; with many ids most of them need no closer look.
// Guarded by TestWrittenKnowsEveryField and tests/contract TestEveryWideningIsAGain.
func others(rules, before []tiers.Rule) []tiers.Rule {
	known := make(map[string]bool, len(before))
	for _, r := range before {
		known[written(r)] = true
	}
	return slices.DeleteFunc(rules, func(r tiers.Rule) bool { return known[written(r)] })
}

// written gives all of a rule but its origin, in the same words for the same.
func written(r tiers.Rule) string {
	lists, size := [][]string{r.Channels, r.Categories, r.Users, r.Roles, r.Groups}, 256
	for _, list := range lists {
		for _, id := range list {
			size += len(id) + 4
		}
	}
	b := fmt.Appendf(make([]byte, 0, size), "%d %q %q %t %t %d.%d", r.Tier, r.Platform, r.Workspace, r.Anyone, r.External, r.Until.Unix(), r.Until.Nanosecond())
	for _, list := range lists {
		b = fmt.Appendf(b, " %t %d", list == nil, len(list))
		for _, id := range list {
			b = append(strconv.AppendInt(append(b, ' '), int64(len(id)), 10), id...)
		}
	}
	return string(b)
}

func wanted(claims []claim) map[claimKey]bool {
	keys := make(map[claimKey]bool, len(claims))
	for _, c := range claims {
		keys[c.key()] = true
	}
	return keys
}

func byKey(claims []claim) map[claimKey][]claim {
	out := make(map[claimKey][]claim, len(claims))
	for _, c := range claims {
		out[c.key()] = append(out[c.key()], c)
	}
	return out
}

// held says whether the claims, taken together, cover the scope of c.
func (c claim) held(have []claim, enough func(claim) bool) bool {
	everywhere := c.channels == nil && c.categories == nil
	channels, categories := c.channels, c.categories
	for _, h := range have {
		if !enough(h) || h.workspace != "" && h.workspace != c.workspace {
			continue
		}
		switch {
		case h.channels == nil && h.categories == nil:
			return true
		case everywhere:
		default:
			channels, categories = without(channels, h.channels), without(categories, h.categories)
			if len(channels)+len(categories) == 0 {
				return true
			}
		}
	}
	return false
}

func without(list, gone []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool {
		_, found := slices.BinarySearch(gone, s) // tiers keeps them sorted
		return found
	})
}

// granted gives the claims to rights, and to what readers are vouched to be: of
// the keys in only, or of all where it is nil.
func granted(rules []tiers.Rule, caps []tiers.Cap, only map[claimKey]bool) (out []claim) {
	for _, r := range rules {
		base := claim{platform: r.Platform, workspace: r.Workspace, channels: r.Channels, categories: r.Categories,
			tier: r.Tier, until: r.Until, external: r.External, origin: r.Origin}
		add := func(kind string, ids []string) {
			for _, id := range ids {
				if only != nil && !only[claimKey{kind, r.Platform, id}] {
					continue
				}
				c := base
				c.kind, c.id = kind, id
				out = append(out, c)
			}
		}
		add("user", r.Users)
		add("role", r.Roles)
		add("group", r.Groups)
		if r.Anyone && (r.Channels != nil || r.Categories != nil) { // else it is nobody
			out = append(out, base.each("anyone")...)
		}
	}
	for _, c := range caps {
		if c.Audience > tiers.None {
			base := placed(c)
			base.tier = c.Audience
			out = append(out, base.each("audience")...)
		}
	}
	return out
}

func placed(c tiers.Cap) claim {
	return claim{platform: c.Platform, workspace: c.Workspace, channels: c.Channels, categories: c.Categories, tier: c.Tier, origin: c.Origin}
}

// each splits a claim about places into one for each.
func (c claim) each(kind string) (out []claim) {
	c.kind = kind
	if c.channels == nil && c.categories == nil {
		c.id = c.workspace
		return []claim{c}
	}
	for _, id := range c.channels {
		one := c
		one.id, one.channels, one.categories = id, []string{id}, nil
		out = append(out, one)
	}
	for _, id := range c.categories {
		one := c
		one.id, one.channels, one.categories = id, nil, []string{id}
		out = append(out, one)
	}
	return out
}

// denied gives the limits of places, and who is blocked.
func denied(rules tiers.Rules) (out []claim) {
	for _, c := range rules.Caps() {
		out = append(out, placed(c).each("place")...)
	}
	for _, b := range rules.Blocks() {
		base := claim{platform: b.Platform, workspace: b.Workspace, origin: b.Origin}
		for _, id := range b.Users {
			c := base
			c.kind, c.id = "block", id
			out = append(out, c)
		}
		for _, id := range b.Roles {
			c := base
			c.kind, c.id = "block of the role", id
			out = append(out, c)
		}
		for _, id := range b.Groups {
			c := base
			c.kind, c.id = "block of the user group", id
			out = append(out, c)
		}
	}
	return out
}

// change tells of a claim that came or went. What was held before is named.
func (c claim) change(e Effect, before []claim) Change {
	kind := c.kind
	var what string
	switch {
	case strings.HasPrefix(kind, "block"):
		kind = "block"
		who := map[string]string{"block": "user", "block of the role": "role", "block of the user group": "user group"}[c.kind]
		what = fmt.Sprintf("%s %s is blocked%s", who, c.id, c.scope())
		if e == Gain {
			what = "no longer: " + what
		}
	case kind == "place":
		what = fmt.Sprintf("nobody is more than %s%s", c.tier, c.scope())
		if e == Gain {
			what = "no longer: " + what
		}
	case kind == "audience":
		what = fmt.Sprintf("everybody who reads along is vouched for as %s%s", c.tier, c.scope())
	default:
		who := map[string]string{"user": "user " + c.id, "role": "the role " + c.id, "group": "the user group " + c.id, "anyone": "anyone"}[kind]
		what = fmt.Sprintf("%s is %s%s%s", who, c.tier, c.scope(), c.terms())
		if e == Loss {
			what = "no longer: " + what
		}
	}
	most := tiers.None
	for _, b := range before {
		most = max(most, b.tier)
	}
	if e == Gain && most > tiers.None && most < c.tier {
		what += "; was " + most.String()
	}
	return Change{e, kind, c.tier, what, c.origin}
}

// scope says where a claim holds.
func (c claim) scope() string {
	var b strings.Builder
	b.WriteString(" on " + string(c.platform))
	if c.workspace != "" {
		b.WriteString(" in " + c.workspace)
	}
	if c.channels != nil {
		b.WriteString(", channels " + strings.Join(c.channels, " "))
	}
	if c.categories != nil {
		b.WriteString(", categories " + strings.Join(c.categories, " "))
	}
	return b.String()
}

func (c claim) terms() string {
	var b strings.Builder
	if c.external {
		b.WriteString(", people of other organisations too")
	}
	if !c.until.IsZero() {
		b.WriteString(", until " + c.until.UTC().Format(time.RFC3339))
	}
	return b.String()
}
