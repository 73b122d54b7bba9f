//go:build linux

package attacks_test

import (
	"context"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"parlour/runner/policy"
	"parlour/runner/sandbox"
)

func itoa(n int) string { return strconv.Itoa(n) }

// Scenario: 40 processes have left the session and ignore what asks them to end.
func TestNoProcessSurvivesTheRun(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(run *sandbox.Run, cancel func()){
		"kill":       func(run *sandbox.Run, _ func()) { run.Kill() },
		"kill twice": func(run *sandbox.Run, _ func()) { run.Kill(); run.Kill() },
		"cancel":     func(_ *sandbox.Run, cancel func()) { cancel() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newBox(t)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			m, out := mark(t), &runOutput{}
			cmd := r.command("bomb", m, "40", "stay")
			cmd.Stdout, cmd.Stderr = out, out
			run, err := r.Start(ctx, r.narrow(t, policy.Wish{Mode: policy.ReadOnly, Limits: roomy()}), cmd)
			require.NoError(t, err)
			out.await(t, "lit")
			require.Eventually(t, func() bool { return len(marked(t, m)) == 41 }, boxPatience, tick, "%v %s", marked(t, m), out)
			end(run, cancel)
			exit, err := run.Wait()
			require.NoError(t, err)
			require.Empty(t, marked(t, m), "Wait returns when nobody is left")
			require.Equal(t, syscall.SIGKILL, exit.Signal)
			require.Equal(t, -1, exit.Code)
			require.False(t, exit.Held)
			run.Kill() // does nothing any more
		})
	}
}

// Scenario: the program ends and leaves children that hold its output open.
func TestEndOfTheProgramEndsItsChildren(t *testing.T) {
	t.Parallel()
	r := newBox(t)
	m := mark(t)
	eff := r.narrow(t, policy.Wish{Mode: policy.ReadOnly, Limits: roomy()})
	run, out := r.start(t, eff, r.command("bomb", m, "40", "end"))
	exit, err := run.Wait()
	require.NoError(t, err)
	require.Zero(t, exit.Code, out)
	require.False(t, exit.Held)
	require.Empty(t, marked(t, m))
	require.Contains(t, out.String(), "lit")
}

// Scenario: the goroutine that starts a run holds a thread and ends with it. The
// kernel would take the run for an orphan.
func TestRunOutlivesItsStartingGoroutine(t *testing.T) {
	t.Parallel()
	r := newBox(t)
	type started struct {
		run *sandbox.Run
		err error
	}
	result := make(chan started)
	cmd, out := r.command("stay", "orphan"), &runOutput{}
	cmd.Stdout = out
	thread, eff := make(chan int, 1), r.guest(t)
	var begin func()
	begin = func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		if syscall.Gettid() == os.Getpid() {
			go begin() // the main thread never ends; holding it leaves the others
			<-t.Context().Done()
			return
		}
		thread <- syscall.Gettid()
		run, err := r.Start(t.Context(), eff, cmd)
		result <- started{run, err}
	}
	go begin()
	got := <-result
	require.NoError(t, got.err)
	tid := <-thread
	require.Eventually(t, func() bool {
		_, err := os.Stat("/proc/self/task/" + itoa(tid))
		return os.IsNotExist(err)
	}, boxPatience, tick, "the thread ends")
	out.await(t, "staying")
	line, err := os.ReadFile("/proc/" + itoa(got.run.PID()) + "/cmdline")
	require.NoError(t, err)
	require.NotEmpty(t, line, "the run is alive")
	got.run.Kill()
	_, err = got.run.Wait()
	require.NoError(t, err)
}

func TestExitIsTold(t *testing.T) {
	t.Parallel()
	r := newBox(t)
	cmd := sandbox.Command{Name: "sh", Path: "/bin/sh", Env: []string{}, Args: []string{"-c", "exit 7"}}
	run, _ := r.start(t, r.guest(t), cmd)
	exit, err := run.Wait()
	require.NoError(t, err)
	require.Equal(t, 7, exit.Code)
	require.Zero(t, exit.Signal)
	require.Positive(t, exit.PeakRSS)
	again, err := run.Wait()
	require.NoError(t, err)
	require.Equal(t, exit, again)
}

func TestCancelledBeforeTheStartRunsNothing(t *testing.T) {
	t.Parallel()
	r := newBox(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := r.Start(ctx, r.guest(t), r.command("stay", "never"))
	require.ErrorIs(t, err, context.Canceled)
}

// roomy are limits under which 41 programs with threads can live.
func roomy() policy.Limits {
	l := boxLimits()
	l.Processes = 1000
	return l
}
