//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// takeFile refuses: without a lock that dies with its process, two bots could
// answer the same message.
func takeFile(path string, _ int) (*lock, error) {
	return nil, fmt.Errorf("lock %s: this system: %w", path, errors.ErrUnsupported)
}

func unlock(file *os.File) error { return file.Close() }

func ownedByUs(fs.FileInfo) bool { return false }
