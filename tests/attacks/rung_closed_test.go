//go:build linux

package attacks_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"parlour/runner/policy"
	"parlour/runner/sandbox"
	"parlour/runner/sandbox/entry"
)

// kept are steps as the Landlock rung has them, which end in a program that makes
// a file.
func kept(marker string) []entry.Step {
	return []entry.Step{
		{Op: entry.Umask, N: []int64{0o022}},
		{Op: entry.Mkdir, N: []int64{0o755, -1, -1}, S: []string{marker + "-folder"}},
		{Op: entry.Copy, N: []int64{0o400, -1, -1, 1 << 20}, S: []string{"/proc/self/exe", marker + "-copy"}},
		{Op: entry.Keep},
		{Op: entry.Watch},
		{Op: entry.Rlimit, N: []int64{unix.RLIMIT_CORE, 0}},
		{Op: entry.NoNewPrivs},
		{Op: entry.Chdir, S: []string{"/"}},
		{Op: entry.CloseOnExec},
		{Op: entry.Exec, N: []int64{2}, S: []string{"/usr/bin/touch", "touch", marker}},
	}
}

// perform runs the steps as a bot would and gives the status and what was said.
func perform(t *testing.T, steps []entry.Step) (code int, said string) {
	t.Helper()
	code, said = -1, ""
	program, ok := entry.Encode(steps)
	require.True(t, ok)
	file := filepath.Join(t.TempDir(), "steps")
	require.NoError(t, os.WriteFile(file, program, 0o600))
	list, err := os.Open(file)
	require.NoError(t, err)
	defer list.Close()
	ours, theirs := socketPair(t)
	leash, end := socketPair(t)
	defer leash.Close()
	child := exec.Command(selfPath(t))
	child.Args[0], child.ExtraFiles = entry.Name, []*os.File{list, theirs, end}
	out, err := child.CombinedOutput()
	if err != nil {
		require.ErrorAs(t, err, new(*exec.ExitError))
	}
	require.NoError(t, theirs.Close())
	require.NoError(t, ours.Close())
	return child.ProcessState.ExitCode(), string(out)
}

// TestAFailingStepRunsNothing breaks each place of a list of steps, in front of
// the keeper and behind it, by a step that fails and by one whose undoing works.
func TestAFailingStepRunsNothing(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	small := filepath.Join(folder, "small")
	require.NoError(t, os.WriteFile(small, []byte("x"), 0o600))
	steps := kept(filepath.Join(folder, "whole"))
	steps[2].S[0] = small
	code, said := perform(t, steps)
	require.Zero(t, code, said)
	require.FileExists(t, filepath.Join(folder, "whole"), "the honest path")

	for name, broken := range map[string]entry.Step{
		"a step that fails":   {Op: entry.Mkdir, N: []int64{0o700, -1, -1}, S: []string{"/proc/nowhere"}},
		"an undo that works":  {Op: entry.Denied, N: []int64{unix.SYS_GETPID, -1, 0, 0, 0, 0, 0, 0}, S: []string{"leave", ""}},
		"a call not refused":  {Op: entry.Denied, N: []int64{unix.SYS_OPENAT, 1, -1, 0, 0, 0, 0, 0}, S: []string{"open", "/nonexistent"}},
		"a file that is big":  {Op: entry.Copy, N: []int64{0o400, -1, -1, 0}, S: []string{small, filepath.Join(folder, "big")}},
		"a view that shows":   {Op: entry.Blank, S: []string{small}},
		"something not plain": {Op: entry.Copy, N: []int64{0o400, -1, -1, 1 << 20}, S: []string{"/dev/zero", filepath.Join(folder, "device")}},
	} {
		for at := range kept("") {
			marker := filepath.Join(folder, strings.ReplaceAll(name, " ", "-")+itoa(at))
			steps := kept(marker)
			steps[2].S[0] = small
			steps = append(steps[:at:at], append([]entry.Step{broken}, steps[at:]...)...)
			code, said := perform(t, steps)
			require.Equal(t, entry.ExitCode, code, "%s at %d: %s", name, at, said)
			require.Contains(t, said, "parlour sandbox: ")
			require.NoFileExists(t, marker, "%s at %d", name, at)
		}
	}
}

// Scenario: a program is asked for on a rung that the host has not got. Nothing
// runs, and no other rung is tried.
func TestARungThatIsMissingRunsNothing(t *testing.T) {
	t.Parallel()
	r := newBoxRig(t)
	full := policy.Capabilities{Rung: policy.RungBwrap, Filesystem: policy.Enforced, Network: policy.Enforced, Processes: policy.Enforced}
	eff, err := policy.Narrow(policy.Wish{Mode: policy.ReadOnly, Limits: boxLimits()}, full)
	require.NoError(t, err)
	if os.Getuid() == 0 {
		_, err = r.Start(t.Context(), eff, r.command("env"))
		require.ErrorContains(t, err, "look for bubblewrap: it is never used by root")
	}
	none, err := sandbox.New(sandbox.Config{Self: r.self, Temp: r.temp, Without: policy.Rungs()})
	require.NoError(t, err)
	caps := none.Probe(t.Context())
	require.Equal(t, policy.RungNone, caps.Rung)
	require.Len(t, caps.Absent, 3)
	_, err = policy.Narrow(policy.Wish{Mode: policy.ReadOnly, Limits: boxLimits()}, caps)
	require.ErrorContains(t, err, "no rung full, bwrap, landlock: it is switched off; cure: switch it on")
	for _, eff := range []policy.Effective{eff} {
		_, err = none.Start(t.Context(), eff, r.command("env"))
		require.ErrorContains(t, err, "rung bwrap is switched off")
	}
}

// TestBwrapIsNeverUsedByRoot: inside of a box that bubblewrap makes for root, the
// run's user owns the settings of the host's kernel.
func TestBwrapIsNeverUsedByRoot(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can")
	}
	t.Parallel()
	r := newBoxRig(t)
	caps := r.ProbeAll(t.Context())
	for _, a := range caps.Absent {
		if a.Rung == policy.RungBwrap {
			require.Equal(t, "look for bubblewrap: it is never used by root", a.Why)
			return
		}
	}
	require.Fail(t, "root has the bwrap rung", "%+v", caps)
}

// A root bot in a temporary folder that its runs cannot enter has no Landlock
// rung, and is told what to do.
func TestAPrivateTemporaryFolderIsSaid(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("the bot's own user can enter its own folders")
	}
	t.Parallel()
	private := filepath.Join(openFolder(t), "private")
	require.NoError(t, os.Mkdir(private, 0o700))
	e, err := sandbox.New(sandbox.Config{Self: selfPath(t), Temp: private, Without: without(policy.RungLandlock)})
	require.NoError(t, err)
	caps := e.Probe(t.Context())
	require.Equal(t, policy.RungNone, caps.Rung)
	require.Contains(t, caps.Absent[2].Cure, "TMPDIR")
	left, err := os.ReadDir(private)
	require.NoError(t, err)
	require.Empty(t, left)
}
