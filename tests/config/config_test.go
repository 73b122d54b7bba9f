// Package config_test gives the loader the folders that operators write: good
// ones with what they mean, and bad ones, each named after its fault, with
// exactly the lines that their authors read. It looks at nothing but what the
// package manifests exports.
package config_test

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"parlour/manifests"
	"parlour/runner/spec"
	"parlour/tiers"
)

var update = flag.Bool("update", false, "write the want files anew")

func TestEveryBadFolderHasExactlyItsFaults(t *testing.T) {
	require.GreaterOrEqual(t, len(named(t, "bad")), 45)
	for _, name := range named(t, "bad") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := install(t, os.DirFS(filepath.Join("bad", name)))
			set, err := manifests.Check(dir)
			require.Nil(t, set)
			var faults manifests.Faults
			require.ErrorAs(t, err, &faults)
			got := strings.ReplaceAll(err.Error(), dir+"/", "") + "\n"
			require.Len(t, strings.Split(got, "\n"), len(faults)+1, "each fault is one line")
			for _, f := range faults {
				require.NotEmpty(t, f.What)
				require.NotEmpty(t, f.Right)
			}
			golden(t, filepath.Join("bad", name, "want"), got)
		})
	}
}

func TestEveryGoodFolderMeansWhatItSays(t *testing.T) {
	for _, name := range named(t, "good") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := install(t, os.DirFS(filepath.Join("good", name)))
			set, err := manifests.Load(dir)
			require.NoError(t, err)
			golden(t, filepath.Join("good", name, "want"), strings.ReplaceAll(summary(set, false), dir+"/", ""))
		})
	}
}

func named(t *testing.T, kind string) []string {
	t.Helper()
	entries, err := os.ReadDir(kind)
	require.NoError(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	require.NotEmpty(t, names)
	return names
}

// install copies a folder of manifests to where file modes can be set, whatever
// the modes and the owner of the source tree are.
func install(t *testing.T, from fs.FS) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "manifests")
	require.NoError(t, fs.WalkDir(from, ".", func(p string, e fs.DirEntry, err error) error {
		if err != nil || e.Name() == "want" {
			return err
		}
		to := filepath.Join(dir, p)
		if e.IsDir() {
			require.NoError(t, os.Mkdir(to, 0o755))
			return os.Chmod(to, 0o755) // whatever the umask
		}
		text, err := fs.ReadFile(from, p)
		require.NoError(t, err)
		write(t, to, string(text))
		return nil
	}))
	return dir
}

func write(t *testing.T, file, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
	require.NoError(t, os.Chmod(file, 0o644))
}

// operator makes a folder of manifests from texts.
func operator(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "manifests")
	for _, d := range []string{dir, filepath.Join(dir, "tiers"), filepath.Join(dir, "runners")} {
		require.NoError(t, os.Mkdir(d, 0o755))
		require.NoError(t, os.Chmod(d, 0o755))
	}
	for name, text := range files {
		write(t, filepath.Join(dir, name), text)
	}
	return dir
}

func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err, "run the tests with -update and read the difference")
	require.Equal(t, string(want), got)
}

// summary prints a Set, with or without what is shipped.
func summary(s *manifests.Set, all bool) string {
	var b strings.Builder
	for _, t := range tiers.All() {
		tier, ok := s.Tier(t)
		if !all && strings.HasPrefix(tier.Origin, "shipped:") {
			continue
		}
		w, l, a := tier.Wish, tier.Wish.Limits, tier.Asking
		fmt.Fprintf(&b, "tier %s %v from %s, %d rules\n", t, ok, tier.Origin, s.Rules().Count(t))
		fmt.Fprintf(&b, "  mode %s armed %v network %s tools %q documents %q require %v\n", w.Mode, w.Armed, w.Network, w.Tools, w.Documents, w.Require)
		fmt.Fprintf(&b, "  runners %q models %v\n", tier.Runners, tier.Models)
		fmt.Fprintf(&b, "  wall %s stall %s memory %d disk %d files %d processes %d open files %d answer %d requests %d tokens %d\n",
			l.Wall, l.Stall, l.Memory, l.Disk, l.Files, l.Processes, l.OpenFiles, l.Answer, l.ModelRequests, l.OutputTokens)
		fmt.Fprintf(&b, "  asking %d a minute, %d running, %d waiting, %d and %d tokens a day\n",
			a.PerMinute, a.Running, a.Waiting, a.TokensPerDayUser, a.TokensPerDayTier)
		fmt.Fprintf(&b, "  reply %s %s %v\n", tier.Reply.Where, tier.Reply.Mentions, tier.Reply.Unfurl)
	}
	for _, r := range s.Runners() {
		if all || !strings.HasPrefix(r.Origin, "shipped:") {
			b.WriteString(describe(r))
		}
	}
	for _, w := range s.Warnings {
		fmt.Fprintf(&b, "warning %s\n", w)
	}
	return b.String()
}

func describe(r spec.Spec) string {
	var b strings.Builder
	stall := "the tier's"
	if r.Stall != nil {
		stall = r.Stall.String()
	}
	fmt.Fprintf(&b, "runner %s from %s, built in %v, binaries %q, provider %s, stall %s\n", r.Name, r.Origin, r.BuiltIn, r.Binaries, r.Provider, stall)
	fmt.Fprintf(&b, "  owner %+v\n  team %+v\n  guest %+v\n", r.Safe.Owner, r.Safe.Team, r.Safe.Guest)
	fmt.Fprintf(&b, "  flags %q by %q\n  args %q\n  tool args %q\n", r.NeedsFlags, r.HelpArgs, r.Args, r.ToolArgs)
	fmt.Fprintf(&b, "  prompt %s %q, answer %s\n", r.Prompt, r.PromptFlag, r.Answer)
	fmt.Fprintf(&b, "  env %q allow %q config %q\n  files %q read only %q\n", r.Env, r.EnvAllow, r.ConfigEnv, r.Files, r.ReadOnly)
	return b.String()
}
