package slack

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"parlour/bridge"
	"parlour/tiers"
)

// self is who the bot is in its workspace.
type self struct {
	team       string
	enterprise string // empty outside Enterprise Grid
	user       string
	bot        string
}

// payload is the part of an Events API payload that is read. There are no names
// in it.
type payload struct {
	Type           string          `json:"type"`
	Team           string          `json:"team_id"`
	Enterprise     string          `json:"enterprise_id"`
	EventID        string          `json:"event_id"`
	Shared         bool            `json:"is_ext_shared_channel"`
	Authorizations []authorization `json:"authorizations"`
	Event          post            `json:"event"`
}

type authorization struct {
	Team  string `json:"team_id"`
	User  string `json:"user_id"`
	IsBot bool   `json:"is_bot"`
}

// post is a post in Slack, as an event tells it.
type post struct {
	Type        string          `json:"type"`
	SubType     string          `json:"subtype"`
	Hidden      bool            `json:"hidden"`
	Edited      json.RawMessage `json:"edited"`
	User        string          `json:"user"`
	UserTeam    string          `json:"user_team"`
	Bot         string          `json:"bot_id"`
	BotProfile  json.RawMessage `json:"bot_profile"`
	Workflow    string          `json:"workflow_id"`
	Channel     string          `json:"channel"`
	ChannelType string          `json:"channel_type"`
	TS          string          `json:"ts"`
	ThreadTS    string          `json:"thread_ts"`
	ThreadOf    string          `json:"parent_user_id"`
	ClientID    string          `json:"client_msg_id"`
	Text        string          `json:"text"`
}

var (
	teamID    = regexp.MustCompile(`^[TE][A-Z0-9]{2,30}$`)
	userID    = regexp.MustCompile(`^[UW][A-Z0-9]{2,30}$`)
	channelID = regexp.MustCompile(`^[CDG][A-Z0-9]{2,30}$`)
	stamp     = regexp.MustCompile(`^[0-9]{1,12}\.[0-9]{1,9}$`)
)

func validTeam(s string) bool { return teamID.MatchString(s) }
func validUser(s string) bool { return userID.MatchString(s) }

// slackbot is the one person id that is no person.
const slackbot = "USLACKBOT"

// question is a post that addresses the bot: ids and text, no decision.
type question struct {
	user     string
	userTeam string // what the event says; empty: nothing
	channel  string
	ts       string
	thread   string // the first post of the thread; ts where this is the first
	clientID string
	text     string
	direct   bool
	shared   bool // people of other organisations can read the channel
}

// convert reads an Events API payload. It gives the question in it, or one
// sentence that says why there is none. asked says who asked in a thread that
// the bot has answered in.
func convert(raw []byte, me self, asked func(thread string) string) (question, string) {
	var p payload
	if err := json.Unmarshal(raw, &p); err != nil {
		return question{}, "the payload does not read as an event"
	}
	if why := p.foreign(me); why != "" {
		return question{}, why
	}
	e := p.Event
	if why := e.unfit(me); why != "" {
		return question{}, why
	}
	q := question{
		user: e.User, userTeam: e.UserTeam, channel: e.Channel, ts: e.TS, thread: e.TS, clientID: e.ClientID,
		direct: e.ChannelType == "im" || strings.HasPrefix(e.Channel, "D"), shared: p.Shared,
	}
	if e.ThreadTS != "" {
		q.thread = e.ThreadTS
	}
	bots := p.bots(me)
	if !q.direct && !e.addresses(bots, asked(q.threadKey())) {
		return question{}, "the post does not address the bot"
	}
	if q.text = plainText(e.Text, bots); strings.TrimSpace(visible(q.text)) == "" {
		return question{}, "the post holds no text"
	}
	return q, ""
}

// foreign says why an event is not one of the bot's own workspace. The app of
// the operator may be installed in other workspaces too, and all of them come
// through the same socket. A channel that is shared may come under the other
// side's name.
func (p payload) foreign(me self) string {
	ours := p.Team == me.team || me.enterprise != "" && p.Team == me.enterprise || p.Shared
	for _, a := range p.Authorizations {
		ours = ours || a.Team == me.team
	}
	switch {
	case p.Type != "event_callback":
		return fmt.Sprintf("payloads of type %q are not used", p.Type)
	case !validTeam(p.Team):
		return "the event has no workspace id"
	case !ours:
		return "the event belongs to another workspace"
	}
	return ""
}

// unfit says why a post can be no question, whoever it addresses.
func (e post) unfit(me self) string {
	switch {
	case e.Type != "app_mention" && e.Type != "message":
		return fmt.Sprintf("events of type %q are not used", e.Type)
	case e.Bot != "" || len(e.BotProfile) > 0 && string(e.BotProfile) != "null" || e.Workflow != "" ||
		e.SubType == "bot_message" || e.User == me.user || e.User == slackbot:
		return reasonBot
	case !slices.Contains([]string{"", "file_share", "thread_broadcast"}, e.SubType):
		return fmt.Sprintf("posts of subtype %q are not used", e.SubType)
	case e.Hidden || len(e.Edited) > 0 && string(e.Edited) != "null":
		return "edits are not questions"
	case !validUser(e.User) || !channelID.MatchString(e.Channel) || !stamp.MatchString(e.TS):
		return "the post has no valid ids"
	case e.ThreadTS != "" && !stamp.MatchString(e.ThreadTS):
		return "the thread has no valid id"
	}
	return ""
}

const reasonBot = "the post is from a bot"

// addresses says whether a post in a channel is meant for the bot: it names it,
// it replies in a thread that the bot began, or its author goes on in the thread
// where they asked and names nobody else.
func (e post) addresses(bots []string, asker string) bool {
	if e.Type == "app_mention" || mentions(e.Text, bots) {
		return true
	}
	if e.ThreadTS == "" || e.ThreadTS == e.TS || mentionsAnyone(e.Text) {
		return false
	}
	return slices.Contains(bots, e.ThreadOf) || asker != "" && asker == e.User
}

// bots gives every id under which the bot can be mentioned.
func (p payload) bots(me self) []string {
	ids := []string{me.user}
	for _, a := range p.Authorizations {
		if a.IsBot && a.Team == me.team && validUser(a.User) {
			ids = append(ids, a.User)
		}
	}
	return ids
}

func (q question) threadKey() string { return q.channel + ":" + q.thread }

// message makes the message for the gate. Its id is the same whatever kind of
// event, envelope or workspace brought the post.
func (q question) message(me self, who person) bridge.Message {
	prefix := "slack:" + me.team + ":" + q.channel + ":"
	return bridge.Message{
		ID:       prefix + q.ts,
		Identity: who.identity,
		Place: tiers.Place{
			Platform: tiers.Slack, Workspace: me.team, Channel: q.channel, Direct: q.direct, Most: most(q.shared),
		},
		Lane:    prefix + q.thread,
		Text:    q.text,
		ReplyTo: address{channel: q.channel, thread: q.thread, ts: q.ts}.String(),
		At:      moment(q.ts),
	}
}

// most is what the adapter lets in at a place: people of other organisations
// read along in a shared channel, so nobody gets more than a guest there. Where a
// rule gives less, that is not raised.
func most(shared bool) tiers.Tier {
	if shared {
		return tiers.Guest
	}
	return tiers.Owner
}

func moment(ts string) time.Time {
	seconds, fraction, _ := strings.Cut(ts, ".")
	s, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return time.Time{}
	}
	n, err := strconv.ParseInt((fraction + "000000000")[:9], 10, 64)
	if err != nil {
		n = 0
	}
	return time.Unix(s, n).UTC()
}

// address is where an answer belongs: the adapter's own word, ReplyTo.
type address struct{ channel, thread, ts string }

// String writes what parseAddress reads.
func (a address) String() string { return a.channel + "/" + a.thread + "/" + a.ts }

// followUp says whether the question stood in a thread that had begun before.
func (a address) followUp() bool { return a.thread != a.ts }

func parseAddress(s string) (address, error) {
	parts := strings.Split(s, "/")
	if len(parts) != 3 || !channelID.MatchString(parts[0]) || !stamp.MatchString(parts[1]) || !stamp.MatchString(parts[2]) {
		return address{}, &PermanentError{"deliver", "the question has no address in Slack"}
	}
	return address{parts[0], parts[1], parts[2]}, nil
}
