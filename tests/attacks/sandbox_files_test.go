//go:build linux

package attacks_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"parlour/runner/policy"
	"parlour/runner/sandbox"
)

// Scenario: the agent writes wherever it can. Only what the policy calls
// writable is, in both modes.
func TestOnlyWritableFoldersCanBeWritten(t *testing.T) {
	t.Parallel()
	r := newBox(t)
	refused := []string{"/x", "/agent/x", "/bin/x", "/dev/x", "/etc/x", "/etc/passwd", "/home/x", "/usr/x", "/usr/bin/x", "/usr/local/x",
		"/usr/src/x", "/proc/x", "/proc/self/comm", "/proc/self/oom_score_adj", "/proc/sys/kernel/core_pattern", "/proc/sys/kernel/hostname",
		"/proc/sysrq-trigger", "/proc/1/task/x", "/dev/../x"}
	for _, mode := range []policy.Mode{policy.ReadOnly, policy.WorkspaceWrite} {
		eff := r.policy(t, mode, policy.NetworkNone)
		ok := []string{"/dev/null"}
		for _, w := range eff.Writable() {
			ok = append(ok, w+"/x")
		}
		no := refused
		if mode == policy.ReadOnly {
			no = append(no[:len(no):len(no)], "/work/x")
		}
		got := report[map[string]string](t, r, eff, append(append([]string{"write"}, ok...), no...)...)
		for _, p := range ok {
			require.Equal(t, "ok", got[p], "%s %s", mode, p)
		}
		for _, p := range no {
			require.NotEqual(t, "ok", got[p], "%s %s", mode, p)
		}
	}
}

// Scenario: metadata needs no open file, and Landlock does not cover it.
func TestNothingOfTheViewCanBeChanged(t *testing.T) {
	t.Parallel()
	r := newBox(t)
	folder := t.TempDir()
	program, data := filepath.Join(folder, "program"), filepath.Join(folder, "data") // they belong to the bot
	copyFile(t, r.self, program)
	require.NoError(t, os.Mkdir(data, 0o755))
	before, err := os.Stat(program)
	require.NoError(t, err)
	cmd := r.command("change", "/", "/agent/program", "/agent", "/docs", "/etc/passwd", "/usr/bin/env", "/usr", "/dev/null", "/dev",
		"/work", "/usr/local", "/proc/sys/kernel/hostname", "/proc/self/comm", "/home")
	cmd.Path, cmd.Mounts = program, []sandbox.Mount{{Host: data, Inside: policy.DocsDir}}
	null, err := os.Stat("/dev/null")
	require.NoError(t, err)
	got := []string{}
	decode(t, r.do(t, r.guest(t), cmd), &got)
	if r.caps.Rung != policy.RungFull { // there some calls answer success and do nothing
		got = slices.DeleteFunc(got, func(s string) bool { return strings.HasPrefix(s, "chtimes ") })
	}
	require.Empty(t, got)
	after, err := os.Stat(program)
	require.NoError(t, err)
	require.Equal(t, before.ModTime(), after.ModTime())
	require.Equal(t, before.Mode(), after.Mode())
	untouched, err := os.Stat("/dev/null")
	require.NoError(t, err)
	require.Equal(t, null.ModTime(), untouched.ModTime())
}

// Scenario: the agent fills the disk, through one folder or through all.
func TestScratchIsBounded(t *testing.T) {
	t.Parallel()
	r := newBox(t)
	eff := r.policy(t, policy.WorkspaceWrite, policy.NetworkNone)
	folders := eff.Writable()
	sum := report[int](t, r, eff, append([]string{"fill"}, folders...)...)
	require.LessOrEqual(t, int64(sum), eff.Limits().Disk)
	require.Greater(t, int64(sum), eff.Limits().Disk/2)
	if r.caps.Rung != policy.RungFull {
		return // bubblewrap counts no files
	}
	made := report[int](t, r, eff, append([]string{"crowd"}, folders...)...)
	require.LessOrEqual(t, made, eff.Limits().Files)
	require.Greater(t, made, eff.Limits().Files/2)
}

// Scenario: two guests at the same time; the first leaves something for the
// second in every place that it can write.
func TestRunsShareNothing(t *testing.T) {
	t.Parallel()
	r := newBox(t)
	eff := r.policy(t, policy.WorkspaceWrite, policy.NetworkNone)
	first, out := r.start(t, eff, r.command("stay", "first"))
	out.await(t, "staying")
	require.Positive(t, first.PID())
	for range 2 {
		got := report[map[string][]string](t, r, eff, "list", "/work", "/tmp", "/home/agent")
		require.Equal(t, map[string][]string{"/work": {}, "/tmp": {}, "/home/agent": {}}, got)
		report[map[string]string](t, r, eff, "write", "/work/a", "/tmp/a", "/home/agent/a")
	}
}

// Scenario: a secret file is open in the bot without the close-on-exec mark, as
// when a shell opened it before.
func TestNoDescriptorLeaks(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(secret, []byte("x"), 0o600))
	fd, err := unix.Open(secret, unix.O_RDONLY, 0)
	require.NoError(t, err)
	defer unix.Close(fd)
	high, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD, 211)
	require.NoError(t, err)
	defer unix.Close(high)
	r := newBox(t)
	require.Equal(t, []string{"0", "1", "2"}, report[[]string](t, r, r.guest(t), "descriptors"))
}

// Scenario: the view is a mount namespace, and the host must not notice it.
func TestNothingStaysMounted(t *testing.T) {
	t.Parallel()
	r := newBox(t)
	before, err := os.ReadFile("/proc/self/mountinfo")
	require.NoError(t, err)
	run, out := r.start(t, r.guest(t), r.command("stay", "mounts"))
	out.await(t, "staying")
	during, err := os.ReadFile("/proc/self/mountinfo")
	require.NoError(t, err)
	require.Equal(t, string(before), string(during))
	run.Kill()
	_, err = run.Wait()
	require.NoError(t, err)
	after, err := os.ReadFile("/proc/self/mountinfo")
	require.NoError(t, err)
	require.Equal(t, string(before), string(after))
	r.Reserve(0)
	left, err := os.ReadDir(r.temp)
	require.NoError(t, err)
	require.Empty(t, left)
}

// Scenario: the operator's paths, host name and kernel command line are read
// from /proc, by the agent and by a process that it starts.
func TestProcNamesNothingOfTheHost(t *testing.T) {
	t.Parallel()
	r := newBox(t)
	const sentinel = "sentinel-path-of-the-operator"
	folder := filepath.Join(t.TempDir(), sentinel)
	require.NoError(t, os.Mkdir(folder, 0o700))
	program := filepath.Join(folder, "program")
	copyFile(t, r.self, program)
	words := []string{sentinel, r.temp, plantedValue}
	kernel, err := os.ReadFile("/proc/cmdline")
	require.NoError(t, err)
	if line := strings.TrimSpace(string(kernel)); line != "" {
		words = append(words, line)
	}
	name, err := os.Hostname()
	require.NoError(t, err)
	if len(name) > 5 { // a short one is found by chance
		words = append(words, name)
	}
	for _, who := range [][]string{{"proc"}, {"grandchild", "proc"}} {
		cmd := r.command(append(who, words...)...)
		cmd.Path = program
		got := []string{}
		decode(t, r.do(t, r.guest(t), cmd), &got)
		for _, line := range got {
			require.Contains(t, line, "/cmdline shows", "only the test's own arguments may show the words")
			require.NotContains(t, line, "/proc/cmdline")
		}
	}
	hidden := []string{"read", "/proc/cmdline"}
	for _, owner := range []string{"self", "1", "thread-self", "1/task/1", "2"} {
		for _, f := range []string{"mountinfo", "mounts", "mountstats"} {
			hidden = append(hidden, "/proc/"+owner+"/"+f)
		}
	}
	require.Empty(t, report[map[string]string](t, r, r.guest(t), hidden...))
	require.Empty(t, report[map[string]string](t, r, r.guest(t), append([]string{"grandchild"}, hidden...)...))
	require.Equal(t, "sandbox", report[boxedIdentity](t, r, r.guest(t), "identity").Hostname)
	for line := range strings.Lines(report[map[string]string](t, r, r.guest(t), "read", "/proc/self/cgroup")["/proc/self/cgroup"]) {
		require.True(t, strings.HasSuffix(line, ":/\n"), "the run's group is all that it sees of the host's: %s", line)
	}
}
