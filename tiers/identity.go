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
type Identity struct {
	Platform  Platform
	Workspace string // Discord guild or Slack team that vouches for the user; empty in a Discord DM
	User      string // the platform's own user id, never a name
	Kind      Kind
	External  bool // belongs to another organisation than the place
}

// Key names the person for limits and fairness: the same person in two places
// of one platform has one key.
func (i Identity) Key() string {
	if i.Platform == Slack {
		return string(i.Platform) + ":" + i.Workspace + ":" + i.User
	}
	return string(i.Platform) + ":" + i.User
}

// Place is where a message was sent and where its answer will be read.
type Place struct {
	Platform  Platform
	Workspace string // Discord guild or Slack team; empty in a Discord DM
	Channel   string
	Parent    string // the channel that a thread belongs to; empty outside threads
	Direct    bool   // a conversation of one person with the bot
	Most      Tier   // the highest tier that the adapter lets in here; the zero lets nobody in
}

// in says whether the place is the channel or a thread of it.
func (p Place) in(channel string) bool {
	return channel != "" && (p.Channel == channel || p.Parent == channel)
}
