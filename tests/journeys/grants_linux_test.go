package journeys_test

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"parlour/bridge/ask"
	discordfake "parlour/tests/fakes/discord"
	slackfake "parlour/tests/fakes/slack"
	"parlour/tests/house"
)

// terminal runs a command of the operator beside the bot that serves.
func (w *town) terminal(t *testing.T, line string) house.Result {
	t.Helper()
	got := w.Bot(append(append([]string{}, w.flags...), strings.Fields(line)...)...)
	require.Equal(t, 0, got.Code, got.Err)
	return got
}

const letIn = "grant --platform slack --workspace " + slackfake.HomeTeam + " --channel " + hallID + " --user " + strangeID + " --tier guest --for 1d"

func TestAStrangerIsLetInForADay(t *testing.T) {
	w := newReloadTown(t)
	a := w.serve(t)
	require.Contains(t, w.says(t, strangeID, question), ask.Sentence(ask.NotAllowed))
	got := w.terminal(t, letIn+" --note note-sentinel")
	require.Contains(t, got.Out, "granted 1: guest for slack user "+strangeID+" in channel "+hallID+" of "+slackfake.HomeTeam+", until 20")
	require.True(t, strings.HasSuffix(got.Out, "take it back: bot "+strings.Join(w.flags, " ")+" revoke 1\n"), got.Out)
	require.Empty(t, got.Err, "a bot serves, and nothing stands in the way")
	require.Contains(t, w.says(t, strangeID, question), answered)
	require.Contains(t, w.metrics(t, a), "parlour_grants 1")
	require.NotContains(t, w.metrics(t, a), strangeID)

	require.NoError(t, a.cmd.Process.Kill())
	a.end()
	require.Contains(t, w.terminal(t, "grants").Out, "1: guest for slack user "+strangeID, "of a bot that was killed")
	a = w.serve(t)
	require.Contains(t, w.says(t, strangeID, question), answered, "it outlives the bot")
	require.Contains(t, w.terminal(t, "explain --platform slack --workspace "+slackfake.HomeTeam+" --channel "+hallID+" --user "+strangeID).Out, "tier: guest\n")

	require.Contains(t, w.terminal(t, "revoke 1").Out, "revoked 1: ")
	require.Contains(t, w.says(t, strangeID, question), ask.Sentence(ask.NotAllowed), "at once")
	require.Contains(t, w.metrics(t, a), "parlour_grants 0")
	for _, answer := range w.slack.Answers() {
		require.NotContains(t, answer.Text, "note-sentinel")
	}
	require.NotContains(t, a.err.String(), "note-sentinel")
	require.NoError(t, a.cmd.Process.Signal(syscall.SIGTERM))
	require.Equal(t, 0, a.end(), a.err.String())
}

func TestT24WhatAGrantedPersonHasWaitingAndRunningEndsWithTheGrant(t *testing.T) {
	w := newTown(t)
	w.slow(ownTime(4))
	channels := []string{"700000000000000002", "700000000000000003"} // nobody is told twice in one
	for _, id := range channels {
		w.discord.AddChannel(discordfake.Channel{ID: id, Guild: guildID, Name: "of the team"})
	}
	a := w.serve(t)
	w.terminal(t, "grant --platform discord --workspace "+guildID+" --user "+guestID+" --tier guest --for 1d")
	for _, id := range channels {
		w.discord.Say(discordfake.Said{Channel: id, Author: discordfake.User{ID: guestID, Name: "guest"}, Content: "<@" + discordBot + "> what is it?"})
	}
	eventually(t, "nothing runs", func() bool {
		return sleeping(t, ownTime(4)) == 1 && strings.Contains(w.metrics(t, a), `parlour_questions_accepted_total{platform="discord",tier="guest"} 2`)
	})
	w.terminal(t, "revoke --platform discord --user "+guestID)
	eventually(t, "the guest was not told", func() bool {
		got := w.discord.Posted("")
		return len(got) == 2 && strings.HasPrefix(got[0].Content, ask.Sentence(ask.NotAllowed)) && strings.HasPrefix(got[1].Content, ask.Sentence(ask.NotAllowed))
	})
	eventually(t, "the run goes on", func() bool { return sleeping(t, ownTime(4)) == 0 })
}

// Scenario: the state folder is put aside, and a copy is put in its place. What is
// revoked there reaches no bot that has the old one open.
func TestT24ABotWhoseJournalIsReplacedEnds(t *testing.T) {
	w := newReloadTown(t)
	a := w.serve(t)
	w.terminal(t, letIn)
	require.Contains(t, w.says(t, strangeID, question), answered)
	require.NoError(t, os.Rename(w.Path("state/serve"), w.Path("state/old")))
	out, err := exec.CommandContext(t.Context(), "/bin/cp", "-a", w.Path("state/old"), w.Path("state/serve")).CombinedOutput()
	require.NoError(t, err, "%s", out)
	got := w.terminal(t, "revoke 1")
	require.Contains(t, got.Out, "revoked 1: ")
	require.Contains(t, got.Err, "warning: no bot serves from ")
	require.Equal(t, 1, a.end(), a.err.String())
	require.Contains(t, a.err.String(), "until they can, nobody is granted anything")
	require.Contains(t, a.err.String(), "the journal's files are others than those that were opened")
	require.Contains(t, a.err.String(), "start the bot again")
	a = w.serve(t)
	require.Contains(t, w.says(t, strangeID, question), ask.Sentence(ask.NotAllowed))
	a.quit(t)
}

func TestAPipeInThePlaceOfTheJournalIsAFault(t *testing.T) {
	w := newReloadTown(t)
	require.NoError(t, os.MkdirAll(w.Path("state/serve"), 0o700))
	require.NoError(t, syscall.Mkfifo(w.Path("state/serve/parlour.db"), 0o600))
	for _, line := range []string{"grants", "revoke 1", "revoke --platform slack --user " + strangeID} {
		got := w.Bot(append(append([]string{}, w.flags...), strings.Fields(line)...)...)
		require.NotEqual(t, 0, got.Code, line)
		require.Contains(t, got.Err, "is not a regular file", line)
		require.NotContains(t, got.Out, "no grants")
	}
}
