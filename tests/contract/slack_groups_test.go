package contract_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"parlour/bridge/ask"
	slackfake "parlour/tests/fakes/slack"
	"parlour/tiers"
)

const (
	slackStaff   = "S0STAFF001" // makes team
	slackUnnamed = "S0OTHER001" // no rule names it
	slackBanned  = "S0BANNED01" // blocked, where a block is
)

// groupRules make a user group team, beside the rules of the other tests.
func groupRules(blocks ...tiers.Block) tiers.Rules {
	rules := append(slackRules().All(), tiers.Rule{
		Tier: tiers.Team, Platform: tiers.Slack, Workspace: slackfake.HomeTeam, Groups: []string{slackStaff}, Origin: "team.yaml:5",
	})
	return tiers.NewRules(rules, nil, blocks...)
}

func ofTheBanned() tiers.Block {
	return tiers.Block{Platform: tiers.Slack, Workspace: slackfake.HomeTeam, Groups: []string{slackBanned}, Origin: "guest.yaml:9"}
}

// slackWithGroups is a serving bot with such rules, in front of a workspace whose
// guest of the other tests is in a group of the team.
func slackWithGroups(t *testing.T, rules tiers.Rules, belief time.Duration, d *delegate) *slackRig {
	t.Helper()
	r := slackBot(t, slackFake(t, slackfake.Config{}), t.TempDir(), d)
	r.shelf.put(book(rules)())
	r.belief = belief
	r.adapter = r.adapt(r.intake)
	r.fake.AddGroup(slackfake.UserGroup{ID: slackStaff, Users: []string{slackGuest, slackPeer, slackGrid}})
	r.fake.AddGroup(slackfake.UserGroup{ID: slackUnnamed, Users: []string{slackTeam}})
	return r.serve()
}

// asked gives the calls that asked who is in which group.
func (r *slackRig) askedForGroups() (calls []slackfake.Call) {
	for _, c := range r.fake.Calls("") {
		if strings.HasPrefix(c.Method, "usergroups.") {
			calls = append(calls, c)
		}
	}
	return calls
}

func TestSlackUserGroupsGiveTheirTier(t *testing.T) {
	t.Parallel()
	r := slackWithGroups(t, groupRules(), 0, answers("an answer"))
	for _, channel := range []string{slackHall, slackOther, slackDM} {
		require.Equal(t, "team", r.tierOf(slackfake.Post{Channel: channel, User: slackGuest}))
	}
	require.Equal(t, "guest", r.tierOf(slackfake.Post{Channel: slackShared, User: slackGuest}), "others read along")
	require.Equal(t, "none", r.tierOf(slackfake.Post{Channel: slackShared, User: slackPeer}), "people of others have nothing by a group")
	r.fake.AddUser(slackfake.User{ID: slackGrid, Restricted: true})
	require.Equal(t, "guest", r.tierOf(slackfake.Post{Channel: slackOther, User: slackGrid}), "a guest account is guest at most by a group")
	calls := r.askedForGroups()
	require.Len(t, calls, 1, "one answer serves everybody")
	require.Equal(t, "true", calls[0].Form.Get("include_users"))
	require.Equal(t, slackfake.HomeTeam, calls[0].Form.Get("team_id"), "a token of an organisation needs it")
	require.Empty(t, calls[0].Form.Get("include_disabled"))
	require.Equal(t, slackfake.BotToken, calls[0].Token)
}

func TestSlackUserGroupsAreAskedForRarely(t *testing.T) {
	t.Parallel()
	r := slackWithGroups(t, slackRules(), 0, answers("an answer"))
	require.Equal(t, "guest", r.tierOf(slackfake.Post{Channel: slackHall, User: slackGuest}))
	require.Empty(t, r.askedForGroups(), "no rule names a group")

	r.shelf.put(book(groupRules())()) // as a reload does
	for i := range 20 {
		id := fmt.Sprintf("U0CROWD%03d", i)
		r.fake.AddUser(slackfake.User{ID: id})
		r.fake.Say(slackfake.Post{Channel: slackHall, User: id, Text: "<@U0BOT00001> q"})
	}
	r.until("all are answered", func() bool { return len(r.fake.Answers()) == 21 })
	require.Equal(t, "team", r.tierOf(slackfake.Post{Channel: slackOther, User: slackGuest}))
	require.Len(t, r.askedForGroups(), 1, "however many ask at once")

	other := tiers.Rule{Tier: tiers.Team, Platform: tiers.Slack, Workspace: slackfake.HomeTeam, Groups: []string{slackUnnamed}, Origin: "team.yaml:6"}
	r.shelf.put(book(tiers.NewRules(append(groupRules().All()[1:], other), nil))())
	require.Equal(t, "team", r.tierOf(slackfake.Post{Channel: slackHall, User: slackTeam}), "by a group that a rule names only now")
	require.Len(t, r.askedForGroups(), 2)
}

// A group that a rule of before names bounds the rights of now, so it is asked
// for as well.
func TestSlackUserGroupsOfTheRulesUnderneathAreAskedForToo(t *testing.T) {
	t.Parallel()
	r := slackWithGroups(t, slackRules(), 0, answers("an answer"))
	b := book(groupRules())()
	b.Under = []tiers.Rules{tiers.NewRules([]tiers.Rule{
		{Tier: tiers.Team, Platform: tiers.Slack, Workspace: slackfake.HomeTeam, Groups: []string{slackUnnamed}, Origin: "team.yaml:7"},
	}, nil)}
	r.shelf.put(b)
	r.fake.AddGroup(slackfake.UserGroup{ID: slackUnnamed, Users: []string{slackGuest}})
	require.Equal(t, "team", r.tierOf(slackfake.Post{Channel: slackOther, User: slackGuest}), "by both")
}

func TestSlackUserGroupsThatAreNotKnownGiveNothing(t *testing.T) {
	t.Parallel()
	list := func(group string) string {
		return `{"ok":true,"usergroups":[{"id":"` + slackStaff + `","team_id":"` + slackfake.HomeTeam + `",` + group + `}]}`
	}
	in := `"users":["` + slackGuest + `"]`
	for name, c := range map[string]struct {
		fault slackfake.Fault
		rests bool // Slack is left alone for a while
	}{
		"a missing scope":             {slackfake.Fault{Code: "missing_scope", Needed: "usergroups:read"}, true},
		"a plan without groups":       {slackfake.Fault{Code: "plan_upgrade_required"}, true},
		"a limit":                     {slackfake.Fault{RetryAfter: "30"}, true},
		"a limit in words":            {slackfake.Fault{Code: "ratelimited"}, true},
		"a broken server":             {slackfake.Fault{Status: 500}, false},
		"an empty answer":             {slackfake.Fault{Body: `{}`}, false},
		"no list":                     {slackfake.Fault{Body: `{"ok":true}`}, false},
		"ok: false without a word":    {slackfake.Fault{Body: `{"ok":false,"usergroups":[]}`}, false},
		"no JSON":                     {slackfake.Fault{Body: `<html>`}, false},
		"a group without its members": {slackfake.Fault{Body: list(`"date_delete":0,"user_count":1`)}, false},
		"a group of unknown state":    {slackfake.Fault{Body: list(in)}, false},
		"a state that is no number":   {slackfake.Fault{Body: list(in + `,"date_delete":"x"`)}, false},
		"one page of several": {slackfake.Fault{
			Body: strings.TrimSuffix(list(in+`,"date_delete":0`), "}") + `,"response_metadata":{"next_cursor":"more"}}`}, false},
		"an answer without end": {slackfake.Fault{
			Body: strings.TrimSuffix(list(in+`,"date_delete":0`), "}") + `,"more":"` + strings.Repeat("x", 9<<20) + `"}`}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := slackWithGroups(t, groupRules(), 0, answers("an answer"))
			r.fake.Fail("usergroups.list", c.fault)
			r.fake.Say(slackfake.Post{Channel: slackHall, User: slackGuest, Text: "<@U0BOT00001> who am I"})
			got := r.answers(1)[0].Text
			require.Contains(t, got, "— guest · fake", "a member of the workspace all the same")
			require.Contains(t, r.log.String(), "did not say in which user groups somebody is")
			require.Contains(t, r.decision(0).Why, "their user groups are not known")
			want := map[bool]string{true: "guest", false: "team"}[c.rests]
			require.Equal(t, want, r.tierOf(slackfake.Post{Channel: slackHall, User: slackGuest}))
			require.Len(t, r.askedForGroups(), map[bool]int{true: 1, false: 2}[c.rests])
		})
	}
}

// A block of a group denies whom nobody can tell not to be in it.
func TestSlackABlockedUserGroupDeniesWhereGroupsAreNotKnown(t *testing.T) {
	t.Parallel()
	r := slackWithGroups(t, groupRules(ofTheBanned()), 0, answers("an answer"))
	r.fake.Fail("usergroups.list", slackfake.Fault{Status: 500})
	r.fake.AddGroup(slackfake.UserGroup{ID: slackBanned, Users: []string{slackGrid}})
	require.Equal(t, "none", r.tierOf(slackfake.Post{Channel: slackHall, User: slackTeam}))
	require.Contains(t, r.decision(0).Why, "a user group is blocked here, and theirs are not known")
	require.Equal(t, "team", r.tierOf(slackfake.Post{Channel: slackHall, User: slackTeam}))
	require.Equal(t, "team", r.tierOf(slackfake.Post{Channel: slackHall, User: slackGuest}))
	require.Equal(t, "none", r.tierOf(slackfake.Post{Channel: slackHall, User: slackGrid}), "in a group of the team too, and blocked")
}

// Who is blocked by a group is so by whatever list Slack gives of it, and where a
// list is not whole nobody is known not to be in it.
func TestSlackABlockedUserGroupIsReadWidely(t *testing.T) {
	t.Parallel()
	const blocked, unknown = "they are blocked", "theirs are not known"
	group := func(id, more string) string { return `{"id":"` + id + `",` + more + `}` }
	list := func(groups ...string) string { return `{"ok":true,"usergroups":[` + strings.Join(groups, ",") + `]}` }
	const team, in, others = `"team_id":"` + slackfake.HomeTeam + `","date_delete":0`, `"users":["` + slackTeam + `"]`, `"users":["` + slackGrid + `"]`
	for name, c := range map[string]struct {
		group slackfake.UserGroup
		body  string
		why   string
	}{
		"of the workspace":               {group: slackfake.UserGroup{}, why: blocked},
		"shared by another":              {group: slackfake.UserGroup{External: true}, why: blocked},
		"of another workspace":           {group: slackfake.UserGroup{Team: "T0SISTER1"}, why: blocked},
		"disabled":                       {group: slackfake.UserGroup{Disabled: true}, why: blocked},
		"of no workspace":                {body: list(group(slackBanned, `"date_delete":0,`+in)), why: blocked},
		"of unknown state":               {body: list(group(slackBanned, in)), why: blocked},
		"listed twice":                   {body: list(group(slackBanned, team+`,`+in), group(slackBanned, team+`,"users":[]`)), why: blocked},
		"in an empty list":               {body: list(), why: unknown},
		"not in the list":                {body: list(group(slackStaff, team+`,`+in)), why: unknown},
		"without its members":            {body: list(group(slackBanned, team)), why: unknown},
		"with fewer than it counts":      {body: list(group(slackBanned, team+`,"users":[],"user_count":3`)), why: unknown},
		"with fewer, counted in words":   {body: list(group(slackBanned, team+`,"users":[],"user_count":"3"`)), why: unknown},
		"with a count that is none":      {body: list(group(slackBanned, team+`,"users":[],"user_count":"all"`)), why: unknown},
		"listed twice, once not whole":   {body: list(group(slackBanned, team+`,"user_count":2`), group(slackBanned, team+`,`+others)), why: unknown},
		"listed twice, the last of them": {body: list(group(slackBanned, team+`,`+others), group(slackBanned, team+`,"user_count":2`)), why: unknown},
		"of others":                      {body: list(group(slackBanned, team+`,`+others+`,"user_count":1`))},
		"of nobody":                      {body: list(group(slackBanned, team+`,"user_count":"0"`))},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := slackWithGroups(t, groupRules(ofTheBanned()), 0, answers("an answer"))
			c.group.ID, c.group.Users = slackBanned, []string{slackTeam}
			if r.fake.AddGroup(c.group); c.body != "" {
				r.fake.Fail("usergroups.list", slackfake.Fault{Body: c.body})
			}
			want := map[bool]string{true: "team", false: "none"}[c.why == ""]
			for _, channel := range []string{slackHall, slackOther} {
				require.Equal(t, want, r.tierOf(slackfake.Post{Channel: channel, User: slackTeam}))
			}
			require.Contains(t, r.decision(0).Why, c.why)
			require.Len(t, r.askedForGroups(), 1, "it is asked for no more often than others")
			require.Equal(t, "true", r.askedForGroups()[0].Form.Get("include_disabled"))
		})
	}
}

// A group that gave nothing while a block named it may give something afterwards,
// and only by the rules for that.
func TestSlackAUserGroupThatIsBlockedNoMoreIsAskedForAgain(t *testing.T) {
	t.Parallel()
	r := slackWithGroups(t, groupRules(tiers.Block{Platform: tiers.Slack, Workspace: slackfake.HomeTeam, Groups: []string{slackStaff}, Origin: "guest.yaml:9"}), 0, answers("an answer"))
	r.fake.AddGroup(slackfake.UserGroup{ID: slackStaff, Users: []string{slackGuest}, External: true})
	require.Equal(t, "none", r.tierOf(slackfake.Post{Channel: slackHall, User: slackGuest}))
	r.shelf.put(book(groupRules())())
	require.Equal(t, "guest", r.tierOf(slackfake.Post{Channel: slackHall, User: slackGuest}), "a group of others gives nothing")
	require.Len(t, r.askedForGroups(), 2)
}

// Slack takes longer than a message can wait: the call goes on without it.
func TestSlackASlowListOfUserGroupsIsKnownToTheNext(t *testing.T) {
	t.Parallel()
	r := slackWithGroups(t, groupRules(), 0, answers("an answer"))
	slow := make(chan struct{})
	r.fake.Fail("usergroups.list", slackfake.Fault{Slow: slow})
	for range 2 {
		require.Equal(t, "guest", r.tierOf(slackfake.Post{Channel: slackHall, User: slackGuest}))
	}
	require.Contains(t, r.log.String(), "did not say in which user groups somebody is")
	require.Contains(t, r.decision(0).Why, "their user groups are not known")
	close(slow)
	require.Equal(t, "team", r.tierOf(slackfake.Post{Channel: slackHall, User: slackGuest}))
	require.Len(t, r.askedForGroups(), 1, "one call at a time")
}

// A call that is on its way ends with the adapter.
func TestSlackACallForUserGroupsEndsWithTheBot(t *testing.T) {
	t.Parallel()
	r := slackWithGroups(t, groupRules(), 0, answers("an answer"))
	r.fake.Fail("usergroups.list", slackfake.Fault{Hang: true})
	require.Equal(t, "guest", r.tierOf(slackfake.Post{Channel: slackHall, User: slackGuest}))
	began := time.Now()
	r.stop()
	require.Less(t, time.Since(began), 5*time.Second)
}

func TestSlackUserGroupsThatCountForNobody(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		group slackfake.UserGroup
		want  string
	}{
		"of the workspace":        {slackfake.UserGroup{}, "team"},
		"of the organisation":     {slackfake.UserGroup{Team: "E0HOME001"}, "team"},
		"of another workspace":    {slackfake.UserGroup{Team: "T0SISTER1"}, "guest"},
		"of another organisation": {slackfake.UserGroup{Team: "E0OTHER01"}, "guest"},
		"shared by another":       {slackfake.UserGroup{External: true}, "guest"},
		"disabled":                {slackfake.UserGroup{Disabled: true}, "guest"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fake := slackFake(t, slackfake.Config{Enterprise: "E0HOME001"})
			r := slackBot(t, fake, t.TempDir(), answers("an answer"))
			r.shelf.put(book(groupRules())())
			c.group.ID, c.group.Users = slackStaff, []string{slackGuest}
			fake.AddGroup(c.group)
			r.serve()
			require.Equal(t, c.want, r.tierOf(slackfake.Post{Channel: slackHall, User: slackGuest}))
		})
	}
	// A disabled group that is listed all the same is told by its date.
	r := slackWithGroups(t, groupRules(), 0, answers("an answer"))
	r.fake.Fail("usergroups.list", slackfake.Fault{Body: `{"ok":true,"usergroups":[{"id":"` + slackStaff + `","team_id":"` +
		slackfake.HomeTeam + `","date_delete":1700000000,"users":["` + slackGuest + `"]}]}`})
	require.Equal(t, "guest", r.tierOf(slackfake.Post{Channel: slackHall, User: slackGuest}))
	require.NotContains(t, r.log.String(), "did not say in which user groups")
}

func TestSlackAGroupThatIsLeftWhileAQuestionWaitsGivesNothing(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	d := &delegate{plan: planned, run: func(context.Context, ask.Prompt) ask.Result {
		<-release
		return ask.Result{Answer: "an answer"}
	}}
	r := slackWithGroups(t, groupRules(), time.Nanosecond, d)
	first := r.fake.Say(slackfake.Post{Channel: slackHall, User: slackGuest, Text: "<@U0BOT00001> one"})
	r.until("it runs", func() bool { return r.runs() == 1 })
	second := r.fake.Say(slackfake.Post{Channel: slackHall, User: slackGuest, Text: "<@U0BOT00001> two"})
	r.until("the other waits", func() bool { return len(r.jobs()) == 2 })
	require.Equal(t, tiers.Team, r.decision(1).Tier)
	r.fake.AddGroup(slackfake.UserGroup{ID: slackStaff, Users: []string{slackPeer}})
	close(release)
	r.until("both have ended", func() bool { return len(r.inThread(first)) == 1 && len(r.inThread(second)) == 1 })
	require.Contains(t, r.inThread(second)[0].Text, "— guest · fake")
	require.Contains(t, r.inThread(first)[0].Text, ask.Sentence(ask.Lowered), "what was asked long ago is shown by who they are now")
}

// decision gives how the gate decided the n-th message.
func (r *slackRig) decision(n int) tiers.Decision {
	r.t.Helper()
	jobs := r.jobs()
	require.Greater(r.t, len(jobs), n)
	record, err := r.journal.Job(r.t.Context(), jobs[n].Job)
	require.NoError(r.t, err)
	return record.Job.Decision
}
