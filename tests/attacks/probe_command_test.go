//go:build linux

package attacks_test

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"parlour/bridge/ask"
	"parlour/runner/policy"
	"parlour/runner/probe"
	"parlour/runner/sandbox"
	discordfake "parlour/tests/fakes/discord"
	"parlour/tests/house"
)

// probedRung is what `bot probe --json` says of a rung.
type probedRung struct {
	Name      string
	Available bool
	Contained int
	Total     int
	Missed    []struct {
		Name, What, Why string
		Admitted        bool
	}
}

func probed(t *testing.T, got house.Result) map[string]probedRung {
	t.Helper()
	var all struct{ Rungs []probedRung }
	require.NoError(t, json.Unmarshal([]byte(got.Out), &all), got.Err)
	rungs := map[string]probedRung{}
	for _, r := range all.Rungs {
		rungs[r.Name] = r
	}
	return rungs
}

func TestBotProbeSaysWhatHolds(t *testing.T) {
	h := house.New(t)
	h.OpenTemp(t)
	if rung, why := h.Sandbox(); rung != "full" {
		t.Skipf("this host has no full rung: %s", why)
	}
	got := h.Bot("probe", "--rung", "full", "--json")
	require.Equal(t, 0, got.Code, got.Err)
	full := probed(t, got)["full"]
	require.Len(t, probed(t, got), 1)
	require.True(t, full.Available)
	require.GreaterOrEqual(t, full.Total, 90)
	require.Equal(t, full.Total, full.Contained)
	require.NotNil(t, full.Missed)
	require.Empty(t, full.Missed)
	var raw struct{ Rungs []map[string]any }
	require.NoError(t, json.Unmarshal([]byte(got.Out), &raw))
	require.Subset(t, slices.Collect(maps.Keys(raw.Rungs[0])), []string{"name", "available", "contained", "total", "missed"})

	got = h.Bot("probe", "--rung", "full")
	require.Equal(t, 0, got.Code, got.Err)
	require.Regexp(t, `(?m)^rung full: \d+ of \d+ escape attempts contained, in \d+ ms$`, got.Out)
	require.Regexp(t, `(?m)^  files +\d+ of +\d+ contained$`, got.Out)
	require.NotContains(t, got.Out, "escaped:")

	got = h.Bot("probe", "--rung", "fort")
	require.Equal(t, 2, got.Code)
	require.Contains(t, got.Err, `there is no rung "fort" (known: full, bwrap, landlock)`)
}

// In a default container the battery finds the Landlock rung, and at most the
// misses that docs/threats.md names.
func TestBotProbeInADefaultContainer(t *testing.T) {
	if landlockABI() == 0 {
		t.Skip("this kernel has no Landlock")
	}
	named, err := os.ReadFile("../../docs/threats.md")
	require.NoError(t, err)
	h := house.New(t)
	h.Around = house.Container
	folder := h.OpenTemp(t)
	got := h.Bot("probe", "--json")
	rungs := probed(t, got)
	require.False(t, rungs["full"].Available)
	landlock := rungs["landlock"]
	require.True(t, landlock.Available, got.Out)
	missed := []string{}
	for _, m := range landlock.Missed {
		missed = append(missed, m.Name)
		require.True(t, strings.Contains(string(named), "`"+m.Name+"`"), "no page names that %s escapes: %s", m.Name, m.Why)
	}
	most := 3
	if os.Getuid() != 0 {
		most = 4 // there is no user of its own
	}
	require.LessOrEqual(t, len(missed), most, "%v", missed)
	require.Equal(t, landlock.Total-len(missed), landlock.Contained, "everything else was tried and contained")
	require.Equal(t, 0, got.Code, "the policy text of the rung tells of each miss")
	for _, m := range landlock.Missed {
		require.True(t, m.Admitted, m.Name)
	}

	// What the policy text admits speaks against no clause: a tier that requires
	// what the rung enforces is served there as before.
	program := filepath.Join(folder, "standin")
	require.NoError(t, os.WriteFile(program, []byte("#!/bin/sh\necho answer\n"), 0o755))
	h.Install(house.StandIn{Name: "standin", Binary: program})
	h.Write("manifests/tiers/guest.yaml", "tier: guest\npolicy: {mode: read-only, network: none, require: [filesystem, network], runners: [standin]}\n")
	ended := h.Ask("q")
	require.Equal(t, ask.Answered, ended.Outcome.Kind, "%+v", ended)
	require.Equal(t, "landlock", ended.Receipt.Rung)
	require.Equal(t, []string{policy.NoView}, ended.Receipt.Notes)

	h.Around = house.BareContainer
	got = h.Bot("probe")
	require.Equal(t, 1, got.Code, "nothing to prove is no proof")
	require.Contains(t, got.Out, "rung landlock: not available: ")
}

// The result of a battery that ran for this program on this host; the verdict of
// one attempt may be another.
func remember(t *testing.T, h *house.House, spoil func([]probe.Finding)) {
	t.Helper()
	engine, err := sandbox.New(sandbox.Config{Self: house.Bot(t), Temp: os.TempDir()})
	require.NoError(t, err)
	rung := probe.Rungs(engine.Probe(t.Context()))[0]
	require.NotEmpty(t, rung.Policies, rung.Why)
	report := probe.Report{Rung: rung.Rung, Available: true}
	for _, a := range probe.Attempts() {
		for _, e := range rung.Policies {
			report.Findings = append(report.Findings, probe.Finding{Attempt: a, Network: e.Network(), Verdict: probe.Contained})
		}
	}
	spoil(report.Findings)
	key, err := probe.NewKey(house.Bot(t), os.Geteuid(), rung)
	require.NoError(t, err)
	require.NoError(t, probe.Memo{Dir: h.Path("state", "parlour", "probe")}.Save(key, report))
}

func verdict(id string, v probe.Verdict) func([]probe.Finding) {
	return func(all []probe.Finding) {
		for i := range all {
			if all[i].ID() == id {
				all[i].Verdict = v
			}
		}
	}
}

// Scenario: an attempt to escape succeeded on this host. A run whose tier
// requires what did not hold is refused, and others go on.
func TestAnEscapeRefusesTheRunsThatRelyOnIt(t *testing.T) {
	h := house.New(t)
	h.Install(house.StandIn{Name: "standin", Binary: h.Program("bin/standin", "#!/bin/sh\necho answer\n")})
	ended := h.Ask("q")
	require.Equal(t, ask.Answered, ended.Outcome.Kind, "%+v", ended)
	require.Contains(t, ended.Receipt.Notes, "not yet probed on this host")

	remember(t, h, func([]probe.Finding) {})
	ended = h.Ask("q")
	require.Equal(t, ask.Answered, ended.Outcome.Kind, "%+v", ended)
	require.Empty(t, ended.Receipt.Notes)

	remember(t, h, verdict("network/loopback-4", probe.Escaped))
	ended = h.Ask("q")
	require.Equal(t, ask.Refused, ended.Outcome.Kind, "%+v", ended)
	require.Equal(t, ask.NoSandbox, ended.Outcome.Cause)
	require.Equal(t, ask.Sentence(ask.NoSandbox), ended.Outcome.Text)
	require.Contains(t, ended.Detail, "this host cannot enforce network: attempts to escape from the sandbox succeeded here: network/loopback-4")

	// A tier that requires no network is not concerned.
	h.Write("manifests/tiers/guest.yaml", "tier: guest\npolicy: {mode: read-only, network: none, require: [filesystem, processes], runners: [standin]}\n")
	ended = h.Ask("q")
	require.Equal(t, ask.Answered, ended.Outcome.Kind, "%+v", ended)

	// The handbook is read by the bot's own program, which is nobody's to lead.
	h.Write("manifests/tiers/guest.yaml", "tier: guest\npolicy: {mode: read-only, network: none, documents: [handbook], runners: [docs]}\n")
	ended = h.Ask("Who may edit a tier manifest?")
	require.Equal(t, ask.Answered, ended.Outcome.Kind, "%+v", ended)
	require.Contains(t, strings.Join(ended.Receipt.Notes, "; "), "network/loopback-4")

	// What could not be measured refuses nobody, and is said.
	h.Guest("[standin]")
	remember(t, h, verdict("ipc/queue", probe.NotMeasured))
	ended = h.Ask("q")
	require.Equal(t, ask.Answered, ended.Outcome.Kind, "%+v", ended)
	require.Equal(t, []string{"1 escape attempts not measured on this host"}, ended.Receipt.Notes)

	// A fresh measurement takes the place of what was remembered.
	remember(t, h, verdict("network/loopback-4", probe.Escaped))
	require.Equal(t, 0, h.Bot("probe", "--rung", "full").Code)
	ended = h.Ask("q")
	require.Equal(t, ask.Answered, ended.Outcome.Kind, "%+v", ended)
	require.Empty(t, ended.Receipt.Notes)
}

// Scenario: the program, the kernel, the user or the policy is another one.
func TestAMemoOfAnotherKeyProvesNothing(t *testing.T) {
	memo := probe.Memo{Dir: t.TempDir()}
	key := probe.Key{Binary: "b", Kernel: "k", User: 1, Policy: "p"}
	report := probe.Report{Rung: policy.RungFull, Available: true}
	for _, a := range probe.Attempts() {
		report.Findings = append(report.Findings, probe.Finding{Attempt: a, Verdict: probe.Contained, Why: "x"})
	}
	require.NoError(t, memo.Save(key, report))
	got, ok := memo.Load(key, policy.RungFull)
	require.True(t, ok)
	require.Equal(t, report, got)
	for _, other := range []probe.Key{
		{Binary: "c", Kernel: "k", User: 1, Policy: "p"}, {Binary: "b", Kernel: "l", User: 1, Policy: "p"},
		{Binary: "b", Kernel: "k", User: 2, Policy: "p"}, {Binary: "b", Kernel: "k", User: 1, Policy: "q"}, {},
	} {
		_, ok := memo.Load(other, policy.RungFull)
		require.False(t, ok, "%+v", other)
	}
	_, ok = memo.Load(key, policy.RungLandlock)
	require.False(t, ok)

	// One that lacks an attempt, or is damaged, proves nothing either.
	report.Findings = report.Findings[1:]
	require.NoError(t, memo.Save(key, report))
	_, ok = memo.Load(key, policy.RungFull)
	require.False(t, ok)
	require.NoError(t, os.WriteFile(filepath.Join(memo.Dir, "full.json"), []byte("{"), 0o600))
	_, ok = memo.Load(key, policy.RungFull)
	require.False(t, ok)
}

// The rules of a report: what is not contained does not hold, and what did not
// escape is not broken.
func TestAReportHoldsOnlyWhatWasContained(t *testing.T) {
	all, none := policy.Clauses(), []policy.Clause{}
	files := probe.Attempt{Family: "files", Name: "read", Needs: []policy.Clause{policy.Filesystem}}
	net := probe.Attempt{Family: "network", Name: "dial", Needs: []policy.Clause{policy.NetworkReach}}
	kernel := probe.Attempt{Family: "kernel", Name: "bpf", Needs: all}
	report := func(f, n, k probe.Verdict) probe.Report {
		return probe.Report{Rung: policy.RungFull, Available: true, Findings: []probe.Finding{
			{Attempt: files, Verdict: f}, {Attempt: net, Verdict: n}, {Attempt: kernel, Verdict: k},
		}}
	}
	const contained, escaped, unknown, absent = probe.Contained, probe.Escaped, probe.NotMeasured, probe.NotApplicable
	for name, c := range map[string]struct {
		report        probe.Report
		holds, broken []policy.Clause
	}{
		"nothing is known":         {probe.Report{}, none, none},
		"all contained":            {report(contained, contained, contained), all, none},
		"one of one clause":        {report(escaped, contained, contained), []policy.Clause{policy.NetworkReach, policy.Processes}, []policy.Clause{policy.Filesystem}},
		"one of every clause":      {report(contained, contained, escaped), none, all},
		"not measured":             {report(contained, unknown, contained), []policy.Clause{policy.Filesystem, policy.Processes}, none},
		"not applicable":           {report(absent, contained, contained), all, none},
		"no attempt left":          {report(absent, absent, absent), none, none},
		"two against each other":   {probe.Report{Available: true, Findings: append(report(contained, contained, contained).Findings, probe.Finding{Attempt: net, Verdict: escaped})}, []policy.Clause{policy.Filesystem, policy.Processes}, []policy.Clause{policy.NetworkReach}},
		"admitted by the text":     {probe.Report{Available: true, Findings: append(report(contained, contained, contained).Findings, probe.Finding{Attempt: probe.Attempt{Family: "namespaces", Name: "host-name", Needs: all}, Verdict: escaped, Admitted: true})}, all, none},
		"a rung that is not there": {probe.Report{Findings: report(contained, contained, contained).Findings}, none, none},
	} {
		holds := []policy.Clause{}
		for _, clause := range all {
			ok, missed := c.report.Satisfies([]policy.Clause{clause})
			require.Equal(t, ok, c.report.Holds(clause), name)
			require.False(t, ok && len(missed) > 0, name)
			if ok {
				holds = append(holds, clause)
			}
		}
		require.Equal(t, c.holds, holds, name)
		broken, escapes := c.report.Broken(nil)
		require.Equal(t, len(broken) > 0, len(escapes) > 0, name)
		require.ElementsMatch(t, c.broken, broken, name)
		ok, _ := c.report.Satisfies(nil)
		require.Equal(t, len(c.holds) == len(all), ok, name)
	}
	two := probe.Report{Available: true, Findings: []probe.Finding{
		{Attempt: net, Network: policy.ModelOnly, Verdict: escaped}, {Attempt: net, Network: policy.NetworkNone, Verdict: contained},
		{Attempt: files, Network: policy.NetworkNone, Verdict: contained},
	}}
	require.False(t, two.Holds(policy.NetworkReach))
	require.True(t, two.Under(policy.NetworkNone).Holds(policy.NetworkReach))
	require.False(t, two.Under(policy.ModelOnly).Holds(policy.NetworkReach))
	require.True(t, two.Under(policy.ModelOnly).Holds(policy.Filesystem), "it does not depend on the network")
}

// A serving bot runs the battery beside its work and shows the result; its next
// start knows it.
func TestServeProbesItsSandboxInTheBackground(t *testing.T) {
	fake, err := discordfake.New(discordfake.Config{Token: "probing.token", Bot: "100000000000000001"})
	require.NoError(t, err)
	t.Cleanup(fake.Close)
	h := house.New(t)
	if rung, why := h.Sandbox(); rung != "full" {
		t.Skipf("this host has no full rung: %s", why)
	}
	h.Write("manifests/tiers/owner.yaml", "tier: owner\nmatch:\n  discord:\n    - {users: [\"111111111111111111\"]}\n")
	config := h.Write("config.yaml", "discord: {token: {env: TOKEN}, api: \""+fake.URL()+"\"}\nmanifests: ./manifests\nstate: ./state/serve\nlisten: 127.0.0.1:0\n")
	h.Env = append(h.Env, "TOKEN=probing.token")
	for _, before := range []string{"measured_before=false", "measured_before=true"} {
		printed := &house.Printed{}
		cmd := h.Command("--config", config, "serve")
		cmd.Stderr = printed
		require.NoError(t, cmd.Start())
		t.Cleanup(func() { endCommand(cmd) })
		page := func(path string) string {
			text, _ := printed.Page(path)
			return text
		}
		require.Eventually(t, func() bool { return strings.Contains(page("/readyz"), "sandbox: full, ") }, boxPatience, tick, printed)
		require.Regexp(t, `(?m)^sandbox: full, (\d+) of (\d+) escape attempts contained$`, page("/readyz"))
		require.Eventually(t, func() bool { return strings.Contains(printed.String(), before) }, boxPatience, tick, printed)
		require.Contains(t, printed.String(), "escape attempts contained")
		require.Eventually(t, func() bool {
			return strings.Contains(page("/metrics"), `parlour_escape_attempts{rung="full",verdict="escaped"} 0`)
		}, boxPatience, tick)
		require.NotContains(t, page("/metrics"), `verdict="contained"} 0`)
		require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
		require.NoError(t, cmd.Wait())
	}
}

func endCommand(cmd *exec.Cmd) {
	if cmd.ProcessState == nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
}
