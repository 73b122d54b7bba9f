package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"parlour/manifests"
	"parlour/tiers"
)

// Nothing that was forgotten to be filled in is read as the first start.
func TestT13TheZeroBoundLetsNothingThrough(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"tiers/owner.yaml":  "tier: owner\nmatch: {discord: [{users: [\"111111111111111111\"]}]}\n",
		"runners/mine.yaml": "name: mine\n",
	} {
		file := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
	}
	set, err := manifests.Load(dir)
	require.NoError(t, err)
	force := manifests.InForce(set, bound{}.states()...)
	_, under := force.Rules()
	require.Len(t, under, 1)
	require.Zero(t, under[0].Count(tiers.Owner))
	for _, tier := range tiers.All() {
		_, ok := force.Tier(tier)
		require.False(t, ok, tier)
	}
	require.NotEmpty(t, manifests.Gained(bound{}.states(), set))
	require.Equal(t, []string{"mine"}, bound{}.withheld(set))
	require.Empty(t, bound{past: past{first: true}}.withheld(set))
	require.Empty(t, bound{open: true}.states())

	state := t.TempDir()
	require.NoError(t, os.Chmod(state, 0o700))
	outlets := map[string]string{"slack": "elsewhere"}
	require.Empty(t, consentIn(state).closed(outlets), "the first start")
	require.NoError(t, consentIn(state).keep(standing{Under: []manifests.Texts{{}}}))
	require.Len(t, consentIn(state).closed(outlets), 1, "what is not told was not accepted")
	require.NoError(t, os.WriteFile(filepath.Join(state, "consent", standingFile), []byte("{"), 0o600))
	require.Len(t, consentIn(state).closed(outlets), 1, "and neither was what cannot be read")
}

// The operator may consent to something else while a bot uses a consent up.
func TestT13ANewerConsentStays(t *testing.T) {
	state := t.TempDir()
	require.NoError(t, os.Chmod(state, 0o700))
	c := consentIn(state)
	at := func(second int64, tiers string) accepted {
		return accepted{Tiers: tiers, Runners: map[string]string{"mine": "hash"}, At: time.Unix(second, 0).UTC()}
	}
	first, newer := at(1, "a"), at(2, "b")
	less := first
	less.Tiers = ""
	for name, c2 := range map[string]struct{ lies, read, rest, want accepted }{
		"the whole is used":      {first, first, accepted{At: first.At}, accepted{}},
		"a part is used":         {first, first, less, less},
		"nothing is used":        {first, first, first, first},
		"a newer one, for whole": {newer, first, accepted{}, newer},
		"a newer one, for part":  {newer, first, less, newer},
		"one after none":         {newer, accepted{}, accepted{}, newer},
	} {
		require.NoError(t, c.accept(c2.lies), name)
		require.NoError(t, c.retire(c2.read, c2.rest), name)
		got, err := c.accepted()
		require.NoError(t, err, name)
		require.Equal(t, c2.want, got, name)
		entries, err := os.ReadDir(c.dir)
		require.NoError(t, err)
		require.LessOrEqual(t, len(entries), 1, "nothing is left beside it: "+name)
		_ = os.Remove(filepath.Join(c.dir, acceptedFile))
		require.NoError(t, c.retire(first, less), "there is none any more: "+name)
	}
}
