package slack

import (
	"context"
	"errors"
	"slices"
	"time"

	slackgo "github.com/slack-go/slack"

	"parlour/tiers"
)

const (
	lookupTimeout = 1500 * time.Millisecond // Slack wants its acknowledgement within 3 s
	lookupKept    = time.Minute             // how long what Slack said of somebody is believed
)

// person is what Slack vouches for about the sender of a post.
type person struct {
	identity tiers.Identity
	why      string // what made it less than a member, for the log; empty: nothing
}

// known is what Slack said of somebody, and when.
type known struct {
	user account
	at   time.Time
}

// account is the part of a user of the library that is read. There is no name
// in it.
type account struct {
	team             string
	enterprise       string
	enterpriseTeams  []string
	bot, deleted     bool
	stranger, limits bool
}

// look asks Slack about the sender. A failed lookup makes nobody a member, and
// it is not remembered.
func (d *door) look(ctx context.Context, me self, q question) person {
	now := time.Now()
	if k, ok := d.accounts.get(q.user); ok && now.Sub(k.at) < lookupKept {
		return judge(me, q, k.user)
	}
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	got, err := d.web.api.GetUserInfoContext(ctx, q.user)
	if err == nil && got.ID != q.user {
		err = errors.New("the answer is about nobody or about somebody else")
	}
	if err != nil {
		err = d.web.fault("users.info", err)
		d.log.Warn("slack did not say who asks; they are treated as unknown", "user", q.user, "err", err)
		return person{identity: tiers.Identity{Platform: tiers.Slack, User: q.user, Kind: tiers.UnknownKind}, why: err.Error()}
	}
	user := read(got)
	d.accounts.put(q.user, known{user, now})
	return judge(me, q, user)
}

func read(u *slackgo.User) account {
	return account{
		team: u.TeamID, enterprise: u.Enterprise.EnterpriseID, enterpriseTeams: u.Enterprise.Teams,
		bot: u.IsBot || u.IsWorkflowBot || u.IsConnectorBot || u.ID == slackbot, deleted: u.Deleted,
		stranger: u.IsStranger, limits: u.IsRestricted || u.IsUltraRestricted || u.IsInvitedUser,
	}
}

// judge says who the sender is. The sender's own workspace counts, not the one
// that the event came under; what two sources tell differently is external.
func judge(me self, q question, u account) person {
	p := person{identity: tiers.Identity{
		Platform: tiers.Slack, Workspace: u.team, User: q.user, Kind: tiers.Person, Restricted: u.limits,
	}}
	ofGrid := me.enterprise != "" && u.enterprise == me.enterprise && slices.Contains(u.enterpriseTeams, me.team)
	if ofGrid {
		p.identity.Workspace = me.team
	}
	told := q.userTeam == "" || q.userTeam == u.team || q.userTeam == me.team || me.enterprise != "" && q.userTeam == me.enterprise
	switch {
	case u.deleted:
		p.identity.Kind, p.why = tiers.UnknownKind, "the account is deleted"
	case u.bot:
		p.identity.Kind, p.why = tiers.Bot, reasonBot
	case u.stranger || p.identity.Workspace != me.team || !told:
		p.identity.External, p.why = true, "the account belongs to another workspace"
	case u.limits:
		p.identity.Member = true
		p.why = "a guest account of the workspace"
	default:
		p.identity.Member = true
	}
	return p
}
