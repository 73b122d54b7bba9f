package config_test

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"parlour/manifests"
	"parlour/tiers"
)

// The bomb would be 9^9 values if an alias were followed once. It is refused
// for its aliases, each reported once, so the work is bounded by the text.
func TestAliasBombsAreRefusedUnexpanded(t *testing.T) {
	bomb := "tier: guest\na0: &a0 [x]\n"
	for i := 1; i <= 9; i++ {
		name, inner := string(rune('0'+i)), strings.TrimSuffix(strings.Repeat("*a"+string(rune('0'+i-1))+", ", 9), ", ")
		bomb += "a" + name + ": &a" + name + " [" + inner + "]\n"
	}
	_, err := manifests.Load(operator(t, map[string]string{"tiers/guest.yaml": bomb}))
	var faults manifests.Faults
	require.ErrorAs(t, err, &faults)
	require.LessOrEqual(t, len(faults), 101)
	require.ErrorContains(t, err, "anchors and aliases (& and *) are not read")
	require.ErrorContains(t, err, "more faults follow")
}

func TestTextThatIsNotAManifestEndsInFaults(t *testing.T) {
	for name, text := range map[string]string{
		"20,000 brackets":    strings.Repeat("[", 20000),
		"deep but closed":    "tier: " + strings.Repeat("[", 5000) + strings.Repeat("]", 5000),
		"deep and long":      "tier: " + strings.Repeat(strings.Repeat("[", 5000)+strings.Repeat("]", 5000)+", ", 800),
		"a long line":        strings.Repeat("a", 1<<20),
		"many unknown keys":  strings.Repeat("k: 1\n", 20000),
		"many documents":     strings.Repeat("---\n", 20000),
		"an unclosed quote":  "tier: \"" + strings.Repeat("x\n", 20000),
		"one alias":          "*a",
		"a percent sign":     "%",
		"a lone key mark":    "?",
		"a name that recurs": "tier: &a [*a]",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := manifests.Load(operator(t, map[string]string{"tiers/guest.yaml": text}))
			var faults manifests.Faults
			require.ErrorAs(t, err, &faults)
			require.Less(t, len(err.Error()), 1<<20, "the message is bounded too")
		})
	}
}

func TestAnOwnerRuleWithoutAnybodyIsNoOwner(t *testing.T) {
	for _, entry := range []string{
		"{users: []}", "{users: }", `{guild: "900000000000000001", channels: [], users: ["111111111111111111"]}`,
	} {
		set, err := manifests.Load(operator(t, map[string]string{"tiers/owner.yaml": "tier: owner\nmatch: {discord: [" + entry + "]}\n"}))
		require.NoError(t, err)
		require.Zero(t, set.Rules().Count(tiers.Owner), entry)
	}
}

func TestFilesAreBounded(t *testing.T) {
	dir := operator(t, map[string]string{"tiers/guest.yaml": "tier: guest\n"})
	file := filepath.Join(dir, "tiers/guest.yaml")
	require.NoError(t, os.Truncate(file, 8<<20+1))
	requireFaults(t, dir, file+": is larger than 8 MiB; right: a smaller file")
}

func TestByteOrderMarkAndLineEndsOfOtherEditorsAreFine(t *testing.T) {
	text := "\ufefftier: owner\r\nmatch:\r\n  discord:\r\n    - {users: [\"111111111111111111\"]} # ok\r\n"
	set, err := manifests.Load(operator(t, map[string]string{"tiers/owner.yaml": text}))
	require.NoError(t, err)
	d := set.Rules().Resolve(
		tiers.Identity{Platform: tiers.Discord, User: "111111111111111111", Kind: tiers.Person},
		tiers.Place{Platform: tiers.Discord, Channel: "700000000000000001", Direct: true, Most: tiers.Owner}, time.Time{})
	require.Equal(t, tiers.Owner, d.Tier)
	require.True(t, strings.HasSuffix(d.Rule, "tiers/owner.yaml:4"), d.Rule)
}

func TestAFolderThatIsNamedMustBeThere(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "manifests")
	requireFaults(t, missing, missing+": there is no such folder; right: an existing folder, or no folder named for the shipped manifests")
	file := filepath.Join(t.TempDir(), "file")
	write(t, file, "tier: guest\n")
	requireFaults(t, file, file+": is not a folder; right: a folder with tiers/ and runners/")
}

func TestBothSubfoldersMayBeAbsent(t *testing.T) {
	dir := operator(t, nil)
	require.NoError(t, os.Remove(filepath.Join(dir, "tiers")))
	require.NoError(t, os.Remove(filepath.Join(dir, "runners")))
	set, err := manifests.Check(dir)
	require.NoError(t, err)
	require.Len(t, set.Runners(), 5)
	require.NoError(t, os.Symlink("nowhere", filepath.Join(dir, "tiers")))
	_, err = manifests.Load(dir)
	require.Error(t, err, "a link that leads nowhere is not an absent folder")
}

func TestMountedConfigMapsAreRead(t *testing.T) {
	dir := operator(t, nil)
	data := filepath.Join(dir, "tiers", "..2026_01")
	require.NoError(t, os.Mkdir(data, 0o755))
	write(t, filepath.Join(data, "owner.yaml"), "tier: owner\nmatch: {discord: [{users: [\"111111111111111111\"]}]}\n")
	require.NoError(t, os.Symlink("..2026_01", filepath.Join(dir, "tiers", "..data")))
	require.NoError(t, os.Symlink("..data/owner.yaml", filepath.Join(dir, "tiers", "owner.yaml")))
	set, err := manifests.Check(dir)
	require.NoError(t, err)
	require.Equal(t, 1, set.Rules().Count(tiers.Owner))
}

func TestOnlyRegularFilesAreRead(t *testing.T) {
	for name, put := range map[string]func(string) error{
		"folder": func(p string) error { return os.Mkdir(p, 0o755) },
		"pipe":   func(p string) error { return syscall.Mkfifo(p, 0o600) },
		"device": func(p string) error { return os.Symlink("/dev/zero", p) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := operator(t, nil)
			file := filepath.Join(dir, "tiers/guest.yaml")
			require.NoError(t, put(file))
			requireFaults(t, dir, file+": is not a regular file; right: a regular file")
		})
	}
	dir := operator(t, nil)
	file := filepath.Join(dir, "tiers/guest.yaml")
	require.NoError(t, os.Symlink("nowhere", file))
	requireFaults(t, dir, file+": cannot be read: no such file or directory; right: a file that the bot's user can read")
}

func TestFilesThatOthersCanWriteAreRefused(t *testing.T) {
	good := map[string]string{"tiers/guest.yaml": "tier: guest\n", "runners/codex.yaml": "name: codex\ndisabled: true\n"}
	for name, c := range map[string]struct {
		path string
		mode os.FileMode
		what string // empty: it is allowed
	}{
		"tier file for everybody":    {"tiers/guest.yaml", 0o666, "can be written by everybody (mode 0666); right: chmod o-w"},
		"tier folder for everybody":  {"tiers", 0o777, "can be written by everybody (mode 0777); right: chmod o-w"},
		"folder for everybody":       {".", 0o777, "can be written by everybody (mode 0777); right: chmod o-w"},
		"tier file for its group":    {"tiers/guest.yaml", 0o664, ""},
		"runner folder for a group":  {"runners", 0o775, "can be written by its group (mode 0775) and says what is executed; right: chmod go-w"},
		"runner file for its group":  {"runners/codex.yaml", 0o664, "can be written by its group (mode 0664) and says what is executed; right: chmod go-w"},
		"runner file for everybody":  {"runners/codex.yaml", 0o646, "can be written by everybody (mode 0646); right: chmod o-w"},
		"runner file for one person": {"runners/codex.yaml", 0o600, "this runner is disabled"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := operator(t, good)
			require.NoError(t, os.Chmod(filepath.Join(dir, c.path), c.mode))
			set, err := manifests.Load(dir)
			if c.what == "" {
				require.NoError(t, err)
				return
			}
			if strings.HasSuffix(c.path, "codex.yaml") {
				require.NoError(t, err, "a runner file costs its runner only")
				_, usable := set.Runner("codex")
				require.False(t, usable)
				_, err = manifests.Check(dir)
			}
			require.ErrorContains(t, err, filepath.Join(dir, c.path))
			require.ErrorContains(t, err, c.what)
		})
	}
}

func TestARunnerFileOfAnotherUserIsRefused(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give a file away")
	}
	dir := operator(t, map[string]string{"runners/mine.yaml": "name: mine\n"})
	file := filepath.Join(dir, "runners/mine.yaml")
	require.NoError(t, os.Chown(file, 4242, 4242))
	_, err := manifests.Check(dir)
	require.ErrorContains(t, err, file+": belongs to user 4242 and says what is executed; right: it belonging to the bot's user (0) or to root")
}

func TestExtraPathsLeadNowhereElse(t *testing.T) {
	outside, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	link := filepath.Join(outside, "link")
	require.NoError(t, os.Symlink("/etc", link))
	l, err := net.Listen("unix", filepath.Join(outside, "s"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, l.Close()) })
	dir := operator(t, map[string]string{"runners/mine.yaml": "name: mine\nread_only: [" + link + ", " + outside + "/s]\n"})
	_, err = manifests.Check(dir)
	require.ErrorContains(t, err, "which leads to \"/etc\"")
	require.ErrorContains(t, err, "which is a socket")
}

func requireFaults(t *testing.T, dir string, want ...string) {
	t.Helper()
	set, err := manifests.Load(dir)
	require.Nil(t, set)
	require.EqualError(t, err, strings.Join(want, "\n"))
}
