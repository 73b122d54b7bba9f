package contract_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"parlour/tiers"
)

// Whatever Slack would have said of somebody's user groups, where it has not they
// have no more.
func TestUserGroupsThatAreNotKnownGiveNoMoreThanAnyOthers(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		d := draw(t)
		for i := range d.rules {
			d.rules[i].Platform = tiers.Slack
		}
		for i := range d.blocks {
			d.blocks[i].Platform = tiers.Slack
		}
		who := anybody(t)
		who.Platform = tiers.Slack
		where, now := anywhere(t, who), oneOf(t, "now", someMoments...)
		known := who
		known.GroupsKnown = true
		who.Groups, who.GroupsKnown = nil, false
		rules := d.rulebook()
		require.LessOrEqual(t, rules.Resolve(who, where, now).Tier, rules.Resolve(known, where, now).Tier)
	})
}

// Groups of a workspace are those of the rules and blocks that are about it.
func TestOnlyUserGroupsThatRulesNameAreAskedFor(t *testing.T) {
	t.Parallel()
	rules := tiers.NewRules([]tiers.Rule{
		{Tier: tiers.Team, Platform: tiers.Slack, Workspace: "T1", Groups: []string{"S2", "S1", ""}},
		{Tier: tiers.Guest, Platform: tiers.Slack, Workspace: "T1", Groups: []string{"S1"}, Until: time.Unix(1, 0)},
		{Tier: tiers.Guest, Platform: tiers.Slack, Workspace: "T2", Groups: []string{"S4"}},
		{Tier: tiers.Guest, Platform: tiers.Discord, Workspace: "T1", Groups: []string{"S5"}},
	}, nil, tiers.Block{Platform: tiers.Slack, Workspace: "T1", Groups: []string{"S3"}})
	require.Equal(t, []string{"S1", "S2", "S3"}, rules.Groups("T1"))
	require.Equal(t, []string{"S4"}, rules.Groups("T2"))
	require.Empty(t, rules.Groups("T3"))
	require.Empty(t, tiers.Rules{}.Groups("T1"))
}

// A rule that admits people of other organisations admits them by the id or the
// channel, never by a group.
func TestPeopleOfOtherOrganisationsHaveNothingByAUserGroup(t *testing.T) {
	t.Parallel()
	rule := tiers.Rule{Tier: tiers.Guest, Platform: tiers.Slack, Workspace: "T1", Groups: []string{"S1"}, External: true}
	who := tiers.Identity{Platform: tiers.Slack, Workspace: "T2", User: "U1", Kind: tiers.Person, External: true, Groups: []string{"S1"}, GroupsKnown: true}
	where := tiers.Place{Platform: tiers.Slack, Workspace: "T1", Channel: "C1", Most: tiers.Owner}
	require.Equal(t, tiers.None, tiers.NewRules([]tiers.Rule{rule}, nil).Resolve(who, where, time.Time{}).Tier)
	rule.Users = []string{"U1"}
	require.Equal(t, tiers.Guest, tiers.NewRules([]tiers.Rule{rule}, nil).Resolve(who, where, time.Time{}).Tier, "the control")
}
