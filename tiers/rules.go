package tiers

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Rule gives a tier to the people that it names, by any of its parts. The zero
// Rule matches nobody. A rule with a workspace is about members of it.
type Rule struct {
	Tier       Tier
	Platform   Platform
	Workspace  string    // on Discord empty means any place, for Users only; on Slack empty matches nobody
	Channels   []string  // with Categories: where the rule holds; both nil: everywhere in the workspace, but not for Anyone
	Categories []string  // Discord categories
	Users      []string  // exact user ids
	Roles      []string  // Discord roles of the workspace; never give owner
	Groups     []string  // Slack user groups of the workspace; never give owner
	Anyone     bool      // every member in Channels and Categories; never gives owner
	External   bool      // people of other organisations too, as guests at most
	Until      time.Time // when the rule ends; zero: never
	Origin     string    // file:line, for explanations
}

// Cap lowers everybody in a place to at most a tier. It never raises anybody.
type Cap struct {
	Tier       Tier
	Platform   Platform
	Workspace  string
	Channels   []string // with Categories: both nil: every channel of the workspace
	Categories []string
	Audience   Tier // what the operator vouches everybody to be who can read there; zero: nothing
	Origin     string
}

// Block denies everything to those whom it names, whatever rule matches them.
type Block struct {
	Platform  Platform
	Workspace string // on Discord empty means everywhere, for Users only
	Users     []string
	Roles     []string
	Groups    []string // Slack user groups of the workspace
	Origin    string
}

// Rules is an immutable set of rules, caps and blocks. The zero Rules match
// nobody.
type Rules struct {
	rules  []rule // owner first
	caps   []limit
	blocks []denial

	// By id, which rules name it. A look-up costs what those rules cost, not
	// what all rules cost.
	users, roles, groups, places map[string][]int32
	limits                       map[string][]int32 // channels, categories, and workspaces as a whole
	deniedUsers                  map[string][]int32
	deniedRoles                  map[string][]int32  // by the workspace of the role or user group
	named                        map[string][]string // user groups, by their workspace

	grants   []rule
	grantees map[string][]int32 // by user
}

type rule struct {
	Rule
	granted bool // it is a grant, not a line of a manifest
	since   time.Time
	why     [ways]string
	lowered [ways]string // where it gives a guest account less
	outside [ways]string // for people of other organisations, where it admits them
}

type limit struct {
	Cap
	why string
}

type denial struct {
	Block
	why, unknown, unknownGroups string
}

// NewRules copies rules, caps and blocks and indexes them. Blocks win over all
// rules; of the rules the highest that matches wins, and within a tier the first
// in the order given.
func NewRules(rules []Rule, caps []Cap, blocks ...Block) Rules {
	r := Rules{
		users: map[string][]int32{}, roles: map[string][]int32{}, groups: map[string][]int32{}, places: map[string][]int32{},
		limits: map[string][]int32{}, deniedUsers: map[string][]int32{}, deniedRoles: map[string][]int32{},
		named: map[string][]string{},
	}
	for _, given := range rules {
		r.rules = append(r.rules, rule{Rule: given.clone()})
	}
	slices.SortStableFunc(r.rules, func(a, b rule) int { return cmp.Compare(b.Tier, a.Tier) })
	for i := range r.rules {
		x := &r.rules[i]
		x.write()
		index(r.users, i, x.Users)
		index(r.roles, i, x.Roles)
		index(r.groups, i, x.Groups)
		r.name(x.Platform, x.Workspace, x.Groups)
		if x.Anyone {
			index(r.places, i, x.Channels)
			index(r.places, i, x.Categories)
		}
	}
	for i, c := range caps {
		c.Channels, c.Categories = sorted(c.Channels), sorted(c.Categories)
		r.caps = append(r.caps, limit{c, fmt.Sprintf("this place allows at most %s (%s)", c.Tier, c.Origin)})
		index(r.limits, i, c.Channels)
		index(r.limits, i, c.Categories)
		if c.Channels == nil && c.Categories == nil {
			index(r.limits, i, []string{c.Workspace})
		}
	}
	for i, b := range blocks {
		b.Users, b.Roles, b.Groups = sorted(b.Users), sorted(b.Roles), sorted(b.Groups)
		r.blocks = append(r.blocks, denial{b, fmt.Sprintf("they are blocked (%s)", b.Origin),
			fmt.Sprintf("a role is blocked here, and theirs are not known (%s)", b.Origin),
			fmt.Sprintf("a user group is blocked here, and theirs are not known (%s)", b.Origin)})
		index(r.deniedUsers, i, b.Users)
		r.name(b.Platform, b.Workspace, b.Groups)
		if len(b.Roles)+len(b.Groups) > 0 {
			index(r.deniedRoles, i, []string{b.Workspace})
		}
	}
	r.nameOnce()
	return r
}

func index(into map[string][]int32, i int, ids []string) {
	for _, id := range ids {
		if id != "" {
			into[id] = append(into[id], int32(i))
		}
	}
}

// sorted copies a list for binary search and keeps nil nil.
func sorted(list []string) []string {
	list = slices.Clone(list)
	slices.Sort(list)
	return list
}

func (r Rule) clone() Rule {
	for _, list := range []*[]string{&r.Channels, &r.Categories, &r.Users, &r.Roles, &r.Groups} {
		*list = sorted(*list)
	}
	return r
}

// All gives the rules in the order in which they are tried.
func (r Rules) All() []Rule {
	out := make([]Rule, len(r.rules))
	for i, x := range r.rules {
		out[i] = x.Rule.clone()
	}
	return out
}

// Caps gives what lowers places.
func (r Rules) Caps() []Cap {
	out := make([]Cap, len(r.caps))
	for i, c := range r.caps {
		out[i] = c.Cap
		out[i].Channels, out[i].Categories = slices.Clone(c.Channels), slices.Clone(c.Categories)
	}
	return out
}

// Blocks gives who is denied everything.
func (r Rules) Blocks() []Block {
	out := make([]Block, len(r.blocks))
	for i, b := range r.blocks {
		out[i] = b.Block
		out[i].Users, out[i].Roles, out[i].Groups = slices.Clone(b.Users), slices.Clone(b.Roles), slices.Clone(b.Groups)
	}
	return out
}

// Count says how many rules give the tier, ended ones included.
func (r Rules) Count(t Tier) int {
	n := 0
	for _, x := range r.rules {
		if x.Tier == t {
			n++
		}
	}
	return n
}
