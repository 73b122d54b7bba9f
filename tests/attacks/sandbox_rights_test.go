//go:build linux

package attacks_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"parlour/runner/policy"
)

// overflowID is the id that the kernel shows for one that is not mapped.
const overflowID = 65534

// Scenario: the agent tries to become somebody again.
func TestRightsCannotBeRegained(t *testing.T) {
	t.Parallel()
	r := newBox(t)
	securebits := 0xeb
	if r.caps.Rung == policy.RungBwrap {
		securebits = 0 // they need a capability, and the child never has one
	}
	for _, network := range []policy.Network{policy.NetworkNone, policy.ModelOnly} {
		eff := r.policy(t, policy.ReadOnly, network)
		require.Empty(t, report[[]string](t, r, eff, "calls"))
		require.Empty(t, report[[]string](t, r, eff, "grandchild", "calls"))
		got := report[boxedIdentity](t, r, eff, "identity")
		require.NotZero(t, got.UID)
		require.Equal(t, got.UID, got.GID)
		require.NotEqual(t, os.Getuid(), got.UID)
		require.Equal(t, boxedIdentity{UID: got.UID, GID: got.UID, Groups: got.Groups, NoNewPrivs: 1, Securebits: securebits, Dumpable: 1,
			Hostname: "sandbox", PID: 1, Session: 1, Folder: policy.WorkDir, Tie: int(unix.SIGKILL)}, got)
		for _, g := range got.Groups { // without root the kernel keeps them, but they name nobody inside
			require.Contains(t, []int{overflowID, got.GID}, g)
			require.NotZero(t, os.Getuid())
		}
	}
}

// Scenario: a set-user-id program of /usr would give root.
func TestSetUserIDProgramsGiveNothing(t *testing.T) {
	t.Parallel()
	r := newBox(t)
	su, err := filepath.Glob("/usr/bin/su")
	require.NoError(t, err)
	if len(su) == 0 {
		t.Skip("this host has no su")
	}
	run, out := r.start(t, r.guest(t), r.command("stay", "su"))
	out.await(t, "staying")
	status, err := os.ReadFile("/proc/" + itoa(run.PID()) + "/status")
	require.NoError(t, err)
	require.Regexp(t, `(?m)^NoNewPrivs:\s+1$`, string(status))
	require.Regexp(t, `(?m)^Seccomp:\s+2$`, string(status))
	require.Regexp(t, `(?m)^Cap(Inh|Prm|Eff|Bnd|Amb):\s+0+$`, string(status))
	require.NotRegexp(t, `(?m)^Uid:\s+0\s`, string(status), "the host's root is never the run's user")
}

// Scenario: a program without limits takes the host down.
func TestLimitsHold(t *testing.T) {
	t.Parallel()
	r := newBox(t)
	eff := r.guest(t)
	l := eff.Limits()
	require.Equal(t, map[string]uint64{
		"core": 0, "queue": 0, "file": uint64(l.Disk), "open": uint64(l.OpenFiles), "data": uint64(l.Memory), "processes": uint64(l.Processes), "processor": uint64(l.Wall.Seconds()),
	}, report[map[string]uint64](t, r, eff, "limits"))
	require.False(t, report[bool](t, r, eff, "map", itoa(int(l.Memory)+1)))
	require.True(t, report[bool](t, r, eff, "map", itoa(1<<20)))
}

// Scenario: the agent starts processes without end.
func TestForkBombStopsAtTheLimit(t *testing.T) {
	t.Parallel()
	r := newBox(t)
	m := mark(t)
	run, out := r.start(t, r.guest(t), r.command("bomb", m, "1000", "end"))
	require.Eventually(t, func() bool { return len(marked(t, m)) > 1 || out.String() != "" }, boxPatience, tick)
	exit, err := run.Wait()
	require.NoError(t, err)
	require.Zero(t, exit.Code, out)
	require.Empty(t, marked(t, m))
	require.Contains(t, out.String(), "limit reached", "the box allows fewer processes than were started")
}

// Scenario: 32 guests ask at once. Runs with one user id would share limits and
// could signal each other.
func TestParallelRunsHaveTheirOwnUsers(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("a bot that is not root has one user id, and a user namespace for each run")
	}
	t.Parallel()
	r := newBox(t)
	seen := map[uint32]bool{}
	for range 32 {
		run, _ := r.start(t, r.guest(t), r.command("stay", "users"))
		var st unix.Stat_t
		require.NoError(t, unix.Stat("/proc/"+itoa(run.PID()), &st))
		require.False(t, seen[st.Uid], "user %d has two runs", st.Uid)
		require.Greater(t, st.Uid, uint32(1<<16))
		seen[st.Uid] = true
	}
}
