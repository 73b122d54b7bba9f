package journeys_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"parlour/bridge/ask"
	discordfake "parlour/tests/fakes/discord"
	slackfake "parlour/tests/fakes/slack"
	"parlour/tests/house"
)

const (
	byDocs    = "policy: {mode: read-only, network: none, documents: [handbook], runners: [docs]}\n"
	strangeID = "U0STRANGE1"
)

// put puts a tier file in its place at once, as an operator's editor does.
func (w *town) put(t *testing.T, tier, text string) {
	t.Helper()
	next := w.Write("manifests/tiers/."+tier+".new", text)
	require.NoError(t, os.Rename(next, w.Path("manifests", "tiers", tier+".yaml")))
}

// team is a team manifest that lists people of Slack.
func team(users ...string) string {
	if len(users) == 0 {
		return "tier: team\n" + byDocs
	}
	return "tier: team\nmatch:\n  slack:\n    - {workspace: " + slackfake.HomeTeam + ", users: [" + strings.Join(users, ", ") + "]}\n" + byDocs
}

// manifests gives the line of /readyz about the manifests, without the hash of what waits.
func (a *asking) manifests() string {
	page, _ := a.err.Page("/readyz")
	for line := range strings.Lines(page) {
		if text, ok := strings.CutPrefix(line, "manifests: "); ok {
			return house.Unhashed(strings.TrimSpace(text))
		}
	}
	return ""
}

func (a *asking) eventuallyManifests(t *testing.T, want string) {
	t.Helper()
	eventually(t, "the health does not say: "+want, func() bool { return strings.Contains(a.manifests(), want) })
}

// says asks in Slack and gives the bot's answer there.
func (w *town) says(t *testing.T, user, text string) string {
	t.Helper()
	thread := w.slack.Say(slackfake.Post{Channel: hallID, User: user, Text: "<@" + slackfake.BotUser + "> " + text})
	eventually(t, "no answer in Slack", func() bool { return len(w.inSlack(thread)) > 0 })
	return w.inSlack(thread)[0].Text
}

func newReloadTown(t *testing.T) *town {
	t.Helper()
	w := newTown(t)
	w.slack.AddUser(slackfake.User{ID: strangeID, Name: "stranger"})
	return w
}

const answered = "Who may edit a tier manifest"

func TestAReloadTakesEffectWithoutARestart(t *testing.T) {
	w := newReloadTown(t)
	a := w.serve(t)
	require.Contains(t, a.manifests(), "read at 20")
	require.Contains(t, w.says(t, memberID, question), answered)

	w.put(t, "team", team(memberID)+"anyone: true\n")
	a.eventuallyManifests(t, "; refused: 1 faults, first: ")
	require.Contains(t, a.manifests(), "last good of 20")
	require.Contains(t, a.manifests(), `team.yaml:6:1: unknown key "anyone"`)
	require.True(t, a.err.Ready(), "it serves by the last good ones")
	require.Contains(t, w.says(t, memberID, question), answered)
	require.Contains(t, w.metrics(t, a), `parlour_manifest_reloads_total{result="failed"} 1`)

	w.put(t, "team", team())
	a.eventuallyManifests(t, "read at 20")
	require.Contains(t, w.says(t, memberID, question), ask.Sentence(ask.NotAllowed))
	require.Contains(t, w.metrics(t, a), `parlour_manifest_reloads_total{result="ok"} 1`)

	require.NoError(t, a.cmd.Process.Signal(syscall.SIGHUP))
	w.put(t, "owner", "tier: owner\n")
	a.eventuallyManifests(t, "refused: tiers/owner.yaml names nobody")
	require.NoError(t, a.cmd.Process.Signal(syscall.SIGTERM))
	require.Equal(t, 0, a.end(), "and SIGHUP has not ended it: "+a.err.String())
}

func TestT13AGainWaitsUntilTheOperatorConsents(t *testing.T) {
	w := newReloadTown(t)
	a := w.serve(t)
	w.put(t, "team", team(memberID, strangeID))
	a.eventuallyManifests(t, "1 gains wait for your consent (bot accept-gains), first: ")
	require.Contains(t, a.manifests(), strangeID)
	require.Contains(t, w.says(t, strangeID, question), ask.Sentence(ask.NotAllowed))
	require.Contains(t, w.says(t, memberID, question), answered, "what was accepted before is in force")
	require.Contains(t, w.metrics(t, a), "parlour_manifest_gains_waiting 1")
	require.Contains(t, house.Unhashed(a.err.String()), "a gain waits for consent: bot accept-gains")
	checked := w.Bot(append(w.flags, "check")...)
	require.Equal(t, 0, checked.Code, checked.Err)
	require.Contains(t, house.Unhashed(checked.Out), "warning: 1 gains wait for your consent (bot accept-gains), first: ")

	accepted := w.Bot(append(w.flags, "accept-gains")...)
	require.Equal(t, 0, accepted.Code, accepted.Err)
	require.Contains(t, accepted.Out, "waits: ")
	require.Contains(t, accepted.Out, "\naccepted: all of it (")
	require.Contains(t, accepted.Out, strangeID)
	eventually(t, "the gain still waits", func() bool { return !strings.Contains(a.manifests(), "wait") })
	require.Contains(t, w.says(t, strangeID, question), answered)
	require.Contains(t, w.metrics(t, a), "parlour_manifest_gains_waiting 0")
	require.Equal(t, "nothing waits for consent\n", w.Bot(append(w.flags, "accept-gains")...).Out)
}

func TestT13AConsentIsForOneChange(t *testing.T) {
	w := newReloadTown(t)
	a := w.serve(t)
	w.put(t, "team", team(memberID, strangeID))
	a.eventuallyManifests(t, "1 gains wait")
	require.Equal(t, 0, w.Bot(append(w.flags, "accept-gains")...).Code)
	eventually(t, "the gain still waits", func() bool { return !strings.Contains(a.manifests(), "wait") })
	w.put(t, "team", team(memberID))
	eventually(t, "the loss is not in force", func() bool {
		return strings.Contains(w.metrics(t, a), `parlour_manifest_reloads_total{result="ok"} 3`)
	})
	w.put(t, "team", team(memberID, strangeID))
	a.eventuallyManifests(t, "1 gains wait")
	require.Contains(t, w.says(t, strangeID, question), ask.Sentence(ask.NotAllowed))
}

// What is written while the bot is down waits as well.
func TestT13AGainWaitsAcrossARestart(t *testing.T) {
	w := newReloadTown(t)
	a := w.serve(t)
	require.NoError(t, a.cmd.Process.Signal(syscall.SIGTERM))
	require.Equal(t, 0, a.end())
	w.put(t, "team", team(strangeID))
	a = w.serve(t)
	a.eventuallyManifests(t, "1 gains wait")
	require.Contains(t, house.Unhashed(a.err.String()), "warning: 1 gains wait for your consent (bot accept-gains), first: ")
	require.Contains(t, w.says(t, strangeID, question), ask.Sentence(ask.NotAllowed))
	require.Contains(t, w.says(t, memberID, question), ask.Sentence(ask.NotAllowed), "a loss is in force")

	require.NoError(t, a.cmd.Process.Kill())
	a.end()
	require.Equal(t, 0, w.Bot(append(w.flags, "accept-gains")...).Code)
	a = w.serve(t)
	require.NotContains(t, a.manifests(), "wait")
	require.Contains(t, w.says(t, strangeID, question), answered)
}

func TestT13WhatWasAcceptedCannotBeReadAnyMore(t *testing.T) {
	w := newReloadTown(t)
	a := w.serve(t)
	require.NoError(t, a.cmd.Process.Signal(syscall.SIGTERM))
	require.Equal(t, 0, a.end())
	w.Write("state/serve/consent/standing.json", "{")
	got := w.Bot(append(w.flags, "serve")...)
	require.Equal(t, 2, got.Code)
	require.Contains(t, got.Err, "what was accepted before cannot be read in ")
	require.Contains(t, got.Err, "consent to all that they give: bot accept-gains")
	require.Equal(t, 0, w.Bot(append(w.flags, "accept-gains")...).Code)
	w.serve(t)
	require.Contains(t, w.says(t, memberID, question), answered)
}

// A runner file says what is executed: it is read at a start only, and used once
// the operator has consented to it.
func TestT13AChangedRunnerFileWaits(t *testing.T) {
	w := newReloadTown(t)
	answer := func(text string) {
		w.Install(house.StandIn{Name: "standin", Binary: w.Program("bin/"+text, "#!/bin/sh\necho "+text+"\n")})
		w.put(t, "team", "tier: team\nmatch:\n  slack:\n    - {workspace: "+slackfake.HomeTeam+", users: ["+memberID+"]}\n"+
			"policy: {mode: read-only, network: none, documents: [handbook], runners: [standin, docs]}\n")
		w.put(t, "guest", "tier: guest\n"+byDocs)
	}
	answer("first")
	a := w.serve(t)
	require.Contains(t, w.says(t, memberID, question), "first")
	answer("second")
	require.NoError(t, a.cmd.Process.Signal(syscall.SIGHUP))
	require.Contains(t, w.says(t, memberID, question), "first", "never while the bot runs")
	require.NoError(t, a.cmd.Process.Signal(syscall.SIGTERM))
	require.Equal(t, 0, a.end())

	a = w.serve(t)
	require.Contains(t, a.manifests(), "1 gains wait for your consent (bot accept-gains), first: runner standin: its file is new or has changed")
	require.Contains(t, w.says(t, memberID, question), answered, "the next of the tier's runners answers")
	require.Equal(t, 0, w.Bot(append(w.flags, "accept-gains")...).Code)
	require.NoError(t, a.cmd.Process.Signal(syscall.SIGTERM))
	require.Equal(t, 0, a.end())
	a = w.serve(t)
	require.NotContains(t, a.manifests(), "wait")
	require.Contains(t, w.says(t, memberID, question), "second")
}

// What another gateway hands over is decided by what is in force, not by what
// stands in the files.
func TestT13AnotherGatewayGetsNoMoreThanWasAccepted(t *testing.T) {
	w := newReloadTown(t)
	a := w.serve(t)
	require.NoError(t, a.cmd.Process.Signal(syscall.SIGTERM))
	require.Equal(t, 0, a.end())
	w.put(t, "team", team(memberID, strangeID))
	take := func(user string) house.Result {
		return w.Bot(append(w.flags, "accept", "--platform", "slack", "--workspace", slackfake.HomeTeam, "--channel", hallID, "--user", user, question)...)
	}
	got := take(strangeID)
	require.Equal(t, 3, got.Code, got.Err)
	require.Contains(t, house.Unhashed(got.Err), "1 gains wait for your consent (bot accept-gains)")
	require.Equal(t, 0, take(memberID).Code)
	require.Equal(t, 0, w.Bot(append(w.flags, "accept-gains")...).Code)
	require.Equal(t, 0, take(strangeID).Code)
}

func TestT24ARevokedGuestsRunEndsAndNothingOfItIsDelivered(t *testing.T) {
	w := newTown(t)
	w.slow(ownTime(1))
	a := w.serve(t)
	w.discord.Say(discordfake.Said{Channel: channelID, Author: discordfake.User{ID: guestID, Name: "guest"}, Content: "<@" + discordBot + "> what is it?"})
	eventually(t, "the run has not begun", func() bool {
		return strings.Contains(w.metrics(t, a), "parlour_runs 1") && sleeping(t, ownTime(1)) > 0
	})
	w.put(t, "guest", "tier: guest\npolicy: {mode: read-only, network: none, runners: [standin]}\n")
	eventually(t, "the guest was not told", func() bool {
		got := w.discord.Posted("")
		return len(got) == 1 && strings.HasPrefix(got[0].Content, ask.Sentence(ask.NotAllowed))
	})
	eventually(t, "the run goes on", func() bool { return sleeping(t, ownTime(1)) == 0 })
	require.Contains(t, w.metrics(t, a), "parlour_runs 0")
}

func TestT24ARevokedGuestWhoWaitsIsToldAtOnce(t *testing.T) {
	w := newTown(t)
	w.slow(ownTime(3))
	a := start(t, w.House, append(w.flags, "serve", "--parallel", "1")...)
	eventually(t, "the bot is not ready", a.err.Ready)
	w.slack.Say(slackfake.Post{Channel: hallID, User: memberID, Text: "<@" + slackfake.BotUser + "> what is it?"})
	eventually(t, "the run has not begun", func() bool { return sleeping(t, ownTime(3)) == 1 })
	w.discord.Say(discordfake.Said{Channel: channelID, Author: discordfake.User{ID: guestID, Name: "guest"}, Content: "<@" + discordBot + "> what is it?"})
	eventually(t, "it was not accepted", func() bool {
		return strings.Contains(w.metrics(t, a), `parlour_questions_accepted_total{platform="discord",tier="guest"} 1`)
	})
	w.put(t, "guest", "tier: guest\npolicy: {mode: read-only, network: none, runners: [standin]}\n")
	eventually(t, "the guest was not told", func() bool {
		got := w.discord.Posted("")
		return len(got) == 1 && strings.HasPrefix(got[0].Content, ask.Sentence(ask.NotAllowed))
	})
	require.Equal(t, 1, sleeping(t, ownTime(3)), "nobody else's run has ended for it: "+a.err.String())
}

func TestT23ARunUnderAPolicyThatIsNarrowedBeginsAnew(t *testing.T) {
	w := newTown(t)
	w.slow(ownTime(2))
	a := w.serve(t)
	w.discord.Say(discordfake.Said{Channel: channelID, Author: discordfake.User{ID: guestID, Name: "guest"}, Content: "<@" + discordBot + "> what is it?"})
	eventually(t, "the run has not begun", func() bool { return sleeping(t, ownTime(2)) > 0 })
	guest, err := os.ReadFile(w.Path("manifests", "tiers", "guest.yaml"))
	require.NoError(t, err)
	w.put(t, "guest", string(guest)+"asking: {per_minute: 1, running: 1, waiting: 0}\n")
	requests := func() int {
		return strings.Count(w.Bot(append(w.flags, "events", "--json", "--limit", "1000")...).Out, `"kind":"`+ask.EventRequest+`"`)
	}
	reloaded := func(n int) func() bool {
		return func() bool {
			return strings.Contains(w.metrics(t, a), fmt.Sprintf(`parlour_manifest_reloads_total{result="ok"} %d`, n))
		}
	}
	eventually(t, "it was not read again", reloaded(1))
	require.Equal(t, 1, requests(), "how much may be asked is not about a run")
	w.put(t, "guest", string(guest)+"asking: {per_minute: 1, running: 1, waiting: 0}\nlimits: {wall: 100s, stall: 45s, memory: 100MiB}\n")
	eventually(t, "it was not read again", reloaded(2))
	eventually(t, "the run was not begun anew", func() bool { return requests() == 2 && sleeping(t, ownTime(2)) == 1 })
}

// ownTime is a time in seconds for which nothing else on this machine sleeps.
func ownTime(of int) int { return of*10_000_000 + os.Getpid() }

// sleeping counts the programs that sleep so long.
func sleeping(t *testing.T, seconds int) (n int) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	require.NoError(t, err)
	for _, file := range all {
		if text, err := os.ReadFile(file); err == nil && string(text) == fmt.Sprintf("sleep\x00%d\x00", seconds) {
			n++
		}
	}
	return n
}

// children gives the processes that a process has made.
func children(t *testing.T, pid int) (all []int) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	require.NoError(t, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		var state string
		var parent int
		_, after, _ := strings.Cut(string(text), ") ")
		if n, _ := fmt.Sscan(after, &state, &parent); n == 2 && parent == pid && state != "Z" {
			child, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			require.NoError(t, err)
			all = append(all, child)
		}
	}
	return all
}

// Boxes that wait were made for a policy. They outlast a change of who may ask,
// and none is left, let alone used, after a change of what a run may do.
func TestT23NoBoxOfAnOldPolicyIsLeftAfterAReload(t *testing.T) {
	w := newReloadTown(t)
	w.Install(house.StandIn{Name: "standin", Binary: w.Program("bin/standin", "#!/bin/sh\necho \"may open $(ulimit -n) files\"\n")})
	files := func(n int, users ...string) {
		w.put(t, "guest", "tier: guest\n"+byDocs)
		w.put(t, "team", strings.Replace(team(users...), "documents: [handbook], runners: [docs]", "runners: [standin]", 1)+fmt.Sprintf("limits: {open_files: %d}\n", n))
	}
	files(99, memberID, strangeID)
	a := w.serve(t)
	eventually(t, "the escape battery does not end", func() bool { return strings.Contains(w.metrics(t, a), "parlour_escape_attempts{") })
	require.Contains(t, w.says(t, memberID, question), "may open 99 files")
	var waiting []int
	eventually(t, "no boxes wait", func() bool {
		before := waiting
		waiting = children(t, a.cmd.Process.Pid)
		return len(waiting) >= 2 && slices.Equal(before, waiting)
	})
	reloaded := func(n int) {
		t.Helper()
		eventually(t, "it was not read again", func() bool {
			return strings.Contains(w.metrics(t, a), fmt.Sprintf(`parlour_manifest_reloads_total{result="ok"} %d`, n))
		})
	}
	files(99, memberID)
	reloaded(1)
	require.Subset(t, children(t, a.cmd.Process.Pid), waiting, "no policy has changed")
	files(44, memberID)
	reloaded(2)
	for _, pid := range children(t, a.cmd.Process.Pid) {
		require.NotContains(t, waiting, pid, "a box of the old policy")
	}
	require.Contains(t, w.says(t, memberID, question), "may open 44 files")
}
