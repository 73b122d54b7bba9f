package manifests

import (
	"fmt"

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

// use is one place where a rule names somebody.
type use struct {
	tier      tiers.Tier
	platform  tiers.Platform
	workspace string
	user      string // or, where it is empty, everybody of the channel
	channel   string
	file      string
	at        item
}

// readMatch reads who is in the tier.
func (f *tierFile) readMatch(r *reader, i item) {
	s := r.fields(i, string(tiers.Discord), string(tiers.Slack))
	for _, n := range networks() {
		keys := []string{n.workspace, "channels", "users", "anyone"}
		if n.platform == tiers.Slack {
			keys = append(keys, "external")
		}
		for _, e := range r.mappings(s.get(string(n.platform))) {
			f.readRule(r, n, r.fields(e, keys...))
		}
	}
}

func (f *tierFile) readRule(r *reader, n network, s section) {
	rule := tiers.Rule{Tier: f.Tier.Tier, Platform: n.platform, Origin: fmt.Sprintf("%s:%d", r.file, s.at.Line)}
	ok := true
	if i := s.get(n.workspace); i.given() {
		rule.Workspace, ok = r.id(i, n.work)
	}
	channels := r.ids(s.get("channels"), n.channel)
	users := r.ids(s.get("users"), n.user)
	rule.Channels, rule.Users = plain(channels), plain(users)
	rule.Anyone = s.get("anyone").given() && r.boolean(s.get("anyone"))
	f.checkRule(r, n, s, rule)
	if i := s.get("external"); i.given() {
		word, known := r.word(i, "refuse", "guest")
		if known && word != "refuse" {
			r.fault(i.node, i.name+" is "+word+", which is not supported yet", "refuse")
		}
	}
	// A rule that matches nobody is none, so that counting rules says whether
	// there is an owner.
	nobody := len(users) == 0 && !rule.Anyone || s.get("channels").given() && len(channels) == 0
	if !ok || nobody {
		return
	}
	f.rules = append(f.rules, rule)
	for _, u := range users {
		f.uses = append(f.uses, use{rule.Tier, n.platform, rule.Workspace, u.id, "", r.file, u.at})
	}
	for _, c := range channels {
		if rule.Anyone {
			f.uses = append(f.uses, use{rule.Tier, n.platform, rule.Workspace, "", c.id, r.file, c.at})
		}
	}
}

// checkRule refuses rules that match nobody by mistake, or everybody.
func (f *tierFile) checkRule(r *reader, n network, s section, rule tiers.Rule) {
	var missing []string
	if !s.get(n.workspace).given() && (n.platform == tiers.Slack || rule.Anyone || s.get("channels").given()) {
		missing = append(missing, n.workspace)
	}
	if rule.Anyone && !s.get("channels").given() {
		missing = append(missing, "channels")
	}
	for _, key := range missing {
		right := fmt.Sprintf("the %s of the channels", n.workspace)
		switch {
		case key == "channels":
			right = "the channels in which every person is " + f.Tier.Tier.String()
		case n.platform == tiers.Slack:
			right = "the workspace, since Slack ids are told apart by it"
		}
		r.fault(s.at, s.get(key).name+" is missing", right)
	}
	switch {
	case rule.Anyone && f.Tier.Tier == tiers.Owner:
		r.fault(s.get("anyone").node, "anyone: true in the owner's file", "the owner's user ids in users")
	case !s.get("users").given() && !s.get("anyone").given():
		r.fault(s.at, s.name+" matches nobody: it has neither users nor anyone", "users: [...], or anyone: true with channels")
	}
}

// readPlaces reads the places in which nobody is more than the tier.
func (f *tierFile) readPlaces(r *reader, i item) {
	s := r.fields(i, string(tiers.Discord), string(tiers.Slack))
	for _, n := range networks() {
		for _, e := range r.mappings(s.get(string(n.platform))) {
			f.readCap(r, n, r.fields(e, n.workspace, "channels"))
		}
	}
}

func (f *tierFile) readCap(r *reader, n network, s section) {
	if f.Tier.Tier == tiers.Owner {
		r.fault(s.at, "a place in the owner's file lowers nobody", "it in guest.yaml or team.yaml")
	}
	c := tiers.Cap{Tier: f.Tier.Tier, Platform: n.platform, Origin: fmt.Sprintf("%s:%d", r.file, s.at.Line)}
	if i, ok := r.need(s, n.workspace, "the "+n.workspace+" of the place"); ok {
		c.Workspace, _ = r.id(i, n.work)
	}
	i := s.get("channels")
	c.Channels = plain(r.ids(i, n.channel))
	// For a limit, an empty list could mean no channel or every one.
	if i.given() && i.empty() {
		r.fault(i.at, i.name+" is empty", "the channels; without the key the whole "+n.workspace+" is meant")
	}
	f.caps = append(f.caps, c)
}

// doubled reports people and channels that two tiers claim, since only one of
// the two can be meant.
func doubled(uses []use) Faults {
	type key struct {
		platform      tiers.Platform
		user, channel string
	}
	seen := map[key][]use{}
	var faults Faults
	for _, u := range uses {
		k := key{u.platform, u.user, u.channel}
		known := false
		for _, other := range seen[k] {
			known = known || other.tier == u.tier && other.workspace == u.workspace
			same := other.workspace == u.workspace || other.workspace == "" || u.workspace == ""
			if other.tier == u.tier || !same {
				continue
			}
			what := fmt.Sprintf("%s is %s already (%s:%d)", u.at.node.Value, other.tier, other.file, other.at.node.Line)
			if u.user == "" {
				what = "anyone in " + what
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
