package tiers

// Platform is where a message came from. The zero Platform is unknown and
// matches nothing.
type Platform string

// The platforms.
const (
	Discord Platform = "discord"
	Slack   Platform = "slack"
	Local   Platform = "local" // the terminal of the machine that runs the bot
)

// Kind is what sent a message. The zero Kind is unknown and is never answered.
type Kind int8

// The kinds of sender.
const (
	UnknownKind Kind = iota
	Person
	Bot
	Webhook
)

// Identity is who sent a message, by the ids that the platform vouches for.
// What an adapter could not learn stays zero, and zero is less right.
type Identity struct {
	Platform   Platform
	Workspace  string // Discord guild or Slack team that vouches for the user; empty in a Discord DM
	User       string // the platform's own user id, never a name
	Kind       Kind
	Member     bool     // belongs to Workspace now; false: not, no longer, or not known
	External   bool     // belongs to another organisation than the place
	Restricted bool     // a guest account of the workspace (Slack)
	Roles      []string `json:",omitempty"` // Discord role ids, held in Workspace
	Groups     []string `json:",omitempty"` // Slack user group ids, of the place's workspace
	// GroupsKnown says that Groups holds all of theirs that a rule or a block
	// names. Without it they are in no group, and a block of a group denies them.
	GroupsKnown bool `json:",omitempty"`
}

// Key names the person for limits and fairness: the same person in two places
// of one platform has one key.
func (i Identity) Key() string {
	if i.Platform == Slack {
		return string(i.Platform) + ":" + i.Workspace + ":" + i.User
	}
	return string(i.Platform) + ":" + i.User
}

// Place is where a message was sent and where its answer will be read. An
// adapter that does not know Parent or Category lowers Most to guest, since a
// limit on them would not be found.
type Place struct {
	Platform  Platform
	Workspace string // Discord guild or Slack team; empty in a Discord DM
	Channel   string
	Parent    string // the channel or forum that a thread or post belongs to; empty outside of them
	Category  string `json:",omitempty"` // Discord category of the channel, or of the thread's channel; empty: none
	Direct    bool   // a conversation of one person with the bot
	Most      Tier   // the highest tier that the adapter lets in here; the zero lets nobody in
}
