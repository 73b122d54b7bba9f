//go:build unix

package runner

import (
	"io/fs"
	"syscall"
)

// ownerOf gives the user id that a file belongs to.
func ownerOf(info fs.FileInfo) (int, bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return int(st.Uid), true
}
