//go:build amd64 || arm64

package probe

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// Whatever stands at a target's name is left alone, and what it leads to.
func TestMakeFile(t *testing.T) {
	dir := t.TempDir()
	theirs := filepath.Join(dir, "theirs")
	require.NoError(t, os.WriteFile(theirs, []byte("precious"), 0o600))
	for name, plant := range map[string]func(string) error{
		"link":          func(p string) error { return os.Symlink(theirs, p) },
		"dangling-link": func(p string) error { return os.Symlink(filepath.Join(dir, "nowhere"), p) },
		"second-name":   func(p string) error { return os.Link(theirs, p) },
		"folder":        func(p string) error { return os.Mkdir(p, 0o700) },
		"pipe":          func(p string) error { return unix.Mkfifo(p, 0o600) },
	} {
		path := filepath.Join(dir, name)
		require.NoError(t, plant(path), name)
		require.ErrorIs(t, makeFile(unix.AT_FDCWD, path, "canary", everybody), unix.EEXIST, name)
		content, err := os.ReadFile(theirs)
		require.NoError(t, err)
		require.Equal(t, "precious", string(content), name)
		info, err := os.Stat(theirs)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode(), name)
		require.NoFileExists(t, filepath.Join(dir, "nowhere"), name)
	}
	fresh := filepath.Join(dir, "fresh")
	require.NoError(t, makeFile(unix.AT_FDCWD, fresh, "canary", everybody))
	info, err := os.Stat(fresh)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(everybody), info.Mode(), "whatever the umask is")
}

func TestIsMark(t *testing.T) {
	for name, is := range map[string]bool{
		"parlour-probe-0123456789abcdef": true,
		"parlour-probe-ab":               false, "parlour-probe-": false, "": false, "0123456789abcdef": false,
		"parlour-probe-0123456789abcdefa": false, "parlour-probe-0123456789ABCDEF": false, "parlour-probe-../../../../etc/": false,
		"parlour-probe-[0123456789abcde": false, ".parlour-probe-0123456789abcdef": false,
	} {
		require.Equal(t, is, isMark(name), name)
	}
}

// A process is of the run by its secret, not by the words that everybody sees.
func TestTag(t *testing.T) {
	require.Equal(t, tag("key", "matter"), tag("key", "matter"))
	require.NotEqual(t, tag("key", "matter"), tag("key", "other"))
	require.NotEqual(t, tag("key", "matter"), tag("other", "matter"))
	s := &stage{hits: map[string]bool{}}
	s.hit(tag("", "abstract") + " abstract")
	require.False(t, s.heard("abstract"), "before the first run nobody has a secret")
	s.renew()
	p := &intruder{t: s.targets}
	for _, lie := range []string{"abstract", " abstract", tag("", "abstract") + " abstract", tag(s.Token, "pair") + " abstract"} {
		s.hit(lie)
		require.False(t, s.heard("abstract"), lie)
	}
	s.hit(p.sign("abstract") + "\n")
	require.True(t, s.heard("abstract"))
	s.renew()
	s.hit(p.sign("abstract"))
	require.False(t, s.heard("abstract"), "the secret of a run before")
}
