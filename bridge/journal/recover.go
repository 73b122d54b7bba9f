package journal

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"parlour/bridge/ask"
)

// Recover ends the jobs of asking processes that have died since Open. It may
// be called at any time: own jobs are not touched, for they may be running.
func (j *Journal) Recover(ctx context.Context) error {
	if err := j.opened.same(); err != nil {
		return fmt.Errorf("recover: %w", err) // the gate there is another's
	}
	gate, err := enter(ctx, j.cfg.Dir)
	if err != nil {
		return fmt.Errorf("recover: %w", err)
	}
	defer gate.release()
	if err := reap(ctx, j); err != nil {
		return fmt.Errorf("recover: %w", err)
	}
	return nil
}

// requeue repairs this origin's own jobs. It runs only under the fresh lock of
// Open, when nothing of this origin can be running. A job over which the bot
// died too often is given up, so that it cannot hold up the others.
// Guarded by tests/contract TestJournalGivesUpAJobThatKillsTheBot.
func (c change) requeue(ctx context.Context) error {
	left, err := all(ctx, c, `state = 'running' AND origin = ?`, c.cfg.Origin)
	if err != nil {
		return err
	}
	for _, record := range left {
		if err := c.again(ctx, record.Job); err != nil {
			return err
		}
	}
	return nil
}

func (c change) again(ctx context.Context, job ask.Job) error {
	if job.Attempt >= c.cfg.MaxAttempts {
		_, err := c.end(ctx, job.ID, anyAttempt, *ask.EndedBy(job, ask.GaveUp, ""))
		return err
	}
	if _, err := c.ExecContext(ctx, `UPDATE jobs SET state = 'queued' WHERE id = ?`, job.ID); err != nil {
		return err
	}
	return c.log(ctx, job.ID, ask.EventRequeued, nil)
}

// reap buries every asking origin that is dead. The caller is inside the gate,
// so nobody is being born meanwhile. Entrusted jobs have no process that could
// die; they are ended when their time is up.
func reap(ctx context.Context, j *Journal) error {
	if err := j.write(ctx, func(c change) error { return c.expire(ctx) }); err != nil {
		return err
	}
	origins, err := askers(ctx, j.reader, j.cfg)
	if err != nil {
		return err
	}
	for _, origin := range origins {
		if err := bury(ctx, j, origin); err != nil {
			return err
		}
	}
	return nil
}

// askers lists the asking origins, except this one, that left a lock file or an
// unended job.
func askers(ctx context.Context, db *sql.DB, cfg Config) ([]string, error) {
	files, err := os.ReadDir(filepath.Join(cfg.Dir, locksName))
	if err != nil {
		return nil, err
	}
	var origins []string
	for _, file := range files {
		if origin, ok := originOf(file.Name()); ok {
			origins = append(origins, origin)
		}
	}
	rows, err := db.QueryContext(ctx, `SELECT DISTINCT origin FROM jobs WHERE state IN ('queued', 'running') AND origin NOT IN ('serve', 'entrusted')`)
	if err != nil {
		return nil, plain(cfg.Dir, err)
	}
	defer rows.Close()
	for rows.Next() {
		var origin string
		if err := rows.Scan(&origin); err != nil {
			return nil, err
		}
		origins = append(origins, origin)
	}
	slices.Sort(origins)
	origins = slices.DeleteFunc(slices.Compact(origins), func(o string) bool { return o == cfg.Origin })
	return origins, plain(cfg.Dir, rows.Err())
}

// bury ends the jobs of an asking origin if its lock can be taken, that is, if
// its process is dead. A living one is left alone.
// Guarded by tests/contract TestJournalDeadAskersAreBuriedAndLivingOnesNot.
func bury(ctx context.Context, j *Journal, origin string) error {
	dead, err := takeFile(lockPath(j.cfg.Dir, origin), 0)
	if errors.Is(err, errHeld) {
		return nil
	}
	gone := errors.Is(err, fs.ErrNotExist)
	if err != nil && !gone {
		return err
	}
	if err := j.write(ctx, func(c change) error { return c.endAll(ctx, origin) }); err != nil {
		if !gone {
			dead.release() // the file stays, so the next Recover tries again
		}
		return err
	}
	j.signal() // its lanes and its people's caps are free again
	if gone {
		return nil
	}
	return dead.remove()
}

func (c change) endAll(ctx context.Context, origin string) error {
	left, err := all(ctx, c, `state IN ('queued', 'running') AND origin = ?`, origin)
	if err != nil {
		return err
	}
	for _, record := range left {
		if record.Job.Entrusted {
			if err := c.release(ctx, record); err != nil {
				return err
			}
			continue
		}
		if _, err := c.end(ctx, record.Job.ID, anyAttempt, *ask.EndedBy(record.Job, ask.AskerGone, "")); err != nil {
			return err
		}
	}
	return nil
}
