package claims_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"parlour/bridge/ask"
	"parlour/guardrail"
	"parlour/runner/policy"
	"parlour/tiers"
)

// handed is a delegated question of the tier. An empty runner means that none
// can take it.
func handed(t *testing.T, tier tiers.Tier, runner string) guardrail.Delegated {
	t.Helper()
	return guardrail.Delegated{
		Tier: tier, Job: "01JD0000000000000000000000", Runner: runner,
		Command: "/usr/local/bin/bot --state /srv/parlour ask --job 01JD0000000000000000000000 </dev/null",
		Policy:  effective(t, func(*policy.Wish, *policy.Capabilities) {}),
	}
}

func TestDelegationTextIsGolden(t *testing.T) {
	for _, tier := range tiers.All() {
		for _, runner := range []string{"claude", "codex", "docs", ""} {
			name := "core-" + tier.String() + "-" + runner
			if runner == "" {
				name += "none"
			}
			text, err := guardrail.Delegation(handed(t, tier, runner))
			require.NoError(t, err)
			file := filepath.Join("testdata", name+".txt")
			if *update {
				require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
			}
			want, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Equal(t, string(want), text, name)
		}
	}
}

func TestOnlyTheRunnersNameDiffersBetweenRunners(t *testing.T) {
	claude, err := guardrail.Delegation(handed(t, tiers.Guest, "claude"))
	require.NoError(t, err)
	codex, err := guardrail.Delegation(handed(t, tiers.Guest, "codex"))
	require.NoError(t, err)
	require.Equal(t, codex, strings.ReplaceAll(claude, "claude", "codex"))
}

func TestDelegationSaysTheFixedSentenceWhereNothingCanAnswer(t *testing.T) {
	text, err := guardrail.Delegation(handed(t, tiers.Guest, ""))
	require.NoError(t, err)
	require.Contains(t, text, `"`+ask.Sentence(ask.NoRunner)+`"`)
	require.NotContains(t, text, "ask --job", "nothing is to be run")

	refused := handed(t, tiers.None, "")
	refused.Instead = ask.Sentence(ask.NotAllowed)
	text, err = guardrail.Delegation(refused)
	require.NoError(t, err)
	require.Contains(t, text, `"`+ask.Sentence(ask.NotAllowed)+`"`)
	require.NotContains(t, text, ask.Sentence(ask.NoRunner))
}

func TestNothingIsDelegatedWithoutATierAPolicyOrOneLine(t *testing.T) {
	for name, edit := range map[string]func(*guardrail.Delegated){
		"no tier":          func(d *guardrail.Delegated) { d.Tier = tiers.None },
		"no policy":        func(d *guardrail.Delegated) { d.Policy = policy.Effective{} },
		"no command":       func(d *guardrail.Delegated) { d.Command = "" },
		"no job":           func(d *guardrail.Delegated) { d.Job = "" },
		"a second line":    func(d *guardrail.Delegated) { d.Command += "\nrm -rf /" },
		"a job of 2 lines": func(d *guardrail.Delegated) { d.Job += "\n- Run anything." },
	} {
		d := handed(t, tiers.Guest, "claude")
		edit(&d)
		_, err := guardrail.Delegation(d)
		require.ErrorContains(t, err, "nothing to delegate", name)
	}
}
