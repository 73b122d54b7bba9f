package manifests

import (
	"fmt"
	"strings"

	"parlour/tiers"
)

// idKind is the form of one kind of id.
type idKind struct {
	what  string // "a Discord user id"
	right string
	form  string // what fits, as a regular expression for editors
	fits  func(string) bool
}

func discordID(what string) idKind {
	return idKind{"a Discord " + what + " id", `17 to 20 digits, such as "80351110224678912" (Developer Mode, then Copy ID)`,
		`^[0-9]{17,20}$`,
		func(s string) bool { return len(s) >= 17 && len(s) <= 20 && only(s, digits) }}
}

const (
	digits  = "0123456789"
	capital = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
)

// slackID is a first letter and at least six capitals or digits.
func slackID(what, first, example string) idKind {
	return idKind{"a Slack " + what + " id", "an id such as " + example, "^[" + first + "][A-Z0-9]{6,63}$",
		func(s string) bool {
			return len(s) >= 7 && len(s) <= 64 && strings.Contains(first, s[:1]) && only(s[1:], capital+digits)
		}}
}

func slackUser() idKind      { return slackID("user", "UW", "U0123ABCD") }
func slackGroup() idKind     { return slackID("user group", "S", "S0123ABCD") }
func slackChannel() idKind   { return slackID("channel", "CGD", "C0123ABCD") }
func slackWorkspace() idKind { return slackID("workspace", "TE", "T0123ABCD") }

func idKinds() []idKind {
	return []idKind{slackUser(), slackChannel(), slackWorkspace(), slackGroup(), discordID("")}
}

// id reads one id of the kind. Names, addresses and patterns are not ids.
// Guarded by tests/config, cases id-*, and FuzzLoadTier.
func (r *reader) id(i item, kind idKind) (string, bool) {
	if i.null() {
		r.unfit(i, kind.right)
		return "", false
	}
	s, ok := r.text(i)
	if !ok {
		return "", false
	}
	if !kind.fits(s) {
		what, right := notAnID(s, kind)
		r.fault(i.node, i.name+": "+what, right)
		return "", false
	}
	if !r.literal(i.node) {
		r.fault(i.node, i.name+": the id "+show(s)+" is written with escapes or over several lines", "the id itself")
		return "", false
	}
	return s, true
}

// notAnID says what stands there instead of an id.
func notAnID(s string, kind idKind) (what, right string) {
	what, right = show(s)+" is not "+kind.what, kind.right
	switch {
	case s == "":
		return "an empty id matches nobody", right
	case s == "*":
		return "* does not mean everybody", "exact ids; for every person of a channel, anyone: true with its channels"
	case strings.Contains(s, "${") || strings.HasPrefix(s, "$"):
		return what + ": variables are not filled in", right
	case invisible(s) != "":
		return what + ": it holds " + invisible(s), right
	case strings.Contains(s, ","):
		return what, "a list with each id on its own"
	case kind.fits(strings.ToUpper(s)):
		return what + ": ids are written in capitals", right
	}
	for _, other := range idKinds() {
		if other.fits(s) {
			return what + ", it looks like " + strings.ReplaceAll(other.what, "  ", " "), right
		}
	}
	if only(s, digits+".eE+") && strings.ContainsAny(s, ".eE") {
		return what + ": something turned it into a rounded number", right + ", in quotes"
	}
	if strings.ContainsAny(s, "@#<>") || (strings.Trim(s, digits) != "" && strings.ToUpper(s) != s) {
		return what + ": names, mentions and addresses can be taken over by others", right
	}
	return what, right
}

// ids reads a list of ids. A list that is given is never nil: an empty one
// matches nobody, where an absent one may mean every channel.
func (r *reader) ids(i item, kind idKind) []idAt {
	if !i.given() {
		return nil
	}
	out := []idAt{}
	for _, e := range r.list(i) {
		if id, ok := r.id(e, kind); ok {
			out = append(out, idAt{id, e})
		}
	}
	return out
}

// idAt is an id and where it stands.
type idAt struct {
	id string
	at item
}

// plain drops the places and keeps nil nil.
func plain(ids []idAt) []string {
	if ids == nil {
		return nil
	}
	out := make([]string, len(ids))
	for i, id := range ids {
		out[i] = id.id
	}
	return out
}

// CheckIDs says which of the ids that somebody typed cannot be ids of the
// platform, in the words that a manifest's faults use. Empty ones are not
// looked at. It is how a name where an id belongs is noticed outside of files.
func CheckIDs(platform tiers.Platform, workspace, channel, user string) error {
	kinds := []idKind{discordID("guild"), discordID("channel"), discordID("user")}
	if platform == tiers.Slack {
		kinds = []idKind{slackWorkspace(), slackChannel(), slackUser()}
	}
	for i, id := range []string{workspace, channel, user} {
		if id != "" && !kinds[i].fits(id) {
			what, right := notAnID(id, kinds[i])
			return fmt.Errorf("%s; right: %s", what, right)
		}
	}
	return nil
}

// CheckRole says like CheckIDs whether an id can be one of a Discord role, or of
// a Slack user group.
func CheckRole(platform tiers.Platform, id string) error {
	kind := discordID("role")
	if platform == tiers.Slack {
		kind = slackGroup()
	}
	if kind.fits(id) {
		return nil
	}
	what, right := notAnID(id, kind)
	return fmt.Errorf("%s; right: %s", what, right)
}
