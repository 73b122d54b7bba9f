package journal

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"parlour/bridge/ask"
	"parlour/tiers"
)

// ErrNoGrant says that no grant with this id is known, or not any more.
var ErrNoGrant = errors.New("no such grant")

// toldFor is how long a grant that is over stays in the list.
const toldFor = 30 * 24 * time.Hour

// Given is a grant and what became of it.
type Given struct {
	tiers.Grant
	Revoked time.Time `json:"revoked,omitzero"`
}

// The fates of a grant.
const (
	Holds   = "holds"
	Over    = "ended"
	Revoked = "revoked"
)

// Fate says what has become of the grant by now.
func (g Given) Fate(now time.Time) string {
	switch {
	case !g.Revoked.IsZero():
		return Revoked
	case !now.Before(g.Until):
		return Over
	}
	return Holds // or will, where a clock went back: it can be revoked
}

// Grants are those of one moment.
type Grants struct {
	Changed int64   // how often grants had changed by then
	All     []Given // oldest first
}

// Holding gives those that hold.
func (g Grants) Holding(now time.Time) (list []tiers.Grant) {
	for _, one := range g.All {
		if one.Fate(now) == Holds {
			list = append(list, one.Grant)
		}
	}
	return list
}

// Ledger holds the grants of a journal. It is safe for many goroutines, and of
// use until the journal is closed.
type Ledger struct {
	j       *Journal
	changed *sql.Stmt // it is asked for each decision
}

// NewLedger opens the grants of a journal.
func NewLedger(ctx context.Context, j *Journal) (*Ledger, error) {
	changed, err := j.reader.PrepareContext(ctx, grantsChanged)
	if err != nil {
		return nil, fmt.Errorf("open the grants: %w", plain(j.cfg.Dir, err))
	}
	return &Ledger{j, changed}, nil
}

// Make makes a grant durable, and gives it with its id and time. It holds for
// whoever reads the grants from then on. Grants that have long been over are
// forgotten; their ids are not given again.
// Guarded by tests/contract TestAGrantAndItsEventAreOneTransaction.
func (l *Ledger) Make(ctx context.Context, g tiers.Grant) (tiers.Grant, error) {
	err := l.j.write(ctx, func(c change) (err error) {
		g, err = makeGrant(ctx, c, g)
		return err
	})
	if err != nil {
		return tiers.Grant{}, fmt.Errorf("grant: %w", err)
	}
	return g, nil
}

func makeGrant(ctx context.Context, c change, g tiers.Grant) (tiers.Grant, error) {
	g.Made, g.Until = c.cfg.Now().UTC().Round(0), g.Until.UTC().Round(0)
	if err := g.Check(); err != nil {
		return tiers.Grant{}, err
	}
	channels := sql.NullString{}
	if g.Channels != nil {
		text, err := json.Marshal(g.Channels)
		if err != nil {
			return tiers.Grant{}, err
		}
		channels = sql.NullString{String: string(text), Valid: true}
	}
	long := g.Made.Add(-toldFor).UnixNano()
	if _, err := c.ExecContext(ctx, `DELETE FROM grants WHERE until < ?1 OR revoked < ?1`, long); err != nil {
		return tiers.Grant{}, err
	}
	err := c.QueryRowContext(ctx, `
		INSERT INTO grants (tier, platform, workspace, channels, user, external, note, made, until)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id`,
		g.Tier.String(), string(g.Platform), g.Workspace, channels, g.User, g.External, g.Note, g.Made.UnixNano(), g.Until.UnixNano()).Scan(&g.ID)
	if err != nil {
		return tiers.Grant{}, err
	}
	return g, c.log(ctx, "", ask.EventGranted, g)
}

// Revoke ends a grant now. It is false where the grant was over before, which
// stays as it was, and ErrNoGrant where there is none.
func (l *Ledger) Revoke(ctx context.Context, id int64) (g Given, revoked bool, err error) {
	err = l.j.write(ctx, func(c change) (err error) {
		g, revoked, err = revokeGrant(ctx, c, id)
		return err
	})
	if err != nil {
		return Given{}, false, fmt.Errorf("revoke grant %d: %w", id, err)
	}
	return g, revoked, nil
}

func revokeGrant(ctx context.Context, c change, id int64) (Given, bool, error) {
	g, err := scanGrant(c.QueryRowContext(ctx, `SELECT `+grantColumns+` FROM grants WHERE id = ?`, id))
	if errors.Is(err, sql.ErrNoRows) {
		return Given{}, false, ErrNoGrant
	}
	now := c.cfg.Now().UTC().Round(0)
	if err != nil || g.Fate(now) != Holds {
		return g, false, err
	}
	g.Revoked = now
	if _, err := c.ExecContext(ctx, `UPDATE grants SET revoked = ? WHERE id = ?`, now.UnixNano(), id); err != nil {
		return Given{}, false, err
	}
	return g, true, c.log(ctx, "", ask.EventRevoked, g.Grant)
}

// Changed says how often grants have changed. It is cheap: whoever decides
// by grants asks it each time, and so goes by no grant that was revoked before.
// Where the journal's files are others by now it fails: whoever revokes a grant
// writes there.
// Guarded by tests/contract TestT24AGrantDoesNotOutliveItsJournal.
func (l *Ledger) Changed(ctx context.Context) (times int64, err error) {
	if err := l.j.opened.same(); err != nil {
		return 0, fmt.Errorf("look at the grants: %w", err)
	}
	if err := l.changed.QueryRowContext(ctx).Scan(&times); err != nil {
		return 0, fmt.Errorf("look at the grants: %w", plain(l.j.cfg.Dir, err))
	}
	return times, nil
}

const grantsChanged = `SELECT times FROM grants_changed`

// List gives the grants that hold, and those that were over no longer than 30
// days ago.
func (l *Ledger) List(ctx context.Context) (Grants, error) {
	g, err := readGrants(ctx, l.j.reader, l.j.cfg.Now())
	if err != nil {
		return Grants{}, fmt.Errorf("read the grants: %w", plain(l.j.cfg.Dir, err))
	}
	return g, nil
}

const grantColumns = `id, tier, platform, workspace, channels, user, external, note, made, until, revoked`

// readGrants reads all in one transaction, so that the list is the one of the
// number.
func readGrants(ctx context.Context, db *sql.DB, now time.Time) (g Grants, err error) {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return Grants{}, err
	}
	defer func() { _ = tx.Rollback() }() // nothing was changed
	if err := tx.QueryRowContext(ctx, grantsChanged).Scan(&g.Changed); err != nil {
		return Grants{}, err
	}
	rows, err := tx.QueryContext(ctx, `SELECT `+grantColumns+` FROM grants WHERE until >= ?1 AND coalesce(revoked, until) >= ?1 ORDER BY id`,
		now.Add(-toldFor).UnixNano())
	if err != nil {
		return Grants{}, err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		one, err := scanGrant(rows)
		if err != nil {
			return Grants{}, err
		}
		g.All = append(g.All, one)
	}
	return g, rows.Err()
}

func scanGrant(row interface{ Scan(...any) error }) (g Given, err error) {
	var (
		tier, platform string
		channels       []byte
		made, until    int64
		revoked        sql.NullInt64
	)
	if err := row.Scan(&g.ID, &tier, &platform, &g.Workspace, &channels, &g.User, &g.External, &g.Note, &made, &until, &revoked); err != nil {
		return Given{}, err
	}
	if g.Tier, err = tiers.Parse(tier); err != nil {
		return Given{}, fmt.Errorf("read grant %d: %w", g.ID, err)
	}
	if channels != nil {
		if err := json.Unmarshal(channels, &g.Channels); err != nil {
			return Given{}, fmt.Errorf("read the channels of grant %d: %w", g.ID, err)
		}
	}
	g.Platform, g.Made, g.Until = tiers.Platform(platform), time.Unix(0, made).UTC(), time.Unix(0, until).UTC()
	if revoked.Valid {
		g.Revoked = time.Unix(0, revoked.Int64).UTC()
	}
	return g, nil
}

// Served says whether a bot serves from this state folder, and so goes by its
// grants at once.
func (l *Ledger) Served(ctx context.Context) (bool, error) {
	gate, err := enter(ctx, l.j.cfg.Dir) // else a bot that starts now would find its lock taken
	if err != nil {
		return false, fmt.Errorf("look for a serving bot: %w", err)
	}
	defer gate.release()
	free, err := takeFile(lockPath(l.j.cfg.Dir, Serve), 0)
	switch {
	case err == nil:
		free.release()
	case !errors.Is(err, errHeld) && !errors.Is(err, fs.ErrNotExist):
		return false, fmt.Errorf("look for a serving bot: %w", err)
	}
	return errors.Is(err, errHeld), nil
}
