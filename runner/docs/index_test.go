package docs

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

func small() fstest.MapFS {
	return fstest.MapFS{
		"handbook/a.md":      {Data: []byte("# Birds\n\n## Where parrots sleep\nParrots sleep on branches.\n")},
		"handbook/deep/b.md": {Data: []byte("## Keys\nThe broker holds the keys.\r\nNobody else does.\x00\n")},
		"handbook/c.txt":     {Data: []byte("## Parrots\nNot Markdown, not read.\n")},
		"handbook/link.md":   {Data: []byte("a.md"), Mode: fs.ModeSymlink},
		"handbook/dir.md/d":  {Data: []byte("a folder whose name looks like a document")},
	}
}

func build(t testing.TB, fsys fs.FS) string {
	t.Helper()
	index := filepath.Join(t.TempDir(), "index ?#%41.sqlite")
	require.NoError(t, Build(context.Background(), fsys, index))
	return index
}

func TestBuildIsDeterministic(t *testing.T) {
	t.Parallel()
	a, errA := os.ReadFile(build(t, small()))
	b, errB := os.ReadFile(build(t, small()))
	require.NoError(t, errA)
	require.NoError(t, errB)
	require.Equal(t, a, b)
}

func TestBuildReplacesAndLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	index := build(t, small())
	require.NoError(t, Build(context.Background(), small(), index))
	info, err := os.Stat(index)
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o644), info.Mode().Perm())
	requireOnly(t, filepath.Dir(index), filepath.Base(index))

	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	require.ErrorIs(t, Build(cancelled, small(), index), context.Canceled)
	requireOnly(t, filepath.Dir(index), filepath.Base(index))
	found, err := Search(context.Background(), index, "parrots")
	require.NoError(t, err)
	require.NotEmpty(t, found)
}

func requireOnly(t *testing.T, dir, name string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1)
	require.Equal(t, name, entries[0].Name())
}

func TestOnlyRegularMarkdownIsRead(t *testing.T) {
	t.Parallel()
	documents, err := load(context.Background(), small())
	require.NoError(t, err)
	require.Equal(t, []document{
		{"handbook/a.md", "# Birds\n\n## Where parrots sleep\nParrots sleep on branches.\n"},
		{"handbook/deep/b.md", "## Keys\nThe broker holds the keys.\nNobody else does.\ufffd\n"},
	}, documents)
}

func TestLinksOutwardBringNothingIn(t *testing.T) {
	t.Parallel()
	outside, inside := t.TempDir(), t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(outside, "secret.md"), []byte("sentinel"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(inside, "a.md"), []byte("text"), 0o600))
	require.NoError(t, os.Symlink(filepath.Join(outside, "secret.md"), filepath.Join(inside, "link.md")))
	require.NoError(t, os.Symlink(outside, filepath.Join(inside, "folder")))
	documents, err := load(context.Background(), os.DirFS(inside))
	require.NoError(t, err)
	require.Equal(t, []document{{"a.md", "text"}}, documents)
}

func TestLimitsOfASetAreErrors(t *testing.T) {
	t.Parallel()
	big := &fstest.MapFile{Data: bytes.Repeat([]byte("x"), MaxFile)}
	tooMuch := fstest.MapFS{}
	for i := range MaxTotal/MaxFile + 1 {
		tooMuch[strings.Repeat("x", i+1)+".md"] = big
	}
	tooMany := fstest.MapFS{}
	for name := range strings.FieldsSeq(manyWords(MaxFiles + 1)) {
		tooMany[name+".md"] = &fstest.MapFile{}
	}
	cases := map[string]struct {
		fsys fs.FS
		want string
	}{
		"one document": {fstest.MapFS{"a.md": {Data: make([]byte, MaxFile+1)}}, "larger than"},
		"all together": {tooMuch, "bytes of documents"},
		"too many":     {tooMany, "documents"},
		"odd name":     {fstest.MapFS{"a\nb.md": {}}, "control characters"},
		"turned name":  {fstest.MapFS{"a\u202eb.md": {}}, "control characters"},
		"not there":    {os.DirFS(filepath.Join(t.TempDir(), "missing")), "no such file"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "index")
			require.ErrorContains(t, Build(context.Background(), c.fsys, path), c.want)
			require.NoFileExists(t, path)
		})
	}
}

func TestEnsure(t *testing.T) {
	t.Parallel()
	state := filepath.Join(t.TempDir(), "state")
	dir := filepath.Join(state, "index")
	first, err := Ensure(context.Background(), small(), dir)
	require.NoError(t, err)
	requireMode(t, state, 0o700)
	requireMode(t, dir, 0o755)
	requireMode(t, first, 0o644)

	before, err := os.Stat(first)
	require.NoError(t, err)
	again, err := Ensure(context.Background(), small(), dir)
	require.NoError(t, err)
	require.Equal(t, first, again)
	after, err := os.Stat(again)
	require.NoError(t, err)
	require.True(t, os.SameFile(before, after), "built again for nothing")

	changed := small()
	changed["handbook/a.md"] = &fstest.MapFile{Data: []byte("## Owls\nOwls do not sleep at night.\n")}
	other, err := Ensure(context.Background(), changed, dir)
	require.NoError(t, err)
	require.NotEqual(t, first, other)
	found, err := Search(context.Background(), other, "owls")
	require.NoError(t, err)
	require.Len(t, found, 1)
}

func requireMode(t *testing.T, path string, want fs.FileMode) {
	t.Helper()
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, want, info.Mode().Perm(), path)
}

func TestEnsureRefusesWhatIsNoFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	documents, err := load(context.Background(), small())
	require.NoError(t, err)
	require.NoError(t, os.Symlink("/etc/passwd", filepath.Join(dir, "docs-"+contentHash(documents)+"-0.sqlite")))
	_, err = Ensure(context.Background(), small(), dir)
	require.ErrorContains(t, err, "not a regular file")
}

func TestEnsureAtTheSameTime(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "index")
	var group sync.WaitGroup
	paths, errs := make([]string, 8), make([]error, 8)
	for i := range paths {
		group.Go(func() {
			if paths[i], errs[i] = Ensure(context.Background(), small(), dir); errs[i] == nil {
				_, errs[i] = Search(context.Background(), paths[i], "parrots")
			}
		})
	}
	group.Wait()
	for i := range paths {
		require.NoError(t, errs[i])
		require.Equal(t, paths[0], paths[i])
	}
	requireOnly(t, dir, filepath.Base(paths[0]))
}
