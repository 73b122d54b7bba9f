//go:build linux

package attacks_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"parlour/runner/policy"
	"parlour/runner/sandbox"
)

// botName is the name under which this binary is a bot with one run.
const botName = "bot-with-a-run"

// botMain starts a run that never ends, says so and waits to be killed. Its
// arguments are the mark of the run's processes, their number and the rung.
func botMain(args []string) int {
	ctx := context.Background()
	self, err := os.Executable()
	if err != nil {
		return 1
	}
	rung, err := policy.ParseRung(args[2])
	if err != nil {
		return 1
	}
	e, err := sandbox.New(sandbox.Config{Self: self, Temp: os.TempDir(), Without: without(rung)})
	if err != nil {
		return 1
	}
	wish := policy.Wish{Mode: policy.ReadOnly, Network: policy.ModelOnly, Limits: roomy()}
	if rung == policy.RungLandlock {
		wish.Network, wish.Require = policy.NetworkNone, []policy.Clause{policy.Filesystem}
	}
	eff, err := policy.Narrow(wish, e.Probe(ctx))
	if err != nil {
		return 1
	}
	run, err := e.Start(ctx, eff, sandbox.Command{Name: boxedName, Path: self, Args: []string{"bomb", args[0], args[1], "stay"},
		Env: []string{}, Stdout: os.Stdout, Stderr: os.Stdout})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	_, _ = run.Wait()
	return 0
}

// marked lists the live processes of the host that have the mark as an argument.
func marked(t *testing.T, mark string) []string {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	require.NoError(t, err)
	found := []string{}
	for _, e := range entries {
		text, err := os.ReadFile("/proc/" + e.Name() + "/cmdline")
		if err == nil && strings.Contains(string(text), mark+"\x00") && strings.HasPrefix(string(text), boxedName+"\x00") {
			found = append(found, e.Name())
		}
	}
	return found
}

// endMarked ends with the test whoever of the mark is left: nothing else would,
// where a test is red.
func endMarked(t *testing.T, mark string) {
	t.Helper()
	t.Cleanup(func() {
		for _, pid := range marked(t, mark) {
			killPID(t, pid)
		}
	})
}

func atoi(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(text)
	require.NoError(t, err)
	return n
}

// mark gives an argument that only this test's processes have.
func mark(t *testing.T) string {
	t.Helper()
	return fmt.Sprintf("mark-%d-%s", os.Getpid(), strings.ReplaceAll(t.Name(), "/", "-"))
}

// Scenario: the bot is killed in the middle of a run whose processes have left
// the session and ignore what asks them to end.
func TestDeathOfTheBotEndsTheRun(t *testing.T) {
	t.Parallel()
	r := newBox(t)
	m, out := mark(t), &runOutput{}
	endMarked(t, m)
	bot := exec.Command(r.self, m, "5", policy.RungFull.String())
	bot.Args[0], bot.Stdout, bot.Stderr = botName, out, out
	bot.Env = []string{"TMPDIR=" + t.TempDir()}
	require.NoError(t, bot.Start())
	out.await(t, "lit")
	require.Eventually(t, func() bool { return len(marked(t, m)) == 6 }, boxPatience, tick, "the run has six processes")
	require.NoError(t, bot.Process.Kill())
	_ = bot.Wait()
	require.Eventually(t, func() bool { return len(marked(t, m)) == 0 }, boxPatience, tick, "nobody survives the bot")
}

// The same death between the fork and the first step: the child notices by its
// socket, because the signal that ties it to the parent comes too late.
func TestChildWithoutAParentDoesNothing(t *testing.T) {
	t.Parallel()
	r := newBoxRig(t)
	steps, err := os.CreateTemp(t.TempDir(), "steps")
	require.NoError(t, err)
	// One step: Watch, in the form of runner/sandbox/entry.
	_, err = steps.WriteString("parlour-steps-1\n\x01\x00\x00\x00\x00\x00")
	require.NoError(t, err)
	ours, theirs := socketPair(t)
	require.NoError(t, ours.Close())
	child := exec.Command(r.self)
	child.Args[0], child.ExtraFiles = "parlour-sandbox-child", []*os.File{steps, theirs}
	out, err := child.CombinedOutput()
	require.ErrorContains(t, err, "exit status 125")
	require.Contains(t, string(out), "the parent is gone")
}
