//go:build linux

package attacks_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
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

// boxPatience bounds every wait of these tests. None is meant to last so long.
const boxPatience = 60 * time.Second

// boxRig is an engine on this host, and what it was measured to enforce.
type boxRig struct {
	*sandbox.Engine
	caps policy.Capabilities
	self string
	temp string
	warm bool // every run gets a box that was made before
}

// Start is the engine's, where the rig is told so with a box that is ready.
func (r boxRig) Start(ctx context.Context, eff policy.Effective, cmd sandbox.Command) (*sandbox.Run, error) {
	if r.warm {
		_ = r.Warm(ctx, eff, cmd) // where none can be made, Start says why
	}
	return r.Engine.Start(ctx, eff, cmd)
}

// newBoxRig gives an engine whose bot, child and agent are all this test binary.
func newBoxRig(t *testing.T) boxRig {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	r := boxRig{self: self, temp: t.TempDir()}
	r.Engine, err = sandbox.New(sandbox.Config{Self: self, Temp: r.temp})
	require.NoError(t, err)
	return r
}

// newBox gives an engine that can build the full box, or that of the rung that
// the outermost test is named after. It skips only where the host itself permits
// none, so that a broken box cannot hide behind a skip.
func newBox(t *testing.T) boxRig {
	t.Helper()
	outermost, _, _ := strings.Cut(t.Name(), "/")
	if rung, other := rungTests()[outermost]; other {
		return newRung(t, rung)
	}
	r := newBoxRig(t)
	if outermost == "TestASpareBoxHolds" {
		r.warm = true
		r.Reserve(1)
		t.Cleanup(func() { r.Reserve(0) })
	}
	r.caps = r.Probe(t.Context())
	if r.caps.Rung != policy.RungFull {
		require.False(t, permitsNamespaces(t), "the host permits a box: %s", r.caps.Why)
		t.Skipf("this host has no full rung: %s; cure: %s", r.caps.Why, r.caps.Cure)
	}
	return r
}

// permitsNamespaces asks the host without the engine.
func permitsNamespaces(t *testing.T) bool {
	t.Helper()
	if text, err := os.ReadFile("/proc/sys/kernel/apparmor_restrict_unprivileged_userns"); err == nil && strings.TrimSpace(string(text)) == "1" {
		return false // it lets them be made and takes their use away
	}
	attr := &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWNET}
	if os.Getuid() != 0 {
		attr.Cloneflags |= syscall.CLONE_NEWUSER
	}
	cmd := exec.Command("/bin/true")
	cmd.SysProcAttr = attr
	return cmd.Run() == nil
}

func boxLimits() policy.Limits {
	return policy.Limits{Wall: time.Minute, Memory: 1 << 30, Disk: 8 << 20, Files: 200, Processes: 100, OpenFiles: 64, Answer: 1 << 20}
}

func (r boxRig) policy(t *testing.T, mode policy.Mode, network policy.Network) policy.Effective {
	t.Helper()
	return r.narrow(t, policy.Wish{Mode: mode, Network: network, Limits: boxLimits()})
}

// narrow requires every clause but those that the Landlock rung never enforces.
func (r boxRig) narrow(t *testing.T, w policy.Wish) policy.Effective {
	t.Helper()
	if r.caps.Rung == policy.RungLandlock {
		w.Require = []policy.Clause{policy.Filesystem}
	}
	eff, err := policy.Narrow(w, r.caps)
	require.NoError(t, err)
	return eff
}

// guest has the model where it is at an address of the run's own.
func (r boxRig) guest(t *testing.T) policy.Effective {
	t.Helper()
	if r.caps.Rung == policy.RungLandlock {
		return r.policy(t, policy.ReadOnly, policy.NetworkNone)
	}
	return r.policy(t, policy.ReadOnly, policy.ModelOnly)
}

// command is this test binary as the boxed agent, told to do one thing.
func (r boxRig) command(args ...string) sandbox.Command {
	return sandbox.Command{Name: boxedName, Path: r.self, Args: args, Env: []string{"HOME=" + policy.HomeDir, "TMPDIR=" + policy.TempDir}}
}

// start starts a command whose output is collected, and kills it with the test.
func (r boxRig) start(t *testing.T, eff policy.Effective, cmd sandbox.Command) (*sandbox.Run, *runOutput) {
	t.Helper()
	out := &runOutput{}
	cmd.Stdout, cmd.Stderr = out, out
	run, err := r.Start(t.Context(), eff, cmd)
	require.NoError(t, err)
	t.Cleanup(func() {
		run.Kill()
		_, _ = run.Wait()
	})
	return run, out
}

// do runs a command to its end and gives its output.
func (r boxRig) do(t *testing.T, eff policy.Effective, cmd sandbox.Command) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), boxPatience)
	defer cancel()
	out := &runOutput{}
	cmd.Stdout, cmd.Stderr = out, out
	run, err := r.Start(ctx, eff, cmd)
	require.NoError(t, err)
	exit, err := run.Wait()
	require.NoError(t, err)
	require.Zero(t, exit.Code, "signal %v, output %s", exit.Signal, out)
	return out.String()
}

// report runs one action of the boxed agent and decodes what it reports.
func report[T any](t *testing.T, r boxRig, eff policy.Effective, args ...string) T {
	t.Helper()
	var got T
	out := r.do(t, eff, r.command(args...))
	require.NoError(t, json.Unmarshal([]byte(out), &got), out)
	return got
}

// runOutput collects what a run prints while it runs.
type runOutput struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *runOutput) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

func (o *runOutput) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// await waits until a run has printed a text.
func (o *runOutput) await(t *testing.T, text string) {
	t.Helper()
	require.Eventually(t, func() bool { return strings.Contains(o.String(), text) }, boxPatience, time.Millisecond, "waiting for %q", text)
}

func decode(t *testing.T, text string, into any) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(text), into), text)
}

// tick is how often a condition of the host is looked at.
const tick = 2 * time.Millisecond

func socketPair(t *testing.T) (ours, theirs *os.File) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	ours, theirs = os.NewFile(uintptr(fds[0]), "ours"), os.NewFile(uintptr(fds[1]), "theirs")
	t.Cleanup(func() { _, _ = ours.Close(), theirs.Close() })
	return ours, theirs
}

// killPID ends a process that a test found by its mark.
func killPID(t *testing.T, pid string) {
	t.Helper()
	n, err := strconv.Atoi(pid)
	require.NoError(t, err)
	_ = unix.Kill(n, unix.SIGKILL)
}

// copyFile makes a program that belongs to the bot.
func copyFile(t *testing.T, from, to string) {
	t.Helper()
	content, err := os.ReadFile(from)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(to, content, 0o755))
}
