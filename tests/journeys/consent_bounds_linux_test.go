package journeys_test

import (
	"encoding/json"
	"os"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"parlour/bridge/ask"
	"parlour/tests/house"
)

func (w *town) consentFile(name string) string { return w.Path("state", "serve", "consent", name) }

// commanded gives the command with which a text says that what waits is accepted.
func commanded(t *testing.T, text string) []string {
	t.Helper()
	found := regexp.MustCompile(`bot(?: --[a-z]+ \S+)* (accept-gains [0-9a-f]{16})`).FindStringSubmatch(text)
	require.NotEmpty(t, found, text)
	return strings.Fields(found[1])
}

// reads waits until the bot has read the manifests so often since it began.
func (w *town) reads(t *testing.T, a *asking, n int) {
	t.Helper()
	eventually(t, "they were not read again", func() bool {
		return strings.Contains(w.metrics(t, a), `parlour_manifest_reloads_total{result="ok"} `+strconv.Itoa(n))
	})
}

// runs gives the stand-in a program that says its name, and the team that runner.
func (w *town) runs(t *testing.T, text string) {
	t.Helper()
	w.Install(house.StandIn{Name: "standin", Binary: w.Program("bin/"+text, "#!/bin/sh\necho "+text+"\n")})
	w.put(t, "guest", "tier: guest\n"+byDocs)
	w.put(t, "team", strings.Replace(team(memberID), "runners: [docs]", "runners: [standin, docs]", 1))
}

// Scenario: somebody who may write the manifests, and not consent, takes a
// stricter file of the operator's away, so that the shipped runner serves.
func TestT13TheShippedRunnerInThePlaceOfAFileThatIsGoneWaits(t *testing.T) {
	const waits = "its file is gone, and the shipped runner of this name would be used"
	w := newReloadTown(t)
	off := "name: claude\ndisabled: true\n"
	w.Write("manifests/runners/claude.yaml", off)
	w.Write("manifests/runners/docs.yaml", "name: docs\ndisabled: true\n")
	a := w.serve(t)
	require.Contains(t, w.says(t, memberID, question), ask.Sentence(ask.NoRunner))
	a.quit(t)
	require.NoError(t, os.Remove(w.Path("manifests", "runners", "docs.yaml")))
	require.NoError(t, os.Remove(w.Path("manifests", "runners", "claude.yaml")))
	for range 2 { // and the next start does not take it for accepted
		a = w.serve(t)
		require.Contains(t, a.manifests(), "2 gains wait for your consent (bot accept-gains), first: runner claude: "+waits)
		require.Contains(t, w.says(t, memberID, question), ask.Sentence(ask.NoRunner))
		a.quit(t)
	}
	w.Write("manifests/runners/claude.yaml", off)
	require.NotContains(t, w.Bot(append(w.flags, "check")...).Out, "runner claude", "what is back as it was is no gain")

	require.Contains(t, w.accept(t), "waits: runner docs: "+waits)
	a = w.serve(t)
	require.NotContains(t, a.manifests(), "wait")
	require.Contains(t, w.says(t, memberID, question), answered)
	a.quit(t)
	w.serve(t).quit(t)
	require.NotContains(t, w.Bot(append(w.flags, "check")...).Out, "wait for your consent")
}

// Scenario: what was accepted cannot be read any more, the operator consents to all
// that the files give, and somebody changes a runner file before the start.
func TestT13AfterALossOfWhatWasAcceptedRunnersAreBoundToTheConsent(t *testing.T) {
	w := newReloadTown(t)
	w.runs(t, "first")
	w.serve(t).quit(t)
	honest, err := os.ReadFile(w.Path("config.yaml"))
	require.NoError(t, err)
	w.Write("state/serve/consent/standing.json", "{")
	w.accept(t)
	w.runs(t, "evil")
	w.settings(t, w.discord.URL(), w.discord.URL()+"/elsewhere")
	a := start(t, w.House, append(w.flags, "serve")...)
	eventually(t, "Slack is not served", a.err.Ready)
	require.Contains(t, house.Unhashed(a.err.String()), "2 gains wait for your consent (bot accept-gains), first: runner standin: its file is new or has changed")
	require.Contains(t, a.err.String(), "discord: off until you consent")
	a.quit(t)
	w.Write("config.yaml", string(honest))
	a = w.serve(t)
	require.Contains(t, w.says(t, memberID, question), answered, "the next of the tier's runners answers")
	a.quit(t)
	w.runs(t, "first")
	w.serve(t)
	require.Contains(t, w.says(t, memberID, question), answered, "a consent that another start has seen is over")
}

// A consent ends with the next start or reload that finds another state than the
// accepted one, whether it was used or not.
func TestT13AConsentThatNoBotHasUsedEndsWithTheNextStart(t *testing.T) {
	w := newReloadTown(t)
	w.runs(t, "first")
	w.serve(t).quit(t)
	more := strings.Replace(team(memberID, strangeID), "runners: [docs]", "runners: [standin, docs]", 1)
	w.runs(t, "second")
	w.put(t, "team", more)
	require.Contains(t, w.accept(t), strangeID)
	require.NotContains(t, w.Bot(append(w.flags, "check")...).Out, "wait for your consent")

	w.runs(t, "first") // the operator thinks better of it
	w.serve(t).quit(t)
	require.NoFileExists(t, w.consentFile("accepted.json"))
	w.runs(t, "second")
	w.put(t, "team", more)
	a := w.serve(t)
	require.Contains(t, a.manifests(), "2 gains wait for your consent (bot accept-gains), first: ")
	require.Contains(t, w.says(t, strangeID, question), ask.Sentence(ask.NotAllowed))
	require.Contains(t, w.says(t, memberID, question), answered, "the next of the tier's runners answers")
}

// In the place of a consent lies what is none. It is waited for by nobody, and
// changes nothing of what is in force.
func TestT13WhatIsNoFileIsNoConsent(t *testing.T) {
	w := newReloadTown(t)
	a := w.serve(t)
	more := team(memberID, strangeID)
	w.put(t, "team", more)
	a.eventuallyManifests(t, "1 gains wait")
	got := w.Bot(append(w.flags, "accept-gains")...)
	require.Equal(t, 0, got.Code, got.Err)
	eventually(t, "the gain still waits", func() bool { return !strings.Contains(a.manifests(), "wait") })
	require.NoFileExists(t, w.consentFile("accepted.json"), "it is used up")

	require.NoError(t, syscall.Mkfifo(w.consentFile("accepted.json"), 0o600))
	w.put(t, "team", team())
	w.reads(t, a, 3)
	require.Contains(t, w.says(t, memberID, question), ask.Sentence(ask.NotAllowed), "a loss is in force")
	w.put(t, "team", team(memberID))
	a.eventuallyManifests(t, "1 gains wait")
	require.Contains(t, a.err.String(), "accepted.json is not a regular file")

	hash := textsHash(t, w)
	text, err := json.Marshal(map[string]any{"tiers": hash, "at": "2026-01-01T00:00:00Z"})
	require.NoError(t, err)
	for name, put := range map[string]func(file string){
		"a link": func(file string) { require.NoError(t, os.Symlink(w.Write("elsewhere", string(text)), file)) },
		"a file that others write": func(file string) {
			require.NoError(t, os.WriteFile(file, text, 0o600))
			require.NoError(t, os.Chmod(file, 0o602))
		},
		"a file without an end": func(file string) {
			require.NoError(t, os.WriteFile(file, text, 0o600))
			require.NoError(t, os.Truncate(file, 1<<40))
		},
	} {
		file := w.consentFile("accepted.json")
		require.NoError(t, os.RemoveAll(file))
		put(file)
		require.Contains(t, w.Bot(append(w.flags, "check")...).Out, "1 gains wait", name)
	}
	require.NoError(t, os.RemoveAll(w.consentFile("accepted.json")))
	require.NoError(t, os.WriteFile(w.consentFile("accepted.json"), text, 0o600))
	eventually(t, "a whole file would have been a consent", func() bool { return !strings.Contains(a.manifests(), "wait") })
}

// textsHash gives the hash of the tier files as accept-gains tells it.
func textsHash(t *testing.T, w *town) string {
	t.Helper()
	var told struct{ Hash string }
	dry := append([]string{"--state", w.Path("state", "dry")}, w.flags...)
	got := w.Bot(append(dry, "accept-gains", "--json")...)
	require.Equal(t, 0, got.Code, got.Err)
	require.NoError(t, json.Unmarshal([]byte(got.Out), &told))
	return told.Hash
}

// Scenario: others than the bot's user could write what was accepted.
func TestT13AConsentOfOthersIsNone(t *testing.T) {
	w := served(t, map[string]string{"team": team(memberID)})
	dir := w.consentFile("")
	refused := func(command string, why string) {
		t.Helper()
		a := start(t, w.House, append(w.flags, command)...)
		eventually(t, command+" goes on", func() bool { return strings.Contains(a.err.String(), "where what you accepted is kept, "+why) })
		require.Equal(t, 2, a.end(), command)
	}
	require.NoError(t, os.Chmod(dir, 0o777))
	refused("serve", "can be written by others (mode 0777): look through it, then run chmod 700 on it")
	refused("accept-gains", "can be written by others (mode 0777)")
	require.NoError(t, os.Chmod(dir, 0o700))
	require.NoError(t, os.Rename(dir, dir+".real"))
	require.NoError(t, os.Symlink(dir+".real", dir))
	refused("serve", "is not a folder: delete it")
	require.NoError(t, os.Remove(dir))
	require.NoError(t, os.Rename(dir+".real", dir))
	if os.Geteuid() == 0 {
		require.NoError(t, os.Chown(dir, 65534, 65534))
		refused("serve", "belongs to another user: run this as that user, or give it to the bot's")
		refused("accept-gains", "belongs to another user")
		require.NoError(t, os.Chown(dir, 0, 0))
	}

	// While the bot serves, what lies there does not count until it is closed again.
	a := w.serve(t)
	w.put(t, "team", team(memberID, strangeID))
	a.eventuallyManifests(t, "1 gains wait")
	require.NoError(t, os.Chmod(dir, 0o777))
	text, err := json.Marshal(map[string]any{"tiers": textsHash(t, w), "at": "2026-01-01T00:00:00Z"})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(w.consentFile("accepted.json"), text, 0o600))
	eventually(t, "it is not said", func() bool { return strings.Contains(a.err.String(), "a consent is not counted") })
	require.Contains(t, w.says(t, strangeID, question), ask.Sentence(ask.NotAllowed))
	w.put(t, "team", team())
	eventually(t, "a loss is not in force", func() bool {
		return strings.Contains(w.metrics(t, a), "parlour_manifest_gains_waiting 0")
	})
	require.Contains(t, w.says(t, memberID, question), ask.Sentence(ask.NotAllowed))
	a.quit(t)
}

// The hash that everything prints stands for exactly what was shown with it.
func TestT13WhatIsAcceptedIsWhatWasShown(t *testing.T) {
	w := newReloadTown(t)
	w.runs(t, "first")
	a := w.serve(t)
	w.put(t, "team", strings.Replace(team(memberID, strangeID), "runners: [docs]", "runners: [standin, docs]", 1))
	a.eventuallyManifests(t, "1 gains wait")
	page, _ := a.err.Page("/readyz")
	shown := commanded(t, page)
	require.Equal(t, shown, commanded(t, w.Bot(append(w.flags, "check")...).Out))
	require.Equal(t, shown, commanded(t, a.err.String()))

	// Somebody adds to it between the look and the command.
	for name, change := range map[string]func(){
		"a tier file":       func() { w.put(t, "guest", "tier: guest\n"+byDocs+"limits: {wall: 119s, stall: 8s}\n") },
		"a runner file":     func() { w.runner(t, "second") },
		"the configuration": func() { w.settings(t, "DISCORD_TOKEN", "OTHER_TOKEN") },
	} {
		before := [][2]string{}
		for _, file := range []string{"manifests/tiers/guest.yaml", "manifests/runners/standin.yaml", "config.yaml"} {
			text, err := os.ReadFile(w.Path(file))
			require.NoError(t, err)
			before = append(before, [2]string{file, string(text)})
		}
		change()
		got := w.Bot(append(w.flags, shown...)...)
		require.Equal(t, 2, got.Code, name+": "+got.Out)
		require.Contains(t, got.Err, "nothing is accepted: what waits by now is another than "+shown[1]+"; bot check shows it, and its hash ", name)
		require.NotContains(t, got.Out, "accepted", name)
		require.NoFileExists(t, w.consentFile("accepted.json"), name)
		for _, b := range before {
			w.Write(b[0], b[1])
		}
	}
	eventually(t, "the gain does not wait as before", func() bool {
		page, _ = a.err.Page("/readyz")
		return strings.Contains(page, strings.Join(shown, " "))
	})
	got := w.Bot(append(w.flags, shown...)...)
	require.Equal(t, 0, got.Code, got.Err)
	require.Regexp(t, `(?s)^waits: team, user: user `+strangeID+`.*\naccepted: all of it \(`+shown[1]+`\); `, got.Out)
	eventually(t, "the gain still waits", func() bool { return !strings.Contains(a.manifests(), "wait") })
	got = w.Bot(append(w.flags, shown...)...)
	require.Equal(t, "nothing waits for consent\n", got.Out)
	a.quit(t)

	w.runner(t, "second")
	require.Contains(t, w.Bot(append(w.flags, "check")...).Out, "runner standin: its file is new or has changed (binaries changed)")
}

// runner changes what the stand-in starts, and nothing else.
func (w *town) runner(t *testing.T, text string) {
	t.Helper()
	old, err := os.ReadFile(w.Path("manifests", "runners", "standin.yaml"))
	require.NoError(t, err)
	now := strings.ReplaceAll(string(old), "bin/first", "bin/"+text)
	require.NotEqual(t, string(old), now)
	w.Program("bin/"+text, "#!/bin/sh\necho "+text+"\n")
	w.Write("manifests/runners/standin.yaml", now)
}
