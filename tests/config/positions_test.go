package config_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"parlour/manifests"
)

// In each text the mark stands where an editor puts its cursor for the fault; it
// is taken out before the text is read. A line that ends with the other mark is
// all that is known of the place.
const (
	cursor   = "▶"
	lineOnly = "◀"
)

// marked takes the mark out, and gives what a fault there begins with.
func marked(t *testing.T, file, text string) (plain, at string) {
	t.Helper()
	mark, format := cursor, "%s:%d:%d: "
	if strings.Contains(text, lineOnly) {
		mark, format = lineOnly, "%s:%d: "
	}
	before, after, found := strings.Cut(text, mark)
	require.True(t, found, text)
	lines := strings.Split(strings.TrimPrefix(before, "\ufeff"), "\n")
	args := []any{file, len(lines), len([]rune(lines[len(lines)-1])) + 1}
	return before + after, fmt.Sprintf(format, args[:strings.Count(format, "%")]...)
}

func TestFaultsStandWhereAnEditorPutsItsCursor(t *testing.T) {
	const entry = "tier: guest\nmatch: {discord: ["
	for name, c := range map[string]struct{ text, what string }{
		"a value":                       {"tier: guest\nreply:\n  where: ▶here\n", `reply.where is "here"`},
		"a quoted value":                {"tier: guest\nreply:\n  where:   ▶'here'\n", `reply.where is "here"`},
		"in a flow mapping":             {"tier: guest\nreply: {mentions: none, where: ▶here}\n", `reply.where is "here"`},
		"over several lines":            {"tier: guest\nreply: {\n  mentions: none,\n      where: ▶here,\n}\n", `reply.where is "here"`},
		"in nested lists":               {entry + "{users: [\"111111111111111111\"]},\n  {users: [\"222222222222222222\", ▶olive]}]}\n", `"olive" is not a Discord user id`},
		"in a block list":               {"tier: guest\nmatch:\n  discord:\n  - users:\n    - \"111111111111111111\"\n    -   ▶olive\n", `"olive" is not a Discord user id`},
		"a list in a list":              {"tier: guest\nmatch:\n  discord:\n    - ▶- - x\n", "is a list"},
		"a block scalar":                {"tier: guest\nreply:\n  where: ▶|\n    here\n    and there\n", `reply.where is "here\nand there\n"`},
		"after a block scalar":          {"tier: |-\n  guest\n▶polcy: x\n", `unknown key "polcy"`},
		"after tabs":                    {"tier: guest\nreply: {where:\t\t▶here}\n", `reply.where is "here"`},
		"after CRLF":                    {"tier: guest\r\n\r\nreply: {where: ▶here}\r\n", `reply.where is "here"`},
		"a byte order mark":             {"\ufeff▶teir: guest\n", `unknown key "teir"`},
		"after a byte order mark":       {"\ufefftier: ▶gest\n", `tier is "gest"`},
		"after umlauts":                 {"tier: guest\nreply: {\"ä\u00f6ü\": 1, where: ▶here}\n", `reply.where is "here"`},
		"after a character of 4 bytes":  {"tier: guest\nreply: {\"😀\": 1, where: ▶here}\n", `reply.where is "here"`},
		"after two marks of one letter": {"tier: guest\nreply: {\"e\u0301\u0302\": 1, where: ▶here}\n", `reply.where is "here"`},
		"a comment does not count":      {"# ä\ntier: guest # ü\nreply: # {where: here}\n  where: ▶here\n", `reply.where is "here"`},
		"a second key":                  {"tier: guest\nreply: {where: thread, ▶where: thread}\n", `the key "where" stands here and at 2:9; `},
		"a second key of the file":      {"tier: guest\nreply: {}\n\n▶reply: {}\n", `the key "reply" stands here and at 2:1; `},
		"a second document":             {"tier: guest\n# more\n▶---\nmatch: {}\n", "a second document begins here"},
		"a second one without a marker": {"tier: guest\n...\n# more\n\n▶match: {}\n", "a second document begins here"},
		"a second one after a list":     {"{tier: guest}\nmatch◀: {}\n", "a second document begins here"},
		"a second one that is no YAML":  {"tier: guest\n▶---\nmatch: [\n", "a second document begins here"},
		"a missing key":                 {"# hello\n\n▶match: {}\n", "tier is missing"},
		"a missing key of a section":    {"tier: guest\n▶policy: {mode: read-only, runners: [docs]}\n", "policy.network is missing"},
		"a missing key of an entry":     {"tier: guest\nmatch:\n  slack:\n    - ▶users: [U0OLIVE01]\n", "match.slack.workspace is missing"},
		"a value that is missing":       {"tier: guest\nlimits:\n  ▶wall:\n", "limits.wall has no value"},
		"an entry that is missing":      {"tier: guest\nmatch:\n  discord:\n    - users:\n        -▶\n        - \"111111111111111111\"\n", "has no value"},
		"no UTF-8":                      {"tier: guest # ä ▶\xff\n", "byte 0xFF is not UTF-8"},
		"a character that hides":        {"tier: guest # ä▶\u202e\n", "the character U+202E"},
		"a tab that indents":            {"tier: guest\nreply:\n ▶\twhere: here\n", "a tab indents this line"},
		"a blank that is none":          {"tier: guest\nreply:\n▶\u00a0\u00a0where: thread\n  mentions: none\n", "U+00A0 looks like a space"},
		"what cannot start a value":     {"tier: guest\nreply: {\"a @b\": x@y, where: ▶@alice}\n", "@ cannot start a value"},
		"the first of two of those":     {"tier: guest\nreply: {where: ▶@alice, mentions: `none`}\n", "@ cannot start a value"},
		"a star without quotes":         {"tier: guest\nreply: {'*': x, where: ▶*}\n", "* cannot start a value"},
		"an alias without an anchor":    {"tier: guest\nreply: {ä: ▶*everybody}\n", `the alias "*everybody" has no anchor`},
		"brackets without end":          {"tier: guest\nmatch: \"ä\"\nx: " + strings.Repeat("[", 100) + "▶[", "brackets stand more than 100 deep"},
		"a list that is not closed":     {"tier: guest\nmatch: {discord: []}\nreply: ◀[a\nlimits: {}\n", "did not find expected ',' or ']'"},
		"a mapping with an odd indent":  {"tier: guest\nlimits:\n    wall: 5s\n  ◀stall: 5s\n", "did not find expected key"},
		"a second colon":                {"tier: guest\nreply: a: ◀b\n", "mapping values are not allowed"},
		"the end of the file":           {"tier: guest\nmatch: {discord: [◀\n\n\n", "did not find expected node content"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := operator(t, nil)
			text, at := marked(t, filepath.Join(dir, "tiers/guest.yaml"), c.text)
			write(t, filepath.Join(dir, "tiers/guest.yaml"), text)
			_, err := manifests.Load(dir)
			var faults manifests.Faults
			require.ErrorAs(t, err, &faults)
			for _, f := range faults {
				if strings.HasPrefix(f.String(), at) && strings.Contains(f.String(), c.what) {
					return
				}
			}
			require.Fail(t, "no such fault", "want %s… %s\n%s", at, c.what, err)
		})
	}
}

func TestFaultsOfRunnersAndTheConfigurationHaveTheirPlaceToo(t *testing.T) {
	dir := operator(t, nil)
	runner, wantRunner := marked(t, filepath.Join(dir, "runners/mine.yaml"), "name: mine\nenv: {\"GRÜSSE\": ä, A: ▶\"{modell}\"}\n")
	write(t, filepath.Join(dir, "runners/mine.yaml"), runner)
	set, err := manifests.Load(dir)
	require.NoError(t, err)
	require.Contains(t, set.Warnings.Error(), wantRunner+"unknown placeholder {modell} in env.A")

	file := filepath.Join(dir, "config.yaml")
	for name, c := range map[string]struct{ text, what string }{
		"an unknown runner":  {"runners: {order: [docs, ▶claud]}\n", "the unknown runner"},
		"a pasted secret":    {"model:\n  openai: {key: ▶sk-0000000000000000}\n", "is not a reference to a secret"},
		"a variable's name":  {"discord: {token: {env: ▶\"A B\"}}\n", "is not the name of a variable"},
		"an address":         {"discord: {api: ▶\"http://x.example\"}\n", "discord.api is "},
		"a relative path":    {"state: ▶~/state\n", "a path in full"},
		"a second key":       {"state: a\n▶state: b\n", "stands here and at 1:1"},
		"a place of its own": {"listen: ▶here\n", "is not host:port"},
	} {
		text, at := marked(t, file, c.text)
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		_, err := loadConfig(file)
		require.ErrorContains(t, err, at, name)
		require.ErrorContains(t, err, c.what, name)
	}
	text, at := marked(t, file, "model: {openai: {key: {env: ▶NOT_SET}}}\n")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	cfg, err := manifests.LoadConfig(file)
	require.NoError(t, err)
	require.Equal(t, at+"model.openai.key: x; right: y", cfg.Models["openai"].Key.Fault("x", "y").String(), "what a reference names has the reference's place")
}
