package runner

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// unnamed gives a file in memory that can be sealed.
func unnamed() (*os.File, error) {
	fd, err := unix.MemfdCreate("question", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), "question"), nil
}

// fill writes the text, rewinds the file and seals it, so that neither its
// length nor its bytes can change any more.
func fill(file *os.File, text string) error {
	if _, err := io.WriteString(file, text); err != nil {
		return err
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	_, err := unix.FcntlInt(file.Fd(), unix.F_ADD_SEALS,
		unix.F_SEAL_SEAL|unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_WRITE)
	return err
}
