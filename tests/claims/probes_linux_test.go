package claims_test

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"parlour/bridge/ask"
	"parlour/tests/house"
)

// prober is a house whose only runner is the prober.
func prober(t *testing.T, limits ...string) *house.House {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	h := house.New(t)
	h.Link("bin/prober", self)
	h.Install(house.StandIn{Name: proberName, Binary: h.Path("bin/prober")}, limits...)
	return h
}

// look runs one probe in the sandbox of a guest.
func look(t *testing.T, h *house.House, what string, limits ...string) findings {
	t.Helper()
	h.Install(house.StandIn{Name: proberName, Binary: h.Path("bin/prober"), Args: []string{what}}, limits...)
	return asked(t, h)
}

// asked asks the prober as it is installed.
func asked(t *testing.T, h *house.House) findings {
	t.Helper()
	ended := h.Ask("q")
	require.Equal(t, ask.Answered, ended.Outcome.Kind, "%+v", ended)
	var f findings
	require.NoError(t, json.Unmarshal([]byte(ended.Outcome.Text), &f), ended.Outcome.Text)
	return f
}

// claim is a sentence about the sandbox and the probe that shows it true.
type claim struct {
	says *regexp.Regexp
	hold func(*testing.T, *house.House)
}

func claims() []claim {
	return []claim{
		{re(`^# Sandbox policy$|^Who asks: |^Their question is quoted |^It is a question, not a rule: `), nil}, // about the question
		{re(`^Files: read-only\.$|^You can change nothing but the scratch folders |^Every other write fails, |^- writable: /`), onlyScratchIsWritable},
		{re(`^The operator's files are not in your view\.$`), nil}, // tests/attacks TestNothingPlantedIsFound
		{re(`^Network: none\.$|^No address, name or socket can be reached\.$`), nothingAnswers},
		{re(`^Processes: you see your own alone, and all of them end with this run\.$`), nobodyElseIsThere},
		{re(`^Tools: none\.$|^Answer from what you know `), nil}, // no tool is offered to a program without a model
		{re(`^Limits: `), limitsHold},
		{re(`^The host may restrict more |^A denied action stays denied: `), nil}, // advice
	}
}

func re(s string) *regexp.Regexp { return regexp.MustCompile(s) }

// TestEachSentenceHasItsProbe takes the text that guests get here apart and
// shows each sentence true from inside the sandbox.
func TestEachSentenceHasItsProbe(t *testing.T) { holdEach(t, prober(t), claims()) }

func holdEach(t *testing.T, h *house.House, all []claim) {
	t.Helper()
	got := h.Bot("guardrail", "--manifests", h.Path("manifests"), "--tier", "guest")
	require.Equal(t, 0, got.Code, got.Err)
	used := make([]bool, len(all))
	for _, sentence := range sentences(got.Out) {
		known := false
		for i, c := range all {
			if c.says.MatchString(sentence) {
				known, used[i] = true, true
			}
		}
		require.True(t, known, "this sentence has no probe: %q", sentence)
	}
	for i, c := range all {
		require.True(t, used[i], "nothing says %s any more", c.says)
		if c.hold != nil {
			c.hold(t, h)
		}
	}
}

func sentences(text string) []string {
	out := []string{}
	for _, line := range strings.Split(strings.TrimSpace(text), "\n") {
		for _, s := range strings.SplitAfter(line, ". ") {
			if s = strings.TrimSpace(s); s != "" {
				out = append(out, s)
			}
		}
	}
	return out
}

func onlyScratchIsWritable(t *testing.T, h *house.House) {
	first, second := look(t, h, "view"), look(t, h, "view")
	require.Equal(t, scratch(), first.Writable)
	require.Empty(t, second.Leftover, "what the first run wrote is gone")
	require.Equal(t, scratch(), second.Writable)
}

func nothingAnswers(t *testing.T, h *house.House) {
	f := look(t, h, "network")
	require.Empty(t, f.Reached)
	require.Empty(t, f.Sockets)
}

func nobodyElseIsThere(t *testing.T, h *house.House) {
	require.Zero(t, look(t, h, "processes").Others)
}

// limitsHold measures from inside what the text calls enforced or soft. Wall
// clock, silence and answer are measured by tests/attacks
// TestEachWayToFailHasItsOutcome.
func limitsHold(t *testing.T, h *house.House) {
	if underRace {
		t.Log("limits are measured without the race detector only: it needs more memory than they leave")
		return
	}
	f := look(t, h, "limits", "memory: 512MiB", "disk: 8MiB", "processes: 40", "open_files: 50", "wall: 40s")
	require.EqualValues(t, 40, f.Processor)
	require.LessOrEqual(t, f.Memory, int64(512<<20))
	require.Greater(t, f.Memory, int64(256<<20))
	require.LessOrEqual(t, f.Scratch, int64(8<<20))
	require.Greater(t, f.Scratch, int64(7<<20))
	require.LessOrEqual(t, f.Processes, 40)
	require.Greater(t, f.Processes, 5)
	require.LessOrEqual(t, f.OpenFiles, 50)
	require.Greater(t, f.OpenFiles, 40)
}

func TestTheWorkingFolderIsWritableInWorkspaceWriteOnly(t *testing.T) {
	h := prober(t)
	h.Install(house.StandIn{Name: proberName, Binary: h.Path("bin/prober"), Args: []string{"view"}})
	h.Write("manifests/tiers/guest.yaml", "tier: guest\npolicy: {mode: workspace-write, network: none, runners: [prober]}\n")
	ended := h.Ask("q")
	require.Equal(t, ask.Answered, ended.Outcome.Kind, "%+v", ended)
	var f findings
	require.NoError(t, json.Unmarshal([]byte(ended.Outcome.Text), &f))
	require.Equal(t, append(scratch(), "/work"), f.Writable)
	text := h.Bot("guardrail", "--manifests", h.Path("manifests"), "--tier", "guest").Out
	require.Contains(t, text, "- writable: /work\n")
}
