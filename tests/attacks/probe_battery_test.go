//go:build linux

package attacks_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"parlour/runner/policy"
	"parlour/runner/probe"
	"parlour/runner/sandbox"
	"parlour/tests/house"
)

// outputPatience is how long the control waits for an output that is held open.
const outputPatience = 200 * time.Millisecond

func TestTheTableOfAttemptsIsWhole(t *testing.T) {
	attempts := probe.Attempts()
	require.GreaterOrEqual(t, len(attempts), 90)
	seen, families := map[string]bool{}, map[string]bool{}
	for _, a := range attempts {
		require.False(t, seen[a.ID()], "%s is there twice", a.ID())
		seen[a.ID()], families[a.Family] = true, true
		require.NotEmpty(t, a.Needs, a.ID())
		require.True(t, strings.HasSuffix(a.What, "."), "%s: %q is no sentence", a.ID(), a.What)
	}
	for _, f := range strings.Fields("files devices proc sys cgroups namespaces mounts processes descriptors environment " +
		"network sockets ipc kernel privileges terminal limits survivors") {
		require.True(t, families[f], "no attempt is about %s", f)
	}
}

// Every attempt is contained on the full rung, and on those below but for what
// docs/threats.md names.
func TestTheBatteryIsContainedOnEveryRung(t *testing.T) {
	start, engine := boxed(t)
	named, err := os.ReadFile("../../docs/threats.md")
	require.NoError(t, err)
	for _, rung := range probe.Rungs(engine.ProbeAll(t.Context())) {
		if rung.Rung == policy.RungBwrap && os.Getuid() == 0 {
			continue // root never uses it
		}
		t.Run(rung.Rung.String(), func(t *testing.T) {
			if len(rung.Policies) == 0 {
				require.True(t, cannotHave(t, rung.Rung), "the host permits the rung: %s", rung.Why)
				t.Skipf("this host has no rung %s: %s", rung.Rung, rung.Why)
			}
			r := battery(t, start).Measure(t.Context(), rung)
			require.Empty(t, r.Why)
			require.GreaterOrEqual(t, r.Total(), 90)
			require.Less(t, r.Took, boxPatience)
			for _, f := range r.Merged() {
				require.NotEqual(t, probe.NotMeasured, f.Verdict, "%s: %s", f.ID(), f.Why)
				if f.Verdict == probe.Escaped && rung.Rung == policy.RungLandlock {
					require.True(t, strings.Contains(string(named), "`"+f.ID()+"`"), "no page names that %s escapes: %s", f.ID(), f.Why)
					continue
				}
				require.NotEqual(t, probe.Escaped, f.Verdict, "%s: %s", f.ID(), f.Why)
			}
			if rung.Rung != policy.RungLandlock {
				require.True(t, r.AllContained())
				holds, missed := r.Satisfies(nil)
				require.True(t, holds)
				require.Empty(t, missed)
			}
		})
	}
}

// rightless are the attempts that succeed for every user who has no sandbox
// around: not one of them needs a right.
func rightless(id string) bool {
	family, name, _ := strings.Cut(id, "/")
	switch family {
	case "processes", "descriptors", "network":
		return true
	case "files":
		return !strings.HasPrefix(name, "write-") && name != "read-by-handle" && name != "leftover" && name != "change-attribute"
	case "environment":
		return name != "first-process"
	case "ipc":
		return slices.Contains([]string{"shared-memory", "own-shared-memory", "semaphores", "messages", "queue", "lock"}, name)
	case "limits":
		return slices.Contains([]string{"open-files", "file-size", "disk", "file-count", "memory", "processes"}, name)
	case "survivors":
		return true
	}
	return id == "proc/see" || id == "proc/environment" || id == "proc/memory" || id == "proc/memory-map" || id == "privileges/new-rights"
}

// The control: without a sandbox the same attempts by the same program succeed.
func TestNothingHoldsWithoutASandbox(t *testing.T) {
	rung := promised(t, policy.NetworkNone)
	r := battery(t, plainly(t, nil)).Measure(t.Context(), rung)
	escaped := r.Count(probe.Escaped)
	t.Logf("without a sandbox %d of %d attempts succeed", escaped, r.Total())
	require.Greater(t, escaped, r.Total()/2)
	for _, f := range r.Merged() {
		require.NotEqual(t, probe.NotMeasured, f.Verdict, "%s: %s", f.ID(), f.Why)
		if rightless(f.ID()) && !strings.HasPrefix(f.ID(), "network/internet") && f.ID() != "network/metadata" && f.ID() != "network/private-network" {
			require.Contains(t, []probe.Verdict{probe.Escaped, probe.NotApplicable}, f.Verdict, "%s: %s", f.ID(), f.Why)
		}
	}
	require.False(t, r.AllContained())
	for _, c := range policy.Clauses() {
		require.False(t, r.Holds(c), c)
	}
}

// Scenario: one wall is missing. The attempts against it are reported, and no
// others.
func TestAMissingWallIsReported(t *testing.T) {
	inside, engine := boxed(t)
	rungs := probe.Rungs(engine.Probe(t.Context()))
	if len(rungs[0].Policies) == 0 {
		t.Skipf("this host has no full rung: %s", rungs[0].Why)
	}
	r := battery(t, func(ctx context.Context, e policy.Effective, cmd sandbox.Command) (probe.Run, error) {
		cmd.Env = append(cmd.Env, "SOWN="+sown) // the environment is not scrubbed
		return inside(ctx, e, cmd)
	}).Measure(t.Context(), rungs[0])
	require.Equal(t, []string{"environment/variables", "environment/kernel-copy", "environment/first-process"}, escapesOf(r))
	require.False(t, r.Holds(policy.Filesystem))
	require.True(t, r.Holds(policy.NetworkReach))
	require.True(t, r.Holds(policy.Processes))
	holds, missed := r.Satisfies([]policy.Clause{policy.Filesystem})
	require.False(t, holds)
	require.Len(t, missed, 3)
	holds, _ = r.Satisfies([]policy.Clause{policy.NetworkReach, policy.Processes})
	require.True(t, holds)
}

// Scenario: the walls are those of a network namespace alone.
func TestAWallHoldsWhatItHolds(t *testing.T) {
	if !permitsNamespaces(t) {
		t.Skip("this host permits no namespaces")
	}
	start := plainly(t, func(cmd *exec.Cmd) {
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
		if os.Getuid() != 0 {
			cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
			cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 1000, HostID: os.Getuid(), Size: 1}}
			cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 1000, HostID: os.Getgid(), Size: 1}}
		}
	})
	r := battery(t, start).Measure(t.Context(), promised(t, policy.NetworkNone))
	found := byID(r)
	for _, id := range []string{"network/loopback-4", "network/datagram-4", "network/abstract", "network/broker-twin", "network/serve", "network/internet-4"} {
		require.Equal(t, probe.Contained, found[id].Verdict, "%s: %s", id, found[id].Why)
	}
	for _, id := range []string{"network/path", "files/read-home", "ipc/shared-memory", "proc/see", "survivors/after-the-end"} {
		require.Equal(t, probe.Escaped, found[id].Verdict, "%s: %s", id, found[id].Why)
	}
	require.False(t, r.Holds(policy.NetworkReach), "sockets of other kinds are still there")
}

// Scenario: an attempt has no target, or the intruder does not come to it. It
// was not tried, and nobody may call that contained.
func TestWhatWasNotTriedIsNotContained(t *testing.T) {
	inside, engine := boxed(t)
	rung := probe.Rungs(engine.Probe(t.Context()))[0]
	if len(rung.Policies) == 0 {
		t.Skipf("this host has no full rung: %s", rung.Why)
	}
	self := batteryConfig(t, inside)
	self.Planted = ""
	b, err := probe.New(self)
	require.NoError(t, err)
	r := b.Measure(t.Context(), rung)
	require.Equal(t, probe.NotMeasured, byID(r)["environment/variables"].Verdict)
	for id, f := range byID(r) {
		require.Equal(t, f.Family == "environment", f.Verdict == probe.NotMeasured, "%s: %s", id, f.Why)
	}
	require.False(t, r.AllContained())
	require.False(t, r.Holds(policy.Filesystem))
	broken, escapes := r.Broken(nil)
	require.Empty(t, broken, "nothing has escaped either")
	require.Empty(t, escapes)

	for name, spoil := range map[string]starter{
		"the sandbox does not start": func(context.Context, policy.Effective, sandbox.Command) (probe.Run, error) {
			return nil, errors.New("it does not start")
		},
		"the intruder ends before it begins": func(ctx context.Context, e policy.Effective, cmd sandbox.Command) (probe.Run, error) {
			cmd.Args = []string{probe.Subcommand, "none", cmd.Args[2]}
			return inside(ctx, e, cmd)
		},
	} {
		r := battery(t, spoil).Measure(t.Context(), rung)
		require.Zero(t, r.Count(probe.Contained), name)
		require.Greater(t, r.Count(probe.NotMeasured), 90, name)
		require.False(t, r.AllContained(), name)
	}
}

// The battery takes everything away that it made.
func TestNothingOfTheBatteryIsLeft(t *testing.T) {
	inside, engine := boxed(t)
	rung, objects := probe.Rungs(engine.Probe(t.Context()))[0], [][2]string{}
	start, marks, hidden := starter(inside), map[string]bool{}, map[string]bool{}
	if len(rung.Policies) == 0 {
		rung, start = promised(t, policy.NetworkNone), plainly(t, nil)
	}
	cfg := batteryConfig(t, func(ctx context.Context, e policy.Effective, cmd sandbox.Command) (probe.Run, error) {
		marks[cmd.Args[2]] = true
		told := toldTo(t, cmd)
		for _, name := range []string{told.Shm, told.VarTmp, "/dev/mqueue/" + told.Queue} {
			require.NotContains(t, name, cmd.Args[2], "the mark is known to everybody")
			hidden[name] = true
		}
		require.NotContains(t, told.KeyName, cmd.Args[2])
		objects = append(objects, [2]string{"shm", itoa(told.Shared)}, [2]string{"msg", itoa(told.Messages)}, [2]string{"sem", itoa(told.Semaphores)})
		marks[told.KeyName] = true
		return start(ctx, e, cmd)
	})
	b, err := probe.New(cfg)
	require.NoError(t, err)
	before := openDescriptors(t)
	b.Measure(t.Context(), rung)
	require.NotEmpty(t, marks)
	for path := range hidden {
		require.NoFileExists(t, path)
	}
	for mark := range marks {
		for _, dir := range []string{cfg.Temp, "/dev/shm", "/var/tmp", "/sys/fs/cgroup", "/sys/fs/cgroup/unified", "/sys/fs/cgroup/memory"} {
			require.NoFileExists(t, filepath.Join(dir, mark))
			require.NoDirExists(t, filepath.Join(dir, mark))
		}
		require.Empty(t, playing(t, mark))
		require.Eventually(t, func() bool {
			keys, _ := os.ReadFile("/proc/keys")
			return !strings.Contains(string(keys), mark)
		}, boxPatience, tick, "the kernel takes a key away a little later")
	}
	left, err := os.ReadDir(cfg.Temp)
	require.NoError(t, err)
	require.Empty(t, left)
	require.Equal(t, before, openDescriptors(t))
	for _, o := range objects {
		require.Eventually(t, func() bool { return !inTable(t, o[0], 1, o[1]) }, boxPatience, tick, o)
	}
}

// Scenario: the bot is killed in the middle of its battery, again and again. The
// next battery takes away what is left; one that is in use stays.
func TestAKilledBatteryIsSwept(t *testing.T) {
	_, engine := boxed(t)
	if rung := probe.Rungs(engine.Probe(t.Context()))[0]; len(rung.Policies) == 0 {
		t.Skipf("this host has no full rung: %s", rung.Why)
	}
	h := house.New(t)
	folder := h.OpenTemp(t)
	stages := func() []string {
		found, err := filepath.Glob(filepath.Join(folder, "parlour-probe-*"))
		require.NoError(t, err)
		return found
	}
	strewn := func() []string {
		var found []string
		for _, dir := range []string{"/dev/shm", "/var/tmp", "/dev/mqueue"} {
			some, err := filepath.Glob(filepath.Join(dir, "parlour-probe-*"))
			require.NoError(t, err)
			found = append(found, some...)
		}
		return found
	}
	left, before, spread, keys := []string{}, strewn(), []string{}, []string{}
	for range 3 {
		cmd := h.Command("probe", "--rung", "full")
		require.NoError(t, cmd.Start())
		require.Eventually(t, func() bool {
			fresh := slices.DeleteFunc(stages(), func(s string) bool {
				return slices.Contains(left, s) || len(playing(t, filepath.Base(s))) == 0 // its target process is the last to be set up
			})
			left = append(left, fresh...)
			return len(fresh) > 0
		}, boxPatience, tick)
		endCommand(cmd)
		seed, err := os.ReadFile(filepath.Join(left[len(left)-1], "seed"))
		require.NoError(t, err)
		keys = append(keys, keyFrom(string(seed)))
		require.True(t, inTable(t, "sem", 0, keys[len(keys)-1]), "it was killed too early to leave anything")
		spread = append(spread, slices.DeleteFunc(strewn(), func(s string) bool { return slices.Contains(before, s) })...)
	}
	require.NotEmpty(t, spread)
	require.Len(t, stages(), 1, "each battery sweeps what the one before left")
	h.Bot("probe", "--rung", "full")
	require.Empty(t, stages())
	for _, path := range spread { // some may be of other bots, which end too
		require.Eventually(t, func() bool {
			_, err := os.Lstat(path)
			return errors.Is(err, os.ErrNotExist)
		}, boxPatience, tick, path)
	}
	for _, path := range left {
		mark := filepath.Base(path)
		for _, dir := range []string{"/sys/fs/cgroup/unified", "/sys/fs/cgroup/memory"} {
			require.NoFileExists(t, filepath.Join(dir, mark))
			require.NoDirExists(t, filepath.Join(dir, mark))
		}
		require.Eventually(t, func() bool { return len(playing(t, mark)) == 0 }, boxPatience, tick, "no target outlives the bot")
	}
	for _, key := range keys {
		require.False(t, inTable(t, "sem", 0, key), "a semaphore is left")
	}
}

// playing finds the processes of a battery.
func playing(t *testing.T, mark string) (found []string) {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	require.NoError(t, err)
	for _, e := range entries {
		text, err := os.ReadFile("/proc/" + e.Name() + "/cmdline")
		if err == nil && strings.Contains(string(text), "\x00"+probe.Subcommand+"\x00") && strings.Contains(string(text), "\x00"+mark+"\x00") {
			found = append(found, e.Name())
		}
	}
	return found
}

func openDescriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	return len(entries)
}

// keyFrom gives the System V key that a battery with this seed uses.
func keyFrom(seed string) string {
	m := hmac.New(sha256.New, []byte(seed))
	_, _ = m.Write([]byte("key"))
	n := binary.BigEndian.Uint32(m.Sum(nil)) >> 4
	return strconv.FormatUint(uint64(n|1<<28), 10)
}

// inTable says whether a System V object stands in the kernel's table, by its key
// (column 0) or its id (column 1). Those of other bots may stand there too.
func inTable(t *testing.T, kind string, column int, value string) bool {
	t.Helper()
	table, err := os.ReadFile("/proc/sysvipc/" + kind)
	require.NoError(t, err)
	for _, line := range strings.Split(string(table), "\n") {
		if f := strings.Fields(line); len(f) > column && f[column] == value {
			return true
		}
	}
	return false
}

func escapesOf(r probe.Report) []string {
	ids := []string{}
	for _, f := range r.Merged() {
		if f.Verdict == probe.Escaped {
			ids = append(ids, f.ID())
		}
	}
	return ids
}
