//go:build amd64 || arm64

package probe

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// claim makes the folder of a stage and locks it for as long as this process
// lives, so that another can tell a stage that is in use from one whose bot was
// killed. The folder has its name only when it is locked.
func claim(s *stage, folder string) (int, error) {
	dir, name := filepath.Split(folder)
	made := dir + "." + name
	fd, err := makeFolder(unix.AT_FDCWD, made)
	if err != nil {
		return -1, err
	}
	s.later(func() {
		_ = os.RemoveAll(made)
		_ = os.RemoveAll(folder)
	})
	s.later(func() { _ = unix.Close(fd) })
	if err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return -1, fmt.Errorf("lock the folder: %w", err)
	}
	return fd, os.Rename(made, folder)
}

// markDigits is how many hex digits follow the prefix in a mark.
const markDigits = 16

// isMark says whether a name is exactly what a battery calls itself. Anybody
// may put other names into the temporary folder. Guarded by tests/attacks
// TestForeignNamesDoNotDisturbTheSweep.
func isMark(name string) bool {
	digits, ok := strings.CutPrefix(name, prefix)
	return ok && len(digits) == markDigits && strings.Trim(digits, "0123456789abcdef") == ""
}

// sweep takes away what killed bots of this user left of their batteries.
// Guarded by tests/attacks TestAKilledBatteryIsSwept.
func (b *Battery) sweep() {
	entries, _ := os.ReadDir(b.cfg.Temp)
	for _, e := range entries {
		if isMark(e.Name()) {
			sweepOne(filepath.Join(b.cfg.Temp, e.Name()))
		}
	}
}

func sweepOne(folder string) {
	fd, err := openOwn(unix.AT_FDCWD, folder)
	if err != nil {
		return // another user's, or gone
	}
	defer func() { _ = unix.Close(fd) }()
	if unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) != nil {
		return // in use
	}
	forget(filepath.Base(folder), readSeed(fd))
	_ = os.RemoveAll(folder)
}

// readSeed gives the seed that the stage left, or none.
func readSeed(folder int) string {
	fd, err := unix.Openat(folder, fileSeed, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return ""
	}
	defer func() { _ = unix.Close(fd) }()
	return drain(fd)
}

// forget takes away what a stage has outside of its folder.
func forget(mark, seed string) {
	for _, root := range cgroupRoots() {
		_ = os.Remove(filepath.Join(root, mark))
	}
	if seed == "" {
		return // it was killed before it made more
	}
	_ = os.Remove(filepath.Join("/dev/shm", hiddenName(seed, "shm")))
	_ = os.Remove(filepath.Join("/var/tmp", hiddenName(seed, "vartmp")))
	key := keyOf(seed)
	if id, err := call(unix.SYS_SEMGET, key, 0, 0); err == nil {
		_, _ = call(unix.SYS_SEMCTL, id, 0, unix.IPC_RMID, 0)
	}
	if id, err := call(unix.SYS_MSGGET, key, 0); err == nil {
		_, _ = call(unix.SYS_MSGCTL, id, unix.IPC_RMID, 0)
	}
	_ = unlinkQueue(hiddenName(seed, "queue"))
}

// keyOf gives the System V key of a stage. It is new wherever it is used, since
// nothing that exists is taken over.
func keyOf(seed string) uintptr {
	n, _ := strconv.ParseUint(tag(seed, "key")[:7], 16, 32) // a tag is made of hex digits
	return uintptr(n | 1<<28)
}

func cgroupRoots() []string {
	return []string{"/sys/fs/cgroup/unified", "/sys/fs/cgroup/memory", "/sys/fs/cgroup/pids", "/sys/fs/cgroup"}
}
