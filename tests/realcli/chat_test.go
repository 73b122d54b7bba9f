//go:build linux

package realcli_test

import (
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"parlour/runner/probe/mock"
	discordfake "parlour/tests/fakes/discord"
	slackfake "parlour/tests/fakes/slack"
	"parlour/tests/house"
)

const (
	discordToken = "token-sentinel.discord.0001"
	discordBot   = "100000000000000001"
	guildID      = "900000000000000001"
	channelID    = "700000000000000001"
	hallID       = "C0HALL0001"
	memberID     = "U0TEAM0001"
)

// TestARealAgentAnswersInTheChats: a guest mentions the bot in a Discord
// channel, a team member does in Slack, and the real claude answers both in
// their threads.
func TestARealAgentAnswersInTheChats(t *testing.T) {
	a := agents()[0]
	p := newPlace(t, a.runner, a.file, mock.Turn{Text: "from the model"}, mock.Turn{Text: "from the model"})
	discord, err := discordfake.New(discordfake.Config{Token: discordToken, Bot: discordBot})
	require.NoError(t, err)
	t.Cleanup(discord.Close)
	discord.AddChannel(discordfake.Channel{ID: channelID, Guild: guildID, Name: "questions"})
	slack, err := slackfake.Start(slackfake.Config{})
	require.NoError(t, err)
	t.Cleanup(slack.Close)
	slack.AddChannel(slackfake.Channel{ID: hallID})
	slack.AddUser(slackfake.User{ID: memberID, Name: "member"})

	p.Write("manifests/tiers/owner.yaml", "tier: owner\nmatch:\n  discord:\n    - {users: [\"111111111111111111\"]}\n")
	p.Write("manifests/tiers/guest.yaml", "tier: guest\nmatch:\n  discord:\n    - {guild: \""+guildID+"\", channels: [\""+channelID+"\"], anyone: true}\n")
	p.Write("manifests/tiers/team.yaml", "tier: team\nmatch:\n  slack:\n    - {workspace: "+slackfake.HomeTeam+", users: ["+memberID+"]}\n"+
		"policy: {mode: read-only, network: model-only, tools: [read, search], runners: [claude], model: {anthropic: claude-haiku-4-5, output_tokens: 4096}}\n")
	config := p.Write("chat.yaml", "model:\n  anthropic: {base_url: \""+p.url+"\", key: {env: KEY_A}}\n"+
		"discord: {token: {env: DISCORD_TOKEN}, api: \""+discord.URL()+"\"}\n"+
		"slack: {app_token: {env: SLACK_APP}, bot_token: {env: SLACK_BOT}, api: \""+slack.API()+"\"}\n"+
		"manifests: ./manifests\nstate: ./state/serve\nlisten: 127.0.0.1:0\n")
	p.Env = append(p.Env, "DISCORD_TOKEN="+discordToken, "SLACK_APP="+slackfake.AppToken, "SLACK_BOT="+slackfake.BotToken)

	bot, log := serve(t, p.House, config)
	inDiscord := discord.Say(discordfake.Said{Channel: channelID, Author: discordfake.User{ID: "333333333333333333", Name: "Olive Owner"}, Content: "<@" + discordBot + "> what is it?"})
	inSlack := slack.Say(slackfake.Post{Channel: hallID, User: memberID, Text: "<@" + slackfake.BotUser + "> what is it?"})
	require.Eventually(t, func() bool { return len(discord.Posted(inDiscord)) > 0 }, time.Minute, 20*time.Millisecond, log.String())
	require.Contains(t, discord.Posted(inDiscord)[0].Content, "from the model")
	require.Eventually(t, func() bool { return len(slack.Answers()) > 0 }, time.Minute, 20*time.Millisecond, log.String())
	require.Equal(t, inSlack, slack.Answers()[0].Thread)
	require.Contains(t, slack.Answers()[0].Text, "from the model")

	require.Len(t, p.model.Requests(), 2)
	tiers := map[string]bool{}
	for _, r := range p.model.Requests() {
		for _, tier := range []string{"guest", "team"} {
			if strings.Contains(string(r.Body), "Who asks: a person of the tier "+tier) {
				tiers[tier] = true
			}
		}
		require.Contains(t, string(r.Body), "| what is it?")
		require.NotContains(t, string(r.Body), "Olive Owner", "names reach nobody")
	}
	require.Len(t, tiers, 2)
	require.NoError(t, bot.Process.Signal(syscall.SIGTERM))
	require.NoError(t, bot.Wait(), log.String())
	for _, hidden := range []string{"sentinel", "the-configured-key", slackfake.BotToken, slackfake.AppToken} {
		require.NotContains(t, log.String(), hidden)
	}
}

// serve starts the bot and waits until it is connected everywhere.
func serve(t *testing.T, h *house.House, config string) (*exec.Cmd, *house.Printed) {
	t.Helper()
	cmd, log := h.Command("serve", "--config", config), &house.Printed{}
	cmd.Stdout, cmd.Stderr = log, log
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	require.Eventually(t, func() bool { return log.Ready() }, time.Minute, 20*time.Millisecond, log.String())
	return cmd, log
}
