package contract_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"parlour/manifests"
	"parlour/runner/policy"
	"parlour/runner/spec"
)

const guardedTeam = `tier: team
policy:
  mode: read-only
  documents: []
  tools: [read]
  network: none
  require: [filesystem, network, processes]
  runners: [docs]
  model: {anthropic: small, output_tokens: 16}
limits: {wall: 10s, stall: 1s, memory: 100MiB, disk: 1MiB, files: 10, processes: 10, open_files: 10, answer: 1KiB, model_requests: 2}
asking: {per_minute: 2, running: 2, waiting: 2, tokens_per_day: {user: 20, tier: 20}}
`

// Each value that a tier may be given more of shows as one gain, and as one loss
// on the way back (T13).
func TestT13EveryValueOfAPolicyIsCompared(t *testing.T) {
	t.Parallel()
	base, _ := written(t, map[string]string{"team": guardedTeam})
	for _, edit := range [][2]string{
		{"mode: read-only", "mode: workspace-write"}, {"documents: []", "documents: [handbook]"}, {"tools: [read]", "tools: [read, search]"},
		{"network: none", "network: model-only"}, {"require: [filesystem, network, processes]", "require: [filesystem, network]"},
		{"runners: [docs]", "runners: [docs, codex]"}, {"output_tokens: 16", "output_tokens: 17"}, {"anthropic: small", "anthropic: small, openai: big"},
		{"wall: 10s", "wall: 11s"}, {"stall: 1s", "stall: 2s"}, {"memory: 100MiB", "memory: 200MiB"}, {"disk: 1MiB", "disk: 2MiB"},
		{"files: 10,", "files: 11,"}, {"processes: 10,", "processes: 11,"}, {"open_files: 10", "open_files: 11"}, {"answer: 1KiB", "answer: 2KiB"},
		{"model_requests: 2", "model_requests: 3"}, {"per_minute: 2", "per_minute: 3"}, {"running: 2", "running: 3"}, {"waiting: 2", "waiting: 3"},
		{"user: 20", "user: 21"}, {"tier: 20}", "tier: 21}"},
	} {
		require.Equal(t, 1, strings.Count(strings.ReplaceAll(guardedTeam, "open_files: 10,", "open_files: 10 ,"), edit[0]), edit[0])
		wider, _ := written(t, map[string]string{"team": strings.Replace(guardedTeam, edit[0], edit[1], 1)})
		there, back := manifests.Diff(base, wider), manifests.Diff(wider, base)
		require.Len(t, there.Gains(), 1, "%s: %v", edit[1], there)
		require.Empty(t, there.Losses(), edit[1])
		require.Len(t, back.Losses(), 1, "%s: %v", edit[1], back)
		require.Empty(t, back.Gains(), edit[1])
	}
	renamed, _ := written(t, map[string]string{"team": strings.Replace(guardedTeam, "anthropic: small", "anthropic: other", 1)})
	require.Len(t, manifests.Diff(base, renamed).Gains(), 1, "which model is more, nobody can tell")
	require.Len(t, manifests.Diff(renamed, base).Gains(), 1)
	list := strings.Replace(guardedTeam, "runners: [docs]", "runners: [docs, codex]", 1)
	one, _ := written(t, map[string]string{"team": list})
	other, _ := written(t, map[string]string{"team": strings.Replace(list, "[docs, codex]", "[codex, docs]", 1)})
	reordered := manifests.Diff(one, other)
	require.Len(t, reordered, 1)
	require.Equal(t, manifests.Neutral, reordered[0].Effect)
}

// A runner that is driven otherwise can do anything, so all but a part that is
// taken away is a gain; values that may be private are not told.
func TestT13EveryFieldOfARunnerIsCompared(t *testing.T) {
	t.Parallel()
	base := spec.Spec{
		Name: "x", Binaries: []string{"x"}, Provider: spec.NoProvider, Args: []string{"-p"}, Env: map[string]string{"A": "secret"},
		EnvAllow: []string{"LANG"}, ConfigEnv: map[string]string{"C": "/home/agent/c"}, Files: map[string]string{"/home/agent/f": "secret"}, ReadOnly: []string{"/opt/x"},
		Safe: spec.Safety{Team: spec.Verdict{OK: true}}, ToolArgs: map[string][]string{"none": {}}, WireTools: map[policy.Tool][]string{},
	}
	stall := time.Second
	for name, edit := range map[string]func(*spec.Spec){
		"binaries": func(s *spec.Spec) { s.Binaries = []string{"y"} }, "args": func(s *spec.Spec) { s.Args = []string{"-p", "-y"} },
		"provider": func(s *spec.Spec) { s.Provider = spec.OpenAI }, "safe": func(s *spec.Spec) { s.Safe.Guest.OK = true },
		"a value of env": func(s *spec.Spec) { s.Env = map[string]string{"A": "another secret"} },
		"env":            func(s *spec.Spec) { s.Env = map[string]string{"A": "secret", "B": ""} },
		"env_allow":      func(s *spec.Spec) { s.EnvAllow = []string{"LANG", "TZ"} },
		"config_env":     func(s *spec.Spec) { s.ConfigEnv = map[string]string{"C": "/home/agent/d"} },
		"files":          func(s *spec.Spec) { s.Files = map[string]string{"/home/agent/f": "another secret"} },
		"read_only":      func(s *spec.Spec) { s.ReadOnly = []string{"/opt/x", "/opt/y"} },
		"tool_args":      func(s *spec.Spec) { s.ToolArgs = map[string][]string{"none": {"-x"}} },
		"wire_tools":     func(s *spec.Spec) { s.WireTools = map[policy.Tool][]string{policy.Read: {"Read"}} },
		"needs_flags":    func(s *spec.Spec) { s.NeedsFlags = []string{"-p"} }, "help_args": func(s *spec.Spec) { s.HelpArgs = []string{"-h"} },
		"prompt": func(s *spec.Spec) { s.Prompt = spec.ByFile }, "prompt_flag": func(s *spec.Spec) { s.PromptFlag = "-q" },
		"stdin": func(s *spec.Spec) { s.StdinArg = "-" }, "answer": func(s *spec.Spec) { s.Answer = spec.CodexJSON },
		"stall": func(s *spec.Spec) { s.Stall = &stall }, "built in": func(s *spec.Spec) { s.BuiltIn = true },
	} {
		changed := base
		edit(&changed)
		changes := manifests.Diff(manifests.SetOf(base), manifests.SetOf(changed))
		require.NotEmpty(t, changes.Gains(), name)
		for _, c := range changes {
			require.NotContains(t, c.What, "secret", name)
		}
	}
	less := base
	less.EnvAllow, less.ReadOnly, less.Safe.Team = nil, nil, spec.Verdict{}
	require.Empty(t, manifests.Diff(manifests.SetOf(base), manifests.SetOf(less)).Gains())
	require.Len(t, manifests.Diff(manifests.SetOf(base), manifests.SetOf(less)).Losses(), 3)
	require.Len(t, manifests.Diff(manifests.SetOf(), manifests.SetOf(base)).Gains(), 1, "a new runner")
	require.Len(t, manifests.Diff(manifests.SetOf(base), manifests.SetOf()).Losses(), 1)
	moved := base
	moved.Origin = "elsewhere/x.yaml"
	require.Empty(t, manifests.Diff(manifests.SetOf(base), manifests.SetOf(moved)), "where a file lies is no right")
}

// The ends, the people of other organisations and the audience of places are
// compared too, as is what covers a line without being equal to it.
func TestT13EveryPartOfALineIsCompared(t *testing.T) {
	t.Parallel()
	const guild, home = `guild: "900000000000000001"`, "workspace: T0HOME001"
	line := func(tier, section, platform, entry string) *manifests.Set {
		set, _ := written(t, map[string]string{tier: "tier: " + tier + "\n" + section + ":\n  " + platform + ":\n    - {" + entry + "}\n"})
		return set
	}
	team := func(entry string) *manifests.Set { return line("team", "match", "discord", entry) }
	guest := func(entry string) *manifests.Set { return line("guest", "match", "slack", entry) }
	place := func(entry string) *manifests.Set { return line("team", "places", "discord", entry) }
	block := func(entry string) *manifests.Set { return line("guest", "block", "discord", entry) }
	user, role := `users: ["222222222222222222"]`, `roles: ["800000000000000001"]`
	for name, c := range map[string]struct{ less, more *manifests.Set }{
		"a later end":            {team(user + ", until: 2027-01-01T00:00:00Z"), team(user + ", until: 2028-01-01T00:00:00Z")},
		"no end":                 {team(user + ", until: 2027-01-01T00:00:00Z"), team(user)},
		"the whole guild":        {team(guild + `, channels: ["700000000000000001"], ` + user), team(guild + ", " + user)},
		"everywhere":             {team(guild + ", " + user), team(user)},
		"one channel more":       {team(guild + `, channels: ["700000000000000001"], ` + role), team(guild + `, channels: ["700000000000000001", "700000000000000002"], ` + role)},
		"a category too":         {team(guild + `, channels: ["700000000000000001"], ` + role), team(guild + `, channels: ["700000000000000001"], categories: ["710000000000000001"], ` + role)},
		"from no line to one":    {team("users: []"), team(guild + ", " + role)},
		"other organisations":    {guest("workspace: T0HOME001, channels: [C0123ABCD], anyone: true"), guest("workspace: T0HOME001, channels: [C0123ABCD], anyone: true, external: guest")},
		"an audience":            {place(guild), place(guild + ", audience: team")},
		"a limit of one channel": {place(guild), place(guild + `, channels: ["700000000000000001"]`)},
		"a block in one guild":   {block(user), block(guild + ", " + user)},
		"no block of a role":     {block(guild + ", " + role), block("users: []")},
		"a user group":           {guest(home + ", groups: [S0TEAM001]"), guest(home + ", groups: [S0TEAM001, S0OTHER01]")},
		"a group in all places":  {guest(home + ", channels: [C0123ABCD], groups: [S0TEAM001]"), guest(home + ", groups: [S0TEAM001]")},
		"no block of a group": {
			line("guest", "block", "slack", home+", groups: [S0TEAM001]"), line("guest", "block", "slack", home+", groups: []")},
	} {
		require.NotEmpty(t, manifests.Diff(c.less, c.more).Gains(), name)
		require.Empty(t, manifests.Diff(c.less, c.more).Losses(), name)
		require.NotEmpty(t, manifests.Diff(c.more, c.less).Losses(), name)
		require.Empty(t, manifests.Diff(c.more, c.less).Gains(), name)
	}
}
