//go:build amd64 || arm64

package sandbox

import (
	"errors"
	"fmt"
	"math/rand/v2"

	"golang.org/x/sys/unix"
)

// lease takes a user id for one live run. Two runs with one id would share
// limits and could signal each other, so the id is held by an abstract socket
// that the kernel frees when its holder dies, also after SIGKILL. Bots in
// different network namespaces do not see each other's. Guarded by tests/attacks
// TestParallelRunsHaveTheirOwnUsers.
func (r idRange) lease() (uid int, release func(), err error) {
	start := rand.Uint32N(r.count)
	for i := range r.count {
		id := r.first + (start+i)%r.count
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return 0, nil, err
		}
		err = unix.Bind(fd, &unix.SockaddrUnix{Name: fmt.Sprintf("@parlour-run-uid-%d", id)})
		if err == nil {
			return int(id), func() { _ = unix.Close(fd) }, nil
		}
		_ = unix.Close(fd)
		if !errors.Is(err, unix.EADDRINUSE) {
			return 0, nil, err
		}
	}
	return 0, nil, fmt.Errorf("every user id for runs is in use")
}
