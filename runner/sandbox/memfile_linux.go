//go:build amd64 || arm64

package sandbox

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

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

// finite gives standard input that ends: /dev/null, or a sealed file without a
// path. Guarded by tests/attacks TestStdinEnds.
func finite(content []byte) (*os.File, error) {
	if len(content) == 0 {
		return os.Open(os.DevNull)
	}
	return sealed("parlour-stdin", content)
}
