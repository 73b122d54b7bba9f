//go:build amd64 || arm64

package sandbox

import (
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// maxStdin is the most that a run may be given on standard input, in bytes.
const maxStdin = 16 << 20

// sealed gives a memory file that nobody can change any more.
func sealed(name string, content []byte) (*os.File, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), name)
	if _, err := f.Write(content); err != nil {
		_ = f.Close()
		return nil, err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		_ = f.Close()
		return nil, err
	}
	seals := unix.F_SEAL_SEAL | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_WRITE
	if _, err := unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, seals); err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// finite gives standard input that ends: /dev/null, or a sealed copy of the rest
// of a regular file. The copy has no path, so the run learns nothing about the
// host from it and cannot open it for writing. Guarded by tests/attacks
// TestStdinEnds.
func finite(stdin *os.File) (*os.File, error) {
	if stdin == nil {
		return os.Open(os.DevNull)
	}
	info, err := stdin.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("it is not a regular file, so it may never end")
	}
	content, err := io.ReadAll(io.LimitReader(stdin, maxStdin+1))
	if err != nil {
		return nil, err
	}
	if len(content) > maxStdin {
		return nil, fmt.Errorf("it holds more than %d bytes", maxStdin)
	}
	return sealed("parlour-stdin", content)
}
