package tiers

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Grant is the operator's word that one person has a tier in a guild or
// workspace until a time. It never gives owner, and holds in no direct message.
// The zero Grant grants nothing.
type Grant struct {
	ID        int64     `json:"id"`
	Tier      Tier      `json:"tier"`
	Platform  Platform  `json:"platform"`
	Workspace string    `json:"workspace"`
	Channels  []string  `json:"channels,omitempty"` // nil: everywhere in the workspace; empty: nowhere, which is refused
	User      string    `json:"user"`
	External  bool      `json:"external,omitempty"` // they belong to another organisation
	Made      time.Time `json:"made"`
	Until     time.Time `json:"until"`
	Note      string    `json:"note,omitempty"` // for the operator; never shown in chat
}

// The bounds of a grant.
const (
	LongestGrant = 366 * 24 * time.Hour
	MostChannels = 100
	LongestNote  = 200 // characters
)

// Check says why the grant is none. Rules take no other.
// Guarded by tests/contract TestAGrantThatIsNoneIsRefused.
func (g Grant) Check() error {
	switch {
	case g.Tier == Owner:
		return errors.New("a grant never gives owner: whoever is one stands in tiers/owner.yaml")
	case g.Tier != Guest && g.Tier != Team:
		return fmt.Errorf("a grant gives guest or team, not %s", g.Tier)
	case g.Platform != Discord && g.Platform != Slack:
		return fmt.Errorf("a grant is for discord or slack, not %q", g.Platform)
	case g.Workspace == "":
		return errors.New("a grant is for one guild or workspace, and none is named")
	case g.User == "":
		return errors.New("a grant is for one person, and no user id is given")
	case g.External && g.Platform != Slack:
		return errors.New("people of other organisations are known on slack only")
	case g.External && g.Tier > Guest:
		return errors.New("people of other organisations are guests at most")
	case g.Channels != nil && len(g.Channels) == 0 || slices.Contains(g.Channels, ""):
		return errors.New("an empty channel, or an empty list of them, is nowhere")
	case len(g.Channels) > MostChannels:
		return fmt.Errorf("a grant is for at most %d channels, not %d", MostChannels, len(g.Channels))
	}
	return errors.Join(g.checkTimes(), g.checkNote())
}

func (g Grant) checkTimes() error {
	switch {
	case g.Until.IsZero():
		return errors.New("a grant has an end, and none is given")
	case !g.Until.After(g.Made):
		return fmt.Errorf("the grant would have ended already, at %s", g.Until.UTC().Format(time.RFC3339))
	case g.Until.Sub(g.Made) > LongestGrant:
		return errors.New("a grant lasts 366 days at most; whoever stays longer belongs into the manifests")
	}
	return nil
}

func (g Grant) checkNote() error {
	switch {
	case utf8.RuneCountInString(g.Note) > LongestNote:
		return fmt.Errorf("the note is longer than %d characters", LongestNote)
	case !utf8.ValidString(g.Note):
		return errors.New("the note is not valid UTF-8")
	}
	for _, r := range g.Note {
		if !unicode.IsPrint(r) {
			return fmt.Errorf("the note holds the character %U; right: one line of plain text", r)
		}
	}
	return nil
}

// Origin names the grant where a rule has its file and line.
func (g Grant) Origin() string {
	return fmt.Sprintf(originOfGrant+"%d until %s", g.ID, g.Until.UTC().Format(time.RFC3339))
}

const originOfGrant = "grant "

// Granted says whether a grant made the decision, and not a line of a manifest.
func (d Decision) Granted() bool { return strings.HasPrefix(d.Rule, originOfGrant) }

// Holds says whether the grant has begun and not ended by now.
func (g Grant) Holds(now time.Time) bool { return !now.Before(g.since()) && now.Before(g.Until) }

// clockStep is how far a clock may be set back while a grant holds.
const clockStep = time.Minute

// since is when the grant begins: when it was made, by a clock that may have been
// set back since.
func (g Grant) since() time.Time {
	if g.Made.IsZero() {
		return g.Made
	}
	return g.Made.Add(-clockStep)
}

func (g Grant) rule() rule {
	r := rule{granted: true, since: g.since(), Rule: Rule{
		Tier: g.Tier, Platform: g.Platform, Workspace: g.Workspace, Channels: g.Channels, Users: []string{g.User},
		External: g.External, Until: g.Until, Origin: g.Origin(),
	}.clone()}
	r.write()
	return r
}

// With gives the rules with these grants, and with no earlier ones. A grant wins
// where it gives its person more than every rule. It wins over no block and over
// no limit of a place, and changes nobody else.
// Guarded by tests/contract TestAGrantOnlyAddsAndOnlyForItsPerson.
func (r Rules) With(grants ...Grant) Rules {
	r.grants, r.grantees = nil, nil
	for _, g := range grants {
		if g.Check() != nil {
			continue
		}
		if r.grantees == nil {
			r.grantees = map[string][]int32{}
		}
		index(r.grantees, len(r.grants), []string{g.User})
		r.grants = append(r.grants, g.rule())
	}
	return r
}
