package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
)

// files are the folder and the files of an open store. Another process that opens
// the same paths shares the store with this one only while these are the same:
// not after a copy was moved over one, or the folder was put aside.
type files struct {
	paths  []string
	were   []fs.FileInfo
	moved  atomic.Pointer[string] // the path at which another was seen
	closed atomic.Bool            // SQLite takes the log away, and whatever is tried fails by itself
}

// find notes what is at the paths of a store that was just opened. In WAL mode
// the log and its index are there while it is open.
func (f *files) find(dir string) error {
	store := filepath.Join(dir, storeName)
	f.paths = []string{dir, store, store + "-wal", store + "-shm"}
	for _, path := range f.paths {
		info, err := os.Stat(path)
		if err != nil {
			return fmt.Errorf("look at the journal's files: %w", err)
		}
		f.were = append(f.were, info)
	}
	return nil
}

// same says whether the files are still those that were opened. Once they were
// not, this journal is over: nobody knows what was done there meanwhile.
func (f *files) same() error {
	for i, path := range f.paths {
		if f.moved.Load() != nil {
			break
		}
		info, err := os.Stat(path)
		switch {
		case f.closed.Load():
			return nil
		case errors.Is(err, fs.ErrNotExist), err == nil && !os.SameFile(info, f.were[i]):
			f.moved.Store(&path)
		case err != nil:
			return fmt.Errorf("look at the journal's files: %w", err)
		}
	}
	if at := f.moved.Load(); at != nil {
		return fmt.Errorf("%w (%s): start the bot again", ErrMoved, *at)
	}
	return nil
}
