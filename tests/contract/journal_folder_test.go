package contract_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"parlour/bridge/ask"
	"parlour/bridge/journal"
)

func TestJournalRefusesFoldersOfOthers(t *testing.T) {
	t.Parallel()
	write := func(t *testing.T, path, text string, mode os.FileMode) {
		require.NoError(t, os.WriteFile(path, []byte(text), mode))
	}
	cases := map[string]struct {
		spoil func(t *testing.T, dir string) string // gives the folder to open
		want  string
	}{
		"writable by all":       {func(t *testing.T, dir string) string { require.NoError(t, os.Chmod(dir, 0o777)); return dir }, "can be written by others (mode 0777): run chmod 700"},
		"writable by the group": {func(t *testing.T, dir string) string { require.NoError(t, os.Chmod(dir, 0o770)); return dir }, "can be written by others (mode 0770)"},
		"writable locks": {func(t *testing.T, dir string) string {
			require.NoError(t, os.Mkdir(filepath.Join(dir, "locks"), 0o700))
			require.NoError(t, os.Chmod(filepath.Join(dir, "locks"), 0o777))
			return dir
		}, "can be written by others"},
		"of another user": {foreignFolder, "belongs to another user"},
		"a file": {func(t *testing.T, dir string) string {
			write(t, filepath.Join(dir, "file"), "", 0o600)
			return filepath.Join(dir, "file")
		}, "cannot be made"},
		"below a file": {func(t *testing.T, dir string) string {
			write(t, filepath.Join(dir, "file"), "", 0o600)
			return filepath.Join(dir, "file", "state")
		}, "cannot be made"},
		"store is a link": {func(t *testing.T, dir string) string {
			elsewhere := filepath.Join(t.TempDir(), "elsewhere")
			write(t, elsewhere, "", 0o644)
			t.Cleanup(func() {
				info, err := os.Stat(elsewhere)
				require.NoError(t, err)
				require.Equal(t, os.FileMode(0o644), info.Mode(), "what the link names was touched")
			})
			require.NoError(t, os.Symlink(elsewhere, filepath.Join(dir, "parlour.db")))
			return dir
		}, "is not a regular file"},
		"store is no store": {func(t *testing.T, dir string) string {
			write(t, filepath.Join(dir, "parlour.db"), "this was a letter to my aunt, and it is long enough", 0o600)
			return dir
		}, "is damaged or no store of this bot: restore it, or move it away"},
		"of a newer bot": {newerStore, "made by a newer bot"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := c.spoil(t, t.TempDir())
			_, err := journal.Open(context.Background(), journal.Config{Dir: dir, Origin: journal.Serve})
			require.ErrorContains(t, err, c.want)
			require.ErrorContains(t, err, dir)
			require.NotContains(t, err.Error(), "\n", "one clear line")
		})
	}
	for _, origin := range []string{"", "ask", "ask:", "ask:../../etc", "other", "ask:01arz3ndektsv4rrffq69g5fav"} {
		_, err := journal.Open(context.Background(), journal.Config{Dir: t.TempDir(), Origin: origin})
		require.ErrorContains(t, err, "origin")
	}
	_, err := journal.Open(context.Background(), journal.Config{Origin: journal.Serve})
	require.ErrorContains(t, err, "no state folder is named")
}

// foreignFolder gives a folder of somebody else, whoever runs the test.
func foreignFolder(t *testing.T, dir string) string {
	if os.Geteuid() != 0 {
		return "/"
	}
	require.NoError(t, os.Chown(dir, 65534, 65534))
	return dir
}

func newerStore(t *testing.T, dir string) string {
	j, err := journal.Open(context.Background(), journal.Config{Dir: dir, Origin: journal.Serve})
	require.NoError(t, err)
	require.NoError(t, j.Close())
	db, err := sql.Open("sqlite", filepath.Join(dir, "parlour.db"))
	require.NoError(t, err)
	_, err = db.Exec(`INSERT INTO goose_db_version (version_id, is_applied) VALUES (99999, 1)`)
	require.NoError(t, err)
	require.NoError(t, db.Close())
	return dir
}

func TestJournalFilesArePrivate(t *testing.T) {
	t.Parallel()
	// Characters that mean something in a SQLite address must not.
	dir := filepath.Join(t.TempDir(), "new", "a b?mode=memory%41#c")
	j := openJournal(t, dir, journal.Serve)
	j.accept(t, jobOf("m", "anna", "lane"))
	modes := map[string]os.FileMode{
		"": 0o700, "locks": 0o700, "parlour.db": 0o600, "parlour.db-wal": 0o600, "parlour.db-shm": 0o600,
		"locks/gate": 0o600, "locks/serve.lock": 0o600,
	}
	for name, want := range modes {
		info, err := os.Stat(filepath.Join(dir, name))
		require.NoError(t, err)
		require.Equal(t, want, info.Mode().Perm(), name)
	}
	require.NoError(t, j.Close())

	require.NoError(t, os.Chmod(filepath.Join(dir, "parlour.db"), 0o644)) // as a restored copy may be
	openJournal(t, dir, journal.Serve)
	info, err := os.Stat(filepath.Join(dir, "parlour.db"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
}

// TestJournalOpensAndBurialsDoNotRace lets askers come, bury and go at once:
// none ever buries a living one, and none leaves a lock file.
func TestJournalOpensAndBurialsDoNotRace(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	serve := openJournal(t, dir, journal.Serve)
	var group sync.WaitGroup
	errs := make(chan error, 64)
	for i := range 6 {
		group.Go(func() {
			for n := range 4 {
				errs <- askOnce(dir, fmt.Sprintf("%d-%d", i, n), n%2 == 0)
			}
		})
	}
	group.Wait()
	close(errs)
	for err := range errs {
		require.NoError(t, err)
	}
	require.NoError(t, serve.Recover(context.Background()))
	require.ElementsMatch(t, []string{"gate", "serve.lock"}, lockFiles(t, dir))
	count, err := serve.Queue(context.Background())
	require.NoError(t, err)
	require.Zero(t, count.Queued+count.Running)
}

// askOnce is the life of one asker, which may leave before its answer.
func askOnce(dir, name string, stay bool) (err error) {
	ctx := context.Background()
	origin, err := journal.AskOrigin(secondsClock()())
	if err != nil {
		return err
	}
	j, err := journal.Open(ctx, journal.Config{Dir: dir, Origin: origin})
	if err != nil {
		return err
	}
	defer func() {
		if closed := j.Close(); err == nil {
			err = closed
		}
	}()
	if _, err = j.Accept(ctx, jobOf(name, name, name), waits(3), nil); err != nil {
		return err
	}
	if err = j.Recover(ctx); err != nil || !stay {
		return err
	}
	job, err := j.Claim(ctx, 1)
	if err != nil {
		return err
	}
	if job == nil || job.Message != name {
		return fmt.Errorf("asker %s got %v", name, job)
	}
	return j.Finish(ctx, *job, ask.Ended{Outcome: ask.Outcome{Kind: ask.Answered, Text: "so"}})
}
