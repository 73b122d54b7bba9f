package journeys_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"parlour/bridge/ask"
	discordfake "parlour/tests/fakes/discord"
	slackfake "parlour/tests/fakes/slack"
	"parlour/tests/house"
)

const (
	discordToken = "token-sentinel.discord.0001"
	discordBot   = "100000000000000001"
)

// town is a house between a Discord and a Slack.
type town struct {
	*house.House
	discord *discordfake.Server
	slack   *slackfake.Server
	flags   []string
}

func newTown(t *testing.T) *town {
	t.Helper()
	d, err := discordfake.New(discordfake.Config{Token: discordToken, Bot: discordBot})
	require.NoError(t, err)
	t.Cleanup(d.Close)
	d.AddChannel(discordfake.Channel{ID: channelID, Guild: guildID, Name: "questions"})
	s, err := slackfake.Start(slackfake.Config{})
	require.NoError(t, err)
	t.Cleanup(s.Close)
	s.AddChannel(slackfake.Channel{ID: hallID})
	s.AddUser(slackfake.User{ID: memberID, Name: "member"})

	h := house.New(t)
	h.Write("manifests/tiers/owner.yaml", "tier: owner\nmatch:\n  discord:\n    - {users: [\""+ownerID+"\"]}\n")
	h.Write("manifests/tiers/team.yaml", "tier: team\nmatch:\n  slack:\n    - {workspace: "+slackfake.HomeTeam+", users: ["+memberID+"]}\n"+
		"policy: {mode: read-only, network: none, documents: [handbook], runners: [docs]}\n")
	h.Write("manifests/tiers/guest.yaml", "tier: guest\nmatch:\n  discord:\n    - {guild: \""+guildID+"\", channels: [\""+channelID+"\"], anyone: true}\n"+
		"policy: {mode: read-only, network: none, documents: [handbook], runners: [docs]}\n")
	config := h.Write("config.yaml", "discord: {token: {env: DISCORD_TOKEN}, api: \""+d.URL()+"\"}\n"+
		"slack: {app_token: {env: SLACK_APP}, bot_token: {env: SLACK_BOT}, api: \""+s.API()+"\"}\n"+
		"manifests: ./manifests\nstate: ./state/serve\nlisten: 127.0.0.1:0\n")
	h.Env = append(h.Env, "DISCORD_TOKEN="+discordToken, "SLACK_APP="+slackfake.AppToken, "SLACK_BOT="+slackfake.BotToken)
	return &town{h, d, s, []string{"--config", config}}
}

// serve starts the bot and waits until both platforms see it.
func (w *town) serve(t *testing.T) *asking {
	t.Helper()
	a := start(t, w.House, append(w.flags, "serve")...)
	eventually(t, "the bot is not ready", a.err.Ready)
	return a
}

func (w *town) metrics(t *testing.T, a *asking) string {
	t.Helper()
	got, err := http.Get(a.err.Health() + "/metrics")
	require.NoError(t, err)
	defer func() { _ = got.Body.Close() }()
	text, err := io.ReadAll(got.Body)
	require.NoError(t, err)
	return string(text)
}

func (w *town) asks(text string) (discord, slack string) {
	discord = w.discord.Say(discordfake.Said{Channel: channelID, Author: discordfake.User{ID: guestID, Name: "Olive Owner"}, Content: "<@" + discordBot + "> " + text})
	slack = w.slack.Say(slackfake.Post{Channel: hallID, User: memberID, Text: "<@" + slackfake.BotUser + "> " + text})
	return discord, slack
}

// inSlack gives the bot's messages in a thread.
func (w *town) inSlack(thread string) (found []slackfake.Message) {
	for _, m := range w.slack.Answers() {
		if m.Thread == thread {
			found = append(found, m)
		}
	}
	return found
}

func TestServeAnswersOnBothPlatforms(t *testing.T) {
	w := newTown(t)
	a := w.serve(t)
	inDiscord, inSlack := w.asks(question)
	eventually(t, "no answer in Discord's thread", func() bool { return len(w.discord.Posted(inDiscord)) > 0 })
	require.Contains(t, w.discord.Posted(inDiscord)[0].Content, "Who may edit a tier manifest")
	eventually(t, "no answer in Slack's thread", func() bool { return len(w.inSlack(inSlack)) > 0 })
	require.Contains(t, w.inSlack(inSlack)[0].Text, "Who may edit a tier manifest")
	require.Empty(t, w.discord.Problems())
	shown := w.metrics(t, a)
	require.Contains(t, shown, `parlour_questions_accepted_total{platform="discord",tier="guest"} 1`)
	require.Contains(t, shown, `parlour_questions_ended_total{cause="",outcome="answered",platform="slack",runner="docs",tier="team"} 1`)
	for _, id := range []string{guestID, memberID, guildID, channelID, hallID} {
		require.NotContains(t, shown, id, "no id is a label")
	}

	require.NoError(t, a.cmd.Process.Signal(syscall.SIGTERM))
	require.Equal(t, 0, a.end(), a.err.String())
	require.NotContains(t, a.err.String()+a.out.String(), "sentinel")
	require.NotContains(t, a.err.String()+a.out.String(), slackfake.BotToken)
}

// slow lets a stand-in answer everybody, after so many seconds.
func (w *town) slow(seconds int) {
	slow := w.Program("bin/standin", fmt.Sprintf("#!/bin/sh\nsleep %d\necho the answer\n", seconds))
	w.Install(house.StandIn{Name: "standin", Binary: slow})
	for tier, match := range map[string]string{
		"guest": "match:\n  discord:\n    - {guild: \"" + guildID + "\", channels: [\"" + channelID + "\"], anyone: true}\n",
		"team":  "match:\n  slack:\n    - {workspace: " + slackfake.HomeTeam + ", users: [" + memberID + "]}\n",
	} {
		w.Write("manifests/tiers/"+tier+".yaml", "tier: "+tier+"\n"+match+"policy: {mode: read-only, network: none, runners: [standin]}\n")
	}
}

// What a killed bot showed of its work does not stay beside the answer.
func TestProgressOfAKilledBotIsGoneAfterTheAnswer(t *testing.T) {
	w := newTown(t)
	w.slow(7)
	a := w.serve(t)
	inDiscord, inSlack := w.asks("what is it?")
	const working = "Working on it: standin, "
	eventually(t, "no progress in Discord", func() bool {
		got := w.discord.Posted(inDiscord)
		return len(got) == 1 && strings.HasPrefix(got[0].Content, working)
	})
	eventually(t, "no progress in Slack", func() bool {
		got := w.inSlack(inSlack)
		return len(got) == 1 && strings.HasPrefix(got[0].Text, working)
	})
	require.NoError(t, a.cmd.Process.Kill())
	a.end()
	require.Len(t, w.discord.Posted(inDiscord), 1, "it stays where the bot died")
	w.serve(t)
	answered := func(text string) bool { return strings.HasPrefix(text, "the answer") }
	eventually(t, "no answer in Discord, or progress beside it", func() bool {
		got := w.discord.Posted("")
		return len(got) == 1 && got[0].Channel == inDiscord && answered(got[0].Content)
	})
	eventually(t, "no answer in Slack, or progress beside it", func() bool {
		got := w.inSlack(inSlack)
		return len(got) == 1 && answered(got[0].Text)
	})
	require.Empty(t, w.discord.Problems())
}

// An outcome that a platform refuses for good is the operator's to see.
func TestWhatCannotBeDeliveredIsToldToTheOperator(t *testing.T) {
	w := newTown(t)
	w.discord.Fail(discordfake.Rule{Method: "POST", Match: func(path string) bool { return strings.HasSuffix(path, "/messages") },
		Status: 403, Body: `{"code":50013,"message":"Missing Permissions"}`})
	a := w.serve(t)
	w.asks(question)
	events := func() string { return w.Bot(append(w.flags, "events")...).Out }
	eventually(t, "the events do not say so", func() bool {
		return strings.Contains(events(), "not deliverable: post part 1 of 1: discord answered /channels/")
	})
	require.Contains(t, events(), "(code 50013: Missing Permissions)")
	eventually(t, "the metrics do not count it", func() bool {
		return strings.Contains(w.metrics(t, a), `parlour_outcomes_undeliverable_total{platform="discord"} 1`)
	})
	require.Equal(t, 1, strings.Count(a.err.String(), "refuses this outcome for good"))
}

func TestAQuestionIsAnsweredOnceAlthoughTheBotIsKilled(t *testing.T) {
	w := newTown(t)
	w.slow(2)
	a := w.serve(t)
	inDiscord, inSlack := w.asks("what is it?")
	eventually(t, "the runs did not begin", func() bool {
		got := w.Bot(append(w.flags, "events", "--json", "--limit", "1000")...)
		return strings.Count(got.Out, `"kind":"`+ask.EventRequest+`"`) >= 2
	})
	require.NoError(t, a.cmd.Process.Kill())
	a.end()
	w.serve(t)
	eventually(t, "no answer after the restart in Discord", func() bool { return len(w.discord.Posted(inDiscord)) > 0 })
	eventually(t, "no answer after the restart in Slack", func() bool { return len(w.inSlack(inSlack)) > 0 })
	require.Len(t, w.discord.Posted(inDiscord), 1)
	require.Len(t, w.inSlack(inSlack), 1)
}

func TestServeSaysWhatIsMissing(t *testing.T) {
	h := house.New(t)
	got := h.Bot("serve")
	require.Equal(t, 2, got.Code)
	require.Contains(t, got.Err, "discord: off (no token: none is configured)")
	require.Contains(t, got.Err, "slack: off (no app token: none is configured)")
	require.Contains(t, got.Err, "bot: no chat platform is configured")

	config := h.Write("config.yaml", "discord: {token: {env: DISCORD_TOKEN}, api: \"http://127.0.0.1:1\"}\n")
	h.Env = append(h.Env, "DISCORD_TOKEN="+discordToken)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second) // where it is not refused it would serve for ever
	defer cancel()
	serve := exec.CommandContext(ctx, house.Bot(t), "serve", "--config", config)
	serve.Env, serve.Dir = h.Env, h.Dir
	got = house.Run(t, serve)
	require.Equal(t, 2, got.Code)
	require.Contains(t, got.Err, "bot: tiers/owner.yaml names nobody: a chat is not served without an owner")
	require.NotContains(t, got.Err, "sentinel")
}
