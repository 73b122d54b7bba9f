package manifests

import (
	"fmt"
	"slices"

	"parlour/tiers"
)

// network is how one platform names its parts.
type network struct {
	platform  tiers.Platform
	workspace string // the key
	work      idKind
	channel   idKind
	user      idKind
}

func networks() []network {
	return []network{
		{tiers.Discord, "guild", discordID("guild"), discordID("channel"), discordID("user")},
		{tiers.Slack, "workspace", slackWorkspace(), slackChannel(), slackUser()},
	}
}

// use is one place where a rule names somebody for good.
type use struct {
	tier      tiers.Tier
	platform  tiers.Platform
	workspace string
	kind      string // user, role, group, or anyone, who is named by the channel or category
	id        string
	file      string
	at        item
}

// readMatch reads who is in the tier.
func (f *tierFile) readMatch(r *reader, i item) {
	s := r.fields(i, string(tiers.Discord), string(tiers.Slack))
	for _, n := range networks() {
		known := names(matchKeys(n))
		for _, e := range r.mappings(s.get(string(n.platform))) {
			f.readRule(r, n, r.fields(e, known...))
		}
	}
}

func (f *tierFile) readRule(r *reader, n network, s section) {
	rule := tiers.Rule{Tier: f.Tier.Tier, Platform: n.platform, Origin: origin(r, s)}
	ok := true
	if i := s.get(n.workspace); i.given() {
		rule.Workspace, ok = r.id(i, n.work)
	}
	channels, categories := r.ids(s.get("channels"), n.channel), r.ids(s.get("categories"), discordID("category"))
	users, roles, groups := r.ids(s.get("users"), n.user), roleIDs(r, s.get("roles"), rule.Workspace), r.ids(s.get("groups"), slackGroup())
	rule.Channels, rule.Categories, rule.Users, rule.Roles, rule.Groups = plain(channels), plain(categories), plain(users), plain(roles), plain(groups)
	rule.Anyone = s.get("anyone").given() && r.boolean(s.get("anyone"))
	if i := s.get("until"); i.given() {
		var read bool
		rule.Until, read = r.instant(i)
		ok = ok && read
	}
	f.checkRule(r, n, s, rule)
	f.readExternal(r, s.get("external"), &rule)
	// A rule that matches nobody is none, so that counting rules says whether
	// there is an owner.
	nobody := len(users)+len(roles)+len(groups) == 0 && !rule.Anyone
	nowhere := (s.get("channels").given() || s.get("categories").given()) && len(channels)+len(categories) == 0
	if !ok || nobody || nowhere {
		return
	}
	f.rules = append(f.rules, rule)
	if !rule.Until.IsZero() {
		return // a grant for a time may well stand above what somebody has for good
	}
	f.uses = appendUses(f.uses, r, rule, "user", users)
	f.uses = appendUses(f.uses, r, rule, "role", roles)
	f.uses = appendUses(f.uses, r, rule, "group", groups)
	if rule.Anyone {
		f.uses = appendUses(f.uses, r, rule, "anyone", channels)
		f.uses = appendUses(f.uses, r, rule, "anyone", categories)
	}
}

func origin(r *reader, s section) string {
	return fmt.Sprintf("%s:%d", r.file, s.at.Line)
}

// appendUses notes whom a rule names, in place: a file may name very many.
func appendUses(uses []use, r *reader, rule tiers.Rule, kind string, ids []idAt) []use {
	for _, id := range ids {
		uses = append(uses, use{rule.Tier, rule.Platform, rule.Workspace, kind, id.id, r.file, id.at})
	}
	return uses
}

// readExternal reads whether a rule admits people of other organisations, who
// are guests at most.
func (f *tierFile) readExternal(r *reader, i item, rule *tiers.Rule) {
	if !i.given() {
		return
	}
	word, known := r.word(i, "refuse", "guest")
	if known && word == "guest" && rule.Tier != tiers.Guest {
		r.fault(i.node, i.name+" is guest in the "+rule.Tier.String()+"'s file", "refuse, or the rule in guest.yaml: people of other organisations are guests at most")
	}
	rule.External = word == "guest"
}

// checkRule refuses rules that match nobody by mistake, or everybody, or that
// make owners of whoever gets a role.
func (f *tierFile) checkRule(r *reader, n network, s section, rule tiers.Rule) {
	placed := s.get("channels").given() || s.get("categories").given()
	roles, groups := s.get("roles").given(), s.get("groups").given()
	if !s.get(n.workspace).given() && (n.platform == tiers.Slack || rule.Anyone || placed || roles) {
		right := fmt.Sprintf("the %s of the channels", n.workspace)
		switch {
		case n.platform == tiers.Slack:
			right = "the workspace, since Slack ids are told apart by it"
		case roles && !placed:
			right = "the guild of the roles, since a role of another guild means nothing here"
		}
		r.fault(s.at, s.get(n.workspace).name+" is missing", right)
	}
	if rule.Anyone && !placed {
		r.fault(s.at, s.get("channels").name+" is missing", "the channels in which every person is "+f.Tier.Tier.String())
	}
	owner := f.Tier.Tier == tiers.Owner
	switch {
	case rule.Anyone && owner:
		r.fault(s.get("anyone").node, "anyone: true in the owner's file", "the owner's user ids in users")
	case roles && owner:
		r.fault(s.get("roles").at, "roles in the owner's file: whoever hands out the role would make owners", "the owner's user ids in users")
	case groups && owner:
		r.fault(s.get("groups").at, "groups in the owner's file: whoever fills the user group would make owners", "the owner's user ids in users")
	case s.get("until").given() && owner: // the bot would be left without one
		r.fault(s.get("until").at, "until in the owner's file", "an owner for good, or the line in team.yaml")
	case !s.get("users").given() && !s.get("anyone").given() && !roles && !groups:
		by := "users, groups"
		if n.platform == tiers.Discord {
			by = "users, roles"
		}
		r.fault(s.at, s.name+" matches nobody: it has no "+by+" or anyone", "users: [...], or anyone: true with channels")
	}
}

// roleIDs reads role ids of a guild. The role with the guild's own id is
// @everyone.
func roleIDs(r *reader, i item, guild string) []idAt {
	ids := r.ids(i, discordID("role"))
	return slices.DeleteFunc(ids, func(id idAt) bool {
		everyone := guild != "" && id.id == guild
		if everyone {
			r.fault(id.at.node, i.name+" holds the guild's own id, which is the role @everyone", "anyone: true with its channels")
		}
		return everyone
	})
}

// readPlaces reads the places in which nobody is more than the tier.
func (f *tierFile) readPlaces(r *reader, i item) {
	s := r.fields(i, string(tiers.Discord), string(tiers.Slack))
	for _, n := range networks() {
		for _, e := range r.mappings(s.get(string(n.platform))) {
			f.readCap(r, n, r.fields(e, names(placeKeys(n))...))
		}
	}
}

func (f *tierFile) readCap(r *reader, n network, s section) {
	if f.Tier.Tier == tiers.Owner {
		r.fault(s.at, "a place in the owner's file lowers nobody", "it in guest.yaml or team.yaml")
	}
	c := tiers.Cap{Tier: f.Tier.Tier, Platform: n.platform, Origin: origin(r, s)}
	if i, ok := r.need(s, n.workspace, "the "+n.workspace+" of the place"); ok {
		c.Workspace, _ = r.id(i, n.work)
	}
	c.Channels, c.Categories = plain(r.ids(s.get("channels"), n.channel)), plain(r.ids(s.get("categories"), discordID("category")))
	// For a limit, an empty list could mean no channel or every one.
	for _, i := range []item{s.get("channels"), s.get("categories")} {
		if i.given() && i.empty() {
			r.fault(i.node, i.name+" is empty", "the channels; without the key the whole "+n.workspace+" is meant")
		}
	}
	if i := s.get("audience"); i.given() {
		if _, ok := r.word(i, tiers.Team.String()); ok && f.Tier.Tier == tiers.Guest {
			r.fault(i.node, i.name+" is team where nobody is more than guest", "the place in team.yaml")
		}
		c.Audience = min(tiers.Team, f.Tier.Tier)
	}
	f.caps = append(f.caps, c)
}

// readBlocks reads who may do nothing. They may stand in any tier file and mean
// the same in each.
// Guarded by tests/contract TestTheDecisionTable.
func (f *tierFile) readBlocks(r *reader, i item) {
	s := r.fields(i, string(tiers.Discord), string(tiers.Slack))
	for _, n := range networks() {
		for _, e := range r.mappings(s.get(string(n.platform))) {
			f.readBlock(r, n, r.fields(e, names(blockKeys(n))...))
		}
	}
}

func (f *tierFile) readBlock(r *reader, n network, s section) {
	b := tiers.Block{Platform: n.platform, Origin: origin(r, s)}
	users, roles, groups := s.get("users"), s.get("roles"), s.get("groups")
	if i := s.get(n.workspace); i.given() {
		b.Workspace, _ = r.id(i, n.work)
	} else if n.platform == tiers.Slack || roles.given() {
		r.need(s, n.workspace, "the "+n.workspace+" whose ids these are")
	}
	if !users.given() && !roles.given() && !groups.given() {
		r.fault(s.at, s.name+" blocks nobody", "the user ids in users")
	}
	b.Users, b.Roles, b.Groups = plain(r.ids(users, n.user)), plain(roleIDs(r, roles, b.Workspace)), plain(r.ids(groups, slackGroup()))
	f.blocks = append(f.blocks, b)
}

// doubled reports people and channels that two tiers claim, since only one of
// the two can be meant.
func doubled(uses []use) Faults {
	type key struct {
		platform tiers.Platform
		kind, id string
	}
	seen := map[key][]use{}
	var faults Faults
	for _, u := range uses {
		k := key{u.platform, u.kind, u.id}
		known := false
		for _, other := range seen[k] {
			known = known || other.tier == u.tier && other.workspace == u.workspace
			same := other.workspace == u.workspace || other.workspace == "" || u.workspace == ""
			if other.tier == u.tier || !same {
				continue
			}
			what := fmt.Sprintf("%s is %s already (%s)", u.at.node.Value, other.tier, spotOf(other.at.node).in(other.file))
			switch u.kind {
			case "anyone":
				what = "anyone in " + what
			case "role":
				what = "the role " + what
			case "group":
				what = "the user group " + what
			}
			faults = append(faults, Fault{u.file, u.at.node.Line, u.at.node.Column, what, "each id in one tier only"})
			break
		}
		if !known { // one for each tier and workspace: a file can repeat an id very often
			seen[k] = append(seen[k], u)
		}
	}
	return faults
}
