package contract_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"parlour/bridge/ask"
	"parlour/tests/cases"
	"parlour/tiers"

	fake "parlour/tests/fakes/discord"
)

const discordRole = "800000000000000001" // makes team in roleRules

func roleRules() tiers.Rules {
	return tiers.NewRules(append(discordRules().All(), tiers.Rule{
		Tier: tiers.Team, Platform: tiers.Discord, Workspace: discordGuild, Roles: []string{discordRole}, Origin: "team.yaml:5",
	}), nil)
}

// sentAgo is the id of a message that was sent so long ago.
func sentAgo(ago time.Duration) string {
	return strconv.FormatInt((time.Now().Add(-ago).UnixMilli()-1420070400000)<<22, 10)
}

func isMember(path string) bool {
	return path == "/guilds/"+discordGuild+"/members/"+discordGuest.ID
}

// serveRoles is a bot that serves such rules.
func serveRoles(t *testing.T, d *delegate) *discordBotRig {
	t.Helper()
	r := openDiscord(t, newDiscordFake(t), t.TempDir(), d, quickTiming())
	r.shelf.put(book(roleRules())())
	r.run()
	r.ready()
	return r
}

// A role that was taken away between two messages one second apart was served from
// a cache.
func TestDiscordARoleThatIsTakenAwayBetweenTwoMessagesCountsNoMore(t *testing.T) {
	cases.Public("A23", "swampratnz/community-agent#350, #328; Valour-Software/Valour PR 1578; milady-ai/milady PR 1687").In(t)
	t.Parallel()
	r := serveRoles(t, answers("an answer"))
	r.fake.Join(discordGuild, discordGuest, discordRole)
	said := ask1(discordChannel, discordGuest, mentionBot+" one")
	said.ID = sentAgo(2 * time.Second)
	first := r.fake.Say(said)
	require.Contains(t, r.posts(first, 1)[0].Content, "team · fake")
	r.fake.Join(discordGuild, discordGuest)
	said.Content, said.ID = mentionBot+" two", sentAgo(time.Second)
	second := r.fake.Say(said)
	require.Contains(t, r.posts(second, 1)[0].Content, "guest · fake")
	require.Empty(t, r.fake.Requests("GET", isMember), "the messages have told of the roles a moment ago")
	r.stop()
	r.clean()
}

func TestDiscordARoleThatIsTakenAwayWhileAQuestionWaitsGivesNothing(t *testing.T) {
	cases.Public("A23", "swampratnz/community-agent#350, #328; Valour-Software/Valour PR 1578; milady-ai/milady PR 1687").In(t)
	t.Parallel()
	for name, c := range map[string]struct {
		meanwhile func(*fake.Server)
		shows     string
		runs      int
	}{
		"the role is there": {func(*fake.Server) {}, "team · fake", 2},
		"the role is gone":  {func(f *fake.Server) { f.Join(discordGuild, discordGuest) }, "guest · fake", 2},
		"they have left":    {func(f *fake.Server) { f.Leave(discordGuild, discordGuest.ID) }, ask.Sentence(ask.NotAllowed), 1},
		"Discord does not say": {func(f *fake.Server) {
			f.Fail(fake.Rule{Method: "GET", Match: isMember, Status: 403, Body: `{"code":50001,"message":"Missing Access"}`})
		}, "guest · fake", 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			release := make(chan struct{})
			r := serveRoles(t, &delegate{plan: planned, run: func(ctx context.Context, _ ask.Prompt) ask.Result {
				<-release
				return ask.Result{Answer: "an answer"}
			}})
			r.fake.Join(discordGuild, discordGuest, discordRole)
			first := r.fake.Say(ask1(discordChannel, discordGuest, mentionBot+" one"))
			r.until("the first one runs", func() bool { return len(r.ran()) == 1 })
			said := ask1(discordChannel, discordGuest, mentionBot+" two")
			said.ID = sentAgo(10 * time.Second)
			second := r.fake.Say(said)
			r.until("the second one waits", func() bool { return len(r.probe.messages()) == 2 && len(r.fake.Reactions(second)) == 1 })
			c.meanwhile(r.fake)
			close(release)
			require.Contains(t, r.posts(first, 1)[0].Content, "team · fake")
			where := second
			if c.runs == 1 {
				where = discordChannel
			}
			require.Contains(t, r.posts(where, 1)[0].Content, c.shows)
			require.Len(t, r.ran(), c.runs)
			require.NotEmpty(t, r.fake.Requests("GET", isMember))
			r.stop()
			r.clean()
		})
	}
}

func TestDiscordLookSaysWhoSomebodyIsNow(t *testing.T) {
	t.Parallel()
	r := openDiscord(t, newDiscordFake(t), t.TempDir(), answers(""), quickTiming())
	who := tiers.Identity{Platform: tiers.Discord, Workspace: discordGuild, User: discordGuest.ID, Kind: tiers.Person, Member: true, Roles: []string{discordRole, "5"}}
	guild := tiers.Place{Platform: tiers.Discord, Workspace: discordGuild, Channel: discordChannel, Most: tiers.Owner}
	look := func(in tiers.Place, i tiers.Identity) (tiers.Identity, error) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		return r.adapter.Look(ctx, i, in)
	}
	stranger := who
	stranger.Member, stranger.Roles = false, nil
	now, err := look(guild, who)
	require.NoError(t, err)
	require.Equal(t, stranger, now, "who has left is no member")

	r.fake.Join(discordGuild, discordGuest, discordRole, discordGuild, "x/../1")
	now, err = look(guild, who)
	require.NoError(t, err)
	who.Roles = []string{discordRole}
	require.Equal(t, who, now, "neither @everyone nor what is no id")

	r.fake.Join(discordGuild, fake.User{ID: discordGuest.ID, Bot: true}, discordRole)
	now, err = look(guild, who)
	require.NoError(t, err)
	require.Equal(t, tiers.Bot, now.Kind)

	before := len(r.fake.Requests("GET", nil))
	now, err = look(tiers.Place{Platform: tiers.Discord, Channel: discordDM, Direct: true, Most: tiers.Owner}, who)
	require.NoError(t, err)
	require.Equal(t, who, now, "a direct message has no guild")
	for _, bad := range []string{"", "1/../2", "@me", "111111111111111111111111"} {
		x := who
		x.User = bad
		now, err = look(guild, x)
		require.Error(t, err)
		require.Equal(t, tiers.Identity{}, now)
	}
	require.Len(t, r.fake.Requests("GET", nil), before, "nothing is asked for what is no id")

	r.fake.Fail(fake.Rule{Method: "GET", Match: isMember, Times: 1, Status: 404, Body: `{"code":10013,"message":"Unknown User"}`})
	now, err = look(guild, who)
	require.NoError(t, err)
	require.Equal(t, stranger, now, "an account that is deleted is no member")
	for name, rule := range map[string]fake.Rule{
		"a guild that is not known":    {Status: 404, Body: `{"code":10004,"message":"Unknown Guild"}`},
		"a proxy that finds nothing":   {Status: 404, Body: `<html>`},
		"no access":                    {Status: 403, Body: `{"code":50001,"message":"Missing Access"}`},
		"no answer in time":            {Delay: 5 * time.Second},
		"a limit that is longer":       {Status: 429, Body: `{"retry_after":30,"global":false}`},
		"somebody else":                {Status: 200, Body: `{"user":{"id":"1"},"roles":["` + discordRole + `"]}`},
		"nobody":                       {Status: 200, Body: `{"roles":["` + discordRole + `"]}`},
		"a member without their roles": {Status: 200, Body: `{"user":{"id":"` + discordGuest.ID + `"}}`},
		"an empty answer":              {Status: 200, Body: `{}`},
		"no JSON":                      {Status: 200, Body: `<html>`},
	} {
		f := openDiscord(t, newDiscordFake(t), t.TempDir(), answers(""), quickTiming())
		rule.Method, rule.Match = "GET", isMember
		f.fake.Fail(rule)
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		now, err = f.adapter.Look(ctx, who, guild)
		cancel()
		require.Error(t, err, name)
		require.Equal(t, tiers.Identity{}, now, name)
		require.NotContains(t, err.Error(), discordToken)
	}
}
