package journeys_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	discordfake "parlour/tests/fakes/discord"
	slackfake "parlour/tests/fakes/slack"
	"parlour/tests/house"
)

// quit stops the bot as an operator does.
func (a *asking) quit(t *testing.T) {
	t.Helper()
	require.NoError(t, a.cmd.Process.Signal(syscall.SIGTERM))
	require.Equal(t, 0, a.end(), a.err.String())
}

// served is a town in which a bot has served these tier files, and is down.
func served(t *testing.T, files map[string]string) *town {
	t.Helper()
	w := newReloadTown(t)
	for tier, text := range files {
		w.put(t, tier, text)
	}
	w.serve(t).quit(t)
	return w
}

// settings writes the configuration anew, with these words in the place of others.
func (w *town) settings(t *testing.T, words ...string) {
	t.Helper()
	text, err := os.ReadFile(w.Path("config.yaml"))
	require.NoError(t, err)
	now := strings.NewReplacer(words...).Replace(string(text))
	require.NotEqual(t, string(text), now)
	w.Write("config.yaml", now)
}

func (w *town) accept(t *testing.T) string {
	t.Helper()
	got := w.Bot(append(w.flags, "accept-gains")...)
	require.Equal(t, 0, got.Code, got.Err)
	return got.Out
}

// left gives what lies in the state folder.
func (w *town) left(t *testing.T) (all []string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(w.Path("state"), func(path string, e os.DirEntry, err error) error {
		require.NoError(t, err)
		info, err := e.Info()
		require.NoError(t, err)
		all = append(all, path+" "+info.Mode().String())
		return nil
	}))
	return all
}

// The page about somebody whom the files make more than a bot would by now.
func TestWhatWaitsIsExplained(t *testing.T) {
	w := served(t, map[string]string{"guest": "tier: guest\nmatch:\n  discord:\n    - {guild: \"" + guildID + "\", channels: [\"" + channelID + "\"], anyone: true}\n" +
		byDocs + "limits: {wall: 20s, stall: 10s}\n"})
	w.put(t, "team", team(memberID, strangeID))
	w.put(t, "guest", "tier: guest\nmatch:\n  discord:\n    - {guild: \""+guildID+"\", channels: [\""+channelID+"\"], anyone: true}\n"+
		byDocs+"limits: {wall: 90s, stall: 10s}\n")
	before := w.left(t)
	var all strings.Builder
	for _, person := range []struct{ who, flags string }{
		{"somebody new of the team", "--platform slack --workspace " + slackfake.HomeTeam + " --channel " + hallID + " --user " + strangeID},
		{"somebody of the team", "--platform slack --workspace " + slackfake.HomeTeam + " --channel " + hallID + " --user " + memberID},
		{"a guest whose runs may last longer", "--platform discord --workspace " + guildID + " --channel " + channelID + " --user " + guestID},
	} {
		got := w.Bot(append(append(w.flags, "explain"), strings.Fields(person.flags)...)...)
		require.Equal(t, 0, got.Code, got.Err)
		decision, rest, _ := strings.Cut(got.Out, "\nrunner: ")
		all.WriteString("# " + person.who + "\n" + strings.NewReplacer(w.Path("manifests")+"/", "", w.Path("config.yaml"), "config.yaml").Replace(strings.TrimSpace(decision)) + "\n\n")
		if person.who == "a guest whose runs may last longer" {
			require.Contains(t, rest, "wall=20s", "the run is what is in force")
			require.NotContains(t, rest, "90s")
		}
	}
	golden(t, "explain-waiting.txt", all.String())

	listed := w.Bot(append(w.flags, "tiers")...)
	require.Contains(t, listed.Out, "in these files, and not in force until bot accept-gains:\n  - ")
	require.Contains(t, listed.Out, strangeID+" is team on slack in "+slackfake.HomeTeam)
	require.Contains(t, w.Bot(append(w.flags, "tiers", "--json")...).Out, `"kind":"waiting"`)
	var checked struct{ Waiting []string }
	require.NoError(t, json.Unmarshal([]byte(w.Bot(append(w.flags, "check", "--json")...).Out), &checked))
	require.Len(t, checked.Waiting, 2)
	shown := w.Bot(append(w.flags, "guardrail", "--tier", "guest")...)
	require.Contains(t, house.Unhashed(shown.Err), "2 gains wait for your consent (bot accept-gains)")
	require.Contains(t, shown.Out, "wall clock 20s")
	require.Equal(t, before, w.left(t), "to look makes and changes nothing")

	var x struct {
		Decision struct{ Tier string }
		InForce  struct{ Tier string } `json:"in_force"`
		Waiting  []string
	}
	explain := append(w.flags, "explain", "--json", "--platform", "slack", "--workspace", slackfake.HomeTeam, "--channel", hallID, "--user", strangeID)
	require.NoError(t, json.Unmarshal([]byte(w.Bot(explain...).Out), &x))
	require.Equal(t, []string{"team", "none"}, []string{x.Decision.Tier, x.InForce.Tier})
	require.Len(t, x.Waiting, 2)
	w.accept(t)
	x.Waiting = nil
	require.NoError(t, json.Unmarshal([]byte(w.Bot(explain...).Out), &x))
	require.Equal(t, []string{"team", "team"}, []string{x.Decision.Tier, x.InForce.Tier})
	require.Empty(t, x.Waiting)
}

// golden compares with a file of testdata, or writes it anew.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if flag.Lookup("update").Value.String() == "true" {
		require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}

// Scenario: somebody who may write the configuration, and not consent, has the
// bot connect to a host of theirs.
func TestT13AChangedAddressOfAPlatformWaits(t *testing.T) {
	w := served(t, nil)
	thief, err := discordfake.New(discordfake.Config{Token: discordToken, Bot: discordBot})
	require.NoError(t, err)
	t.Cleanup(thief.Close)
	w.settings(t, w.discord.URL(), thief.URL())
	a := start(t, w.House, append(w.flags, "serve")...)
	eventually(t, "Slack is not served", a.err.Ready)
	require.Contains(t, a.err.String(), "discord: off until you consent (bot accept-gains): configuration, discord: what is asked goes to "+thief.URL()+
		" with the variable DISCORD_TOKEN, was "+w.discord.URL()+" with the variable DISCORD_TOKEN")
	require.Contains(t, a.manifests(), "1 gains wait for your consent (bot accept-gains), first: configuration, discord: ")
	require.Contains(t, w.metrics(t, a), "parlour_manifest_gains_waiting 1")
	require.Contains(t, w.says(t, memberID, question), answered, "what has not changed goes on")
	require.Empty(t, thief.Requests("", nil), "nothing was sent there")
	a.quit(t)

	require.Contains(t, w.accept(t), "waits: configuration, discord: what is asked goes to "+thief.URL())
	a = w.serve(t)
	require.NotContains(t, a.manifests(), "wait")
	a.quit(t)
	w.settings(t, thief.URL(), w.discord.URL(), "SLACK_BOT", "SLACK_OTHER")
	got := w.Bot(append(w.flags, "serve")...)
	require.Equal(t, 2, got.Code, "nothing is left to serve: "+got.Err)
	require.Contains(t, got.Err, "discord: off until you consent", "going back needs another consent")
	require.Contains(t, got.Err, "slack: off (no bot token: SLACK_OTHER is not set)")
}

// A consent to a runner file counts from the next start, whatever becomes of the
// tier files until then, and is used up by that.
func TestT13AConsentToARunnerFileOutlastsChangesOfTheTiers(t *testing.T) {
	w := newReloadTown(t)
	says := func(text string) {
		w.Install(house.StandIn{Name: "standin", Binary: w.Program("bin/"+text, "#!/bin/sh\necho "+text+"\n")})
		w.put(t, "guest", "tier: guest\n"+byDocs)
	}
	tiers := func(users ...string) {
		w.put(t, "team", strings.Replace(team(users...), "runners: [docs]", "runners: [standin, docs]", 1))
	}
	says("first")
	tiers(memberID)
	a := w.serve(t)
	require.Contains(t, w.says(t, memberID, question), "first")

	says("second")
	tiers(memberID, strangeID)
	a.eventuallyManifests(t, "1 gains wait")
	out := w.accept(t)
	require.Contains(t, out, strangeID)
	require.Contains(t, out, "waits: runner standin: its file is new or has changed")
	eventually(t, "the gain still waits", func() bool { return !strings.Contains(a.manifests(), "wait") })
	tiers(strangeID) // and the accepted state is left again
	eventually(t, "the loss is not in force", func() bool {
		return strings.Contains(w.metrics(t, a), `parlour_manifest_reloads_total{result="ok"} 3`)
	})
	require.Contains(t, w.says(t, strangeID, question), "first", "never while the bot runs")
	a.quit(t)

	a = w.serve(t)
	require.NotContains(t, a.manifests(), "wait")
	require.Contains(t, w.says(t, strangeID, question), "second", "the consent was to this file")
	a.quit(t)
	says("first")
	a = w.serve(t)
	require.Contains(t, a.manifests(), "runner standin: its file is new or has changed", "going back needs another consent")
	require.Contains(t, w.says(t, strangeID, question), answered)
	a.quit(t)

	// A consent that a start has used is used up, although the tier files are others by then.
	require.Contains(t, w.accept(t), "waits: runner standin")
	w.put(t, "guest", "tier: guest\n"+byDocs+"limits: {wall: 9s, stall: 8s}\n")
	w.serve(t).quit(t)
	require.NoError(t, os.Remove(w.Path("manifests", "runners", "standin.yaml")))
	w.put(t, "team", team(strangeID))
	w.serve(t).quit(t)
	says("first")
	require.Contains(t, w.Bot(append(w.flags, "check")...).Out, "  - runner standin: its file is new or has changed\n", "and so does putting back what was gone")
}

// A limit that is gone from the files holds until the operator consents, also for
// a gateway that does not tell all of a place.
func TestAGatewayGetsNoMoreWhereALimitIsGoneWithoutConsent(t *testing.T) {
	limits := "places:\n  discord:\n    - {guild: \"" + guildID + "\", categories: [\"710000000000000001\"]}\n"
	w := served(t, map[string]string{
		"team":  "tier: team\nmatch: {discord: [{users: [\"222222222222222222\"]}]}\n" + byDocs,
		"guest": "tier: guest\n" + limits + byDocs,
	})
	take := func() string {
		got := gatewayTakes(w.House, append(w.flags, "--platform", "discord", "--workspace", guildID, "--channel", channelID, "--user", "222222222222222222")...)
		return got.Out + got.Err
	}
	require.Contains(t, take(), `"tier":"guest"`)
	w.put(t, "guest", "tier: guest\n"+byDocs)
	require.Contains(t, take(), `"tier":"guest"`)
	w.accept(t)
	require.Contains(t, take(), `"tier":"team"`)
}
