//go:build linux

package attacks_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"parlour/runner/policy"
	"parlour/runner/sandbox"
)

// newWarm gives an engine that keeps boxes.
func newWarm(t *testing.T, n int) boxRig {
	t.Helper()
	r := newBox(t)
	r.Reserve(n)
	t.Cleanup(func() { r.Reserve(0) })
	return r
}

// Scenario: the operator takes a right away while boxes of the old policy wait.
func TestT23ASpareBoxServesItsOwnKindOnly(t *testing.T) {
	t.Parallel()
	r := newWarm(t, 1)
	wide := r.policy(t, policy.WorkspaceWrite, policy.NetworkNone)
	narrow := r.policy(t, policy.ReadOnly, policy.NetworkNone)
	require.NoError(t, r.Warm(t.Context(), wide, r.command()))
	require.Equal(t, 1, r.Spare())

	got := report[map[string]string](t, r, narrow, "write", "/work/a")
	require.NotEqual(t, "ok", got["/work/a"], "a box of another policy was given")
	got = report[map[string]string](t, r, wide, "write", "/work/a")
	require.Equal(t, "ok", got["/work/a"])

	for name, other := range map[string]func(*sandbox.Command){
		"another file in the view":   func(c *sandbox.Command) { c.Mounts = []sandbox.Mount{{Host: r.self, Inside: "/docs/x"}} },
		"another file to begin with": func(c *sandbox.Command) { c.Files = map[string]string{policy.HomeDir + "/a": "x"} },
		"another program":            func(c *sandbox.Command) { c.Path = "/usr/bin/true" },
	} {
		r.Flush()
		require.NoError(t, r.Warm(t.Context(), wide, r.command()))
		cmd := r.command("args")
		other(&cmd)
		run, err := r.Engine.Start(t.Context(), wide, cmd)
		require.NoError(t, err, name)
		_, err = run.Wait()
		require.NoError(t, err, name)
		require.GreaterOrEqual(t, r.Spare(), 1, "%s: the box of the first kind is still there", name)
	}
}

// Scenario: the program is updated while a box waits that shows the old one.
func TestASpareBoxOfAnOldProgramIsNotUsed(t *testing.T) {
	t.Parallel()
	r := newWarm(t, 1)
	eff := r.policy(t, policy.ReadOnly, policy.NetworkNone)
	program := filepath.Join(openFolder(t), "program")
	write := func(says string) {
		fresh := program + ".new"
		require.NoError(t, os.WriteFile(fresh, []byte("#!/bin/sh\necho "+says+"\n"), 0o755))
		require.NoError(t, os.Chmod(fresh, 0o755))
		require.NoError(t, os.Rename(fresh, program))
	}
	cmd := sandbox.Command{Name: "program", Path: program, Env: []string{"PATH=/usr/bin:/bin"}}
	write("old")
	require.NoError(t, r.Warm(t.Context(), eff, cmd))
	write("new")
	require.Equal(t, "new\n", r.do(t, eff, cmd))
}

// What one run is given must not be seen by the next, and a box is used once.
func TestASpareBoxIsUsedOnce(t *testing.T) {
	t.Parallel()
	r := newWarm(t, 2)
	eff := r.policy(t, policy.WorkspaceWrite, policy.NetworkNone)
	first := r.command("env")
	first.Env = append(first.Env, "QUESTION=first")
	require.NoError(t, r.Warm(t.Context(), eff, first))
	require.Contains(t, r.do(t, eff, first), "QUESTION=first")
	require.NotContains(t, r.do(t, eff, r.command("env")), "QUESTION", "the environment of another question")
	report[map[string]string](t, r, eff, "write", "/work/left", "/tmp/left")
	for range 3 {
		require.NoError(t, r.Warm(t.Context(), eff, first))
		got := report[map[string][]string](t, r, eff, "list", "/work", "/tmp")
		require.Equal(t, map[string][]string{"/work": {}, "/tmp": {}}, got)
	}
}

func TestNoSpareBoxOutlivesTheBotOrItsUse(t *testing.T) {
	t.Parallel()
	r := newWarm(t, 3)
	eff := r.policy(t, policy.ReadOnly, policy.ModelOnly)
	require.NoError(t, r.Warm(t.Context(), eff, r.command()))
	require.Positive(t, waiting(t))
	run, _ := r.start(t, eff, r.command("stay", "on"))
	run.Kill()
	_, err := run.Wait()
	require.NoError(t, err)
	r.Reserve(0)
	require.Zero(t, r.Spare())
	require.NoError(t, r.Warm(t.Context(), eff, r.command()), "nothing is kept any more")
	require.Zero(t, r.Spare())
}

// waiting counts the children of this process that share its memory.
func waiting(t *testing.T) int {
	t.Helper()
	self, err := os.Readlink("/proc/self/exe")
	require.NoError(t, err)
	n := 0
	tasks, err := os.ReadDir("/proc/self/task")
	require.NoError(t, err)
	for _, task := range tasks {
		children, _ := os.ReadFile("/proc/self/task/" + task.Name() + "/children")
		for _, pid := range strings.Fields(string(children)) {
			if exe, err := os.Readlink("/proc/" + pid + "/exe"); err == nil && exe == self {
				n++
			}
		}
	}
	return n
}

// Scenario: a bot is killed with folders and groups of its runs in place, and
// another one lives on beside it.
func TestTheDeadAreSweptAndTheLivingNot(t *testing.T) {
	t.Parallel()
	r := newBox(t)
	eff := r.policy(t, policy.ReadOnly, policy.NetworkNone)
	living, _ := r.start(t, eff, r.command("stay", "on"))
	locks := func(temp string) []string {
		found, err := filepath.Glob(filepath.Join(temp, "parlour-lease-*"))
		require.NoError(t, err)
		return found
	}
	mine := locks(r.temp)

	dead := filepath.Join(r.temp, "parlour-lease-deadbot")
	require.NoError(t, os.WriteFile(dead, nil, 0o600))
	left := filepath.Join(r.temp, "parlour-run-deadbot-1")
	require.NoError(t, os.MkdirAll(filepath.Join(left, "home/agent"), 0o700))
	other := filepath.Join(r.temp, "parlour-run-unknown-1")
	require.NoError(t, os.Mkdir(other, 0o700))
	require.NoError(t, os.Symlink("/etc/passwd", filepath.Join(r.temp, "parlour-lease-link")))
	held, err := os.Create(filepath.Join(r.temp, "parlour-lease-alive"))
	require.NoError(t, err)
	defer held.Close()
	require.NoError(t, unix.Flock(int(held.Fd()), unix.LOCK_EX))
	alive := filepath.Join(r.temp, "parlour-run-alive-1")
	require.NoError(t, os.Mkdir(alive, 0o700))
	group := leftGroup(t, "parlour-run-deadbot-7")

	require.NoError(t, r.Sweep())
	require.NoFileExists(t, dead)
	require.NoDirExists(t, left)
	require.DirExists(t, other, "nobody says whose it is")
	require.DirExists(t, alive)
	require.FileExists(t, "/etc/passwd")
	for _, lock := range mine {
		require.FileExists(t, lock)
	}
	if group != "" {
		require.NoDirExists(t, group)
	}
	require.NoError(t, syscall.Kill(living.PID(), 0), "the run of the living goes on")
}

// leftGroup makes a control group with a process in it, as a killed bot would
// leave it. It is empty where this user may make none.
func leftGroup(t *testing.T, name string) string {
	t.Helper()
	group := filepath.Join("/sys/fs/cgroup/pids", name)
	if os.Getuid() != 0 || os.Mkdir(group, 0o755) != nil {
		return ""
	}
	t.Cleanup(func() { _ = os.Remove(group) })
	sleeper := exec.Command("/usr/bin/sleep", "600")
	require.NoError(t, sleeper.Start())
	t.Cleanup(func() { _, _ = sleeper.Process.Kill(), sleeper.Wait() })
	require.NoError(t, os.WriteFile(filepath.Join(group, "cgroup.procs"), []byte(strconv.Itoa(sleeper.Process.Pid)), 0o600))
	return group
}

// Scenario: each process keeps below the limit, all together do not.
func TestMemoryHoldsForTheWholeRun(t *testing.T) {
	t.Parallel()
	r := newBox(t)
	if r.caps.Memory != policy.Enforced {
		require.NotZero(t, os.Getuid(), "root has control groups here, or this test must be told so")
		t.Skip("memory is counted for each process only: no control groups of the bot's own")
	}
	l := boxLimits()
	l.Memory = 256 << 20
	eff := r.narrow(t, policy.Wish{Mode: policy.ReadOnly, Limits: l})
	out := &runOutput{}
	cmd := sandbox.Command{
		Name: "sh", Path: "/bin/sh", Env: []string{"PATH=/usr/bin:/bin"}, Stdout: out,
		// Four shells of 100 MiB each; the kernel ends what is too much.
		Args: []string{"-c", `for i in 1 2 3 4; do (x=$(head -c 50000000 /dev/zero | tr '\0' x); y=$x; echo grew; sleep 2) & done; wait; echo end`},
	}
	run, err := r.Start(t.Context(), eff, cmd)
	require.NoError(t, err)
	_, err = run.Wait()
	require.NoError(t, err)
	require.Less(t, strings.Count(out.String(), "grew"), 4, "all of them grew: %s", out)
}
