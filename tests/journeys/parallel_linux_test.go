package journeys_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"parlour/bridge/ask"
	"parlour/tests/house"
)

// asking is a bot that was started and is waited for later.
type asking struct {
	cmd      *exec.Cmd
	out, err house.Printed
}

func start(t *testing.T, h *house.House, args ...string) *asking {
	t.Helper()
	a := &asking{cmd: h.Command(args...)}
	a.cmd.Stdout, a.cmd.Stderr = &a.out, &a.err
	require.NoError(t, a.cmd.Start())
	t.Cleanup(func() { _ = a.cmd.Process.Kill(); _, _ = a.cmd.Process.Wait() })
	return a
}

// end waits for the bot and gives its exit code, -1 where a signal ended it.
func (a *asking) end() int {
	_ = a.cmd.Wait()
	return a.cmd.ProcessState.ExitCode()
}

// sleeper is a house whose guests' only runner never ends by itself.
func sleeper(t *testing.T) (*house.House, []string) {
	h := house.New(t)
	h.Install(house.StandIn{Name: "standin", Binary: h.Program("bin/standin", "#!/bin/sh\nexec sleep 600\n")}, "wall: 120s", "stall: 120s")
	return h, []string{"ask", "--manifests", h.Path("manifests"), "q"}
}

func count(events []ask.Event, kind string) int {
	n := 0
	for _, e := range events {
		if e.Kind == kind {
			n++
		}
	}
	return n
}

func eventually(t *testing.T, why string, holds func() bool) {
	t.Helper()
	require.Eventually(t, holds, 30*time.Second, 20*time.Millisecond, why)
}

func TestOnePersonAtTheTerminalRunsOneAndWaitsWithThree(t *testing.T) {
	h, args := sleeper(t)
	first := start(t, h, args...)
	eventually(t, "no run began", func() bool { return count(h.Log(), ask.EventRequest) == 1 })
	waiting := []*asking{}
	for i := range 3 {
		waiting = append(waiting, start(t, h, args...))
		eventually(t, "the question was not accepted", func() bool { return count(h.Log(), ask.EventAccepted) == i+2 })
	}

	fifth := start(t, h, args...)
	require.Equal(t, 3, fifth.end(), fifth.err.String())
	require.Contains(t, fifth.out.String(), ask.Sentence(ask.Busy))
	require.Equal(t, 1, count(h.Log(), ask.EventRequest), "still one runs")

	// The one that runs is interrupted, and one that waited takes its place.
	require.NoError(t, first.cmd.Process.Signal(os.Interrupt))
	require.Equal(t, 1, first.end(), first.err.String())
	require.Contains(t, first.err.String(), "stopped")
	eventually(t, "the next one does not run", func() bool { return count(h.Log(), ask.EventRequest) == 2 })
	for _, a := range waiting {
		require.NoError(t, a.cmd.Process.Signal(os.Interrupt))
		require.Equal(t, 1, a.end(), a.err.String())
	}
	require.Equal(t, 5, count(h.Log(), ask.EventOutcome), "every question has its end")
	for _, e := range h.Log() {
		if e.Kind == ask.EventOutcome && strings.Contains(string(e.Data), `"busy"`) {
			continue
		}
		if e.Kind == ask.EventOutcome {
			require.Contains(t, string(e.Data), `"cancelled"`)
		}
	}
}

func TestAKilledTerminalHoldsNobodyUp(t *testing.T) {
	h, args := sleeper(t)
	killed := start(t, h, args...)
	eventually(t, "no run began", func() bool { return count(h.Log(), ask.EventRequest) == 1 })
	waiting := start(t, h, args...)
	eventually(t, "the second was not accepted", func() bool { return count(h.Log(), ask.EventAccepted) == 2 })
	require.NoError(t, killed.cmd.Process.Kill())
	require.Equal(t, -1, killed.end())
	eventually(t, "the waiting one was not freed", func() bool { return count(h.Log(), ask.EventRequest) == 2 })
	require.NoError(t, waiting.cmd.Process.Signal(syscall.SIGTERM))
	require.Equal(t, 1, waiting.end())
	log := h.Log()
	require.Equal(t, 2, count(log, ask.EventOutcome))
	require.Contains(t, string(log[len(log)-1].Data)+outcomes(log), string(ask.AskerGone))
}

func outcomes(events []ask.Event) string {
	var b strings.Builder
	for _, e := range events {
		if e.Kind == ask.EventOutcome {
			b.Write(e.Data)
		}
	}
	return b.String()
}

func TestNoProcessOutlivesAKilledBot(t *testing.T) {
	for name, stop := range map[string]os.Signal{"SIGKILL of the bot": os.Kill, "interrupt": os.Interrupt} {
		t.Run(name, func(t *testing.T) {
			h := house.New(t)
			marker := "parlour-survivor-" + filepath.Base(filepath.Dir(h.Dir))
			h.Install(house.StandIn{Name: "standin", Binary: h.Program("bin/standin", `#!/bin/sh
trap '' TERM
i=0
while [ $i -lt 40 ]; do
	setsid sh -c "trap '' TERM HUP INT; while :; do sleep 600; done" `+marker+` &
	i=$((i + 1))
done
echo forked
wait
`)}, "wall: 120s", "stall: 120s", "processes: 200")
			a := start(t, h, "ask", "--manifests", h.Path("manifests"), "q")
			eventually(t, "the children were not started", func() bool { return processes(marker) == 40 })
			require.NoError(t, a.cmd.Process.Signal(stop))
			a.end()
			eventually(t, "some survived", func() bool { return processes(marker) == 0 })
		})
	}
}

// TestNobodyCanCutTheTieToTheBot: a program that asks the kernel not to be ended
// with its parent would run on, without limits, when the bot is killed.
func TestNobodyCanCutTheTieToTheBot(t *testing.T) {
	if _, err := exec.LookPath("perl"); err != nil {
		t.Skip("needs perl, which can make any system call")
	}
	h := house.New(t)
	marker := "parlour-untied-" + filepath.Base(filepath.Dir(h.Dir))
	untie := fmt.Sprintf("syscall(%d, %d, 0, 0, 0, 0); exec q(sh), q(-c), q(while :; do sleep 600; done), q(%s)",
		unix.SYS_PRCTL, unix.PR_SET_PDEATHSIG, marker)
	h.Install(house.StandIn{Name: "standin", Binary: h.Program("bin/standin", "#!/bin/sh\nexec perl -e '"+untie+"'\n")}, "wall: 120s", "stall: 120s")
	a := start(t, h, "ask", "--manifests", h.Path("manifests"), "q")
	eventually(t, "the program was not started", func() bool { return processes(marker) == 1 })
	require.NoError(t, a.cmd.Process.Kill())
	a.end()
	eventually(t, "it survived", func() bool { return processes(marker) == 0 })
}

// processes counts those whose arguments hold the marker.
func processes(marker string) int {
	n := 0
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, f := range files {
		text, _ := os.ReadFile(f)
		fields := strings.Split(string(text), "\x00")
		if len(fields) > 1 && fields[len(fields)-2] == marker {
			n++
		}
	}
	return n
}
