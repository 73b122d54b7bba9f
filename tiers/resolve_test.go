package tiers

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestMatchNeedsEveryPart(t *testing.T) {
	person := Identity{Platform: Discord, Workspace: "1", User: "7", Kind: Person, Member: true}
	place := Place{Platform: Discord, Workspace: "1", Channel: "5", Most: Owner}
	anyone := Rule{Tier: Guest, Platform: Discord, Workspace: "1", Channels: []string{"5"}, Anyone: true}
	cases := map[string]struct {
		edit func(*Rule, *Identity, *Place)
		want Tier
	}{
		"as written":            {func(*Rule, *Identity, *Place) {}, Guest},
		"other channel":         {func(_ *Rule, _ *Identity, p *Place) { p.Channel = "6" }, None},
		"thread of the channel": {func(_ *Rule, _ *Identity, p *Place) { p.Channel, p.Parent = "9", "5" }, Guest},
		"other guild":           {func(_ *Rule, _ *Identity, p *Place) { p.Workspace = "2" }, None},
		"no channels":           {func(r *Rule, _ *Identity, _ *Place) { r.Channels = nil }, None},
		"empty channels":        {func(r *Rule, _ *Identity, _ *Place) { r.Channels = []string{} }, None},
		"direct message":        {func(_ *Rule, _ *Identity, p *Place) { p.Direct = true }, None},
		"bot":                   {func(_ *Rule, i *Identity, _ *Place) { i.Kind = Bot }, None},
		"webhook":               {func(_ *Rule, i *Identity, _ *Place) { i.Kind = Webhook }, None},
		"unknown kind":          {func(_ *Rule, i *Identity, _ *Place) { i.Kind = UnknownKind }, None},
		"no user":               {func(_ *Rule, i *Identity, _ *Place) { i.User = "" }, None},
		"not a member":          {func(_ *Rule, i *Identity, _ *Place) { i.Member = false }, None},
		"external":              {func(_ *Rule, i *Identity, _ *Place) { i.External = true }, None},
		"owner for anyone":      {func(r *Rule, _ *Identity, _ *Place) { r.Tier = Owner }, None},
		"owner by id":           {func(r *Rule, _ *Identity, _ *Place) { *r = Rule{Tier: Owner, Platform: Discord, Users: []string{"7"}} }, Owner},
		"id, empty channels": {func(r *Rule, _ *Identity, _ *Place) {
			*r = Rule{Tier: Owner, Platform: Discord, Users: []string{"7"}, Channels: []string{}}
		}, None},
		"id, empty channels of a guild": {func(r *Rule, _ *Identity, _ *Place) {
			*r = Rule{Tier: Owner, Platform: Discord, Workspace: "1", Users: []string{"7"}, Channels: []string{}}
		}, None},
		"external, which a rule for the team admits": {func(r *Rule, i *Identity, _ *Place) {
			r.Tier, r.External, i.External, i.Member = Team, true, true, false
		}, Guest},
		"id of another platform": {func(r *Rule, _ *Identity, _ *Place) {
			*r = Rule{Tier: Owner, Platform: Slack, Workspace: "1", Users: []string{"7"}}
		}, None},
		"place that lets none": {func(_ *Rule, _ *Identity, p *Place) { p.Most = None }, None},
		"zero rule":            {func(r *Rule, _ *Identity, _ *Place) { *r = Rule{} }, None},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r, i, p := anyone, person, place
			c.edit(&r, &i, &p)
			require.Equal(t, c.want, NewRules([]Rule{r}, nil).Resolve(i, p, time.Time{}).Tier)
		})
	}
}

func TestPlaceLowersAndNeverRaises(t *testing.T) {
	who := Identity{Platform: Local, User: "0", Kind: Person, Member: true}
	for _, most := range []Tier{None, Guest, Team, Owner} {
		d := Rules{}.Resolve(who, Place{Platform: Local, Channel: "terminal", Most: most}, time.Time{})
		require.Equal(t, most, d.Tier)
	}
	guest := Rule{Tier: Guest, Platform: Discord, Users: []string{"7"}}
	high := Cap{Tier: Owner, Platform: Discord, Workspace: "1"}
	low := Cap{Tier: None, Platform: Discord, Workspace: "1", Channels: []string{"5"}, Origin: "guest.yaml:3"}
	at := Place{Platform: Discord, Workspace: "1", Channel: "5", Most: Owner}
	someone := Identity{Platform: Discord, User: "7", Kind: Person, Member: true}
	require.Equal(t, Guest, NewRules([]Rule{guest}, []Cap{high}).Resolve(someone, at, time.Time{}).Tier)
	require.Equal(t, None, NewRules([]Rule{guest}, []Cap{high, low}).Resolve(someone, at, time.Time{}).Tier)
	elsewhere := Cap{Tier: None, Platform: Discord, Workspace: "2", Channels: []string{"5"}}
	require.Equal(t, Guest, NewRules([]Rule{guest}, []Cap{elsewhere}).Resolve(someone, at, time.Time{}).Tier)
	owner := Rule{Tier: Owner, Platform: Discord, Users: []string{"7"}}
	at.Most = Guest
	require.Equal(t, Guest, NewRules([]Rule{owner}, []Cap{high}).Resolve(someone, at, time.Time{}).Tier, "a cap opens no place")
}

func TestDecidingAllocatesNothing(t *testing.T) {
	rules := NewRules([]Rule{
		{Tier: Team, Platform: Discord, Workspace: "1", Users: []string{"7"}, Roles: []string{"8"}},
		{Tier: Guest, Platform: Discord, Workspace: "1", Channels: []string{"5"}, Anyone: true},
	}, []Cap{{Tier: Guest, Platform: Discord, Workspace: "1", Channels: []string{"6"}}},
		Block{Platform: Discord, Users: []string{"9"}}, Block{Platform: Discord, Workspace: "1", Roles: []string{"4"}})
	now := time.Now()
	for _, user := range []string{"7", "9", "3"} {
		for _, channel := range []string{"5", "6"} {
			who := Identity{Platform: Discord, Workspace: "1", User: user, Kind: Person, Member: true, Roles: []string{"8"}, Restricted: user == "3"}
			where := Place{Platform: Discord, Workspace: "1", Channel: channel, Most: Owner}
			require.Zero(t, testing.AllocsPerRun(100, func() { _ = rules.Resolve(who, where, now) }), user)
		}
	}
}

// What an operator vouches for ends where the adapter knows better, and a direct
// message is read by nobody but its asker.
func TestTheAudienceIsNoMoreThanWhatIsKnown(t *testing.T) {
	room := Cap{Tier: Team, Platform: Discord, Workspace: "1", Channels: []string{"5"}, Audience: Team}
	rules := NewRules([]Rule{{Tier: Owner, Platform: Discord, Users: []string{"7"}}}, []Cap{room})
	who := Identity{Platform: Discord, Workspace: "1", User: "7", Kind: Person, Member: true}
	at := Place{Platform: Discord, Workspace: "1", Channel: "5", Most: Owner}
	require.Equal(t, Team, rules.Resolve(who, at, time.Time{}).Audience)
	at.Most = Guest
	require.Equal(t, Guest, rules.Resolve(who, at, time.Time{}).Audience)
	at.Most, at.Channel = Owner, "6"
	require.Equal(t, None, rules.Resolve(who, at, time.Time{}).Audience)
	require.Equal(t, Owner, rules.Resolve(who, Place{Platform: Discord, Channel: "d", Direct: true, Most: Owner}, time.Time{}).Audience)
	who.User = "8"
	require.Equal(t, None, rules.Resolve(who, Place{Platform: Discord, Channel: "d", Direct: true, Most: Owner}, time.Time{}).Audience)
}
