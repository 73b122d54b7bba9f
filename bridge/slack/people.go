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
	mostBelief    = time.Minute             // how long what Slack said of somebody is believed
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

// look asks Slack about the sender, and in which user groups they are. A failed
// lookup makes nobody a member, or a member of no group, and it is not
// remembered. Both have one time limit.
func (d *door) look(ctx context.Context, me self, q question) person {
	p, err := d.lookOnce(ctx, me, q)
	switch {
	case err != nil && p.identity.Kind == tiers.UnknownKind:
		d.log.Warn("slack did not say who asks; they are treated as unknown", "user", q.user, "err", err)
	case err != nil:
		d.log.Warn("slack did not say in which user groups somebody is; they are treated as in none", "user", q.user, "err", err)
	}
	return p
}

// lookOnce gives what could be learned, and why the rest could not.
func (d *door) lookOnce(ctx context.Context, me self, q question) (person, error) {
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	user, err := d.account(ctx, q.user)
	if err != nil {
		err = d.web.fault("users.info", err)
		return person{identity: tiers.Identity{Platform: tiers.Slack, User: q.user, Kind: tiers.UnknownKind}, why: err.Error()}, err
	}
	p := judge(me, q, user)
	if p.identity.Kind != tiers.Person {
		return p, nil
	}
	held, err := d.groups(ctx, me, q.user)
	p.identity.Groups, p.identity.GroupsKnown = held, err == nil
	return p, err
}

// account gives what Slack says of somebody, from memory or anew.
func (d *door) account(ctx context.Context, id string) (account, error) {
	now := time.Now()
	if k, ok := d.accounts.get(id); ok && now.Sub(k.at) < d.web.cfg.Belief {
		return k.user, nil
	}
	got, err := d.web.api.GetUserInfoContext(ctx, id)
	if err == nil && got.ID != id {
		err = errors.New("the answer is about nobody or about somebody else")
	}
	if err != nil {
		return account{}, err
	}
	user := read(got)
	d.accounts.put(id, known{user, now})
	return user, nil
}

// Look says who somebody is by now. It believes for a minute what Slack has
// said, as for a post that comes in. With an error, what could not be learned is
// zero.
// Guarded by tests/contract TestSlackAGroupThatIsLeftWhileAQuestionWaitsGivesNothing.
func (a *Adapter) Look(ctx context.Context, who tiers.Identity, where tiers.Place) (tiers.Identity, error) {
	me, err := a.web.whoami(ctx)
	switch {
	case err != nil:
		return tiers.Identity{}, err
	case where.Workspace != me.team || !validUser(who.User):
		return tiers.Identity{}, errors.New("slack: the question is not of this workspace")
	}
	p, err := a.door.lookOnce(ctx, me, question{user: who.User})
	if p.identity.Kind == tiers.UnknownKind && err != nil {
		return tiers.Identity{}, err
	}
	return p.identity, err
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
