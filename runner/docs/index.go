package docs

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	_ "modernc.org/sqlite" // the "sqlite" driver, with FTS5
)

// format is part of an index's name: it changes with everything that changes
// the index of the same documents.
const format = "parlour docs 3"

// schema keeps the passages as they are and a search table of their terms.
// Terms are made by this package for index and question alike, so the search
// table only has to split at spaces. It keeps no text of its own.
const schema = `
CREATE TABLE passage (id INTEGER PRIMARY KEY, file TEXT NOT NULL, heading TEXT NOT NULL, title TEXT NOT NULL, text TEXT NOT NULL) STRICT;
CREATE TABLE word (term TEXT PRIMARY KEY, passages INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE meta (documents TEXT NOT NULL, passages INTEGER NOT NULL, terms INTEGER NOT NULL) STRICT;
CREATE VIRTUAL TABLE search USING fts5(title, heading, text, asked, content='', tokenize='ascii');
`

// Build writes the index of all documents of fsys to path, in place of what is
// there. The same documents give the same bytes. A reader sees the old index or
// the new one and nothing between.
func Build(ctx context.Context, fsys fs.FS, path string) error {
	documents, err := load(ctx, fsys)
	if err != nil {
		return err
	}
	_, err = write(ctx, documents, func(string) string { return path })
	return err
}

// Ensure gives the path of the index of fsys inside dir and builds it first
// where it is missing or damaged. The name of the index is a hash of the
// documents and one of the index itself, so an index of other documents is never
// taken for it, nor one that something changed. Processes may do this at the
// same time. The folder is made if need be, readable for the sandbox's own
// user; folders above it are made private.
func Ensure(ctx context.Context, fsys fs.FS, dir string) (string, error) {
	documents, err := load(ctx, fsys)
	if err != nil {
		return "", err
	}
	if err := makeFolder(dir); err != nil {
		return "", fmt.Errorf("folder for the index: %w", err)
	}
	content := indexPrefix + contentHash(documents) + "-"
	index, err := whole(dir, content)
	if err != nil || index != "" {
		return index, err
	}
	if index, err = write(ctx, documents, func(hash string) string { return filepath.Join(dir, content+hash+indexSuffix) }); err != nil {
		return "", err
	}
	sweep(index)
	return index, nil
}

func makeFolder(dir string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return nil
		}
		return err
	}
	return os.Chmod(dir, 0o755) // whatever the umask
}

// write builds the index beside its place and renames it. Its place may depend
// on its hash.
func write(ctx context.Context, documents []document, place func(hash string) string) (index string, err error) {
	tmp, err := os.CreateTemp(filepath.Dir(place("")), tmpPrefix+"*"+tmpSuffix)
	if err != nil {
		return "", fmt.Errorf("write index: %w", err)
	}
	defer func() {
		tmp.Close()
		if err != nil {
			os.Remove(tmp.Name())
			err = fmt.Errorf("write index: %w", err)
		}
	}()
	if err := fill(ctx, tmp.Name(), documents); err != nil {
		return "", err
	}
	hash, err := fileHash(tmp.Name())
	if err != nil {
		return "", err
	}
	if err := tmp.Chmod(0o644); err != nil {
		return "", err
	}
	if err := tmp.Sync(); err != nil {
		return "", err
	}
	return place(hash), os.Rename(tmp.Name(), place(hash))
}

// fill makes the index in an empty file. It needs no journal: an index that is
// not finished is thrown away.
func fill(ctx context.Context, path string, documents []document) error {
	db, err := open(path, "mode=rw&_pragma=journal_mode(off)&_pragma=synchronous(off)&_pragma=temp_store(memory)")
	if err != nil {
		return err
	}
	defer db.Close()
	if _, err := db.ExecContext(ctx, schema); err != nil {
		return err
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := insert(ctx, tx, documents); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	for _, finish := range []string{"INSERT INTO search(search) VALUES('optimize')", "VACUUM"} {
		if _, err := db.ExecContext(ctx, finish); err != nil {
			return err
		}
	}
	return db.Close()
}

func insert(ctx context.Context, tx *sql.Tx, documents []document) error {
	passage, err := tx.PrepareContext(ctx, "INSERT INTO passage VALUES(?, ?, ?, ?, ?)")
	if err != nil {
		return err
	}
	search, err := tx.PrepareContext(ctx, "INSERT INTO search(rowid, title, heading, text, asked) VALUES(?, ?, ?, ?, ?)")
	if err != nil {
		return err
	}
	id, length, count := 0, 0, map[string]int{}
	for _, d := range documents {
		for _, s := range split(d.text) {
			id++
			title, path, text := terms(s.title), terms(strings.Join(s.path, " ")), terms(s.text)
			length += len(text)
			for t := range set(title, path, text) {
				count[t]++
			}
			if _, err := passage.ExecContext(ctx, id, d.name, s.heading(), s.title, s.text); err != nil {
				return err
			}
			if _, err := search.ExecContext(ctx, id, joined(title), joined(path), joined(text), joined(asked(s.heading()))); err != nil {
				return err
			}
		}
	}
	if err := insertWords(ctx, tx, count); err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, "INSERT INTO meta VALUES(?, ?, ?)", setNames(documents), id, length)
	return err
}

func insertWords(ctx context.Context, tx *sql.Tx, count map[string]int) error {
	word, err := tx.PrepareContext(ctx, "INSERT INTO word VALUES(?, ?)")
	if err != nil {
		return err
	}
	sorted := make([]string, 0, len(count))
	for t := range count {
		sorted = append(sorted, t)
	}
	slices.Sort(sorted)
	for _, t := range sorted {
		if _, err := word.ExecContext(ctx, t, count[t]); err != nil {
			return err
		}
	}
	return nil
}

// setNames gives the names of the document sets: the top folders.
func setNames(documents []document) string {
	var names []string
	for _, d := range documents {
		name, _, ok := strings.Cut(path.Clean(d.name), "/")
		if !ok {
			name = "documents"
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), ", ")
}

// open opens an SQLite file. Its path may hold any character.
func open(path, query string) (*sql.DB, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	return sql.Open("sqlite", "file:"+(&url.URL{Path: abs}).EscapedPath()+"?"+query)
}

func set(lists ...[]string) map[string]bool {
	found := map[string]bool{}
	for _, list := range lists {
		for _, t := range list {
			found[t] = true
		}
	}
	return found
}

func joined(terms []string) string { return strings.Join(terms, " ") }
