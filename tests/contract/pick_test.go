package contract_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"parlour/bridge/ask"
	"parlour/manifests"
	"parlour/runner"
	"parlour/runner/policy"
	"parlour/tiers"
)

var agents = []string{"agy", "codex", "claude", "gemini"}

// facts describes a host on which exactly the given agents are installed, with
// a credential for each, and on which the built-in reader is present.
func facts(t *testing.T, set *manifests.Set, installed []string) map[string]runner.Fact {
	t.Helper()
	all := map[string]runner.Fact{}
	for _, s := range set.Runners() {
		f := runner.Fact{Spec: s, Missing: "not installed", Credential: true}
		if s.BuiltIn || slices.Contains(installed, s.Name) {
			f.Path, f.Missing = "/bin/"+s.Name, ""
		}
		all[s.Name] = f
	}
	return all
}

// combinations gives every subset of the agents.
func combinations() [][]string {
	out := [][]string{}
	for bits := range 1 << len(agents) {
		subset := []string{}
		for i, name := range agents {
			if bits&(1<<i) != 0 {
				subset = append(subset, name)
			}
		}
		out = append(out, subset)
	}
	return out
}

func TestPickOverAllCombinations(t *testing.T) {
	set, err := manifests.Load("")
	require.NoError(t, err)
	guest, ok := set.Tier(tiers.Guest)
	require.True(t, ok)
	for _, installed := range combinations() {
		t.Run(fmt.Sprint(installed), func(t *testing.T) {
			want := "docs"
			for _, name := range []string{"gemini", "claude", "codex"} {
				if slices.Contains(installed, name) {
					want = name
				}
			}
			choice := runner.Pick(runner.Demand{Tier: tiers.Guest, Models: guest.Models, Order: guest.Runners}, facts(t, set, installed))
			require.Equal(t, want, choice.Runner)
			require.Equal(t, "/bin/"+want, choice.Path)
			require.Equal(t, want == "docs", choice.Proven)

			// Each runner before the pick has its reason, those after it none.
			before := guest.Runners[:slices.Index(guest.Runners, want)]
			require.Len(t, choice.Skipped, len(before))
			for i, name := range before {
				require.Equal(t, name, choice.Skipped[i].Runner)
				require.NotEmpty(t, choice.Skipped[i].Reason)
			}
			require.Equal(t, "agy", choice.Skipped[0].Runner)
			require.True(t, strings.HasPrefix(choice.Skipped[0].Reason, "not safe for guest: "), choice.Skipped[0].Reason)
			for _, s := range choice.Skipped[1:] {
				require.Equal(t, "not installed", s.Reason)
			}
		})
	}
}

func TestAgyIsNeverPickedForAnyTier(t *testing.T) {
	set, err := manifests.Load("")
	require.NoError(t, err)
	for _, tier := range tiers.All() {
		choice := runner.Pick(runner.Demand{Tier: tier, Order: []string{"agy"}}, facts(t, set, agents))
		require.Empty(t, choice.Runner, tier)
		require.Len(t, choice.Skipped, 1)
		require.Contains(t, choice.Skipped[0].Reason, "not safe for "+tier.String()+": ", "and nothing else keeps it away")
	}
}

func TestEachReasonForASkip(t *testing.T) {
	set, err := manifests.Load("")
	require.NoError(t, err)
	claude, ok := set.Runner("claude")
	require.True(t, ok)
	cases := map[string]struct {
		fact runner.Fact
		want string
	}{
		"installed, no key":    {runner.Fact{Spec: claude, Path: "/bin/claude"}, "installed, but no credential: no key for anthropic is configured"},
		"not installed":        {runner.Fact{Spec: claude, Missing: "not installed", Credential: true}, "not installed"},
		"found but unusable":   {runner.Fact{Spec: claude, Missing: "found at /x/claude, but it is not executable"}, "found at /x/claude, but it is not executable"},
		"cannot be driven yet": {runner.Fact{Spec: claude, Path: "/bin/claude", Credential: true, Barrier: "there is no gateway"}, "installed, but there is no gateway"},
		"no model named":       {runner.Fact{Spec: claude, Path: "/bin/claude", Credential: true}, "the tier's manifest names no model of anthropic"},
		"the zero fact":        {runner.Fact{}, "not safe for guest: "},
	}
	for name, c := range cases {
		choice := runner.Pick(runner.Demand{Tier: tiers.Guest, Order: []string{"claude"}}, map[string]runner.Fact{"claude": c.fact})
		require.Empty(t, choice.Runner, name)
		require.Equal(t, []ask.Skip{{Runner: "claude", Reason: c.want}}, choice.Skipped, name)
	}
	codex, ok := set.Runner("codex")
	require.True(t, ok)
	fact := map[string]runner.Fact{"codex": {Spec: codex, Path: "/bin/codex", Credential: true}}
	choice := runner.Pick(runner.Demand{Tier: tiers.Guest, Tools: []policy.Tool{policy.Search, policy.Read}, Order: []string{"codex"}}, fact)
	require.Equal(t, []ask.Skip{{Runner: "codex", Reason: "it cannot be limited to the tools read+search"}}, choice.Skipped)

	choice = runner.Pick(runner.Demand{Tier: tiers.Guest, Order: []string{"mystery"}}, nil)
	require.Equal(t, []ask.Skip{{Runner: "mystery", Reason: "no manifest describes it, or the manifest is faulty"}}, choice.Skipped)
	require.Empty(t, runner.Pick(runner.Demand{Order: []string{"docs"}}, facts(t, set, nil)).Runner, "the tier none has no runner")
	require.Empty(t, runner.Pick(runner.Demand{Tier: tiers.Guest}, facts(t, set, agents)).Runner, "an empty list picks nothing")
}
