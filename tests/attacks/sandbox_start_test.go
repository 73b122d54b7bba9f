//go:build linux

package attacks_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"parlour/runner/policy"
	"parlour/runner/sandbox"
)

func TestProbeIsFullOrSaysWhyNot(t *testing.T) {
	t.Parallel()
	r := newBoxRig(t)
	caps := r.Probe(t.Context())
	if caps.Rung != policy.RungFull {
		require.False(t, permitsNamespaces(t), caps.Why)
		require.NotEmpty(t, caps.Why)
		require.NotEmpty(t, caps.Cure)
		return
	}
	landlock, memory := caps.Landlock, caps.Memory
	require.GreaterOrEqual(t, memory, policy.Soft)
	require.Equal(t, policy.Capabilities{Rung: policy.RungFull, Filesystem: policy.Enforced, Network: policy.Enforced, Processes: policy.Enforced,
		Memory: memory, Disk: policy.Enforced, ProcessCount: policy.Enforced, OpenFiles: policy.Enforced, Landlock: landlock}, caps)
	require.Equal(t, caps, r.Probe(t.Context()), "the host is measured once")
}

// Scenario: a bug hands the engine a policy that nobody narrowed.
func TestPoliciesThatPermitNothingRunNothing(t *testing.T) {
	t.Parallel()
	r := newBox(t)
	danger := r.narrow(t, policy.Wish{Mode: policy.DangerFullAccess, Armed: true, Limits: boxLimits()})
	wide := r.narrow(t, policy.Wish{Mode: policy.ReadOnly, Scratch: []string{"/"}, Limits: boxLimits()})
	for says, eff := range map[string]policy.Effective{
		"rung none runs nothing": {}, "mode danger-full-access has no box": danger, "writable folder / overlaps": wide,
	} {
		_, err := r.Start(t.Context(), eff, r.command("env"))
		var failed *sandbox.StartError
		require.ErrorAs(t, err, &failed, says)
		require.Equal(t, "check the policy", failed.Step, says)
		require.ErrorContains(t, err, says)
	}
}

// Scenario: the program cannot be started. The error says why, and nothing runs.
func TestProgramsThatCannotStart(t *testing.T) {
	t.Parallel()
	r := newBox(t)
	folder := t.TempDir()
	file := func(name, content string, mode os.FileMode) string {
		p := filepath.Join(folder, name)
		require.NoError(t, os.WriteFile(p, []byte(content), mode))
		require.NoError(t, os.Chmod(p, mode))
		return p
	}
	for _, c := range []struct{ name, path, step, says string }{
		{"missing", filepath.Join(folder, "none"), "check the program", "no such file"},
		{"a folder", folder, "check the program", "not a regular file"},
		{"not executable", file("data", "x", 0o644), "check the program", "chmod a+rx"},
		{"a lost interpreter", file("lost", "#!/nonexistent/node\n", 0o755), "exec /agent/lost", "no such file"},
		{"no program", file("empty", "just text\n", 0o755), "exec /agent/empty", "exec format error"},
	} {
		cmd := r.command("env")
		cmd.Path = c.path
		_, err := r.Start(t.Context(), r.guest(t), cmd)
		var failed *sandbox.StartError
		require.ErrorAs(t, err, &failed, c.name)
		require.Equal(t, c.step, failed.Step, c.name)
		require.ErrorContains(t, err, c.says, c.name)
	}
	cmd := r.command("env")
	cmd.Mounts = []sandbox.Mount{{Host: filepath.Join(folder, "none"), Inside: "/docs"}}
	_, err := r.Start(t.Context(), r.guest(t), cmd)
	require.ErrorIs(t, err, unix.ENOENT)
	cmd.Mounts = []sandbox.Mount{{Host: folder, Inside: "/etc"}}
	_, err = r.Start(t.Context(), r.guest(t), cmd)
	require.ErrorContains(t, err, "would touch")
}

// Scenario: a root bot's program is private to root, so that the run's own user
// cannot execute it.
func TestProgramOfRootAloneIsRefusedWithACure(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("the bot's own user runs its own programs")
	}
	t.Parallel()
	r := newBox(t)
	program := filepath.Join(t.TempDir(), "private")
	require.NoError(t, os.WriteFile(program, []byte("#!/bin/sh\n"), 0o700))
	cmd := r.command("env")
	cmd.Path = program
	_, err := r.Start(t.Context(), r.guest(t), cmd)
	require.ErrorContains(t, err, "chmod a+rx "+program)
}

// The honest path: a program in a folder that only the bot may enter starts.
func TestProgramInAPrivateFolderStarts(t *testing.T) {
	t.Parallel()
	r := newBox(t)
	private := filepath.Join(t.TempDir(), "private", "exe")
	require.NoError(t, os.MkdirAll(private, 0o700))
	program := filepath.Join(private, "agent")
	require.NoError(t, os.WriteFile(program, []byte("#!/bin/sh\necho \"$0\"\n"), 0o755))
	require.NoError(t, os.Symlink("agent", filepath.Join(private, "claude")))
	cmd := sandbox.Command{Name: "claude", Path: filepath.Join(private, "claude"), Env: []string{}}
	require.Equal(t, "/agent/claude\n", r.do(t, r.guest(t), cmd))
}

// The honest path: what agents are written in starts in the box.
func TestCommonProgramsStart(t *testing.T) {
	t.Parallel()
	r := newBox(t)
	who := "require('os').userInfo(); "
	if r.caps.Rung == policy.RungLandlock {
		who = "" // there the host's list of users stays closed
	}
	for _, c := range [][]string{
		{"/usr/bin/dash", "-c", "echo started"},
		{"/usr/bin/bash", "-c", "x=$(/bin/echo started); echo $x | cat"},
		{"/usr/bin/python3", "-c", "import subprocess, tempfile, getpass; tempfile.mkdtemp(); print(subprocess.run(['/bin/echo', 'started'], capture_output=True, text=True).stdout, end='')"},
		{"/usr/bin/node", "-e", "const {execFileSync, spawn} = require('child_process'); " + who + "process.stdout.write(execFileSync('/bin/echo', ['started']))"},
		{"/usr/bin/perl", "-e", "print `echo started`"},
		{"/usr/bin/git", "--exec-path=/usr/lib/git-core", "version"},
	} {
		if _, err := exec.LookPath(c[0]); err != nil {
			t.Logf("%s is not here", c[0])
			continue
		}
		cmd := sandbox.Command{Name: filepath.Base(c[0]), Path: c[0], Args: c[1:], Env: []string{"PATH=/usr/bin:/bin", "HOME=/home/agent", "TMPDIR=/tmp", "GIT_CONFIG_NOSYSTEM=1"}}
		require.Regexp(t, "^(started\n|git version)", r.do(t, r.guest(t), cmd), c[0])
	}
}
