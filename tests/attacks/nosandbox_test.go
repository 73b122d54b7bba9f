//go:build linux

package attacks_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"parlour/bridge/ask"
	"parlour/runner/policy"
	"parlour/tests/house"
)

// inContainer runs the bot in a container that permits no sandbox: its kernel
// has no Landlock.
func inContainer(t *testing.T, h *house.House, args ...string) house.Result {
	t.Helper()
	around := *h
	around.Around = house.BareContainer
	return around.Bot(args...)
}

func TestNothingButTheHandbookRunsWithoutASandbox(t *testing.T) {
	h := house.New(t)
	got := inContainer(t, h, "ask", "Who may edit a tier manifest?")
	require.Equal(t, 0, got.Code, got.Err)
	require.Contains(t, got.Out, "handbook/operator.md › ")
	require.Contains(t, got.Out, "sandbox off · "+policy.Unsandboxed)

	got = inContainer(t, h, "guardrail", "--tier", "guest")
	require.Equal(t, 0, got.Code, got.Err)
	require.Contains(t, got.Out, "Files: read-only. Not sandboxed on this host: built-in handbook only.")
	require.NotContains(t, got.Out, "not in your view", "nothing is promised that is not held")

	// Any other program is refused with the reason and the cure, and not started.
	marker := h.Path("started")
	h.Install(house.StandIn{Name: "standin", Binary: h.Program("bin/standin", "#!/bin/sh\ntouch "+marker+"\necho answer\n")})
	got = inContainer(t, h, "ask", "--manifests", h.Path("manifests"), "q")
	require.Equal(t, 3, got.Code, got.Err)
	require.Contains(t, got.Out, ask.Sentence(ask.NoSandbox))
	require.Contains(t, got.Out, "refused · tier guest · runner standin (unproven)")
	require.Contains(t, got.Out, "this host cannot enforce filesystem, network, processes: ")
	require.Contains(t, got.Out, "cure: ")
	require.NoFileExists(t, marker)

	// It is not passed over for the handbook either: that would hide the fault.
	h.Guest("[standin, docs]")
	got = inContainer(t, h, "ask", "--manifests", h.Path("manifests"), "Who may edit a tier manifest?")
	require.Equal(t, 3, got.Code, got.Out)
	require.NoFileExists(t, marker)

	// The same on this host as it is: it runs, in the box, where the marker is out of reach.
	ended := h.Ask("q")
	require.Equal(t, ask.Answered, ended.Outcome.Kind, "%+v", ended)
	require.NoFileExists(t, marker)
}

// A default container with Landlock reads the handbook behind it, says how, and
// refuses what its tier requires more for.
func TestADefaultContainerHasTheLandlockRung(t *testing.T) {
	h := house.New(t)
	h.Around = house.Container
	folder := h.OpenTemp(t)
	got := h.Bot("ask", "Who may edit a tier manifest?")
	require.Equal(t, 0, got.Code, got.Err)
	require.Contains(t, got.Out, "handbook/operator.md › ")
	require.Contains(t, got.Out, "sandbox landlock · "+policy.NoView)

	// Every user must be able to reach a program that no view shows.
	marker, program := filepath.Join(folder, "started"), filepath.Join(folder, "standin")
	require.NoError(t, os.WriteFile(program, []byte("#!/bin/sh\ntouch "+marker+" 2>/dev/null\necho answer\n"), 0o755))
	h.Install(house.StandIn{Name: "standin", Binary: program})
	got = h.Bot("ask", "--manifests", h.Path("manifests"), "q")
	require.Equal(t, 3, got.Code, got.Err)
	require.Contains(t, got.Out, ask.Sentence(ask.NoSandbox))
	require.Contains(t, got.Out, "this host cannot enforce processes: no rung full: ")
	require.Contains(t, got.Out, "cure: ")
	require.NoFileExists(t, marker)

	got = h.Bot("runners")
	require.Equal(t, 0, got.Code, got.Err)
	require.Regexp(t, "(?m)^sandbox: landlock: no rung full: .*; no rung bwrap: ", got.Out)

	got = h.Bot("runners", "--json")
	var seen struct {
		Sandbox struct {
			Absent []struct{ Rung, Why, Cure string }
		}
	}
	require.NoError(t, json.Unmarshal([]byte(got.Out), &seen), got.Err)
	require.Len(t, seen.Sandbox.Absent, 2)
	for _, a := range seen.Sandbox.Absent {
		require.NotEmpty(t, a.Why, a.Rung)
		require.NotEmpty(t, a.Cure, a.Rung)
	}

	// A tier that requires no more than the rung enforces is served on it.
	h.Write("manifests/tiers/guest.yaml", "tier: guest\npolicy: {mode: read-only, network: none, require: [filesystem, network], runners: [standin]}\n")
	got = h.Bot("ask", "--manifests", h.Path("manifests"), "q")
	require.Equal(t, 0, got.Code, got.Out)
	require.Contains(t, got.Out, "sandbox landlock")
	require.NoFileExists(t, marker)
}

// A host where only bubblewrap may make namespaces has the bwrap rung, with
// everything that a tier requires.
func TestAHostThatPermitsBubblewrapAloneHasItsRung(t *testing.T) {
	h := house.New(t)
	if cannotHave(t, policy.RungBwrap) {
		t.Skip("needs bubblewrap, and a bot that is not root")
	}
	h.Around = house.Permitted
	got := h.Bot("runners")
	require.Equal(t, 0, got.Code, got.Err)
	require.Regexp(t, "(?m)^sandbox: bwrap: no rung full: start the child: .*operation not permitted; cure: ", got.Out)
	h.Install(house.StandIn{Name: "standin", Binary: h.Program("bin/standin", "#!/bin/sh\nls -A / /home/agent; echo answer\n")})
	ended := h.Ask("q")
	require.Equal(t, ask.Answered, ended.Outcome.Kind, "%+v", ended)
	require.Equal(t, "bwrap", ended.Receipt.Rung)
	require.NotContains(t, ended.Outcome.Text, "root")
	got = h.Bot("ask", "Who may edit a tier manifest?")
	require.Equal(t, 0, got.Code, got.Err)
	require.Contains(t, got.Out, "sandbox bwrap")
}
