//go:build linux

package attacks_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"parlour/runner/policy"
	"parlour/runner/sandbox"
)

// given up is what a run says that was killed and is not known to have ended.
const givenUp = "did not end in"

// soonEnough is less than the time after which the engine kills a second time.
const soonEnough = 1500 * time.Millisecond

// moments spread kills over the time that a start takes: from a clone that has
// not made its first call, which is 0, to a program that runs.
func moments(yield func(time.Duration) bool) {
	for range 60 {
		if !yield(0) {
			return
		}
	}
	for at := 20 * time.Microsecond; at < 12*time.Millisecond; at += max(at/24, 20*time.Microsecond) {
		if !yield(at) {
			return
		}
	}
}

// Scenario: a run is stopped at some moment of its start, as when the bot is told
// to stop just then. Whatever has been made until then ends at once, and nobody
// waits for it.
func TestNobodySurvivesAKillAtAnyMoment(t *testing.T) {
	onEachRung(t, func(t *testing.T, r boxRig) {
		cmd := r.command("stay")
		if r.caps.Rung == policy.RungBwrap { // what bubblewrap is told names this run's folder
			cmd.Mounts = []sandbox.Mount{{Host: r.temp, Inside: "/usr/local/of-this-run"}}
		}
		killAtEachMoment(t, r, r.narrow(t, policy.Wish{Mode: policy.ReadOnly, Limits: roomy()}), cmd)
	})
	t.Run("plain", func(t *testing.T) {
		t.Parallel()
		r := newBoxRig(t)
		killAtEachMoment(t, r, plainPolicy(t), r.command("stay"))
	})
}

func killAtEachMoment(t *testing.T, r boxRig, eff policy.Effective, cmd sandbox.Command) {
	t.Helper()
	m := mark(t)
	endMarked(t, m)
	cmd.Args = append(cmd.Args, m)
	slow := 0
	for at := range moments {
		begin := time.Now()
		ended := make(chan error, 1)
		go func() {
			ctx, cancel := endingAfter(t, at)
			defer cancel()
			run, err := r.Start(ctx, eff, cmd)
			if err == nil {
				if _, err = run.Wait(); err != nil {
					err = fmt.Errorf("wait: %w", err)
				}
			}
			ended <- err
		}()
		select {
		case err := <-ended:
			if err != nil {
				require.NotContains(t, err.Error(), givenUp, "killed after %v", at)
				require.NotContains(t, err.Error(), "wait: ", "killed after %v", at)
			}
		case <-time.After(boxPatience):
			require.Fail(t, "it hangs", "killed after %v", at)
		}
		if time.Since(begin) > soonEnough {
			slow++ // a busy machine may do it too, but not again and again
		}
		require.Less(t, slow, 3, "the first kill did nothing, also after %v", at)
		require.Empty(t, marked(t, m), "killed after %v", at)
		require.Empty(t, naming(t, r.temp), "killed after %v", at)
	}
	left, err := os.ReadDir(r.temp)
	require.NoError(t, err)
	require.Empty(t, left, "the folders of the runs are gone")
}

// endingAfter gives a context that ends at a moment, or as soon as there is
// something to kill.
func endingAfter(t *testing.T, at time.Duration) (context.Context, func()) {
	if at > 0 {
		return context.WithTimeout(t.Context(), at)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return &overtaken{Context: ctx}, func() {}
}

// overtaken is a context that ends between the first look at it and the second.
type overtaken struct {
	context.Context
	seen atomic.Bool
}

func (o *overtaken) Err() error {
	if o.seen.CompareAndSwap(false, true) {
		return nil
	}
	return o.Context.Err()
}

// naming gives bubblewraps that were told of a path.
func naming(t *testing.T, path string) (found []string) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	require.NoError(t, err)
	for _, file := range all {
		text, err := os.ReadFile(file)
		if err == nil && strings.HasPrefix(string(text), "/usr/bin/bwrap\x00") && strings.Contains(string(text), "\x00"+path+"\x00") {
			found = append(found, file)
		}
	}
	return found
}

// Scenario: what ends the run cannot: the operator has stopped the keeper.
func TestAStoppedKeeperDoesNotHoldTheEnd(t *testing.T) {
	t.Parallel()
	r := newRung(t, policy.RungLandlock)
	m := mark(t)
	endMarked(t, m)
	run, out := r.start(t, r.narrow(t, policy.Wish{Mode: policy.ReadOnly, Limits: roomy()}), r.command("bomb", m, "5", "stay"))
	out.await(t, "lit")
	require.NoError(t, unix.Kill(run.PID(), unix.SIGSTOP))
	run.Kill()
	_, err := waitInTime(t, run)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return len(marked(t, m)) == 0 }, boxPatience, tick)
}

// Scenario: somebody else decides when the killed program is gone: a debugger,
// or a file system that does not answer. The stop does not wait for him, and says
// so; what the run held is given back when it is gone.
func TestAKilledRunEndsInTime(t *testing.T) {
	t.Parallel()
	r := newBoxRig(t)
	run, out := r.start(t, plainPolicy(t), r.command("stay", mark(t)))
	out.await(t, "staying")
	release := debug(t, run.PID())
	run.Kill()
	_, err := waitInTime(t, run)
	require.ErrorContains(t, err, givenUp)
	left, err := os.ReadDir(r.temp)
	require.NoError(t, err)
	require.NotEmpty(t, left)
	release()
	require.Eventually(t, func() bool {
		left, err := os.ReadDir(r.temp)
		return err == nil && len(left) == 0
	}, boxPatience, tick)
}

// Scenario: the same, before the program has begun: the bot still listens to the
// child, whose end of the socket is held open.
func TestAHeldSocketDoesNotHoldTheEnd(t *testing.T) { // not parallel: it looks for the one child
	r := newRung(t, policy.RungLandlock)
	cmd := r.command("stay", mark(t))
	for range 100 {
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			run, err := r.Start(ctx, r.narrow(t, policy.Wish{Mode: policy.ReadOnly, Limits: roomy()}), cmd)
			if err == nil {
				_, err = run.Wait()
			}
			ended <- err
		}()
		socket := stolen(t)
		cancel()
		select {
		case err := <-ended:
			if socket < 0 {
				continue // the program was faster
			}
			_ = unix.Close(socket)
			require.ErrorContains(t, err, givenUp)
			require.ErrorIs(t, err, context.Canceled)
			return
		case <-time.After(boxPatience):
			require.Fail(t, "it hangs")
		}
	}
	t.Skip("no child of this host could be caught before it became the program")
}

// waitInTime gives the end of a run that was killed. It must come soon.
func waitInTime(t *testing.T, run *sandbox.Run) (sandbox.Exit, error) {
	t.Helper()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = run.Wait()
	}()
	select {
	case <-ended:
	case <-time.After(boxPatience):
		require.Fail(t, "it hangs")
	}
	return run.Wait()
}

// stolen takes the status socket of the child of this process that is a sandbox
// child, or gives -1 where it has become the program.
func stolen(t *testing.T) int {
	t.Helper()
	const statusFD = 4
	for range 2000 {
		for _, pid := range ownChildren(t) {
			fd, err := unix.PidfdOpen(pid, 0)
			if err != nil {
				continue
			}
			socket, err := unix.PidfdGetfd(fd, statusFD, 0)
			_ = unix.Close(fd)
			if err == nil && isSocket(socket) {
				return socket
			}
			if err == nil {
				_ = unix.Close(socket)
			}
		}
	}
	return -1
}

func isSocket(fd int) bool {
	var st unix.Stat_t
	return unix.Fstat(fd, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFSOCK
}

// ownChildren gives the children of this process that are sandbox children.
func ownChildren(t *testing.T) (pids []int) {
	t.Helper()
	lists, err := filepath.Glob("/proc/self/task/*/children")
	require.NoError(t, err)
	for _, list := range lists {
		text, _ := os.ReadFile(list)
		for _, pid := range strings.Fields(string(text)) {
			line, _ := os.ReadFile("/proc/" + pid + "/cmdline")
			if strings.HasPrefix(string(line), "parlour-sandbox-child\x00") {
				pids = append(pids, atoi(t, pid))
			}
		}
	}
	return pids
}

// debuggerName is the name under which this binary holds a process.
const debuggerName = "debugger"

// debuggerMain attaches to a process and holds it, dead or alive, until its input
// ends.
func debuggerMain(args []string) int {
	runtime.LockOSThread()
	var pid int
	if _, err := fmt.Sscan(args[0], &pid); err != nil {
		return 1
	}
	if _, _, errno := unix.RawSyscall6(unix.SYS_PTRACE, unix.PTRACE_SEIZE, uintptr(pid), 0, 0, 0, 0); errno != 0 {
		fmt.Println(errno)
		return 1
	}
	fmt.Println("attached")
	_, _ = io.Copy(io.Discard, os.Stdin)
	return 0
}

// debug holds a process until it is released.
func debug(t *testing.T, pid int) (release func()) {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(self, itoa(pid))
	cmd.Args[0] = debuggerName
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	release = func() {
		_ = in.Close()
		_ = cmd.Wait()
	}
	t.Cleanup(release)
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	if line != "attached\n" {
		t.Skipf("this host lets nobody attach: %s", line)
	}
	return release
}
