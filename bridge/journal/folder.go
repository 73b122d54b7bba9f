package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

const (
	storeName = "parlour.db"
	locksName = "locks"
)

// prepare makes the folder, or refuses one that somebody else could change: who
// can write the queue can put words into other people's mouths.
// Guarded by tests/contract TestJournalRefusesFoldersOfOthers.
func prepare(dir string) error {
	for _, d := range []string{dir, filepath.Join(dir, locksName)} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return fmt.Errorf("state folder %s cannot be made: %w", d, err)
		}
		if err := ours(d); err != nil {
			return err
		}
	}
	return private(filepath.Join(dir, storeName))
}

func ours(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return fmt.Errorf("state folder %s: %w", dir, err)
	}
	if info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("state folder %s can be written by others (mode %04o): run chmod 700 on it", dir, info.Mode().Perm())
	}
	if !ownedByUs(info) {
		return fmt.Errorf("state folder %s belongs to another user: give it to the bot's user, or name another folder", dir)
	}
	return nil
}

// private makes the store's file before SQLite does, so that it and the files
// that SQLite derives from it are never readable by others.
func private(path string) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err == nil {
		return file.Close()
	}
	if !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("state folder %s cannot be written: %w", filepath.Dir(path), err)
	}
	info, err := os.Lstat(path)
	if err != nil {
		return fmt.Errorf("store %s: %w", path, err)
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("store %s is not a regular file", path)
	}
	if info.Mode().Perm()&0o077 != 0 {
		if err := os.Chmod(path, 0o600); err != nil {
			return fmt.Errorf("store %s is open to others: %w", path, err)
		}
	}
	return nil
}
