//go:build linux

package attacks_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"parlour/runner/policy"
	"parlour/runner/sandbox"
)

// Scenario: a mount of the box is writable, honours set-user-id programs or opens
// devices, and today only a second wall stands in front of it. The mounts are
// read from outside: inside, nobody may.
func TestEveryMountOfTheBoxIsLockedDown(t *testing.T) {
	t.Parallel()
	r := newBox(t)
	folder := t.TempDir()
	require.NoError(t, os.Chmod(folder, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "a"), []byte("x"), 0o644))
	cmd := r.command("stay", mark(t))
	cmd.Mounts = []sandbox.Mount{{Host: folder, Inside: policy.DocsDir}, {Host: folder, Inside: "/usr/local/share/x"}}
	out := &runOutput{}
	cmd.Stdout = out
	eff := r.policy(t, policy.ReadOnly, policy.NetworkNone)
	run, err := r.Start(t.Context(), eff, cmd)
	require.NoError(t, err)
	t.Cleanup(func() { run.Kill(); _, _ = run.Wait() })
	out.await(t, "staying")
	inside := innermost(t, mark(t))
	text, err := os.ReadFile("/proc/" + inside + "/mountinfo")
	require.NoError(t, err)
	roots, on := 0, map[string]string{}
	for line := range strings.Lines(string(text)) {
		at := strings.Fields(line)[4]
		on[at] = line // what lies below another mount is out of reach
		if at == "/" {
			roots++
		}
	}
	require.Equal(t, 1, roots, "the host's root is gone: %s", text)
	for at, line := range on {
		left, _, _ := strings.Cut(line, " - ")
		options := strings.Split(strings.Fields(left)[5], ",")
		needs := []string{"ro", "nosuid", "nodev"}
		switch {
		case at == "/":
			needs = []string{"ro", "nosuid"} // the devices lie in it
		case slices.Contains(eff.Writable(), at):
			needs = []string{"nosuid", "nodev"}
		case at == "/proc":
			needs = append(needs, "noexec")
		case strings.HasPrefix(at, "/dev/"):
			needs = []string{"ro", "nosuid", "noexec"} // the host's, where none can be made
		case strings.HasPrefix(at, "/proc/") && at != "/proc/1/task":
			needs = []string{"nosuid"} // /dev/null, which shows nothing and keeps nothing
		}
		for _, need := range needs {
			require.Contains(t, options, need, line)
		}
		require.NotRegexp(t, "(shared|master):", left, "what is mounted there shows elsewhere")
	}
}

// Scenario: what only a namespace keeps apart, such as the sockets of the host, is
// in reach because the box shares one of its namespaces.
func TestABoxSharesNoNamespace(t *testing.T) {
	t.Parallel()
	r := newBox(t)
	_, out := r.start(t, r.policy(t, policy.ReadOnly, policy.NetworkNone), r.command("stay", mark(t)))
	out.await(t, "staying")
	kinds := []string{"mnt", "pid", "net", "ipc", "uts", "cgroup"}
	if os.Getuid() != 0 {
		kinds = append(kinds, "user")
	}
	for _, kind := range kinds {
		ours, err := os.Readlink("/proc/self/ns/" + kind)
		require.NoError(t, err)
		theirs, err := os.Readlink("/proc/" + innermost(t, mark(t)) + "/ns/" + kind)
		require.NoError(t, err)
		require.NotEqual(t, ours, theirs)
	}
}

// innermost gives the process of a run that plays the agent.
func innermost(t *testing.T, mark string) string {
	t.Helper()
	found := marked(t, mark)
	require.Len(t, found, 1)
	return found[0]
}
