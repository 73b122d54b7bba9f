package journal

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"

	"parlour/bridge/ask"
)

// change is one open transaction, and for whom it is made. All that alters the
// store is a method of it, so nothing can be altered outside of one.
type change struct {
	*sql.Tx
	cfg Config
	ids io.Reader
}

// write runs one change as one durable transaction. What is written to files that
// nobody finds any more is not durable, so it is refused.
// Guarded by tests/contract TestAJournalThatWasReplacedTakesNothing.
func (j *Journal) write(ctx context.Context, do func(change) error) error {
	if err := j.opened.same(); err != nil {
		return err
	}
	tx, err := j.writer.BeginTx(ctx, nil)
	if err != nil {
		return plain(j.cfg.Dir, err)
	}
	if err := do(change{tx, j.cfg, j.ids}); err != nil {
		_ = tx.Rollback() // the change's own error says more
		return plain(j.cfg.Dir, err)
	}
	return plain(j.cfg.Dir, tx.Commit())
}

// log writes one event. That of a grant has no job.
func (c change) log(ctx context.Context, job, kind string, data any) error {
	text := sql.NullString{}
	if data != nil {
		encoded, err := json.Marshal(data)
		if err != nil {
			return fmt.Errorf("encode %s: %w", kind, err)
		}
		text = sql.NullString{String: string(encoded), Valid: true}
	}
	_, err := c.ExecContext(ctx, `INSERT INTO events (job, kind, at, data) VALUES (nullif(?, ''), ?, ?, ?)`, job, kind, c.cfg.Now().UnixNano(), text)
	return err
}

// alter runs a statement that changes one row or none, and says which.
func (c change) alter(ctx context.Context, statement string, args ...any) (bool, error) {
	done, err := c.ExecContext(ctx, statement, args...)
	if err != nil {
		return false, err
	}
	n, err := done.RowsAffected()
	return n == 1, err
}

// own reads a job of this origin. Those of others are unknown here.
func (c change) own(ctx context.Context, id string) (Record, error) {
	record, err := find(ctx, c, "id", id)
	if err == nil && record.Job.Origin != c.cfg.Origin {
		err = fmt.Errorf("%w: it belongs to %s", ErrUnknown, record.Job.Origin)
	}
	return record, err
}

// end moves a job to its end, once, and logs it. The caller knows that the job
// is its to end; attempt fences, or is anyAttempt.
func (c change) end(ctx context.Context, id string, attempt int, ended ask.Ended) (bool, error) {
	text, err := json.Marshal(ended)
	if err != nil {
		return false, err
	}
	moved, err := c.alter(ctx, `
		UPDATE jobs SET state = 'ended', ended = ?2
		WHERE id = ?1 AND state <> 'ended' AND (?3 = 0 OR (state = 'running' AND attempt = ?3))`, id, string(text), attempt)
	if err != nil || !moved {
		return false, err
	}
	return true, c.log(ctx, id, ask.EventOutcome, ended)
}
