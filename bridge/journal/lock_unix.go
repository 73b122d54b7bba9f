//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// takeFile locks the file at path without waiting. The kernel frees the lock
// when the process ends, however it ends, and no child inherits it.
func takeFile(path string, flags int) (*lock, error) {
	for {
		file, err := os.OpenFile(path, os.O_RDWR|flags, 0o600)
		if err != nil {
			return nil, err
		}
		err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, errors.Join(errHeld, file.Close())
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), file.Close())
		}
		same, err := stillThere(file, path)
		if err == nil && same {
			return &lock{file: file, path: path}, nil
		}
		// Its last holder unlinked it between our open and our lock: what we
		// hold is a lock on nothing.
		if err := errors.Join(err, file.Close()); err != nil {
			return nil, err
		}
	}
}

// unlock frees the lock by name and not only by closing: a child of ours that is
// between fork and exec has a copy of the descriptor for a moment.
// Guarded by TestALockOutlivesNoCopyOfItsDescriptor.
func unlock(file *os.File) error {
	return errors.Join(syscall.Flock(int(file.Fd()), syscall.LOCK_UN), file.Close())
}

func stillThere(file *os.File, path string) (bool, error) {
	held, err := file.Stat()
	if err != nil {
		return false, err
	}
	there, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return os.SameFile(held, there), nil
}

func ownedByUs(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Geteuid()
}
