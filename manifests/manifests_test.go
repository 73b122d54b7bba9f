package manifests

import (
	"io/fs"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"

	"parlour/tiers"
)

func TestSizesAreExact(t *testing.T) {
	for text, want := range map[string]int64{
		"64KiB": 65536, "1.5GiB": 1610612736, "10MiB": 10485760, "0.5KiB": 512, "1KiB": 1024, "007KiB": 7168,
		"": 0, "KiB": 0, "1": 0, "1KB": 0, "1kib": 0, "1 KiB": 0, "-1KiB": 0, "+1KiB": 0, "1e3KiB": 0, "0KiB": 0, "0.0KiB": 0,
		"1.KiB": 0, ".5KiB": 0, "1.2.3KiB": 0, "0.3KiB": 0, "9999999999999GiB": 0, "999999999999GiB": 0, "nanKiB": 0, "1/2KiB": 0, "1_0KiB": 0, "0x1KiB": 0,
	} {
		got, ok := bytesOf(text)
		require.Equal(t, want, got, text)
		require.Equal(t, want > 0, ok, text)
	}
}

func TestSuggestionsAreCloseOrAbsent(t *testing.T) {
	known := []string{"guest", "team", "owner", "docs"}
	for got, want := range map[string]string{
		"gest": "guest", "Guest": "guest", "guset": "guest", " team ": "team", "doc": "docs", "ownr": "owner",
		"": "", "no": "", "x": "", "admin": "", "everybody": "", strings.Repeat("g", 1<<20): "",
	} {
		require.Equal(t, want, suggest(got, known), got)
	}
}

func TestFaultsRepeatNoSecret(t *testing.T) {
	for _, secret := range []string{"xoxb-1234-abcd", "xapp-1-A1-abcd", "sk-ant-api03-abcd", "AIzaSyabcd", "ghp_abcd", "github_pat_abcd"} {
		require.NotContains(t, show(secret), "abcd")
	}
	require.Equal(t, `"a\nb\u202e"`, show("a\nb\u202e"), "one line, nothing invisible")
	require.Less(t, len(show(strings.Repeat("\u202e", 1<<16))), 400)
}

func TestOnlyLiteralIdsAreIds(t *testing.T) {
	for text, want := range map[string]bool{
		"[U0OWNER01]": true, "['U0OWNER01']": true, `["U0OWNER01"]`: true, "[\"ä\", \"U0OWNER01\"]": true,
		`["U0\x4fWNER01"]`: false, "[\"U0OW\\\n  NER01\"]": false, "- |-\n  U0OWNER01": false, "- >-\n  U0OWNER01": false,
	} {
		r, top := parse("x", []byte(text))
		require.Empty(t, r.faults, text)
		require.Equal(t, want, r.literal(top.Content[len(top.Content)-1]), text)
	}
}

// Paths are judged by a made-up host, so that the result is the same on all.
func TestPathsOfOthersAreNotMountable(t *testing.T) {
	h := host{private: []string{"/srv/bot", "/var/lib/owner"}, real: func(p string) (string, bool, bool) {
		switch p {
		case "/opt/link":
			return "/opt/real", false, true
		case "/opt/sock":
			return p, true, true
		}
		return p, false, p != "/opt/absent"
	}}
	for p, want := range map[string]bool{
		"/opt/tool": true, "/opt/absent": true, "/srv/botany": true, "/usr/share/tool": true, "/etcetera": true,
		"/srv": false, "/srv/bot": false, "/srv/bot/manifests": false, "/var": false, "/var/lib/owner/.ssh": false, "/": false,
		"/opt/link": false, "/opt/sock": false, "/opt/": false, "opt": false, "": false, "/home": false, "/var/run/docker.sock": false,
	} {
		r := &reader{}
		n := &yaml.Node{Kind: yaml.ScalarNode, Value: p}
		require.Equal(t, want, h.mountable(r, item{"read_only", n, n}, p), p)
		require.Equal(t, want, len(r.faults) == 0, p)
	}
}

// requireNoOwnerUnlisted asks as people whose ids do not stand in the text, with
// every role and from everywhere.
func requireNoOwnerUnlisted(t *testing.T, rules tiers.Rules, text string) {
	t.Helper()
	for _, user := range []string{"111111111111111111", "123456789012345678", "U0OWNER01"} {
		if strings.Contains(text, user) {
			continue
		}
		for _, platform := range []tiers.Platform{tiers.Discord, tiers.Slack} {
			who := tiers.Identity{Platform: platform, Workspace: "900000000000000001", User: user, Kind: tiers.Person, Member: true,
				Roles: []string{"800000000000000001", "900000000000000001", "111111111111111111"}, Groups: []string{"S0TEAM001"}, GroupsKnown: true}
			where := tiers.Place{Platform: platform, Workspace: "900000000000000001", Channel: "700000000000000001", Most: tiers.Owner}
			require.Less(t, rules.Resolve(who, where, time.Time{}).Tier, tiers.Owner)
			where.Workspace, who.Workspace = "T0HOME001", "T0HOME001"
			require.Less(t, rules.Resolve(who, where, time.Time{}).Tier, tiers.Owner)
			where.Direct, where.Workspace, who.Workspace = true, "", ""
			require.Less(t, rules.Resolve(who, where, time.Time{}).Tier, tiers.Owner)
		}
	}
}

// requireInside wants each fault to be one line about a place that the file has.
func requireInside(t *testing.T, text string, faults Faults) {
	t.Helper()
	lines := strings.Split(strings.TrimPrefix(text, "\ufeff"), "\n")
	for _, f := range faults {
		require.NotContains(t, f.String(), "\n")
		require.NotEmpty(t, f.Right)
		require.True(t, f.Line >= 0 && f.Column >= 0 && f.Line <= len(lines), "%s", f)
		if f.Line == 0 {
			require.Zero(t, f.Column, "%s", f)
			continue
		}
		require.LessOrEqual(t, f.Column, utf8.RuneCountInString(strings.TrimSuffix(lines[f.Line-1], "\r"))+1, "%s", f)
	}
}

// An id that makes somebody an owner must be there for the reviewer to see, and
// nothing may make everybody one.
func FuzzLoadTier(f *testing.F) {
	for _, dir := range []string{tierFolder, runnerFolder} {
		entries, err := fs.ReadDir(shipped, dir)
		require.NoError(f, err)
		for _, e := range entries {
			text, err := shipped.ReadFile(dir + "/" + e.Name())
			require.NoError(f, err)
			f.Add(text)
		}
	}
	for _, seed := range []string{
		"tier: owner\nmatch:\n  discord:\n    - {users: [\"111111111111111111\"]}\n",
		"tier: owner\nmatch:\n  discord:\n    - {users: [\"11111111111111111\\x31\"]}\n",
		"tier: owner\nmatch:\n  discord:\n    - {users: [\"111111111\\\n 111111111\"]}\n",
		"tier: owner\nmatch:\n  slack:\n    - {workspace: T0HOME001, users: [U0OWNER01], anyone: true}\n",
		"tier: owner\nmatch:\n  slack:\n    - {workspace: T0HOME001, groups: [S0TEAM001]}\n",
		"tier: owner\nmatch: &a {discord: [{users: [&b 111111111111111111]}, *a]}\n",
		"tier: owner\nmatch:\n  discord:\n    - {guild: \"900000000000000001\", roles: [\"800000000000000001\"], until: 2030-01-31T18:00:00Z}\nblock:\n  discord: [{users: [\"111111111111111111\"]}]\n",
		"tier: owner\nmatch:\n  discord:\n    - users:\n      - |-\n        111111111111111111\n",
		"\ufefftier: owner\r\n---\r\n", "?", "tier: ä\r\nmatch: [ü: ]\n...\nx", "model: {openai: {key: {env: \"ä\"}}}\nlisten: |\n  x\n", "{a: b}\nc", "*a", "{", "tier: !!binary dGVhbQ==",
	} {
		f.Add([]byte(seed))
	}
	shippedFiles := readShipped()
	floor, faults := floorOf(shippedFiles.tiers, []string{"agy", "claude", "codex", "docs", "gemini"})
	require.Empty(f, faults)
	f.Fuzz(func(t *testing.T, text []byte) {
		file, faults := readTier(source{name: "owner", file: "owner.yaml", text: text}, tiers.Owner, floor, []string{"docs"})
		requireInside(t, string(text), faults)
		for _, rule := range file.rules {
			require.Equal(t, tiers.Owner, rule.Tier)
			require.False(t, (rule.Anyone || len(rule.Roles)+len(rule.Groups) > 0 || rule.External) && len(faults) == 0)
			for _, id := range slices.Concat(rule.Users, rule.Channels, rule.Categories, rule.Roles, rule.Groups) {
				require.Contains(t, string(text), id)
			}
		}
		requireNoOwnerUnlisted(t, tiers.NewRules(file.rules, file.caps, file.blocks...), string(text))
		_, faults = readRunner(source{name: "owner", file: "owner.yaml", text: text}, host{real: func(p string) (string, bool, bool) { return p, false, false }})
		requireInside(t, string(text), faults)
		if r, top := parse("config.yaml", text); top != nil {
			c := readConfig(r, item{"", top, top}, "/")
			for _, ref := range c.Refs() {
				r.faults = append(r.faults, ref.Fault("x", "y"))
			}
			requireInside(t, string(text), r.faults)
		}
	})
}
