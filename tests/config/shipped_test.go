package config_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"parlour/manifests"
	"parlour/runner/policy"
	"parlour/runner/spec"
	"parlour/tiers"
)

func TestShippedManifestsAreFaultlessAndHoldNobody(t *testing.T) {
	set, err := manifests.Check("")
	require.NoError(t, err)
	golden(t, "shipped.golden", summary(set, true))
	for _, tier := range tiers.All() {
		require.Zero(t, set.Rules().Count(tier))
		got, ok := set.Tier(tier)
		require.True(t, ok)
		require.Equal(t, policy.ReadOnly, got.Wish.Mode)
		require.False(t, got.Wish.Armed)
		require.Equal(t, policy.Clauses(), got.Wish.Require)
	}
	_, ok := set.Tier(tiers.None)
	require.False(t, ok)
}

func TestShippedRunnersKeepTheirPromises(t *testing.T) {
	set, err := manifests.Check("")
	require.NoError(t, err)
	for _, tier := range tiers.All() {
		got, _ := set.Tier(tier)
		for _, name := range got.Runners {
			r, ok := set.Runner(name)
			require.True(t, ok, name)
			if v := r.Safe.For(tier.String()); !v.OK || r.BuiltIn {
				continue
			}
			require.Contains(t, r.ToolArgs, spec.ToolKey(got.Wish.Tools), "%s is safe for %s, so it can be started there", name, tier)
			require.Contains(t, got.Models, r.Provider, "%s is safe for %s, so its model is pinned", name, tier)
			require.Contains(t, strings.Join(r.Args, " "), spec.ModelPlaceholder, name)
		}
	}
	agy, _ := set.Runner("agy")
	require.Equal(t, spec.Safety{}, spec.Safety{
		Owner: spec.Verdict{OK: agy.Safe.Owner.OK}, Team: spec.Verdict{OK: agy.Safe.Team.OK}, Guest: spec.Verdict{OK: agy.Safe.Guest.OK},
	}, "agy is safe for nobody")
	docs, _ := set.Runner("docs")
	require.True(t, docs.BuiltIn)
	require.False(t, docs.NeedsModel())
}

func TestShippedTextIsAnOperatorsStart(t *testing.T) {
	for _, name := range []string{"tiers/guest.yaml", "tiers/team.yaml", "tiers/owner.yaml", "runners/claude.yaml"} {
		text, err := manifests.Shipped(name)
		require.NoError(t, err)
		_, err = manifests.Check(operator(t, map[string]string{name: string(text)}))
		require.NoError(t, err, name)
	}
	_, err := manifests.Shipped("tiers/../secrets")
	require.Error(t, err)
}

func TestAFileTakesThePlaceOfTheShippedOneWhole(t *testing.T) {
	dir := operator(t, map[string]string{
		"tiers/guest.yaml": "tier: guest\npolicy: {mode: read-only, network: none, runners: [mine, docs]}\n",
		"runners/mine.yaml": "name: mine\nbinaries: [mine]\nsafe: {guest: {ok: true}}\nprovider: none\n" +
			"prompt: argument\nanswer: text\n",
		"runners/codex.yaml": "name: codex\ndisabled: true\n",
	})
	set, err := manifests.Load(dir)
	require.NoError(t, err)
	guest, _ := set.Tier(tiers.Guest)
	require.Equal(t, []string{"mine", "docs"}, guest.Runners)
	require.Empty(t, guest.Models, "nothing of the shipped policy is mixed in")
	require.Empty(t, guest.Wish.Documents)
	require.Equal(t, filepath.Join(dir, "tiers/guest.yaml"), guest.Origin)
	team, _ := set.Tier(tiers.Team)
	require.Equal(t, "shipped:tiers/team.yaml", team.Origin)

	_, ok := set.Runner("mine")
	require.True(t, ok)
	_, ok = set.Runner("codex")
	require.False(t, ok, "the shipped codex does not come back")
	why, ok := set.Broken("codex")
	require.True(t, ok)
	require.Contains(t, set.Warnings, why)
	_, err = manifests.Check(dir)
	require.ErrorContains(t, err, "this runner is disabled")
}

func TestWhatASetGivesCanBeChangedWithoutChangingIt(t *testing.T) {
	set, err := manifests.Load("")
	require.NoError(t, err)
	before := summary(set, true)
	for _, r := range set.Runners() {
		for key := range r.ToolArgs {
			r.ToolArgs[key] = append(r.ToolArgs[key][:0], "--all-tools")
		}
		r.Env["LD_PRELOAD"] = "x"
		r.Args = append(r.Args[:0], "--yolo")
	}
	guest, _ := set.Tier(tiers.Guest)
	guest.Runners[0] = "evil"
	guest.Wish.Require[0] = policy.Processes
	guest.Models[spec.OpenAI] = "dearest"
	require.Equal(t, before, summary(set, true))
}

func TestLoadingIsRepeatable(t *testing.T) {
	dir := operator(t, map[string]string{"tiers/guest.yaml": "tier: gest\nlimits: {wall: 1, stall: 2, memory: 3, disk: 4, files: x}\n"})
	_, first := manifests.Load(dir)
	for range 20 {
		_, again := manifests.Load(dir)
		require.Equal(t, first, again)
	}
}
