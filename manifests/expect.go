package manifests

import (
	"fmt"
	"strings"
	"time"

	"parlour/tiers"
)

// expectation is one case that the operator wrote down.
type expectation struct {
	who   tiers.Identity
	where tiers.Place
	want  tiers.Tier
	now   time.Time // of the case; zero: before every end
	file  string
	at    item
}

// readExpects reads the cases that must hold of all rules together.
func (f *tierFile) readExpects(r *reader, i item) {
	for _, e := range r.mappings(i) {
		s := r.fields(e, names(expectKeys())...)
		x := expectation{file: r.file, at: e}
		ok := f.readWhom(r, s, &x)
		if i := s.get("at"); i.given() {
			var read bool
			x.now, read = r.instant(i)
			ok = ok && read
		}
		want, given := r.need(s, "tier", oneOf("", append(tierWords(), "none")))
		if given {
			word, known := r.word(want, append(tierWords(), "none")...)
			x.want, _ = tiers.Parse(word) // none is None
			ok = ok && known
		}
		if ok && given {
			f.expects = append(f.expects, x)
		}
	}
}

func (f *tierFile) readWhom(r *reader, s section, x *expectation) bool {
	var found []network
	for _, n := range networks() {
		if s.get(string(n.platform)).given() {
			found = append(found, n)
		}
	}
	if len(found) != 1 {
		r.fault(s.at, "a case of expect names "+fmt.Sprint(len(found))+" platforms", "either discord or slack")
		return false
	}
	n := found[0]
	before := len(r.faults)
	w := r.fields(s.get(string(n.platform)), names(caseKeys(n))...)
	truth := func(key string, absent bool) bool {
		if i := w.get(key); i.given() {
			return r.boolean(i)
		}
		return absent
	}
	x.where = tiers.Place{Platform: n.platform, Most: tiers.Owner, Direct: truth("direct", false)}
	if n.platform == tiers.Slack || !x.where.Direct {
		r.need(w, n.workspace, "the "+n.workspace+" of the case")
	}
	for _, part := range []struct {
		key  string
		kind idKind
		into *string
		must bool
	}{
		{n.workspace, n.work, &x.where.Workspace, false},
		{"channel", n.channel, &x.where.Channel, true},
		{"parent", n.channel, &x.where.Parent, false},
		{"category", discordID("category"), &x.where.Category, false},
		{"user", n.user, &x.who.User, true},
	} {
		i := w.get(part.key)
		if i.given() {
			*part.into, _ = r.id(i, part.kind)
		} else if part.must {
			r.need(w, part.key, "the "+part.key+" of the case")
		}
	}
	outsider := truth("external", false)
	x.who = tiers.Identity{
		Platform: n.platform, Workspace: x.where.Workspace, User: x.who.User, Kind: tiers.Person,
		External: outsider, Restricted: truth("restricted", false), Roles: plain(roleIDs(r, w.get("roles"), x.where.Workspace)),
		Groups: plain(r.ids(w.get("groups"), slackGroup())), GroupsKnown: n.platform == tiers.Slack,
		Member: truth("member", x.where.Workspace != "" && !outsider),
	}
	return len(r.faults) == before
}

// failed gives the fault of a case that the rules decide otherwise.
func (x expectation) failed(rules tiers.Rules) (Fault, bool) {
	d := rules.Resolve(x.who, x.where, x.now)
	if d.Tier == x.want {
		return Fault{}, false
	}
	what := fmt.Sprintf("expected %s, is %s: %s", x.want, d.Tier, strings.TrimSpace(d.Why))
	return Fault{x.file, x.at.at.Line, x.at.at.Column, what, "a rule that gives " + x.want.String() + ", or another expectation"}, true
}
