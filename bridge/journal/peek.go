package journal

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"time"
)

// PeekGrants lists the grants of a state folder like Ledger.List, for whoever only
// looks: it makes and changes nothing there, and disturbs no bot that works.
// Where there is no store yet there are no grants.
// Guarded by tests/contract TestAPeekLeavesNothingBehind.
func PeekGrants(ctx context.Context, dir string, now time.Time) (Grants, error) {
	path := filepath.Join(dir, storeName)
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Grants{}, nil
	case err != nil:
		return Grants{}, fmt.Errorf("read the grants: %w", err)
	case !info.Mode().IsRegular():
		return Grants{}, fmt.Errorf("read the grants: store %s is not a regular file", path)
	case info.Size() == 0:
		return Grants{}, nil
	}
	db, err := sql.Open("sqlite", peekAt(path))
	if err != nil {
		return Grants{}, fmt.Errorf("read the grants: %w", err)
	}
	defer func() { _ = db.Close() }()
	var known bool
	if err := db.QueryRowContext(ctx, `SELECT count(*) FROM sqlite_master WHERE name = 'grants_changed'`).Scan(&known); err != nil {
		return Grants{}, fmt.Errorf("read the grants: %w", plain(dir, err))
	}
	if !known {
		return Grants{}, nil // an earlier bot's store
	}
	g, err := readGrants(ctx, db, now)
	if err != nil {
		return Grants{}, fmt.Errorf("read the grants: %w", plain(dir, err))
	}
	return g, nil
}

// peekAt names the store for reading. While somebody has it open there is a log
// beside it; without one nobody writes, and SQLite is told so, since it would
// make one otherwise.
func peekAt(path string) string {
	query := url.Values{"mode": {"ro"}, "_pragma": {"busy_timeout(5000)"}}
	if _, err := os.Stat(path + "-wal"); errors.Is(err, fs.ErrNotExist) {
		query.Set("immutable", "1")
	}
	name := url.URL{Scheme: "file", Path: path, RawQuery: query.Encode()}
	return name.String()
}
