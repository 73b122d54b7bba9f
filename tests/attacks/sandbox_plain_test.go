//go:build linux

package attacks_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"parlour/runner/policy"
	"parlour/runner/sandbox"
)

func plainPolicy(t *testing.T) policy.Effective {
	t.Helper()
	eff, err := policy.BuiltInDocs(policy.Wish{Documents: []string{policy.Handbook}, Limits: boxLimits()}, policy.Capabilities{})
	require.NoError(t, err)
	return eff
}

// Scenario: the host has no sandbox, and something else than the built-in
// handbook would run there.
func TestPlainChildIsTheBotItselfOnly(t *testing.T) {
	t.Parallel()
	r := newBoxRig(t)
	for name, spoil := range map[string]func(*sandbox.Command){
		"another program": func(c *sandbox.Command) { c.Path = "/bin/sh" },
		"a mount":         func(c *sandbox.Command) { c.Mounts = []sandbox.Mount{{Host: "/etc", Inside: "/docs"}} },
		"no environment":  func(c *sandbox.Command) { c.Env = nil },
	} {
		cmd := r.command("env")
		spoil(&cmd)
		_, err := r.Start(t.Context(), plainPolicy(t), cmd)
		require.Error(t, err, name)
	}
}

func TestPlainChildSeesOnlyItsFolder(t *testing.T) {
	t.Parallel()
	r := newBoxRig(t)
	cmd := r.command("env")
	cmd.Env = []string{"HOME=/root", "TMPDIR=/tmp", "CACHE=/home/agent/.cache", "LANG=C"}
	var env []string
	decode(t, r.do(t, plainPolicy(t), cmd), &env)
	require.Len(t, env, 4)
	for _, v := range env {
		require.True(t, v == "LANG=C" || strings.Contains(v, "="+r.temp), v)
	}
	where := report[boxedIdentity](t, r, plainPolicy(t), "identity")
	require.True(t, strings.HasPrefix(where.Folder, r.temp), where.Folder)
	require.Equal(t, 1, where.NoNewPrivs)
	require.Equal(t, int(unix.SIGKILL), where.Tie, "it ends with the bot")
	limits := report[map[string]uint64](t, r, plainPolicy(t), "limits")
	require.EqualValues(t, boxLimits().OpenFiles, limits["open"])
	require.EqualValues(t, boxLimits().Memory, limits["data"])
	require.Zero(t, limits["core"])
	require.Equal(t, []string{"0", "1", "2"}, report[[]string](t, r, plainPolicy(t), "descriptors"))
	require.Equal(t, "", report[string](t, r, plainPolicy(t), "stdin"))
	left, err := os.ReadDir(r.temp)
	require.NoError(t, err)
	require.Empty(t, left, "the folders of the runs are gone")
}

// Scenario: the program ends and leaves a process of its group, or one that has
// left the group and holds the output open.
func TestPlainChildLeavesNothing(t *testing.T) {
	t.Parallel()
	r := newBoxRig(t)
	m := mark(t)
	endMarked(t, m)
	run, out := r.start(t, plainPolicy(t), r.command("leave", m))
	exit, err := run.Wait()
	require.NoError(t, err)
	require.False(t, exit.Held)
	require.Contains(t, out.String(), "left")
	require.Eventually(t, func() bool { return len(marked(t, m)) == 0 }, boxPatience, tick)

	run, out = r.start(t, plainPolicy(t), r.command("leave", m+"-away", "away"))
	exit, err = run.Wait()
	require.NoError(t, err)
	require.True(t, exit.Held, "Wait does not hang on the open output")
	require.Contains(t, out.String(), "left")
	for _, pid := range marked(t, m+"-away") {
		killPID(t, pid)
	}
}

func TestPlainChildEndsWhenKilled(t *testing.T) {
	t.Parallel()
	r := newBoxRig(t)
	m := mark(t)
	cmd := r.command("stay", m)
	cmd.Files = map[string]string{"/home/agent/a/b": "c"}
	run, out := r.start(t, plainPolicy(t), cmd)
	out.await(t, "staying")
	content, err := filepath.Glob(filepath.Join(r.temp, "*", "home/agent/a/b"))
	require.NoError(t, err)
	require.Len(t, content, 1)
	run.Kill()
	_, err = run.Wait()
	require.NoError(t, err)
	require.Empty(t, marked(t, m))
	left, err := os.ReadDir(r.temp)
	require.NoError(t, err)
	require.Empty(t, left)
}
