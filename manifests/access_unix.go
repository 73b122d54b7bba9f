//go:build unix

package manifests

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// openPlain opens a file for reading without waiting, so that a pipe in its
// place cannot stop the bot.
func openPlain(file string) (*os.File, error) {
	return os.OpenFile(file, os.O_RDONLY|syscall.O_NONBLOCK, 0)
}

// openToOthers reports a file or folder that others than the bot's operator can
// write. What a runner file says is executed, so a private one must also belong
// to the bot's user or to root, and not be its group's to write.
// Guarded by tests/config TestFilesThatOthersCanWriteAreRefused.
func openToOthers(name, at string, info fs.FileInfo, private bool) (Fault, bool) {
	mode := info.Mode().Perm()
	stat, known := info.Sys().(*syscall.Stat_t)
	uid := os.Geteuid()
	switch {
	case private && known && stat.Uid != 0 && int(stat.Uid) != uid:
		return Fault{File: name, What: fmt.Sprintf("belongs to user %d and says what is executed", stat.Uid),
			Right: fmt.Sprintf("it belonging to the bot's user (%d) or to root", uid)}, true
	case readOnlyMount(at):
		return Fault{}, false
	case mode&0o002 != 0:
		return Fault{File: name, What: fmt.Sprintf("can be written by everybody (mode %04o)", mode), Right: "chmod o-w"}, true
	case private && mode&0o020 != 0:
		return Fault{File: name, What: fmt.Sprintf("can be written by its group (mode %04o) and says what is executed", mode), Right: "chmod go-w"}, true
	}
	return Fault{}, false
}
