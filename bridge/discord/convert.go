package discord

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"parlour/bridge"
	"parlour/tiers"
)

// event is the part of a MESSAGE_CREATE that is read. It is decoded from the
// raw bytes: the library's own type turns a message with a component that it
// does not know into an empty one.
type event struct {
	ID        string  `json:"id"`
	ChannelID string  `json:"channel_id"`
	GuildID   string  `json:"guild_id"`
	WebhookID string  `json:"webhook_id"`
	Type      int     `json:"type"`
	Flags     int     `json:"flags"`
	Content   string  `json:"content"`
	Author    *author `json:"author"`
	Member    *struct {
		Roles *[]string `json:"roles"`
	} `json:"member"`
	Mentions []struct {
		ID string `json:"id"`
	} `json:"mentions"`
	Reference *struct {
		Type int `json:"type"`
	} `json:"message_reference"`
	Referenced *struct {
		Author *author `json:"author"`
	} `json:"referenced_message"`
	Snapshots []struct {
		Message struct {
			Content string `json:"content"`
		} `json:"message"`
	} `json:"message_snapshots"`
}

type author struct {
	ID     string `json:"id"`
	Bot    bool   `json:"bot"`
	System bool   `json:"system"`
}

func decode(raw []byte) (event, error) {
	var e event
	err := json.Unmarshal(raw, &e)
	return e, err
}

// channel is what is known of the place of a message. The zero channel is one
// of which nothing is known.
type channel struct {
	Type     int
	Guild    string
	Parent   string // of a thread its channel, of a channel its category
	category string
	known    bool // type and parent
	whole    bool // the category too
}

// The types of Discord's channels and messages that matter here.
const (
	channelText          = 0
	channelVoice         = 2
	channelNews          = 5
	channelNewsThread    = 10
	channelPublicThread  = 11
	channelPrivateThread = 12
	channelStage         = 13
	channelForum         = 15
	channelMedia         = 16

	messagePlain = 0
	messageReply = 19

	flagCrosspost = 1 << 1
)

func (c channel) thread() bool {
	return c.known && (c.Type == channelNewsThread || c.Type == channelPublicThread || c.Type == channelPrivateThread)
}

// plain says whether it is a channel whose parent is a category. What is of a
// type that this bot does not know is none: its parent may be a channel, where
// other limits hold.
func (c channel) plain() bool {
	return c.known && slices.Contains([]int{channelText, channelVoice, channelNews, channelStage, channelForum, channelMedia}, c.Type)
}

// holdsThreads says whether a thread can be made from a message here. Where the
// type is not known it is tried.
func (c channel) holdsThreads() bool {
	return !c.known || c.Type == channelText || c.Type == channelNews
}

// unaddressed says why a message is none of the bot's business, or nothing. It
// looks at ids, types and flags only.
func unaddressed(self string, e event) string {
	switch {
	case e.Author == nil || e.Author.ID == "":
		return "no author"
	case !snowflake(e.ID) || !snowflake(e.ChannelID) || e.GuildID != "" && !snowflake(e.GuildID):
		return "an id that is none"
	case self == "":
		return "the bot does not know its own id yet"
	case e.Author.ID == self:
		return "the bot's own message"
	case e.Type != messagePlain && e.Type != messageReply:
		return "a system message"
	case e.GuildID != "" && !e.mentions(self) && !e.repliesTo(self):
		return "not addressed to the bot"
	}
	return ""
}

func (e event) mentions(id string) bool {
	for _, m := range e.Mentions {
		if m.ID == id {
			return true
		}
	}
	return false
}

// repliesTo says whether the message answers one of this author, with or
// without a ping.
func (e event) repliesTo(id string) bool {
	return e.Type == messageReply && e.Referenced != nil && e.Referenced.Author != nil && e.Referenced.Author.ID == id
}

func (e event) kind() tiers.Kind {
	switch {
	case e.WebhookID != "" || e.Flags&flagCrosspost != 0:
		return tiers.Webhook
	case e.Author.Bot || e.Author.System:
		return tiers.Bot
	}
	return tiers.Person
}

// identity gives who sent the message. The roles are those of the message's
// guild; what comes without a member, as a direct message does, has none, and
// who comes without roles is not known to be a member: one may be blocked.
// Guarded by tests/contract TestDiscordRolesCountInTheirGuildOnly.
func (e event) identity(kind tiers.Kind) tiers.Identity {
	who := tiers.Identity{Platform: tiers.Discord, Workspace: e.GuildID, User: e.Author.ID, Kind: kind}
	if e.GuildID == "" || e.Member == nil || e.Member.Roles == nil {
		return who
	}
	who.Member = true
	who.Roles = rolesOf(e.GuildID, *e.Member.Roles)
	return who
}

// convert makes the message of an event, or says why there is none. It passes
// ids on and decides nothing, but for this: what is not a person is not asked
// about, and quoted text of others or a place that is
// not known lowers to guest.
// Guarded by tests/contract TestDiscordHandsOnlyPeopleOn.
func convert(self string, e event, at channel) (bridge.Message, string) {
	if why := unaddressed(self, e); why != "" {
		return bridge.Message{}, why
	}
	kind := e.kind()
	if kind != tiers.Person {
		return bridge.Message{}, "not a person"
	}
	text, quotes := question(self, e)
	if text == "" {
		return bridge.Message{}, "no question"
	}
	m := bridge.Message{
		ID:       "discord:" + e.ID,
		Identity: e.identity(kind),
		Place: tiers.Place{
			Platform: tiers.Discord, Workspace: e.GuildID, Channel: e.ChannelID, Direct: e.GuildID == "", Most: tiers.Owner,
		},
		Text: text,
		At:   created(e.ID),
	}
	to := address{channel: e.ChannelID, message: e.ID}
	// A thread that is made from a message has the id of that message, so a
	// question and what is asked below its answer are one conversation.
	switch {
	case m.Place.Direct:
		m.Lane = "discord:" + e.ChannelID
	case at.thread():
		m.Lane, m.Place.Parent = "discord:"+e.ChannelID, at.Parent
	default:
		m.Lane, to.thread = "discord:"+e.ID, at.holdsThreads()
	}
	m.Place.Category = at.category
	// A limit of the channel or category cannot be found where they are not known.
	// Guarded by tests/contract TestDiscordFailedLookupIsLessRightAndNotKept.
	if quotes || !m.Place.Direct && !at.whole {
		m.Place.Most = tiers.Guest
	}
	m.ReplyTo = to.String()
	return m, ""
}

// question gives the text of a message without the mention of the bot, and
// whether it quotes somebody else. Forwarded text is marked as a quotation of an
// unknown author.
func question(self string, e event) (text string, quotes bool) {
	text = plainMentions(self, e.Content)
	for _, s := range e.Snapshots {
		forwarded := plainMentions("", s.Message.Content)
		if forwarded == "" {
			continue
		}
		quotes = true
		text += "\n\nForwarded message, author unknown:\n> " + strings.ReplaceAll(forwarded, "\n", "\n> ")
	}
	if strings.TrimSpace(plain(text)) == "" {
		return "", quotes // nothing but what cannot be seen
	}
	return strings.TrimSpace(text), quotes
}

var mention = regexp.MustCompile(`<(@[!&]?|#)(\d{1,20})>|<a?(:\w{1,64}:)\d{1,20}>|<(/[^:<>\n]{1,100}):\d{1,20}>`)

// plainMentions takes the mention of the bot out of a text, in both spellings,
// and turns every other mention into words that mention nobody.
func plainMentions(self, text string) string {
	text = mention.ReplaceAllStringFunc(text, func(found string) string {
		part := mention.FindStringSubmatch(found)
		switch part[1] {
		case "@", "@!":
			if part[2] == self {
				return ""
			}
			return "@user-" + part[2]
		case "@&":
			return "@role-" + part[2]
		case "#":
			return "#channel-" + part[2]
		}
		return part[3] + part[4]
	})
	return strings.TrimSpace(text)
}

// created reads the time out of an id.
func created(id string) time.Time {
	n, err := strconv.ParseInt(id, 10, 64)
	if err != nil {
		return time.Time{}
	}
	const discordEpoch = 1420070400000
	return time.UnixMilli(n>>22 + discordEpoch).UTC()
}

// address is where an answer goes: to a thread of the message, or as a reply.
type address struct {
	channel, message string
	thread           bool
}

// String writes the address as the journal keeps it.
func (a address) String() string {
	how := "reply"
	if a.thread {
		how = "thread"
	}
	return a.channel + "/" + a.message + "/" + how
}

// addressError says that the address of an answer is none, so nothing can ever
// be posted there.
type addressError struct{}

// Error says so.
func (addressError) Error() string { return "the address of the answer is not one of Discord" }

// Permanent is true: the address is stored with the question.
func (addressError) Permanent() bool { return true }

func parseAddress(s string) (address, error) {
	part := strings.Split(s, "/")
	if len(part) != 3 || !snowflake(part[0]) || !snowflake(part[1]) {
		return address{}, addressError{}
	}
	return address{channel: part[0], message: part[1], thread: part[2] == "thread"}, nil
}

// snowflake says whether a text is an id. Ids become parts of paths, so nothing
// else may pass.
func snowflake(s string) bool {
	if s == "" || len(s) > 20 {
		return false
	}
	return strings.Trim(s, "0123456789") == ""
}
