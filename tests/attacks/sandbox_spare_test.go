//go:build linux

package attacks_test

import (
	"context"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

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
	require.NotEmpty(t, waiting(t))
	run, _ := r.start(t, eff, r.command("stay", "on"))
	run.Kill()
	_, err := run.Wait()
	require.NoError(t, err)
	r.Reserve(0)
	require.Zero(t, r.Spare())
	require.NoError(t, r.Warm(t.Context(), eff, r.command()), "nothing is kept any more")
	require.Zero(t, r.Spare())
}

// Scenario: the bot holds files open that a program could inherit, and ignores a
// signal. A box that waits shares its memory: it must hold none of the files, and
// no handler of the bot may run in it.
func TestAWaitingBoxHoldsNothingOfTheBot(t *testing.T) {
	r := newWarm(t, 1)
	eff := r.policy(t, policy.ReadOnly, policy.ModelOnly)
	secret := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(secret, []byte("x"), 0o600))
	for _, least := range []int{3, 211} { // among what is kept, and behind it
		low, err := unix.Open(secret, unix.O_RDONLY, 0)
		require.NoError(t, err)
		fd, err := unix.FcntlInt(uintptr(low), unix.F_DUPFD, least)
		require.NoError(t, err)
		t.Cleanup(func() { _, _ = unix.Close(low), unix.Close(fd) })
	}
	signal.Ignore(unix.SIGUSR2)
	t.Cleanup(func() { signal.Reset(unix.SIGUSR2) })
	before := waiting(t)
	require.NoError(t, r.Warm(t.Context(), eff, r.command("stay", "on")))
	box := slices.DeleteFunc(waiting(t), func(pid string) bool { return slices.Contains(before, pid) })
	require.Len(t, box, 1)
	held, err := os.ReadDir("/proc/" + box[0] + "/fd")
	require.NoError(t, err)
	kinds := map[string]int{}
	for _, fd := range held {
		target, err := os.Readlink("/proc/" + box[0] + "/fd/" + fd.Name())
		require.NoError(t, err)
		kind, _, _ := strings.Cut(target, ":")
		kinds[kind]++
	}
	delete(kinds, "anon_inode") // what tells of the bot's death, and the ruleset
	require.Equal(t, map[string]int{"/dev/null": 1, "pipe": 2, "socket": 1}, kinds, "its input and output, and the way to the bot")
	status, err := os.ReadFile("/proc/" + box[0] + "/status")
	require.NoError(t, err)
	for _, kind := range []string{"Blk", "Ign", "Cgt"} {
		require.Regexp(t, `(?m)^Sig`+kind+`:\s+0+$`, string(status))
	}
}

// waiting gives the children of this process that share its memory.
func waiting(t *testing.T) (boxes []string) {
	t.Helper()
	self, err := os.Readlink("/proc/self/exe")
	require.NoError(t, err)
	tasks, err := os.ReadDir("/proc/self/task")
	require.NoError(t, err)
	for _, task := range tasks {
		children, _ := os.ReadFile("/proc/self/task/" + task.Name() + "/children")
		for _, pid := range strings.Fields(string(children)) {
			if exe, err := os.Readlink("/proc/" + pid + "/exe"); err == nil && exe == self {
				boxes = append(boxes, pid)
			}
		}
	}
	return boxes
}

// Scenario: a bot is killed with folders and groups of its runs in place, and
// another one lives on beside it.
func TestTheDeadAreSweptAndTheLivingNot(t *testing.T) {
	t.Parallel()
	r := newBox(t)
	eff := r.policy(t, policy.ReadOnly, policy.NetworkNone)
	living, _ := r.start(t, eff, r.command("stay", "on"))
	id := func(word string) string { return word + strings.Repeat("a", 26-len(word)) }
	locks := func(temp string) []string {
		found, err := filepath.Glob(filepath.Join(temp, "parlour-lease-*"))
		require.NoError(t, err)
		return found
	}
	mine := locks(r.temp)

	dead := filepath.Join(r.temp, "parlour-lease-"+id("deadbot"))
	require.NoError(t, os.WriteFile(dead, []byte("/sys/fs/cgroup/pids\n/sys/fs/cgroup/gone\n"), 0o600))
	left := filepath.Join(r.temp, "parlour-run-"+id("deadbot")+"-1")
	require.NoError(t, os.MkdirAll(filepath.Join(left, "home/agent"), 0o700))
	other := filepath.Join(r.temp, "parlour-run-unknown-1")
	require.NoError(t, os.Mkdir(other, 0o700))
	require.NoError(t, os.Symlink("/etc/passwd", filepath.Join(r.temp, "parlour-lease-"+id("link"))))
	kept := []string{other, filepath.Join(r.temp, "parlour-run-"+id("link")+"-1")}
	require.NoError(t, os.Mkdir(kept[1], 0o700))
	if os.Getuid() == 0 { // another user's lock, which a sticky folder lets everybody make
		foreign := filepath.Join(r.temp, "parlour-lease-"+id("foreign"))
		require.NoError(t, os.WriteFile(foreign, nil, 0o600))
		require.NoError(t, os.Chown(foreign, overflowID, overflowID))
		kept = append(kept, filepath.Join(r.temp, "parlour-run-"+id("foreign")+"-1"))
		require.NoError(t, os.Mkdir(kept[2], 0o700))
	}
	// A name that would match everything, as others can make one here.
	pattern := filepath.Join(r.temp, "parlour-lease-*")
	require.NoError(t, os.WriteFile(pattern, []byte("/sys/fs/cgroup/pids\n"), 0o600))
	held, err := os.Create(filepath.Join(r.temp, "parlour-lease-"+id("alive")))
	require.NoError(t, err)
	defer held.Close()
	require.NoError(t, unix.Flock(int(held.Fd()), unix.LOCK_EX))
	alive := filepath.Join(r.temp, "parlour-run-"+id("alive")+"-1")
	require.NoError(t, os.Mkdir(alive, 0o700))
	group := leftGroup(t, "parlour-run-"+id("deadbot")+"-7")

	require.NoError(t, r.Sweep())
	require.NoFileExists(t, dead)
	require.NoDirExists(t, left)
	for _, folder := range kept {
		require.DirExists(t, folder, "no lock of this bot's user says that it is a dead bot's")
	}
	require.DirExists(t, alive)
	require.FileExists(t, pattern, "it is no bot's lock")
	require.FileExists(t, "/etc/passwd")
	for _, lock := range mine {
		require.FileExists(t, lock)
	}
	if group != "" {
		require.NoDirExists(t, group)
	}
	require.NoError(t, syscall.Kill(living.PID(), 0), "the run of the living goes on")
}

// Scenario: bots start and sweep beside each other all the time, in one folder.
func TestASweepNeverTakesALockThatIsBeingMade(t *testing.T) {
	t.Parallel()
	r := newBox(t)
	r.needsGroups(t)
	eff := r.policy(t, policy.ReadOnly, policy.NetworkNone)
	ctx, stop := context.WithCancel(t.Context())
	var sweeping sync.WaitGroup
	defer sweeping.Wait()
	defer stop()
	sweeper, err := sandbox.New(sandbox.Config{Self: r.self, Temp: r.temp})
	require.NoError(t, err)
	sweeping.Go(func() {
		for ctx.Err() == nil {
			_ = sweeper.Sweep() // what it cannot remove is not its own
		}
	})
	for range 50 {
		run, err := r.Engine.Start(t.Context(), eff, r.command("args"))
		require.NoError(t, err)
		_, err = run.Wait()
		require.NoError(t, err)
	}
}

// needsGroups skips only where the host itself lets this user make no control group
// in which memory is counted.
func (r boxRig) needsGroups(t *testing.T) {
	t.Helper()
	if r.caps.Memory == policy.Enforced {
		return
	}
	own, err := os.ReadFile("/proc/self/cgroup")
	require.NoError(t, err)
	for _, line := range strings.Split(string(own), "\n") {
		if _, at, found := strings.Cut(line, ":memory:"); found {
			group := filepath.Join("/sys/fs/cgroup/memory", at, "parlour-test-"+itoa(os.Getpid()))
			if os.Mkdir(group, 0o755) == nil {
				require.NoError(t, os.Remove(group))
				require.Fail(t, "the host permits control groups, and the engine has none")
			}
		}
	}
	t.Skip("this host lets this user make no control group")
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

// Scenario: a run fills the memory that it shares with the bot, so that the kernel
// must end something.
func TestTheRunIsWhatGoesWhereMemoryIsShort(t *testing.T) {
	t.Parallel()
	own, err := os.ReadFile("/proc/self/oom_score_adj")
	require.NoError(t, err)
	onEachRung(t, func(t *testing.T, r boxRig) {
		run, out := r.start(t, r.guest(t), r.command("stay", "on"))
		out.await(t, "staying")
		// Outside of the full rung a keeper or bubblewrap stands above the program.
		marked := slices.ContainsFunc(family(itoa(run.PID())), func(pid string) bool {
			got, err := os.ReadFile("/proc/" + pid + "/oom_score_adj")
			return err == nil && string(got) == "1000\n"
		})
		require.True(t, marked, "the kernel would take the bot first")
		still, err := os.ReadFile("/proc/self/oom_score_adj")
		require.NoError(t, err)
		require.Equal(t, string(own), string(still), "the bot's own was changed, whose memory the child shared")
	})
}

// family gives a process and all that it started.
func family(pid string) []string {
	all := []string{pid}
	lists, _ := filepath.Glob("/proc/" + pid + "/task/*/children")
	for _, list := range lists {
		children, _ := os.ReadFile(list) // one that has ended has none
		for _, child := range strings.Fields(string(children)) {
			all = append(all, family(child)...)
		}
	}
	return all
}

// Scenario: the operator sets a limit so low that the start itself is over it.
func TestALimitThatWouldEndTheBotIsRefused(t *testing.T) {
	t.Parallel()
	l := boxLimits()
	l.Memory = policy.LeastMemory - 1
	_, err := policy.Narrow(policy.Wish{Mode: policy.ReadOnly, Limits: l}, policy.Capabilities{Rung: policy.RungFull})
	require.ErrorContains(t, err, "limit memory is too low")
	r := newBox(t)
	l.Memory = policy.LeastMemory
	eff := r.narrow(t, policy.Wish{Mode: policy.ReadOnly, Limits: l})
	for range 5 { // with an argument as long as there can be one
		run, err := r.Start(t.Context(), eff, sandbox.Command{Name: "true", Path: "/usr/bin/true", Args: []string{strings.Repeat("x", 120<<10)}, Env: []string{}})
		require.NoError(t, err)
		_, err = run.Wait()
		require.NoError(t, err)
	}
}

// Scenario: each process keeps below the limit, all together do not.
func TestMemoryHoldsForTheWholeRun(t *testing.T) {
	t.Parallel()
	r := newBox(t)
	r.needsGroups(t)
	l := boxLimits()
	l.Memory, l.Wall = 256<<20, 10*time.Minute
	eff := r.narrow(t, policy.Wish{Mode: policy.ReadOnly, Limits: l})
	cmd := sandbox.Command{
		Name: "sh", Path: "/bin/sh", Env: []string{"PATH=/usr/bin:/bin"},
		// Four shells of 100 MiB each, which stay; the kernel ends what is too much.
		Args: []string{"-c", `for i in 1 2 3 4; do ((x=$(head -c 50000000 /dev/zero | tr '\0' x); y=$x; echo grew; sleep 600) || echo died) & done; wait`},
	}
	run, out := r.start(t, eff, cmd)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = run.Wait()
	}()
	// The kernel may take one that had already grown, so who died is what counts.
	require.Eventually(t, func() bool {
		select {
		case <-ended: // the first shell was what the kernel took
			return true
		default:
			return strings.Contains(out.String(), "died")
		}
	}, boxPatience, tick, "all of them stayed")
}
