package journal

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path/filepath"

	"github.com/pressly/goose/v3"
	"modernc.org/sqlite"
)

//go:embed migrations/*.sql
var migrations embed.FS

// SQLite's codes for a file that is no database, or one that is damaged.
const (
	sqliteCorrupt = 11
	sqliteNotADB  = 26
	primaryCode   = 0xff
)

const (
	writers = 1 // more would only meet each other as SQLITE_BUSY
	readers = 2
)

// connect opens both pools and brings the schema up to date.
func connect(ctx context.Context, dir string) (writer, reader *sql.DB, err error) {
	if writer, err = pool(dir, writers, url.Values{"_txlock": {"immediate"}}); err != nil {
		return nil, nil, err
	}
	if err = migrate(ctx, writer, dir); err == nil {
		reader, err = pool(dir, readers, url.Values{"_query_only": {"1"}})
	}
	if err != nil {
		return nil, nil, errors.Join(plain(dir, err), writer.Close())
	}
	return writer, reader, nil
}

// pool opens the store. FULL: what was acknowledged is on the disk.
// Guarded by TestEveryConnectionIsDurable.
func pool(dir string, size int, query url.Values) (*sql.DB, error) {
	query["_pragma"] = []string{"busy_timeout(20000)", "journal_mode(WAL)", "synchronous(FULL)", "foreign_keys(1)"}
	query.Set("_defensive", "1")
	query.Set("_dqs", "0")
	name := url.URL{Scheme: "file", Path: filepath.Join(dir, storeName), RawQuery: query.Encode()}
	db, err := sql.Open("sqlite", name.String())
	if err != nil {
		return nil, fmt.Errorf("store in %s: %w", dir, err)
	}
	db.SetMaxOpenConns(size)
	db.SetMaxIdleConns(size)
	return db, nil
}

func migrate(ctx context.Context, db *sql.DB, dir string) error {
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return err
	}
	steps, err := goose.NewProvider(goose.DialectSQLite3, db, files, goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return err
	}
	have, want, err := steps.GetVersions(ctx)
	if err != nil {
		return err
	}
	if have > want {
		return fmt.Errorf("store %s was made by a newer bot (schema %d, this bot knows %d): start that bot", filepath.Join(dir, storeName), have, want)
	}
	if have < want {
		_, err = steps.Up(ctx)
	}
	return err
}

// plain names the store in an error, and the cure where the file is damaged.
func plain(dir string, err error) error {
	if err == nil {
		return nil
	}
	path := filepath.Join(dir, storeName)
	var failed *sqlite.Error
	if errors.As(err, &failed) {
		switch failed.Code() & primaryCode {
		case sqliteCorrupt, sqliteNotADB:
			return fmt.Errorf("store %s is damaged or no store of this bot: restore it, or move it away to start anew: %w", path, err)
		}
		return fmt.Errorf("store %s: %w", path, err)
	}
	return err
}
