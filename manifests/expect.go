package manifests

import (
	"fmt"
	"strings"

	"parlour/tiers"
)

// expectation is one case that the operator wrote down.
type expectation struct {
	who   tiers.Identity
	where tiers.Place
	want  tiers.Tier
	file  string
	at    item
}

// readExpects reads the cases that must hold of all rules together.
func (f *tierFile) readExpects(r *reader, i item) {
	for _, e := range r.mappings(i) {
		s := r.fields(e, string(tiers.Discord), string(tiers.Slack), "tier")
		x := expectation{file: r.file, at: e}
		ok := f.readWhom(r, s, &x)
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
	w := r.fields(s.get(string(n.platform)), n.workspace, "channel", "parent", "direct", "user")
	x.who = tiers.Identity{Platform: n.platform, Kind: tiers.Person}
	x.where = tiers.Place{Platform: n.platform, Most: tiers.Owner, Direct: r.boolean(w.get("direct"))}
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
		{"user", n.user, &x.who.User, true},
	} {
		i := w.get(part.key)
		if i.given() {
			*part.into, _ = r.id(i, part.kind)
		} else if part.must {
			r.need(w, part.key, "the "+part.key+" of the case")
		}
	}
	x.who.Workspace = x.where.Workspace
	return len(r.faults) == before
}

// failed gives the fault of a case that the rules decide otherwise.
func (x expectation) failed(rules tiers.Rules) (Fault, bool) {
	d := rules.Resolve(x.who, x.where)
	if d.Tier == x.want {
		return Fault{}, false
	}
	what := fmt.Sprintf("expected %s, is %s: %s", x.want, d.Tier, strings.TrimSpace(d.Why))
	return Fault{x.file, x.at.at.Line, x.at.at.Column, what, "a rule that gives " + x.want.String() + ", or another expectation"}, true
}
