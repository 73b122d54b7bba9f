package tiers

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMatchNeedsEveryPart(t *testing.T) {
	person := Identity{Platform: Discord, Workspace: "1", User: "7", Kind: Person}
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
		"external":              {func(_ *Rule, i *Identity, _ *Place) { i.External = true }, None},
		"owner for anyone":      {func(r *Rule, _ *Identity, _ *Place) { r.Tier = Owner }, None},
		"owner by id":           {func(r *Rule, _ *Identity, _ *Place) { *r = Rule{Tier: Owner, Platform: Discord, Users: []string{"7"}} }, Owner},
		"id, empty channels": {func(r *Rule, _ *Identity, _ *Place) {
			*r = Rule{Tier: Owner, Platform: Discord, Users: []string{"7"}, Channels: []string{}}
		}, None},
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
			require.Equal(t, c.want, NewRules([]Rule{r}, nil).Resolve(i, p).Tier)
		})
	}
}

func TestPlaceLowersAndNeverRaises(t *testing.T) {
	who := Identity{Platform: Local, User: "0", Kind: Person}
	for _, most := range []Tier{None, Guest, Team, Owner} {
		d := Rules{}.Resolve(who, Place{Platform: Local, Channel: "terminal", Most: most})
		require.Equal(t, most, d.Tier)
	}
	guest := Rule{Tier: Guest, Platform: Discord, Users: []string{"7"}}
	high := Cap{Tier: Owner, Platform: Discord, Workspace: "1"}
	low := Cap{Tier: None, Platform: Discord, Workspace: "1", Channels: []string{"5"}, Origin: "guest.yaml:3"}
	at := Place{Platform: Discord, Workspace: "1", Channel: "5", Most: Owner}
	someone := Identity{Platform: Discord, User: "7", Kind: Person}
	require.Equal(t, Guest, NewRules([]Rule{guest}, []Cap{high}).Resolve(someone, at).Tier)
	require.Equal(t, None, NewRules([]Rule{guest}, []Cap{high, low}).Resolve(someone, at).Tier)
	owner := Rule{Tier: Owner, Platform: Discord, Users: []string{"7"}}
	at.Most = Guest
	require.Equal(t, Guest, NewRules([]Rule{owner}, []Cap{high}).Resolve(someone, at).Tier, "a cap opens no place")
}
