package journeys_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"parlour/bridge/ask"
	discordfake "parlour/tests/fakes/discord"
	slackfake "parlour/tests/fakes/slack"
)

const (
	staffID  = "S0STAFF001"
	bannedID = "S0BANNED01"
)

// A rule or a block by a user group counts without a restart, and what somebody
// gains by one waits for consent.
func TestUserGroupsCountAsTheRulesOfNowNameThem(t *testing.T) {
	w := newReloadTown(t)
	w.slack.AddGroup(slackfake.UserGroup{ID: staffID, Users: []string{strangeID}})
	w.slack.AddGroup(slackfake.UserGroup{ID: bannedID, Users: []string{strangeID}})
	a := w.serve(t)
	require.Contains(t, w.says(t, memberID, question), answered)
	require.Empty(t, w.slack.Calls("usergroups.list"), "no rule names a group")

	byGroup := strings.Replace(team(memberID), byDocs, "    - {workspace: "+slackfake.HomeTeam+", groups: ["+staffID+"]}\n"+byDocs, 1)
	w.put(t, "team", byGroup)
	a.eventuallyManifests(t, "1 gains wait for your consent (bot accept-gains), first: ")
	require.Contains(t, a.manifests(), "the user group "+staffID+" is team")
	require.Contains(t, w.says(t, strangeID, question), ask.Sentence(ask.NotAllowed))
	require.Equal(t, 0, w.Bot(append(w.flags, "accept-gains")...).Code)
	eventually(t, "the gain still waits", func() bool { return !strings.Contains(a.manifests(), "wait") })
	require.Contains(t, w.says(t, strangeID, question), answered)
	require.NotEmpty(t, w.slack.Calls("usergroups.list"))

	w.put(t, "team", byGroup+"block:\n  slack:\n    - {workspace: "+slackfake.HomeTeam+", groups: ["+bannedID+"]}\n")
	eventually(t, "the loss is not in force", func() bool {
		return strings.Contains(w.metrics(t, a), `parlour_manifest_reloads_total{result="ok"} 3`)
	})
	ts := w.slack.Say(slackfake.Post{Channel: hallID, User: strangeID, Text: "<@" + slackfake.BotUser + "> " + question})
	eventually(t, "the blocked one is not refused", func() bool {
		return slices.Contains(w.slack.Reactions(), slackfake.Reaction{Channel: hallID, TS: ts, Name: "no_entry_sign"})
	})
}

// The built bot looks at who somebody is by now before it runs what has waited.
func TestServeRunsNothingForWhoHasLeftMeanwhile(t *testing.T) {
	w := newTown(t)
	w.discord.Fail(discordfake.Rule{Method: "GET", Match: func(path string) bool { return strings.HasSuffix(path, "/members/"+guestID) },
		Status: 404, Body: `{"code":10007,"message":"Unknown Member"}`})
	w.serve(t)
	said := discordfake.Said{Channel: channelID, Author: discordfake.User{ID: guestID, Name: "guest"}, Content: "<@" + discordBot + "> " + question}
	said.ID = strconv.FormatInt((time.Now().Add(-20*time.Second).UnixMilli()-1420070400000)<<22, 10) // it has waited
	w.discord.Say(said)
	eventually(t, "nothing is said", func() bool { return len(w.discord.Posted("")) > 0 })
	require.Contains(t, w.discord.Posted("")[0].Content, ask.Sentence(ask.NotAllowed))
	events := w.Bot(append(w.flags, "events", "--json")...).Out
	require.Contains(t, events, "looked up again: when they asked they were guest")
}
