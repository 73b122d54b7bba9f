package journal

import (
	"context"
	"database/sql"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/pressly/goose/v3"
	"github.com/stretchr/testify/require"

	"parlour/bridge/ask"
	"parlour/tiers"
)

func open(t *testing.T) *Journal {
	t.Helper()
	j, err := Open(context.Background(), Config{Dir: t.TempDir(), Origin: Serve})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, j.Close()) })
	return j
}

func TestEveryConnectionIsDurable(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	j := open(t)
	for _, db := range []*sql.DB{j.writer, j.reader} {
		for pragma, want := range map[string]string{"journal_mode": "wal", "synchronous": "2", "foreign_keys": "1", "busy_timeout": "20000"} {
			var got string
			require.NoError(t, db.QueryRowContext(ctx, "PRAGMA "+pragma).Scan(&got))
			require.Equal(t, want, got, pragma)
		}
	}
	_, err := j.reader.ExecContext(ctx, `DELETE FROM events`)
	require.ErrorContains(t, err, "readonly")
	require.Equal(t, writers, j.writer.Stats().MaxOpenConnections)
}

func TestOneRunningPerLaneHoldsWithoutTheCode(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	j := open(t)
	for _, message := range []string{"1", "2"} {
		_, err := j.Accept(ctx, ask.Job{Message: message, Person: "p" + message, Lane: "lane"}, waits(3), nil)
		require.NoError(t, err)
	}
	_, err := j.writer.ExecContext(ctx, `UPDATE jobs SET state = 'running' WHERE message = '2'`)
	require.NoError(t, err)
	_, err = j.writer.ExecContext(ctx, `UPDATE jobs SET state = 'running' WHERE message = '1'`)
	require.ErrorContains(t, err, "UNIQUE constraint failed: jobs.lane")
}

func TestTheSchemaRefusesWhatCannotBe(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	j := open(t)
	refuse := ask.EndedBy(ask.Job{}, ask.NotAllowed, "")
	got, err := j.Accept(ctx, ask.Job{Message: "m", Person: "p", Lane: "l"}, waits(3), refuse)
	require.NoError(t, err)
	for statement, want := range map[string]string{
		`UPDATE jobs SET state = 'queued'`: "CHECK",
		`UPDATE jobs SET ended = NULL`:     "CHECK",
		`UPDATE jobs SET state = 'lost'`:   "CHECK",
		`INSERT INTO jobs SELECT 9, 'x', message, origin, person, lane, job, accepted, state, 0, ended, 0, 0, 0 FROM jobs`: "UNIQUE constraint failed: jobs.message",
		`INSERT INTO events (job, kind, at) VALUES ('none', 'x', 0)`:                                                       "FOREIGN KEY",
		`INSERT INTO events (job, kind, at) SELECT id, 'run/outcome', 0 FROM jobs`:                                         "UNIQUE constraint failed: events.job, events.kind",
		`DELETE FROM jobs`:                        "FOREIGN KEY",
		`UPDATE jobs SET delivered = 1, lost = 1`: "CHECK",
	} {
		_, err := j.writer.ExecContext(ctx, statement)
		require.ErrorContains(t, err, want, statement)
	}
	require.NoError(t, j.Delivered(ctx, got.Job.ID))
}

func TestAGrantOnlyEverIsRevokedWithoutTheCode(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	j := open(t)
	l, err := NewLedger(ctx, j)
	require.NoError(t, err)
	_, err = l.Make(ctx, tiers.Grant{Tier: tiers.Guest, Platform: tiers.Discord, Workspace: "w", User: "u", Until: time.Now().Add(time.Hour)})
	require.NoError(t, err)
	const insert = `INSERT INTO grants (tier, platform, workspace, channels, user, external, note, made, until) `
	for statement, want := range map[string]string{
		`UPDATE grants SET tier = 'team'`:                                     "a grant does not change",
		`UPDATE grants SET until = until + 1`:                                 "a grant does not change",
		`UPDATE grants SET channels = NULL`:                                   "a grant does not change",
		`UPDATE grants SET user = 'other'`:                                    "a grant does not change",
		insert + `VALUES ('owner', 'slack', 'w', NULL, 'u', 0, '', 0, 1)`:     "CHECK",
		insert + `VALUES ('guest', 'local', 'w', NULL, 'u', 0, '', 0, 1)`:     "CHECK",
		insert + `VALUES ('guest', 'slack', '', NULL, 'u', 0, '', 0, 1)`:      "CHECK",
		insert + `VALUES ('guest', 'slack', 'w', NULL, '', 0, '', 0, 1)`:      "CHECK",
		insert + `VALUES ('guest', 'slack', 'w', '[]', 'u', 0, '', 0, 1)`:     "CHECK",
		insert + `VALUES ('guest', 'slack', 'w', 'null', 'u', 0, '', 0, 1)`:   "CHECK",
		insert + `VALUES ('guest', 'slack', 'w', NULL, 'u', 0, '', 1, 1)`:     "CHECK",
		`INSERT INTO events (job, kind, at) VALUES (NULL, 'run/outcome', 0)`:  "CHECK",
		`INSERT INTO events (job, kind, at) VALUES ('none', 'grant/made', 0)`: "CHECK",
	} {
		_, err := j.writer.ExecContext(ctx, statement)
		require.ErrorContains(t, err, want, statement)
	}
	_, _, err = l.Revoke(ctx, 1)
	require.NoError(t, err)
	_, err = j.writer.ExecContext(ctx, `UPDATE grants SET revoked = NULL`)
	require.ErrorContains(t, err, "a grant is revoked once")
}

// A store of before there were grants keeps its events, and their numbers.
func TestEventsOutliveTheComingOfGrants(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := t.TempDir()
	require.NoError(t, prepare(dir))
	db, err := pool(dir, writers, url.Values{})
	require.NoError(t, err)
	files, err := fs.Sub(migrations, "migrations")
	require.NoError(t, err)
	steps, err := goose.NewProvider(goose.DialectSQLite3, db, files, goose.WithDisableGlobalRegistry(true))
	require.NoError(t, err)
	_, err = steps.UpTo(ctx, 2)
	require.NoError(t, err)
	for _, statement := range []string{
		`INSERT INTO jobs (id, message, origin, person, lane, job, accepted, state) VALUES ('j', 'm', 'serve', 'p', 'l', '{"origin":"serve"}', 1, 'queued')`,
		`INSERT INTO events (seq, job, kind, at, data) VALUES (7, 'j', 'message/accepted', 5, '{"bytes":1}')`,
	} {
		_, err := db.ExecContext(ctx, statement)
		require.NoError(t, err)
	}
	require.NoError(t, db.Close())
	before, err := PeekGrants(ctx, dir, time.Now())
	require.NoError(t, err)
	require.Empty(t, before.All, "an earlier bot's store can be looked at")

	j, err := Open(ctx, Config{Dir: dir, Origin: Serve})
	require.NoError(t, err)
	defer func() { require.NoError(t, j.Close()) }()
	events, err := j.Events(ctx, Filter{})
	require.NoError(t, err)
	require.Equal(t, []ask.Event{{Seq: 7, Job: "j", Kind: "message/accepted", At: time.Unix(0, 5).UTC(), Data: []byte(`{"bytes":1}`)}}, events)
	require.NoError(t, j.Cancel(ctx, "j", ask.NotAllowed))
	events, err = j.Events(ctx, Filter{After: 7})
	require.NoError(t, err)
	require.Equal(t, int64(8), events[0].Seq)
	_, err = j.writer.ExecContext(ctx, `INSERT INTO events (job, kind, at) VALUES ('j', 'message/accepted', 0)`)
	require.ErrorContains(t, err, "UNIQUE")
}

// TestAClaimReadsIndexesOnly keeps the claim's cost with the queue, not with
// the history.
func TestAClaimReadsIndexesOnly(t *testing.T) {
	t.Parallel()
	rows, err := open(t).writer.QueryContext(context.Background(), "EXPLAIN QUERY PLAN "+next, Serve, 1)
	require.NoError(t, err)
	defer rows.Close()
	for rows.Next() {
		var id, parent, unused int
		var detail string
		require.NoError(t, rows.Scan(&id, &parent, &unused, &detail))
		require.NotRegexp(t, `^SCAN (q|h|r|jobs)\b`, detail)
	}
	require.NoError(t, rows.Err())
}

// TestALockOnAnUnlinkedFileIsNone lets many take and remove one lock: two that
// hold it at once would be two bots.
func TestALockOnAnUnlinkedFileIsNone(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "x.lock")
	var holders, taken, wrong atomic.Int64
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for range 500 {
				l, err := takeFile(path, os.O_CREATE)
				if err != nil {
					continue
				}
				taken.Add(1)
				if holders.Add(1) != 1 {
					wrong.Add(1)
				}
				holders.Add(-1)
				if l.remove() != nil {
					wrong.Add(1)
				}
			}
		})
	}
	group.Wait()
	require.Positive(t, taken.Load())
	require.Zero(t, wrong.Load())
}

func TestALockOutlivesNoCopyOfItsDescriptor(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "x.lock")
	l, err := takeFile(path, os.O_CREATE)
	require.NoError(t, err)
	copied, err := syscall.Dup(int(l.file.Fd())) // as a child has it between fork and exec
	require.NoError(t, err)
	defer func() { require.NoError(t, syscall.Close(copied)) }()
	l.release()
	l, err = takeFile(path, 0)
	require.NoError(t, err)
	require.NoError(t, l.remove())
}

// TestBurialsHappenInsideTheGate looks at the gate from inside a burial, where
// the journal reads the clock.
func TestBurialsHappenInsideTheGate(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := t.TempDir()
	living, err := Open(ctx, Config{Dir: dir, Origin: born(t)})
	require.NoError(t, err)
	_, err = living.Accept(ctx, ask.Job{Message: "m", Person: "p", Lane: "l"}, waits(3), nil)
	require.NoError(t, err)

	looks := 0
	look := func() time.Time {
		looks++
		_, err := takeFile(filepath.Join(dir, locksName, gateName), 0)
		require.ErrorIs(t, err, errHeld)
		return time.Now()
	}
	j, err := Open(ctx, Config{Dir: dir, Origin: Serve, Now: look})
	require.NoError(t, err)
	require.Equal(t, 1, looks, "the one look is for entrusted questions: a living asker was buried")
	require.NoError(t, living.Close())
	require.NoError(t, j.Recover(ctx))
	require.Equal(t, 3, looks)
	require.NoError(t, j.Close())

	living, err = Open(ctx, Config{Dir: dir, Origin: born(t)})
	require.NoError(t, err)
	_, err = living.Accept(ctx, ask.Job{Message: "n", Person: "p", Lane: "l"}, waits(3), nil)
	require.NoError(t, err)
	require.NoError(t, living.Close())
	j, err = Open(ctx, Config{Dir: dir, Origin: Serve, Now: look})
	require.NoError(t, err)
	require.Equal(t, 5, looks)

	gate, err := enter(ctx, dir)
	require.NoError(t, err)
	gone, cancel := context.WithCancel(ctx)
	cancel()
	require.ErrorIs(t, j.Recover(gone), context.Canceled)
	gate.release()
	require.NoError(t, j.Close())
}

func born(t *testing.T) string {
	t.Helper()
	origin, err := AskOrigin(time.Now())
	require.NoError(t, err)
	return origin
}

// waits are caps that bound the waiting questions alone.
func waits(n int) Caps { return Caps{Waiting: n, PerMinute: 1 << 30} }
