//go:build linux

package attacks_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"parlour/runner/policy"
	"parlour/runner/sandbox"
)

// newRung gives an engine that has one rung alone. It skips only where this host
// cannot have the rung, and says why.
func newRung(t *testing.T, rung policy.Rung) boxRig {
	t.Helper()
	r := boxRig{self: selfPath(t), temp: openFolder(t)}
	var err error
	r.Engine, err = sandbox.New(sandbox.Config{Self: r.self, Temp: r.temp, Without: without(rung)})
	require.NoError(t, err)
	r.caps = r.Probe(t.Context())
	if r.caps.Rung != rung {
		at := slices.IndexFunc(r.caps.Absent, func(a policy.Absence) bool { return a.Rung == rung })
		require.GreaterOrEqual(t, at, 0, "%+v", r.caps)
		require.True(t, cannotHave(t, rung), "the host permits the rung %s: %s", rung, r.caps.Absent[at].Why)
		t.Skipf("this host has no rung %s: %s; cure: %s", rung, r.caps.Absent[at].Why, r.caps.Absent[at].Cure)
	}
	return r
}

// rungTests names the tests that repeat the scenarios of the full rung elsewhere.
func rungTests() map[string]policy.Rung {
	return map[string]policy.Rung{"TestBwrapRungHolds": policy.RungBwrap, "TestLandlockRungHolds": policy.RungLandlock}
}

// without gives all rungs but one.
func without(rung policy.Rung) []policy.Rung {
	return slices.DeleteFunc(policy.Rungs(), func(r policy.Rung) bool { return r == rung })
}

// cannotHave says what the host lacks for a rung, without the engine.
func cannotHave(t *testing.T, rung policy.Rung) bool {
	t.Helper()
	switch rung {
	case policy.RungBwrap:
		_, err := os.Stat("/usr/bin/bwrap")
		return os.Getuid() == 0 || err != nil || !permitsNamespaces(t)
	case policy.RungLandlock:
		return landlockABI() == 0
	}
	return !permitsNamespaces(t)
}

// selfPath gives the path of this test binary; for root that of a link to it,
// where every user can reach it: without a view the run's own user must.
func selfPath(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	if os.Getuid() != 0 {
		return self
	}
	open := filepath.Join(openFolder(t), filepath.Base(self))
	require.NoError(t, os.Link(self, open))
	return open
}

// openFolder gives a temporary folder that every user can enter.
func openFolder(t *testing.T) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "rung-")
	require.NoError(t, err)
	require.NoError(t, os.Chmod(folder, 0o755))
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(folder)) })
	return folder
}

// onEachRung runs a scenario on every rung that this host can have.
func onEachRung(t *testing.T, scenario func(*testing.T, boxRig)) {
	t.Helper()
	for _, rung := range policy.Rungs() {
		t.Run(rung.String(), func(t *testing.T) {
			t.Parallel()
			scenario(t, newRung(t, rung))
		})
	}
}

// landlockABI asks the kernel, without the engine.
func landlockABI() int {
	abi, _, errno := unix.RawSyscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(abi)
}
