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
