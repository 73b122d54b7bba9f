package runner

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"parlour/bridge/ask"
	"parlour/runner/policy"
	"parlour/runner/spec"
)

func TestPreferenceReordersAndShortensOnly(t *testing.T) {
	list := []string{"codex", "claude", "docs"}
	cases := map[string]struct {
		prefer Preference
		want   []string
		origin string
	}{
		"nothing":                  {Preference{}, list, "manifest"},
		"config reorders":          {Preference{Config: []string{"docs", "claude"}}, []string{"docs", "claude"}, "config"},
		"environment wins":         {Preference{Environment: []string{"claude"}, Config: []string{"docs"}}, []string{"claude"}, "environment"},
		"outside the list":         {Preference{Environment: []string{"gemini", "docs"}}, []string{"docs"}, "environment"},
		"only outside the list":    {Preference{Environment: []string{"gemini"}}, list, "manifest"},
		"falls back to the config": {Preference{Environment: []string{"gemini"}, Config: []string{"docs"}}, []string{"docs"}, "config"},
		"doubled":                  {Preference{Config: []string{"docs", "docs"}}, []string{"docs"}, "config"},
	}
	for name, c := range cases {
		got, origin := c.prefer.order(list)
		require.Equal(t, c.want, got, name)
		require.Equal(t, c.origin, origin, name)
	}
}

func TestPreferenceNeverLeavesTheList(t *testing.T) {
	names := rapid.SampledFrom([]string{"a", "b", "c", "d", ""})
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.SliceOfNDistinct(names, 1, 4, rapid.ID[string]).Draw(t, "list")
		p := Preference{Environment: rapid.SliceOf(names).Draw(t, "env"), Config: rapid.SliceOf(names).Draw(t, "config")}
		got, _ := p.order(list)
		require.NotEmpty(t, got)
		require.Subset(t, list, got)
	})
}

func TestSplitNames(t *testing.T) {
	known := func(s string) bool { return s == "docs" || s == "claude" }
	names, unknown := SplitNames(" claude,,docs doc\t,agy", known)
	require.Equal(t, []string{"claude", "docs"}, names)
	require.Equal(t, []string{"doc", "agy"}, unknown)
}

func TestChildEnvIsExact(t *testing.T) {
	fixed := []string{"HOME=/home/agent", "LANG=C.UTF-8", "PATH=/usr/bin:/bin", "TMPDIR=/tmp"}
	bot := map[string]string{"DISCORD_TOKEN": "x", "TZ": "UTC", "PATH": "/evil", "HOME": "/root", "SSH_AUTH_SOCK": "/s"}
	fill := strings.NewReplacer(spec.BrokerPlaceholder, "http://b")

	require.Equal(t, fixed, childEnv(spec.Spec{}, bot, fill), "with an empty allow-list: the fixed names alone")
	require.Equal(t, fixed, childEnv(spec.Spec{}, nil, nil))
	require.NotNil(t, childEnv(spec.Spec{}, map[string]string{}, nil))

	s := spec.Spec{
		EnvAllow:  []string{"TZ", "NOT_SET", "PATH"},
		Env:       map[string]string{"BASE": "{broker}/v1", "HOME": "/root"},
		ConfigEnv: map[string]string{"CONF": "/home/agent/.conf"},
	}
	require.Equal(t, []string{
		"BASE=http://b/v1", "CONF=/home/agent/.conf", "HOME=/home/agent", "LANG=C.UTF-8", "PATH=/usr/bin:/bin", "TMPDIR=/tmp", "TZ=UTC",
	}, childEnv(s, bot, fill), "the fixed names win")
}

func TestChildEnvHoldsAllowedNamesOnly(t *testing.T) {
	name := rapid.StringMatching(`[A-Z]{1,3}`)
	rapid.Check(t, func(t *rapid.T) {
		bot := rapid.MapOf(name, rapid.StringMatching(`[a-z]{0,4}`)).Draw(t, "bot")
		allow := rapid.SliceOf(name).Draw(t, "allow")
		for _, pair := range childEnv(spec.Spec{EnvAllow: allow}, bot, nil) {
			n, _, _ := strings.Cut(pair, "=")
			require.Contains(t, append(allow, "PATH", "HOME", "TMPDIR", "LANG"), n)
		}
	})
}

func TestTheQuestionIsNeverFirstAndNeverSplit(t *testing.T) {
	hostile := []string{
		"--version", "-", "---\ntitle: x", "-p --dangerously-skip-permissions", "--add-dir=/", "/logout", "@/etc/passwd",
		"resume", "help", "{guardrail}", "a\n\nb", "{model}", strings.Repeat("long ", 30_000),
	}
	e, err := policy.Narrow(policy.Wish{Mode: policy.ReadOnly, Limits: someLimits()}, everything())
	require.NoError(t, err)
	shapes := map[string]spec.Spec{
		"argument": {Name: "x", Prompt: spec.ByArgument, Args: []string{"-p", "--system", "{guardrail}"}},
		"no role":  {Name: "x", Prompt: spec.ByArgument, Args: []string{"-p"}},
		"flag":     {Name: "x", Prompt: spec.ByFlag, PromptFlag: "--prompt=", Args: []string{"-m", "{model}"}},
		"file":     {Name: "x", Prompt: spec.ByFile, Args: []string{"exec", "-"}},
	}
	r := &Runner{}
	for name, s := range shapes {
		for _, q := range hostile {
			cmd, err := r.invoke(s, ask.Plan{Policy: e, Choice: ask.Choice{Path: "/bin/x", Model: "m1"}}, ask.Prompt{Policy: "POLICY", Question: q, Fenced: "FENCE " + q}, "")
			require.NoError(t, err)
			args := cmd.Args
			holding := 0
			for _, a := range args {
				if strings.Contains(a, "FENCE "+q) {
					holding++
					require.False(t, strings.HasPrefix(strings.TrimPrefix(a, s.PromptFlag), q), "%s: the words of a person never start an argument", name)
				}
			}
			before := strings.Join(append(args, string(cmd.Stdin)), " ")
			before = before[:strings.LastIndex(before, "FENCE "+q)]
			require.Contains(t, before, "POLICY", "%s: the policy stands before the words of the person", name)
			if len(cmd.Stdin) > 0 {
				require.Zero(t, holding)
				require.Contains(t, string(cmd.Stdin), "FENCE "+q)
				continue
			}
			require.Equal(t, 1, holding, name)
			last := args[len(args)-1]
			require.Contains(t, last, "FENCE "+q)
			if s.Prompt == spec.ByArgument {
				require.Equal(t, "--", args[len(args)-2], name)
			}
			require.LessOrEqual(t, len(last), maxArgument+len("--prompt="))
		}
	}
}

func someLimits() policy.Limits {
	return policy.Limits{
		Wall: time.Minute, Stall: time.Second, Memory: policy.LeastMemory, Disk: 1, Files: 1, Processes: 1, OpenFiles: 1, Answer: 1,
	}
}

func everything() policy.Capabilities {
	return policy.Capabilities{Rung: policy.RungFull, Filesystem: policy.Enforced, Network: policy.Enforced, Processes: policy.Enforced}
}

func TestStall(t *testing.T) {
	second, none := time.Second, time.Duration(0)
	require.Equal(t, time.Minute, stall(time.Minute, nil))
	require.Equal(t, time.Second, stall(time.Minute, &second))
	require.Equal(t, time.Duration(0), stall(time.Minute, &none))
	require.Equal(t, time.Second, stall(0, &second))
}

func TestFinder(t *testing.T) {
	dir := t.TempDir()
	put := func(name, body string, mode fs.FileMode) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(body), 0o600))
		require.NoError(t, os.Chmod(path, mode))
		return path
	}
	good := put("good/claude", "#!/bin/sh\n", 0o755)
	put("noexec/claude", "#!/bin/sh\n", 0o644)
	put("writable/claude", "#!/bin/sh\n", 0o777)
	put("crlf/claude", "#!/bin/sh\r\necho\r\n", 0o755)
	put("gone/claude", "#!/nonexistent/node\n", 0o755)
	put("bare/claude", "echo\n", 0o755)
	put("damaged/claude", "\x7fELF\x02\x01\x01", 0o755)
	put("open/claude", "#!/bin/sh\n", 0o755)
	require.NoError(t, os.Chmod(filepath.Join(dir, "open"), 0o777))
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "folder/claude"), 0o755))
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "dangling"), 0o755))
	require.NoError(t, os.Symlink("/nonexistent/x", filepath.Join(dir, "dangling/claude")))
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "linked"), 0o755))
	require.NoError(t, os.Symlink(good, filepath.Join(dir, "linked/claude")))

	cases := map[string]string{
		"noexec":   "it is not executable",
		"writable": "others can write it (mode 0777)",
		"crlf":     "its interpreter line ends in a carriage return",
		"gone":     "its interpreter /nonexistent/node is missing",
		"bare":     "it is neither a program nor a script with an interpreter line",
		"damaged":  "it is a damaged program",
		"open":     "others can replace it in its folder",
		"folder":   "it is not a file",
		"dangling": "it is a link to nothing",
	}
	for name, want := range cases {
		f := Finder{Dirs: []string{filepath.Join(dir, name)}, UID: os.Getuid()}
		path, missing := f.Find([]string{"claude"})
		require.Empty(t, path, name)
		require.Contains(t, missing, want, name)
		// A bad one does not hide a good one further on.
		f.Dirs = append(f.Dirs, filepath.Join(dir, "linked"))
		path, missing = f.Find([]string{"claude"})
		require.Equal(t, good, path, name)
		require.Empty(t, missing)
	}
	other := Finder{Dirs: []string{filepath.Join(dir, "good")}, UID: 4242}
	if os.Getuid() != 0 {
		_, missing := other.Find([]string{"claude"})
		require.Contains(t, missing, "it belongs to user")
	}
	_, missing := Finder{UID: os.Getuid()}.Find([]string{"claude", "../claude", ""})
	require.Equal(t, "not installed", missing)
}

func TestNewFinderTakesAbsoluteFoldersOnly(t *testing.T) {
	f := NewFinder(".:/usr/bin::bin:~/x", "relative-home", 0)
	for _, d := range f.Dirs {
		require.True(t, filepath.IsAbs(d), d)
	}
	require.Equal(t, "/usr/bin", f.Dirs[0])
	require.Contains(t, NewFinder("", "/home/o", 0).Dirs, "/home/o/.local/bin")
}

func TestCappedKeepsMemoryBounded(t *testing.T) {
	overs := 0
	c := &capped{limit: 10, life: newLife(0, nil), over: func() { overs++ }}
	for range 1000 {
		n, err := c.Write([]byte("0123456"))
		require.NoError(t, err)
		require.Equal(t, 7, n)
	}
	require.Equal(t, "0123456012", c.String())
	require.Equal(t, 1, overs)
}
