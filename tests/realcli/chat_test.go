//go:build linux

package realcli_test

import (
	"encoding/json"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"parlour/bridge/ask"
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
	guestID      = "333333333333333333"
	guestName    = "Olive Owner"
	hallID       = "C0HALL0001"
	memberID     = "U0TEAM0001"
	asked        = "what is the colour of zanzibar?"
	answered     = "It is the colour of quetzal."
)

// town is a place between a Discord and a Slack.
type town struct {
	*place
	discord *discordfake.Server
	slack   *slackfake.Server
	config  string
}

// newTown gives a town in which the agent is the only runner of everybody.
func newTown(t *testing.T, a agent) *town {
	t.Helper()
	w := &town{place: newPlace(t, a.runner, a.file, mock.Turn{Text: answered})}
	var err error
	w.discord, err = discordfake.New(discordfake.Config{Token: discordToken, Bot: discordBot})
	require.NoError(t, err)
	t.Cleanup(w.discord.Close)
	w.discord.AddChannel(discordfake.Channel{ID: channelID, Guild: guildID, Name: "questions"})
	w.slack, err = slackfake.Start(slackfake.Config{})
	require.NoError(t, err)
	t.Cleanup(w.slack.Close)
	w.slack.AddChannel(slackfake.Channel{ID: hallID})
	w.slack.AddUser(slackfake.User{ID: memberID, Name: "member"})

	w.Write("manifests/tiers/owner.yaml", "tier: owner\nmatch:\n  discord:\n    - {users: [\"111111111111111111\"]}\n")
	w.Write("manifests/tiers/guest.yaml", "tier: guest\nmatch:\n  discord:\n    - {guild: \""+guildID+"\", channels: [\""+channelID+"\"], anyone: true}\n")
	w.Write("manifests/tiers/team.yaml", "tier: team\nmatch:\n  slack:\n    - {workspace: "+slackfake.HomeTeam+", users: ["+memberID+"]}\n"+
		"policy: {mode: read-only, network: model-only, tools: [read, search], runners: ["+a.runner+"], model: {anthropic: claude-haiku-4-5, openai: gpt-5.4, output_tokens: 4096}}\n")
	w.config = w.Write("chat.yaml", "model:\n"+
		"  anthropic: {base_url: \""+w.url+"\", key: {env: KEY_A}}\n"+
		"  openai: {base_url: \""+w.url+"\", key: {env: KEY_O}}\n"+
		"discord: {token: {env: DISCORD_TOKEN}, api: \""+w.discord.URL()+"\"}\n"+
		"slack: {app_token: {env: SLACK_APP}, bot_token: {env: SLACK_BOT}, api: \""+w.slack.API()+"\"}\n"+
		"manifests: ./manifests\nstate: ./state/serve\nlisten: 127.0.0.1:0\n")
	w.Env = append(w.Env, "DISCORD_TOKEN="+discordToken, "SLACK_APP="+slackfake.AppToken, "SLACK_BOT="+slackfake.BotToken)
	return w
}

// guest lets a guest ask in Discord and gives the answer in their thread.
func (w *town) guest(t *testing.T) string {
	t.Helper()
	id := w.discord.Say(discordfake.Said{Channel: channelID, Author: discordfake.User{ID: guestID, Name: guestName}, Content: "<@" + discordBot + "> " + asked})
	require.Eventually(t, func() bool { return len(w.discord.Posted(id)) > 0 }, time.Minute, 20*time.Millisecond, "no answer in Discord's thread")
	return w.discord.Posted(id)[0].Content
}

// member lets a member of the team ask in Slack and gives the answer in their
// thread.
func (w *town) member(t *testing.T) string {
	t.Helper()
	before := len(w.slack.Answers())
	ts := w.slack.Say(slackfake.Post{Channel: hallID, User: memberID, Text: "<@" + slackfake.BotUser + "> " + asked})
	require.Eventually(t, func() bool { return len(w.slack.Answers()) > before }, time.Minute, 20*time.Millisecond, "no answer in Slack's thread")
	require.Equal(t, ts, w.slack.Answers()[before].Thread)
	return w.slack.Answers()[before].Text
}

// last gives the data of the newest event of a kind.
func last[T any](t *testing.T, w *town, kind string) (data T) {
	t.Helper()
	got := w.Bot("events", "--json", "--limit", "1000", "--config", w.config)
	require.Equal(t, 0, got.Code, got.Err)
	decoder := json.NewDecoder(strings.NewReader(got.Out))
	for decoder.More() {
		var e ask.Event
		require.NoError(t, decoder.Decode(&e))
		if e.Kind == kind {
			require.NoError(t, json.Unmarshal(e.Data, &data))
		}
	}
	return data
}

// TestARealAgentAnswersInTheChats: a guest mentions the bot in a Discord
// channel and a member of the team does in Slack; the real agents answer in
// their threads, where they may serve. Each request is looked at twice: as the
// CLI sent it, and as the provider got it.
func TestARealAgentAnswersInTheChats(t *testing.T) {
	for _, a := range agents() {
		t.Run(a.runner+" guest in Discord", func(t *testing.T) {
			w := newTown(t, a)
			bot, log := w.serve(t)
			require.Contains(t, w.guest(t), answered)
			w.check(t, a, "guest")
			w.end(t, bot, log)
		})
		t.Run(a.runner+" team in Slack", func(t *testing.T) {
			w := newTown(t, a)
			bot, log := w.serve(t)
			shown := w.member(t)
			if a.runner == "codex" {
				// It has no tool that reads and does nothing else, so it is passed over.
				require.Contains(t, shown, ask.Sentence(ask.NoRunner))
				skipped := last[ask.Ended](t, w, ask.EventOutcome).Receipt.Choice.Skipped
				require.Equal(t, []ask.Skip{{Runner: "codex",
					Reason: "not safe for team: it can read files only through a shell, which reads everything that the sandbox shows"}}, skipped)
				require.Empty(t, w.model.Requests())
				w.end(t, bot, log)
				return
			}
			require.Contains(t, shown, answered)
			w.check(t, a, "team")
			w.end(t, bot, log)
		})
	}
}

// check looks at the one request of the tier's run.
func (w *town) check(t *testing.T, a agent, tier string) {
	t.Helper()
	require.Len(t, w.model.Requests(), 1)
	got := w.model.Requests()[0]
	header := last[ask.RequestHeader](t, w, ask.EventRequest)
	require.Contains(t, header.Policy, "Who asks: a person of the tier "+tier+".")
	require.Contains(t, header.Fenced, "| "+asked)

	guardrail, fenced := strings.TrimSpace(header.Policy), strings.TrimSpace(header.Fenced)
	upstream := readRequest(t, a.runner, got.Body)
	require.Contains(t, upstream.highest, guardrail, "the guardrail stands in the highest role")
	require.Equal(t, fenced, upstream.question)
	require.Equal(t, header.Asker, upstream.asker)
	keys := strings.Join(append(got.Header.Values("X-Api-Key"), got.Header.Values("Authorization")...), " ")
	require.Equal(t, a.key, strings.TrimPrefix(keys, "Bearer "), "the configured key")

	sent, token := w.sent(t, a, tier, header)
	require.NotEmpty(t, token)
	require.Contains(t, sent.header, token, "the run's token")
	require.NotContains(t, sent.header+string(sent.body), a.key)
	read := readRequest(t, a.runner, sent.body)
	require.Contains(t, read.highest, guardrail, "the CLI's highest role holds the guardrail")
	require.Equal(t, fenced, read.question, "the question is the last that it says, in its fence")
	want := []string{}
	if tier == "team" {
		want = []string{"Glob", "Grep", "Read"}
	}
	require.Equal(t, want, upstream.tools)
	require.Subset(t, append(want, inert...), read.tools, "no tool but the tier's")
	require.NotEqual(t, header.Asker, read.asker, "a CLI knows nothing of who asks")
	require.Len(t, w.model.Requests(), 2, "the one of the chat, and that of sent")
	require.Equal(t, upstream, readRequest(t, a.runner, w.model.Requests()[1].Body), "both are the same request")
	for _, r := range w.model.Requests() {
		text := string(r.Body)
		for name, values := range r.Header {
			text += name + strings.Join(values, " ")
		}
		for _, hidden := range []string{token, guestName, guestID, memberID, guildID, channelID, hallID} {
			require.NotContains(t, text, hidden)
		}
	}
}

// serve starts the bot and waits until it is connected everywhere.
func (w *town) serve(t *testing.T) (*exec.Cmd, *house.Printed) {
	t.Helper()
	cmd, log := w.Command("serve", "--config", w.config), &house.Printed{}
	cmd.Stdout, cmd.Stderr = log, log
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	require.Eventually(t, log.Ready, time.Minute, 20*time.Millisecond, log.String())
	return cmd, log
}

// end looks at all that the bot showed to others than the asker, and stops it.
func (w *town) end(t *testing.T, bot *exec.Cmd, log *house.Printed) {
	t.Helper()
	shown := ""
	require.Eventually(t, func() bool { // it is counted when it has been delivered
		text, err := log.Page("/metrics")
		shown = text
		return err == nil && strings.Contains(text, "parlour_questions_ended_total{")
	}, time.Minute, 20*time.Millisecond, "the end is not counted")
	for _, page := range []string{"/healthz", "/readyz"} {
		text, err := log.Page(page)
		require.NoError(t, err)
		shown += text
	}
	metrics := shown
	require.NoError(t, bot.Process.Signal(syscall.SIGTERM))
	require.NoError(t, bot.Wait(), log.String())
	shown += log.String()
	for _, hidden := range []string{
		"sentinel", "SENTINEL", "the-configured-key", slackfake.BotToken, slackfake.AppToken, "zanzibar", "quetzal",
	} {
		require.NotContains(t, shown, hidden)
	}
	for _, id := range []string{guestID, guestName, memberID, guildID, channelID, hallID} {
		require.NotContains(t, metrics, id)
	}
}

// TestNothingOfTheOwnerReachesAChat: the sentinels of TestNothingOfTheOwner-
// ReachesTheModel are in no request, answer, log line or metric of a bot that
// serves either.
func TestNothingOfTheOwnerReachesAChat(t *testing.T) {
	for _, a := range agents() {
		t.Run(a.runner, func(t *testing.T) {
			w := newTown(t, a)
			require.GreaterOrEqual(t, plantOwner(t, w.place), 40)
			bot, log := w.serve(t)
			require.NotContains(t, w.guest(t), "SENTINEL")
			require.NotEmpty(t, w.model.Requests())
			for _, r := range w.model.Requests() {
				require.NotContains(t, string(r.Body), "SENTINEL")
				for name, values := range r.Header {
					require.NotContains(t, name+strings.Join(values, " "), "SENTINEL")
				}
			}
			w.end(t, bot, log)
		})
	}
}
