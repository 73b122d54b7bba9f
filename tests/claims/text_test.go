// Package claims_test holds what the guardrail text says against what the
// sandbox does.
package claims_test

import (
	"crypto/sha256"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"parlour/guardrail"
	"parlour/runner/policy"
	"parlour/tiers"
)

var update = flag.Bool("update", false, "write the golden files anew")

func limits() policy.Limits {
	return policy.Limits{
		Wall: 4 * time.Minute, Stall: 45 * time.Second, Memory: 3 << 29, Disk: 64 << 20, Files: 4096,
		Processes: 64, OpenFiles: 1024, Answer: 64 << 10, ModelRequests: 20, OutputTokens: 4096,
	}
}

// landlocked is a host that has the Landlock rung alone.
func landlocked() policy.Capabilities {
	return policy.Capabilities{
		Rung: policy.RungLandlock, Filesystem: policy.Enforced, Network: policy.Soft, Offline: policy.Enforced, Processes: policy.Soft,
		Memory: policy.Soft, Disk: policy.Soft, ProcessCount: policy.Enforced, OpenFiles: policy.Enforced, Landlock: 7,
		Why: "no rung full, bwrap: mount: operation not permitted", Cure: "run the bot on the host",
	}
}

// bubbled is a host that has the bwrap rung and the Landlock rung.
func bubbled() policy.Capabilities {
	c := full()
	c.Rung, c.Disk, c.Why, c.Cure = policy.RungBwrap, policy.Soft, "no rung full: mount: operation not permitted", "an AppArmor profile"
	c.Lower = []policy.Capabilities{landlocked()}
	return c
}

// full is a host that enforces everything.
func full() policy.Capabilities {
	return policy.Capabilities{
		Rung: policy.RungFull, Filesystem: policy.Enforced, Network: policy.Enforced, Processes: policy.Enforced,
		Memory: policy.Soft, Disk: policy.Enforced, ProcessCount: policy.Enforced, OpenFiles: policy.Enforced, Landlock: 7,
	}
}

func effective(t *testing.T, edit func(*policy.Wish, *policy.Capabilities)) policy.Effective {
	t.Helper()
	w := policy.Wish{Mode: policy.ReadOnly, Limits: limits()}
	c := full()
	edit(&w, &c)
	e, err := policy.Narrow(w, c)
	require.NoError(t, err)
	return e
}

// states is every state of the policy whose text differs in kind.
func states(t *testing.T) map[string]policy.Effective {
	t.Helper()
	plain, err := policy.BuiltInDocs(policy.Wish{Documents: []string{policy.Handbook}, Limits: limits()},
		policy.Capabilities{Why: "no sandbox on this system", Cure: "run the bot on Linux"})
	require.NoError(t, err)
	return map[string]policy.Effective{
		"read-only": effective(t, func(*policy.Wish, *policy.Capabilities) {}),
		"read-only-handbook": effective(t, func(w *policy.Wish, _ *policy.Capabilities) {
			w.Documents = []string{policy.Handbook}
		}),
		"read-only-tools-model": effective(t, func(w *policy.Wish, _ *policy.Capabilities) {
			w.Tools, w.Network = []policy.Tool{policy.Search, policy.Read}, policy.ModelOnly
		}),
		"read-only-without-landlock": effective(t, func(_ *policy.Wish, c *policy.Capabilities) { c.Landlock = 0 }),
		"read-only-partial-network": effective(t, func(w *policy.Wish, c *policy.Capabilities) {
			w.Require, c.Network = []policy.Clause{policy.Filesystem, policy.Processes}, policy.Soft
		}),
		"workspace-write": effective(t, func(w *policy.Wish, _ *policy.Capabilities) {
			w.Mode = policy.WorkspaceWrite
			w.Scratch = []string{"/tmp/../tmp/x", "/home/agent/.config", "/var/scratch/", "/var/scratch", "relative"}
		}),
		"danger-full-access-armed":   effective(t, func(w *policy.Wish, _ *policy.Capabilities) { w.Mode, w.Armed = policy.DangerFullAccess, true }),
		"danger-full-access-unarmed": effective(t, func(w *policy.Wish, _ *policy.Capabilities) { w.Mode = policy.DangerFullAccess }),
		"plain-handbook":             plain,
		"bwrap-read-only":            effective(t, func(_ *policy.Wish, c *policy.Capabilities) { *c = bubbled() }),
		"landlock-read-only": effective(t, func(w *policy.Wish, c *policy.Capabilities) {
			w.Require, *c = []policy.Clause{policy.Filesystem, policy.NetworkReach}, landlocked()
		}),
		"landlock-workspace-write-model": effective(t, func(w *policy.Wish, c *policy.Capabilities) {
			w.Mode, w.Network, w.Scratch = policy.WorkspaceWrite, policy.ModelOnly, []string{"/var/cache/agent"}
			w.Require, *c = []policy.Clause{policy.Filesystem}, landlocked()
		}),
		"landlock-old-model": effective(t, func(w *policy.Wish, c *policy.Capabilities) {
			w.Network, w.Require, *c = policy.ModelOnly, []policy.Clause{policy.Filesystem}, landlocked()
			c.Network, c.Landlock = policy.None, 3
		}),
	}
}

func TestPolicyTextIsGolden(t *testing.T) {
	for name, e := range states(t) {
		text, err := guardrail.Policy(tiers.Guest, e)
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

func TestOnlyTheTierDiffersBetweenTiers(t *testing.T) {
	e := states(t)["read-only"]
	guest, err := guardrail.Policy(tiers.Guest, e)
	require.NoError(t, err)
	for _, tier := range []tiers.Tier{tiers.Team, tiers.Owner} {
		text, err := guardrail.Policy(tier, e)
		require.NoError(t, err)
		require.Equal(t, strings.Replace(guest, "the tier guest", "the tier "+tier.String(), 1), text)
	}
}

func TestSameStateSameBytesChangedStateChangedBytes(t *testing.T) {
	seen := map[[32]byte]string{}
	lines := map[string]string{}
	for name, e := range states(t) {
		first, err := guardrail.Policy(tiers.Guest, e)
		require.NoError(t, err)
		sum := sha256.Sum256([]byte(first))
		for range 1000 {
			again, err := guardrail.Policy(tiers.Guest, e)
			require.NoError(t, err)
			require.Equal(t, sum, sha256.Sum256([]byte(again)))
		}
		require.Empty(t, seen[sum], "%s renders as another state does", name)
		require.Empty(t, lines[e.Hash()], "%s hashes as another state does", name)
		seen[sum], lines[e.Hash()] = name, name
	}
}

func TestNothingIsRenderedWhereNothingMayRun(t *testing.T) {
	_, err := guardrail.Policy(tiers.Guest, policy.Effective{})
	require.ErrorContains(t, err, "nothing may run")
	_, err = guardrail.Policy(tiers.None, states(t)["read-only"])
	require.ErrorContains(t, err, "nothing may run")
}

func TestNarrowRefusesWhatTheHostCannotEnforce(t *testing.T) {
	weak := full()
	weak.Network, weak.Why, weak.Cure = policy.Soft, "no network namespace", "permit user namespaces"
	_, err := policy.Narrow(policy.Wish{Mode: policy.ReadOnly, Limits: limits()}, weak)
	var refused *policy.RefusedError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, []policy.Clause{policy.NetworkReach}, refused.Missing)
	require.EqualError(t, err, "this host cannot enforce network: no network namespace; cure: permit user namespaces")

	_, err = policy.Narrow(policy.Wish{Mode: policy.ReadOnly, Limits: limits()}, policy.Capabilities{})
	require.ErrorAs(t, err, &refused)
	require.Len(t, refused.Missing, 3)

	_, err = policy.Narrow(policy.Wish{Limits: limits()}, full())
	require.ErrorContains(t, err, "nothing may run")
	_, err = policy.Narrow(policy.Wish{Mode: policy.ReadOnly}, full())
	require.ErrorContains(t, err, "limit wall is too low")
}

// Each wish goes to the strongest rung that enforces what it requires, and the
// refusal names what the closest one lacks.
func TestNarrowPicksTheStrongestRungThatHolds(t *testing.T) {
	none, model := policy.NetworkNone, policy.ModelOnly
	files, reach, processes := policy.Filesystem, policy.NetworkReach, policy.Processes
	for _, c := range []struct {
		host    policy.Capabilities
		network policy.Network
		require []policy.Clause
		rung    policy.Rung
		lacks   []policy.Clause
	}{
		{full(), model, nil, policy.RungFull, nil},
		{bubbled(), model, nil, policy.RungBwrap, nil},
		{bubbled(), none, []policy.Clause{files}, policy.RungBwrap, nil},
		{landlocked(), none, []policy.Clause{files}, policy.RungLandlock, nil},
		{landlocked(), none, []policy.Clause{files, reach}, policy.RungLandlock, nil},
		{landlocked(), model, []policy.Clause{files}, policy.RungLandlock, nil},
		{landlocked(), none, nil, 0, []policy.Clause{processes}},
		{landlocked(), model, nil, 0, []policy.Clause{reach, processes}},
		{landlocked(), model, []policy.Clause{reach}, 0, []policy.Clause{reach}},
		{policy.Capabilities{}, none, []policy.Clause{files}, 0, policy.Clauses()},
		{policy.Capabilities{Rung: policy.RungPlain, Filesystem: policy.Enforced}, none, []policy.Clause{files}, 0, policy.Clauses()},
	} {
		e, err := policy.Narrow(policy.Wish{Mode: policy.ReadOnly, Network: c.network, Require: c.require, Limits: limits()}, c.host)
		require.Equal(t, c.rung, e.Rung(), "%+v", c)
		if c.rung != policy.RungNone {
			require.NoError(t, err)
			continue
		}
		var refused *policy.RefusedError
		require.ErrorAs(t, err, &refused)
		require.Equal(t, c.lacks, refused.Missing, "%+v", c)
	}
	// A rung that is weak in one clause is passed over for a lower one that is not.
	leaky := bubbled()
	leaky.Filesystem = policy.Soft
	e, err := policy.Narrow(policy.Wish{Mode: policy.ReadOnly, Require: []policy.Clause{files}, Limits: limits()}, leaky)
	require.NoError(t, err)
	require.Equal(t, policy.RungLandlock, e.Rung())
}

// The handbook is part of the program, so it is read on any rung, and on the
// best one; the text then says what holds there.
func TestTheHandbookIsReadOnTheBestRung(t *testing.T) {
	wish := policy.Wish{
		Mode: policy.DangerFullAccess, Network: policy.ModelOnly, Tools: []policy.Tool{policy.Read},
		Documents: []string{policy.Handbook, "wiki"}, Limits: limits(),
	}
	for rung, host := range map[policy.Rung]policy.Capabilities{
		policy.RungBwrap: bubbled(), policy.RungLandlock: landlocked(), policy.RungPlain: {},
	} {
		e, err := policy.BuiltInDocs(wish, host)
		require.NoError(t, err)
		require.Equal(t, rung, e.Rung())
		require.Equal(t, policy.ReadOnly, e.Mode())
		require.Equal(t, policy.NetworkNone, e.Network())
		require.Empty(t, e.Tools())
		require.Equal(t, []string{policy.Handbook}, e.Documents())
	}
}

func TestPlainChildServesTheHandbookOnly(t *testing.T) {
	greedy := policy.Wish{
		Mode: policy.DangerFullAccess, Armed: true, Network: policy.ModelOnly, Tools: []policy.Tool{policy.Read},
		Documents: []string{policy.Handbook, "wiki"}, Scratch: []string{"/srv"}, Limits: limits(),
	}
	e, err := policy.BuiltInDocs(greedy, policy.Capabilities{})
	require.NoError(t, err)
	require.Equal(t, policy.ReadOnly, e.Mode())
	require.Equal(t, policy.NetworkNone, e.Network())
	require.Empty(t, e.Tools())
	require.Equal(t, []string{policy.Handbook}, e.Documents())
	require.Empty(t, e.Writable())
	require.Equal(t, policy.RungPlain, e.Rung())
	for _, c := range policy.Clauses() {
		require.Equal(t, policy.None, e.Level(c))
	}
	_, err = policy.BuiltInDocs(policy.Wish{Documents: []string{"wiki"}, Limits: limits()}, policy.Capabilities{})
	require.Error(t, err)
}
