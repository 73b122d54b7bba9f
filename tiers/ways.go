package tiers

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Step is one thing that can be done so that somebody has more.
type Step string

// The steps. Of several ids any one is meant.
const (
	TakeRole     Step = "role"      // of IDs, which Rules name
	JoinGroup    Step = "group"     // of IDs, which Rules name; where none are known, that Slack says so
	AskIn        Step = "ask"       // in one of the channels IDs, or of the Categories, or anywhere in Workspace
	AskElsewhere Step = "elsewhere" // in a channel of Workspace that no line names
	AskDirect    Step = "direct"    // in a direct message
	TellGroups   Step = "groups"    // Slack says in which user groups they are, and it is none
	BeMember     Step = "member"    // of Workspace, without a role or user group
	Unblock      Step = "unblock"   // Rules, which are blocks, taken away
	Unlimit      Step = "unlimit"   // Rules, which are limits, taken away from this place
	Extend       Step = "until"     // a later end of Rules
	Admit        Step = "external"  // Rules admits people of other organisations
	AddLine      Step = "line"      // Line stands in the manifests, and the person no more in Rules
	MakeGrant    Step = "grant"     // Grant is made
	Tell         Step = "tell"      // IDs are flags that tell the place whole
	Consent      Step = "consent"   // bot accept-gains
)

// Doing is a step with what it is about. Its String is the sentence for the
// operator, made of nothing but its fields.
type Doing struct {
	Step       Step     `json:"step"`
	Platform   Platform `json:"platform,omitempty"`
	Workspace  string   `json:"workspace,omitempty"`
	Rules      []string `json:"rules,omitempty"` // file:line, of what it changes or goes by
	IDs        []string `json:"ids,omitempty"`
	Categories []string `json:"categories,omitempty"`
	Unless     []string `json:"unless,omitempty"` // limits that the place must not be under
	Ended      string   `json:"ended,omitempty"`  // when the line ended
	Tier       Tier     `json:"tier,omitempty"`   // whose file the line is for
	Line       *Rule    `json:"-"`
	Grant      *Grant   `json:"grant,omitempty"`
	Why        string   `json:"why,omitempty"`
}

// Way is what somebody needs to have a tier: all that it lists. Tier is what they
// are once it is done, and Rule what gives it.
// Guarded by tests/contract TestEveryWayThatIsPrintedGivesWhatItPromises.
type Way struct {
	Tier Tier    `json:"tier"`
	Rule string  `json:"rule,omitempty"`
	All  []Doing `json:"all"`
}

// Path are the ways to one tier.
type Path struct {
	Tier   Tier   `json:"tier"`
	Ways   []Way  `json:"ways"`
	Cannot string `json:"cannot,omitempty"` // why there are none
	Note   string `json:"note,omitempty"`
}

// String is the way as a sentence.
func (w Way) String() string {
	parts := make([]string, len(w.All))
	for i, d := range w.All {
		parts[i] = d.String()
	}
	text := strings.Join(parts, ", and ")
	switch w.All[len(w.All)-1].Step {
	case AskElsewhere, AskDirect, TellGroups, BeMember, Unblock, Unlimit, Tell:
		if w.Rule != "" {
			text += "; then they are " + w.Tier.String() + " by " + w.Rule
		}
	}
	return text
}

// MarshalJSON adds the sentence.
func (w Way) MarshalJSON() ([]byte, error) {
	type plain Way
	return json.Marshal(struct {
		plain
		Text string `json:"text"`
	}{plain(w), w.String()})
}

// String is the step as a part of a sentence.
func (d Doing) String() string {
	from := " (" + and(d.Rules) + ")"
	switch d.Step {
	case TakeRole:
		return "having " + oneOf("the role", "one of the roles", d.IDs) + from
	case JoinGroup:
		if d.Why != "" {
			return d.Why + " " + oneOf("the user group", "one of the user groups", d.IDs) + from
		}
		return "membership of " + oneOf("the user group", "one of the user groups", d.IDs) + from
	case AskIn:
		return d.askIn() + from
	case AskElsewhere:
		if d.Why != "" {
			return d.Why
		}
		return "asking in another channel of " + home(d.Platform, d.Workspace) + ", one without a limit"
	case AskDirect:
		return "asking in a direct message to the bot"
	case TellGroups, BeMember:
		return d.known()
	case Unblock:
		return taken("the block", "blocks", d.Rules)
	case Unlimit:
		if d.Why != "" {
			return taken("the limit", "limits", d.Rules) + " " + d.Why
		}
		return taken("the limit", "limits", d.Rules) + ", or this place deleted there"
	case Extend:
		return "a later until at " + and(d.Rules) + ", which ended at " + d.Ended
	case Admit:
		return "external: guest at " + and(d.Rules)
	case AddLine:
		return d.line()
	case MakeGrant:
		return "a grant for a day: " + d.Grant.command()
	case Tell:
		return "giving what is not told here: " + and(d.IDs)
	case Consent:
		return "bot accept-gains"
	}
	return string(d.Step)
}

func (d Doing) askIn() string {
	var where []string
	if len(d.IDs) > 0 {
		where = append(where, oneOf("channel", "one of the channels", d.IDs))
	}
	if len(d.Categories) > 0 {
		where = append(where, "a channel of "+oneOf("category", "one of the categories", d.Categories))
	}
	text := "asking in " + strings.Join(where, " or ")
	switch {
	case d.Workspace != "" && len(where) > 0:
		text += " of " + home(d.Platform, d.Workspace) + ", as a member of it"
	case d.Workspace != "":
		text += home(d.Platform, d.Workspace) + ", as a member of it"
	}
	if len(d.Unless) > 0 {
		text += ", unless that is in a category of " + and(d.Unless)
	}
	return text
}

func (d Doing) known() string {
	text := "Slack saying which user groups they are in"
	if d.Step == BeMember {
		text = "being a member of " + home(d.Platform, d.Workspace)
	}
	if d.Why != "" {
		text += ", " + d.Why
	}
	return text
}

func (d Doing) line() string {
	place := "under match: " + string(d.Line.Platform) + ": in tiers/" + d.Tier.String() + ".yaml"
	text := "a line " + place
	if len(d.Rules) > 0 {
		text = "their user id moved from " + and(d.Rules) + " to a line " + place
	}
	text += ": - " + d.Line.yaml()
	if d.Line.Workspace != "" && d.Line.Channels == nil {
		text += " (everywhere in it; channels: […] would narrow it)"
	}
	if d.Why != "" {
		text += ", " + d.Why
	}
	return text
}

// yaml is a line that lists users, as it stands under match.
func (r *Rule) yaml() string {
	var parts []string
	quote := func(id string) string { return id }
	key := "workspace: "
	if r.Platform == Discord {
		quote = func(id string) string { return `"` + id + `"` }
		key = "guild: "
	}
	if r.Workspace != "" {
		parts = append(parts, key+quote(r.Workspace))
	}
	users := make([]string, len(r.Users))
	for i, id := range r.Users {
		users[i] = quote(id)
	}
	parts = append(parts, "users: ["+strings.Join(users, ", ")+"]")
	if r.External {
		parts = append(parts, "external: guest")
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// dayLong is how long a grant lasts that a way proposes.
const dayLong = 24 * time.Hour

// command is the command line that makes such a grant for a day.
func (g *Grant) command() string {
	parts := []string{"bot grant --platform", string(g.Platform), "--workspace", g.Workspace}
	for _, id := range g.Channels {
		parts = append(parts, "--channel", id)
	}
	parts = append(parts, "--user", g.User, "--tier", g.Tier.String(), "--for 24h")
	if g.External {
		parts = append(parts, "--external")
	}
	return strings.Join(parts, " ")
}

func home(platform Platform, workspace string) string {
	if platform == Discord {
		return "the guild " + workspace
	}
	return "the workspace " + workspace
}

// mostNamed bounds how many ids a sentence lists.
const mostNamed = 4

func oneOf(one, several string, ids []string) string {
	if len(ids) == 1 {
		return one + " " + ids[0]
	}
	text := several + " " + strings.Join(ids[:min(len(ids), mostNamed)], ", ")
	if more := len(ids) - mostNamed; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

func taken(one, several string, origins []string) string {
	switch len(origins) {
	case 1:
		return one + " " + origins[0] + " taken away"
	case 2:
		return "both " + several + ", " + and(origins) + ", taken away"
	}
	return fmt.Sprintf("all %d %s, %s, taken away", len(origins), several, and(origins))
}

func and(parts []string) string {
	if len(parts) < 2 {
		return strings.Join(parts, "")
	}
	last := len(parts) - 1
	return strings.Join(slices.Clone(parts[:last]), ", ") + " and " + parts[last]
}
