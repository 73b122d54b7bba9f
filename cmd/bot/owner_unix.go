//go:build unix

package main

import (
	"io/fs"
	"os"
	"syscall"
)

// ownedByUs says whether a file is this user's own.
func ownedByUs(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Geteuid()
}

// openAsIs opens what has this name itself, and does not wait for a pipe's writer.
func openAsIs(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
}
