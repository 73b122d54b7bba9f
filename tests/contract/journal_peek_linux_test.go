package contract_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"parlour/bridge/journal"
)

// What is no file is not "no grants".
func TestAPeekRefusesWhatIsNoFile(t *testing.T) {
	t.Parallel()
	for name, put := range map[string]func(path string) error{
		"a pipe":            func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"a folder":          func(path string) error { return os.Mkdir(path, 0o700) },
		"a link to nothing": func(path string) error { return os.Symlink(path+".gone", path) },
		"a link to nobody":  func(path string) error { return os.Symlink("/dev/null", path) },
		"a link to itself":  func(path string) error { return os.Symlink(path, path) },
		"a link to a file":  func(path string) error { return os.Symlink("/proc/self/status", path) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			require.NoError(t, put(filepath.Join(dir, "parlour.db")))
			_, err := journal.PeekGrants(t.Context(), dir, time.Now())
			require.ErrorContains(t, err, "is not a regular file")
		})
	}
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "parlour.db"), nil, 0o600))
	found, err := journal.PeekGrants(t.Context(), dir, time.Now())
	require.NoError(t, err, "the control: a store that is about to be made")
	require.Empty(t, found.All)
}
