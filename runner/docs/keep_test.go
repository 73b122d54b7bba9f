package docs

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestEnsureBuildsADamagedIndexAgain(t *testing.T) {
	t.Parallel()
	damage := map[string]func(whole []byte) []byte{
		"truncated":       func(b []byte) []byte { return b[:1000] },
		"empty":           func([]byte) []byte { return nil },
		"longer":          func(b []byte) []byte { return append(b, 0) },
		"no index at all": func([]byte) []byte { return bytes.Repeat([]byte("x"), 5000) },
		"one letter of a passage": func(b []byte) []byte {
			return bytes.Replace(b, []byte("sleep on branches"), []byte("sleep in branches"), 1)
		},
	}
	for name, do := range damage {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "index")
			index, err := Ensure(context.Background(), small(), dir)
			require.NoError(t, err)
			before, err := os.ReadFile(index)
			require.NoError(t, err)
			damaged := do(bytes.Clone(before))
			require.NotEqual(t, before, damaged)
			require.NoError(t, os.WriteFile(index, damaged, 0o644))

			again, err := Ensure(context.Background(), small(), dir)
			require.NoError(t, err)
			require.Equal(t, index, again)
			after, err := os.ReadFile(again)
			require.NoError(t, err)
			require.Equal(t, before, after)
			requireOnly(t, dir, filepath.Base(again))
		})
	}
}

func TestEnsureDeletesOutdatedIndexesOnly(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	old, err := Ensure(context.Background(), small(), dir)
	require.NoError(t, err)
	young, err := Ensure(context.Background(), fstest.MapFS{"a.md": {Data: []byte("young")}}, dir)
	require.NoError(t, err)
	killed, foreign := filepath.Join(dir, ".docs-1.tmp"), filepath.Join(dir, "notes.sqlite")
	linked := filepath.Join(dir, "docs-link.sqlite")
	for _, file := range []string{killed, foreign} {
		require.NoError(t, os.WriteFile(file, nil, 0o600))
	}
	require.NoError(t, os.Symlink("notes.sqlite", linked))
	for _, file := range []string{old, killed, foreign} {
		age(t, file, 25*time.Hour)
	}
	age(t, young, 23*time.Hour)

	_, err = Ensure(context.Background(), fstest.MapFS{"a.md": {Data: []byte("young")}}, dir)
	require.NoError(t, err)
	require.FileExists(t, old, "nothing new was built")

	index, err := Ensure(context.Background(), fstest.MapFS{"a.md": {Data: []byte("new")}}, dir)
	require.NoError(t, err)
	require.NoFileExists(t, old)
	require.NoFileExists(t, killed)
	for _, file := range []string{index, young, foreign, linked} {
		require.FileExists(t, file)
	}
}

func age(t *testing.T, file string, by time.Duration) {
	t.Helper()
	info, err := os.Lstat(file)
	require.NoError(t, err)
	require.NoError(t, os.Chtimes(file, time.Time{}, info.ModTime().Add(-by)))
}

// An index that nobody may delete must not cost an answer.
func TestEnsureBearsWhatCannotBeDeleted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	stuck := filepath.Join(dir, "docs-stuck.sqlite")
	require.NoError(t, os.MkdirAll(filepath.Join(stuck, "full"), 0o700))
	age(t, stuck, 25*time.Hour)
	_, err := Ensure(context.Background(), small(), dir)
	require.NoError(t, err)
	require.DirExists(t, stuck)
	info, err := os.Lstat(stuck)
	require.NoError(t, err)
	require.Equal(t, fs.ModeDir, info.Mode().Type())
}
