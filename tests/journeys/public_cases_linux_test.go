package journeys_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"parlour/bridge/ask"
	"parlour/tests/cases"
	discordfake "parlour/tests/fakes/discord"
	slackfake "parlour/tests/fakes/slack"
)

// hears asks in Discord and gives the bot's answer, in the thread or as a reply.
func (w *town) hears(t *testing.T, user, text string) (answer string) {
	t.Helper()
	id := w.discord.Say(discordfake.Said{Channel: channelID, Author: discordfake.User{ID: user, Name: "somebody"}, Content: "<@" + discordBot + "> " + text})
	eventually(t, "no answer in Discord", func() bool {
		for _, m := range w.discord.Posted("") {
			if m.Channel == id || strings.Contains(m.Body, `"message_id":"`+id+`"`) {
				answer = m.Content
				return true
			}
		}
		return false
	})
	return answer
}

func (w *town) reloaded(t *testing.T, a *asking, result string, n string) {
	t.Helper()
	eventually(t, "the files were not looked at: "+result+" "+n, func() bool {
		return strings.Contains(w.metrics(t, a), `parlour_manifest_reloads_total{result="`+result+`"} `+n+"\n")
	})
}

const unknownUser = "U0NOBODY1"

// Each way to start the bot, and each command that decides, with one owner's id.
func TestPublicCaseA26(t *testing.T) {
	cases.Public("A26", "MervinPraison/PraisonAI PR 1495").In(t)
	t.Parallel()
	for way, flags := range map[string][]string{
		"by the configuration": {"--config", "config.yaml", "serve"},
		"by a flag":            {"serve", "--config", "config.yaml", "--manifests", "manifests", "--parallel", "1"},
	} {
		w := newReloadTown(t)
		for _, tier := range []string{"team", "guest"} {
			require.NoError(t, os.Remove(w.Path("manifests", "tiers", tier+".yaml")))
		}
		a := start(t, w.House, flags...)
		eventually(t, "the bot is not ready", a.err.Ready)
		require.Contains(t, w.says(t, strangeID, question), ask.Sentence(ask.NotAllowed), way)
		require.Contains(t, w.hears(t, guestID, question), ask.Sentence(ask.NotAllowed), way)
		require.Contains(t, w.hears(t, ownerID, question), "owner · docs", way)
		unknown := strings.Fields("--platform slack --workspace T0HOME001 --channel C0ELSE001 --user " + unknownUser + " --json")
		for _, command := range [][]string{append([]string{"explain"}, unknown...), append(append([]string{"accept"}, unknown...), "what is this?")} {
			got := w.Bot(append([]string{"--config", "config.yaml"}, command...)...)
			require.Contains(t, got.Out, `"tier":"none"`, "%v: %s", command, got.Err)
		}
	}
}

func TestPublicCaseB07(t *testing.T) {
	cases.Public("B07", "Growth-Circle/cadis#3022, #359; rappdw/sandy PR 289; NousResearch/hermes-agent PR 8410, PR 58583; littlebearapps/untether#84").In(t)
	t.Parallel()
	w := newTown(t)
	for name, c := range map[string]struct {
		files map[string]string
		want  string
	}{
		"tiers without anybody":  {map[string]string{"owner": "tiers: {}\n"}, `tiers/owner.yaml:1:1: unknown key "tiers"; right: `},
		"owner with empty users": {map[string]string{"owner": "tier: owner\nmatch: {discord: [{users: []}]}\n"}, "bot: tiers/owner.yaml names nobody: a chat is not served without an owner; add your own user id"},
		"an empty folder":        {nil, "bot: tiers/owner.yaml names nobody: a chat is not served without an owner; add your own user id"},
	} {
		require.NoError(t, os.RemoveAll(w.Path("manifests")))
		require.NoError(t, os.Mkdir(w.Path("manifests"), 0o700))
		for tier, text := range c.files {
			w.Write("manifests/tiers/"+tier+".yaml", text)
		}
		got := w.Bot(append(w.flags, "serve")...)
		require.Equal(t, 2, got.Code, name)
		require.Contains(t, got.Err, c.want, name)
	}
	require.Empty(t, w.discord.Requests("", nil), "nothing was connected")
}

// A broken state of the files changes nothing while the bot runs, whichever file
// is broken and however, and ends its start.
func TestPublicCasesB20B25AndB41(t *testing.T) {
	cases.Public("B20", "NousResearch/hermes-agent PR 60591; Consiliency/pmcp#202; microsoft/agent-governance-toolkit PR 3660; rh-ai-quickstart PR 14").In(t)
	cases.Public("B25", "gotgenes/pi-packages#646").In(t)
	cases.Public("B41", "issc29/probot-prevent-public-repos#7; probot/reminders#14; repository-settings/app#130").In(t)
	t.Parallel()
	w := newReloadTown(t)
	a := w.serve(t)
	guest, err := os.ReadFile(w.Path("manifests", "tiers", "guest.yaml"))
	require.NoError(t, err)
	for i, c := range []struct{ text, want string }{
		{"tier: guest\nmatch: {discord: [\n", "tiers/guest.yaml:2: not YAML: "},
		{string(guest) + "reply: @alice @bob\n", "not YAML: @ cannot start a value"},
		{string(guest) + "match: {}\n", `the key "match" stands here and at 2:1`},
		// One file takes somebody's right away and has a typo, another gives it.
		{string(guest) + "blok: {slack: [{workspace: T0HOME001, users: [" + memberID + "]}]}\n", `unknown key "blok"; right: block? `},
	} {
		w.put(t, "guest", c.text)
		a.eventuallyManifests(t, c.want) // the health names the fault
		require.Contains(t, a.manifests(), "last good of 20", "case %d", i)
		require.Contains(t, w.says(t, memberID, question), answered, "the last good set stays whole")
		if i == 0 {
			require.Contains(t, w.hears(t, guestID, question), "guest · docs")
			require.Contains(t, w.hears(t, ownerID, question), "owner · docs")
			require.Equal(t, 1, strings.Count(a.err.String(), "level=ERROR"), a.err.String())
			require.Contains(t, w.metrics(t, a), `parlour_manifest_reloads_total{result="failed"} 1`)
		}
	}
	require.NoError(t, a.cmd.Process.Signal(syscall.SIGTERM))
	require.Equal(t, 0, a.end())
	got := w.Bot(append(w.flags, "serve")...)
	require.Equal(t, 2, got.Code, "with the broken one it does not start")
	require.Contains(t, got.Err, `unknown key "blok"`)
}

func TestPublicCasesB22AndB37(t *testing.T) {
	cases.Public("B22", "glanceapp/glance PR 358; pgEdge/pgedge-rag-server#30").In(t)
	cases.Public("B37", "anthropics/claude-plugins-official discord access skill (access.json)").In(t)
	t.Parallel()
	w := newReloadTown(t)
	users := []string{memberID, strangeID, "U0THIRD001", "U0FOURTH01"}
	for _, id := range users[2:] {
		w.slack.AddUser(slackfake.User{ID: id, Name: "somebody"})
	}
	w.put(t, "team", team(users...))
	a := w.serve(t)
	for i, n := range []string{"1", "2", "3"} { // mv manifest.tmp manifest.yaml
		began := time.Now()
		w.put(t, "team", team(users[:3-i]...))
		w.reloaded(t, a, "ok", n)
		require.Less(t, time.Since(began), 15*time.Second, "one second, or ten where only the poll sees it")
		require.Contains(t, w.says(t, users[3-i], question), ask.Sentence(ask.NotAllowed))
	}
	require.Contains(t, w.says(t, memberID, "approve code 123456"), "team · docs")
	require.Contains(t, w.hears(t, guestID, "approve code 123456"), "guest · docs")
	texts := func() string {
		all := ""
		for _, tier := range []string{"owner", "team", "guest"} {
			text, err := os.ReadFile(w.Path("manifests", "tiers", tier+".yaml"))
			require.NoError(t, err)
			all += string(text)
		}
		return all
	}
	require.NotContains(t, texts(), "123456", "what is said in a chat is written nowhere")

	require.NoError(t, os.Remove(w.Path("manifests", "tiers", "team.yaml")))
	w.reloaded(t, a, "ok", "4")
	require.Contains(t, w.says(t, memberID, question), ask.Sentence(ask.NotAllowed), "a missing file gives nobody anything")
	require.NoError(t, os.Rename(w.Path("manifests"), w.Path("elsewhere")))
	a.eventuallyManifests(t, "there is no such folder")
	require.Contains(t, w.hears(t, guestID, question), "guest · docs", "the last good ones hold")
}

// A mounted ConfigMap changes by a link that is renamed, and its old folder goes.
func TestPublicCaseB23(t *testing.T) {
	cases.Public("B23", "jimmidyson/configmap-reload#190; bluenviron/mediamtx PR 181; agentgateway/agentgateway#352; pleaseai/shunt PR 18").In(t)
	t.Parallel()
	w := newReloadTown(t)
	dir := w.Path("manifests", "tiers")
	mount := func(version string, texts map[string]string) {
		t.Helper()
		for tier, text := range texts {
			w.Write(filepath.Join("manifests/tiers", version, tier+".yaml"), text)
		}
		require.NoError(t, os.Symlink(version, filepath.Join(dir, "..data_tmp")))
		require.NoError(t, os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")))
	}
	texts := map[string]string{"team": team(memberID, strangeID)}
	for _, tier := range []string{"owner", "guest"} {
		text, err := os.ReadFile(filepath.Join(dir, tier+".yaml"))
		require.NoError(t, err)
		texts[tier] = string(text)
	}
	mount("..v1", texts)
	for tier := range texts {
		require.NoError(t, os.RemoveAll(filepath.Join(dir, tier+".yaml")))
		require.NoError(t, os.Symlink("..data/"+tier+".yaml", filepath.Join(dir, tier+".yaml")))
	}
	a := w.serve(t)
	for i, change := range []struct{ old, next, n, gone string }{{"..v1", "..v2", "1", strangeID}, {"..v2", "..v3", "2", memberID}} {
		if texts["team"] = team(memberID); i == 1 {
			texts["team"] = team()
		}
		mount(change.next, texts)
		require.NoError(t, os.RemoveAll(filepath.Join(dir, change.old)))
		w.reloaded(t, a, "ok", change.n)
		require.Contains(t, w.says(t, change.gone, question), ask.Sentence(ask.NotAllowed))
		require.Contains(t, w.hears(t, guestID, question), "guest · docs")
	}
	require.NotContains(t, w.metrics(t, a), `parlour_manifest_reloads_total{result="failed"} 1`, "no moment without the owner's file")
	require.NotContains(t, a.err.String(), "level=ERROR")
}
