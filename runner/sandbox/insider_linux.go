//go:build amd64 || arm64

package sandbox

import (
	"errors"

	"golang.org/x/sys/unix"
)

// insider is the process that speaks for a run before it becomes the program. It
// need not be the bot's own child.
type insider struct {
	pid        int
	descriptor int // of the process, so that no other can be meant; -1 where there is none
}

// meet notes who spoke last.
func (i *insider) meet(pid int) {
	if pid <= 0 || pid == i.pid {
		return
	}
	i.close()
	i.pid, i.descriptor = pid, -1
	if fd, err := unix.PidfdOpen(pid, 0); err == nil {
		i.descriptor = fd
	}
}

// end kills the process, waits for its end, and says whether that came in time.
// The first process of a namespace ends last of all in it.
func (i *insider) end() bool {
	if i.descriptor < 0 {
		return true
	}
	_ = unix.PidfdSendSignal(i.descriptor, unix.SIGKILL, nil, 0)
	watched := []unix.PollFd{{Fd: int32(i.descriptor), Events: unix.POLLIN}}
	for {
		n, err := unix.Poll(watched, int(endTime.Milliseconds()))
		if !errors.Is(err, unix.EINTR) {
			return n > 0
		}
	}
}

// endGroup kills everybody in the process's group.
func (i *insider) endGroup() {
	if i.pid > 1 {
		_ = unix.Kill(-i.pid, unix.SIGKILL)
	}
}

func (i *insider) close() {
	if i.descriptor >= 0 {
		_ = unix.Close(i.descriptor)
		i.descriptor = -1
	}
}
