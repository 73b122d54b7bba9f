//go:build linux

package attacks_test

import (
	"context"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"parlour/runner/policy"
	"parlour/runner/sandbox"
)

// endings are the ways in which a run ends, but for the death of the bot.
func endings() map[string]func(run *sandbox.Run, cancel func()) {
	return map[string]func(*sandbox.Run, func()){
		"end":     func(*sandbox.Run, func()) {},
		"kill":    func(run *sandbox.Run, _ func()) { run.Kill() },
		"cancel":  func(_ *sandbox.Run, cancel func()) { cancel() },
		"timeout": func(*sandbox.Run, func()) {},
		// Somebody kills what holds the run together: bubblewrap, or the keeper.
		"loss": func(run *sandbox.Run, _ func()) { _ = unix.Kill(run.PID(), unix.SIGKILL) },
	}
}

// Scenario: 40 processes have left the session and ignore what asks them to end.
// However the run ends, none is left when Wait returns.
func TestNoProcessSurvivesOnAnyRung(t *testing.T) {
	onEachRung(t, func(t *testing.T, r boxRig) {
		for name, end := range endings() {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				ctx, cancel := context.WithCancel(t.Context())
				if name == "timeout" {
					ctx, cancel = context.WithTimeout(t.Context(), 700*time.Millisecond)
				}
				defer cancel()
				m, out := mark(t), &runOutput{}
				endMarked(t, m)
				how := "stay"
				if name == "end" {
					how = "end"
				}
				cmd := r.command("bomb", m, "40", how)
				cmd.Stdout, cmd.Stderr = out, out
				run, err := r.Start(ctx, r.narrow(t, policy.Wish{Mode: policy.ReadOnly, Limits: roomy()}), cmd)
				require.NoError(t, err)
				if name != "timeout" {
					out.await(t, "lit")
				}
				end(run, cancel)
				_, err = run.Wait()
				require.NoError(t, err)
				if name == "loss" { // the bot is told of the loss as the last of them die
					require.Eventually(t, func() bool { return len(marked(t, m)) == 0 }, boxPatience, tick)
				}
				require.Empty(t, marked(t, m), "Wait returns when nobody is left")
			})
		}
	})
}

// Scenario: the bot is killed in the middle of such a run, on each rung.
func TestDeathOfTheBotEndsTheRunOnEachRung(t *testing.T) {
	onEachRung(t, func(t *testing.T, r boxRig) {
		m, out := mark(t), &runOutput{}
		endMarked(t, m)
		bot := exec.Command(r.self, m, "40", r.caps.Rung.String())
		bot.Args[0], bot.Stdout, bot.Stderr = botName, out, out
		bot.Env = []string{"TMPDIR=" + openFolder(t)}
		require.NoError(t, bot.Start())
		t.Cleanup(func() { _ = bot.Process.Kill() })
		out.await(t, "lit")
		require.Eventually(t, func() bool { return len(marked(t, m)) == 41 }, boxPatience, tick, "%s", out)
		require.NoError(t, bot.Process.Kill())
		_ = bot.Wait()
		require.Eventually(t, func() bool { return len(marked(t, m)) == 0 }, boxPatience, tick, "nobody survives the bot")
	})
}

// Scenario: a run leaves its session and group in every way that there is, so
// that a signal to the group would miss it.
func TestNobodyLeavesTheGroupOnTheLandlockRung(t *testing.T) {
	t.Parallel()
	r := newRung(t, policy.RungLandlock)
	m := mark(t)
	run, out := r.start(t, r.narrow(t, policy.Wish{Mode: policy.ReadOnly, Limits: roomy()}), r.command("bomb", m, "5", "stay"))
	out.await(t, "lit")
	require.Eventually(t, func() bool { return len(marked(t, m)) == 6 }, boxPatience, tick)
	groups := map[int]bool{}
	for _, text := range marked(t, m) {
		group, err := unix.Getpgid(atoi(t, text))
		require.NoError(t, err)
		groups[group] = true
	}
	require.Len(t, groups, 1, "setsid answers success and does nothing")
	require.False(t, groups[run.PID()], "the keeper is not among them")
	require.False(t, groups[os.Getpid()])
}
