package manifests

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"
	"pgregory.net/rapid"

	"parlour/runner/policy"
	"parlour/tiers"
)

const narrow = `tier: team
match:
  discord:
    - {guild: "900000000000000001", channels: ["700000000000000001"], anyone: true}
    - {guild: "900000000000000001", channels: ["700000000000000002"], users: ["222222222222222222"]}
    - {users: ["333333333333333333"]}
    - {guild: "900000000000000001", categories: ["710000000000000001"], roles: ["800000000000000001"], anyone: true}
    - {users: ["555555555555555555"], until: 2026-01-31T18:00:00Z}
  slack:
    - {workspace: T0HOME001, channels: [C0123ABCD], users: [U0GUEST01], anyone: true, external: refuse}
policy:
  mode: read-only
  workspace: none
  documents: []
  tools: []
  network: none
  require: [filesystem, network, processes]
  runners: [docs]
  model: {anthropic: small, output_tokens: 16}
limits: {wall: 10s, stall: 1s, memory: 32MiB, disk: 1MiB, files: 1, processes: 1, open_files: 1, answer: 1KiB, model_requests: 1}
asking: {per_minute: 1, running: 1, waiting: 0, tokens_per_day: {user: 1, tier: 1}}
reply: {where: thread, mentions: none, unfurl: false}
`

// Whatever is taken out of a file or emptied, nobody more is matched, and what
// may be done is never more than the larger of the file and the shipped guest.
// Keys inside one entry of match are only emptied here: without channels or
// guild an entry is another one, by its definition.
func TestLeavingOutNeverWidens(t *testing.T) {
	known := []string{"docs", "claude"}
	floor, faults := floorOf(readShipped().tiers, []string{"agy", "claude", "codex", "docs", "gemini"})
	require.Empty(t, faults)
	full, faults := readTier(source{text: []byte(narrow)}, tiers.Team, floor, known)
	require.Empty(t, faults)
	right := 0
	rapid.Check(t, func(t *rapid.T) {
		var doc yaml.Node
		require.NoError(t, yaml.Unmarshal([]byte(narrow), &doc))
		for range rapid.IntRange(1, 4).Draw(t, "cuts") {
			cut(t, &doc)
		}
		text, err := yaml.Marshal(&doc)
		require.NoError(t, err)
		got, faults := readTier(source{text: text}, tiers.Team, floor, known)
		if len(faults) > 0 {
			return
		}
		right++
		requireNobodyMore(t, string(text), tiers.NewRules(full.rules, nil), tiers.NewRules(got.rules, nil))
		requireNoMore(t, string(text), full.Tier, floor, got.Tier)
	})
	require.Positive(t, right, "files without faults")
}

// cut takes one value out of the document, or empties it.
func cut(t *rapid.T, doc *yaml.Node) {
	n, inEntry := doc.Content[0], false
	for len(n.Content) > 0 {
		step := 1
		if n.Kind == yaml.MappingNode {
			step = 2
		}
		i := rapid.IntRange(0, len(n.Content)/step-1).Draw(t, "which") * step
		inEntry = inEntry || n.Kind == yaml.SequenceNode
		value := n.Content[i+step-1]
		switch rapid.IntRange(0, 4).Draw(t, "how") {
		case 0:
			if !inEntry || n.Kind == yaml.SequenceNode {
				n.Content = slices.Delete(n.Content, i, i+step)
				return
			}
		case 1:
			*value = yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Value: "null"}
			return
		case 2:
			*value = yaml.Node{Kind: yaml.SequenceNode}
			return
		case 3:
			*value = yaml.Node{Kind: yaml.MappingNode}
			return
		}
		n = value
	}
}

type fataler interface {
	Errorf(string, ...any)
	FailNow()
}

func requireNobodyMore(t fataler, text string, full, got tiers.Rules) {
	for _, user := range []string{"222222222222222222", "333333333333333333", "444444444444444444", "555555555555555555"} {
		for _, guild := range []string{"", "900000000000000001", "900000000000000002"} {
			for _, channel := range []string{"700000000000000001", "700000000000000002", "700000000000000003"} {
				for _, category := range []string{"", "710000000000000001"} {
					for _, at := range []time.Time{{}, time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC)} {
						who := tiers.Identity{Platform: tiers.Discord, Workspace: guild, User: user, Kind: tiers.Person, Member: true}
						where := tiers.Place{Platform: tiers.Discord, Workspace: guild, Channel: channel, Category: category, Most: tiers.Owner, Direct: guild == ""}
						require.LessOrEqual(t, got.Resolve(who, where, at).Tier, full.Resolve(who, where, at).Tier, text)
						who.Roles = []string{"800000000000000001"}
						require.LessOrEqual(t, got.Resolve(who, where, at).Tier, full.Resolve(who, where, at).Tier, text)
					}
				}
			}
		}
	}
	for _, user := range []string{"U0GUEST01", "U0OTHER01"} {
		for _, workspace := range []string{"T0HOME001", "T0HOME002"} {
			for _, channel := range []string{"C0123ABCD", "C0123ABCE"} {
				who := tiers.Identity{Platform: tiers.Slack, Workspace: workspace, User: user, Kind: tiers.Person, Member: true}
				where := tiers.Place{Platform: tiers.Slack, Workspace: workspace, Channel: channel, Most: tiers.Owner}
				require.LessOrEqual(t, got.Resolve(who, where, time.Time{}).Tier, full.Resolve(who, where, time.Time{}).Tier, text)
			}
		}
	}
}

func requireNoMore(t fataler, text string, full, floor, got Tier) {
	numbers := func(t Tier) []int64 {
		l, a := t.Wish.Limits, t.Asking
		return []int64{
			int64(t.Wish.Mode), int64(t.Wish.Network), int64(len(t.Wish.Tools)), int64(len(t.Wish.Documents)),
			int64(len(policy.Clauses()) - len(t.Wish.Require)), int64(len(t.Runners)), int64(len(t.Models)),
			int64(l.Wall), int64(l.Stall), l.Memory, l.Disk, int64(l.Files), int64(l.Processes), int64(l.OpenFiles), l.Answer,
			int64(l.ModelRequests), int64(l.OutputTokens),
			int64(a.PerMinute), int64(a.Running), int64(a.Waiting), int64(a.TokensPerDayUser), int64(a.TokensPerDayTier),
		}
	}
	f, g := numbers(full), numbers(floor)
	for i, n := range numbers(got) {
		require.LessOrEqual(t, n, max(f[i], g[i]), "number %d of\n%s", i, text)
		if i >= 7 {
			require.True(t, n > 0 || f[i] == 0, "number %d is off in\n%s", i, text)
		}
	}
	require.False(t, got.Reply.Unfurl)
	require.Equal(t, floor.Reply, got.Reply)
	require.False(t, got.Wish.Armed)
}
