package journeys_test

import (
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"parlour/bridge/ask"
	"parlour/tests/house"
)

// handed is what `bot accept --json` and `bot guardrail --for core --json` print.
type handed struct {
	Job, Tier, Runner, Text string
	Command                 []string
	Outcome                 *ask.Outcome
}

// gateway is a house in which a person of one Discord channel is a guest.
func gateway(t *testing.T, runners string) *house.House {
	t.Helper()
	h := house.New(t)
	h.Write("manifests/tiers/guest.yaml", `tier: guest
match:
  discord:
    - {guild: "80351110224678912", channels: ["41771983423143937"], anyone: true}
policy: {mode: read-only, network: none, documents: [handbook], runners: [`+runners+`]}
`)
	return h
}

// take takes a message in as the program of another gateway would.
func take(t *testing.T, h *house.House, args ...string) (handed, house.Result) {
	t.Helper()
	got := h.Bot(append([]string{
		"--json", "--manifests", h.Path("manifests"), "accept", "--platform", "discord",
		"--workspace", "80351110224678912", "--channel", "41771983423143937", "--user", "53908232506183680",
	}, args...)...)
	var d handed
	require.NoError(t, json.Unmarshal([]byte(got.Out), &d), "out %q, err %q", got.Out, got.Err)
	return d, got
}

// command cuts the one command out of the text.
func (d handed) command(t *testing.T) string {
	t.Helper()
	_, rest, found := strings.Cut(d.Text, "until it ends:\n\n    ")
	require.True(t, found, d.Text)
	line, _, _ := strings.Cut(rest, "\n")
	return line
}

func TestACoreAgentHandsAQuestionToTheSandbox(t *testing.T) {
	h := gateway(t, "docs")
	d, got := take(t, h, "--message", "m1", question)
	require.Equal(t, 0, got.Code, got.Err)
	require.Equal(t, "guest", d.Tier)
	require.Equal(t, "docs", d.Runner)
	require.NotContains(t, d.Text, "manifest?", "the core agent reads no word of the question")

	again, _ := take(t, h, "--message", "m1", "another text under the same id")
	require.Equal(t, d.Job, again.Job, "the same message is accepted once")

	// The core agent has its own folder and environment.
	run := func() house.Result {
		shell := exec.Command("/bin/sh", "-c", d.command(t))
		shell.Dir, shell.Env = t.TempDir(), []string{"PATH=/usr/bin:/bin"}
		return house.Run(t, shell)
	}
	first := run()
	require.Equal(t, 0, first.Code, first.Err)
	require.Contains(t, first.Out, "handbook/operator.md › Who may edit a tier manifest")
	require.NotContains(t, first.Out, "receipt:", "what is passed on is the answer alone")
	require.Contains(t, first.Err, "receipt: answered · tier guest · runner docs")
	require.Equal(t, first.Out, run().Out, "a second call reads the same answer")
	require.Len(t, h.Log(), 5, "accepted, decided, run, answered, delivered: once each")
}

func TestTheCoresTextIsTheSameWithAndWithoutAQuestion(t *testing.T) {
	h := gateway(t, "docs")
	d, _ := take(t, h, question)
	got := h.Bot("--manifests", h.Path("manifests"), "guardrail", "--tier", "guest", "--for", "core")
	require.Equal(t, 0, got.Code, got.Err)
	require.Equal(t, got.Out, strings.ReplaceAll(d.Text, d.Job, "ID"))
}

func TestACoreAgentIsToldWhereNothingCanAnswer(t *testing.T) {
	h := gateway(t, "agy")
	d, got := take(t, h, question)
	require.Equal(t, 1, got.Code)
	require.Empty(t, d.Runner)
	require.Empty(t, d.Command)
	require.Equal(t, ask.NoRunner, d.Outcome.Cause)
	require.Contains(t, d.Text, `Answer exactly: "`+ask.Sentence(ask.NoRunner)+`"`)
	later := h.Bot("--manifests", h.Path("manifests"), "ask", "--job", d.Job)
	require.Equal(t, 1, later.Code)
	require.Equal(t, ask.Sentence(ask.NoRunner)+"\n", later.Out)

	stranger := h.Bot("--manifests", h.Path("manifests"), "accept", "--platform", "discord",
		"--workspace", "80351110224678912", "--channel", "41771983423143938", "--user", "53908232506183680", question)
	require.Equal(t, 3, stranger.Code)
	require.Contains(t, stranger.Out, `Answer exactly: "`+ask.Sentence(ask.NotAllowed)+`"`)
}
