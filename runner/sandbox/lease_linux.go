//go:build amd64 || arm64

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

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
		release, err := hold(fmt.Sprintf("uid-%d", id))
		if err == nil {
			return int(id), release, nil
		}
		if !errors.Is(err, unix.EADDRINUSE) {
			return 0, nil, err
		}
	}
	return 0, nil, fmt.Errorf("every user id for runs is in use")
}

// hold takes a name that one holder has at a time.
func hold(name string) (release func(), err error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	if err := unix.Bind(fd, &unix.SockaddrUnix{Name: "@parlour-run-" + name}); err != nil {
		_ = unix.Close(fd)
		return nil, err
	}
	return func() { _ = unix.Close(fd) }, nil
}

// leaseAddress waits for the one address of the model, which all runs without a
// network of their own share, of other bots too. Guarded by tests/attacks
// TestLandlockRungReachesOnePort.
func leaseAddress(ctx context.Context) (release func(), err error) {
	again := time.NewTicker(addressTick)
	defer again.Stop()
	for {
		release, err := hold("address")
		if err == nil || !errors.Is(err, unix.EADDRINUSE) {
			return release, err
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// addressTick is how often a run looks whether the address has become free.
const addressTick = 20 * time.Millisecond
