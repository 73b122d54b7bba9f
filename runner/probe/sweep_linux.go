//go:build amd64 || arm64

package probe

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// claim makes the folder of a stage and locks it for as long as this process
// lives, so that another can tell a stage that is in use from one whose bot was
// killed. The folder has its name only when it is locked.
func claim(s *stage, folder string) error {
	dir, name := filepath.Split(folder)
	made := dir + "." + name
	if err := os.Mkdir(made, 0o700); err != nil {
		return err
	}
	s.later(func() {
		_ = os.RemoveAll(made)
		_ = os.RemoveAll(folder)
	})
	fd, err := unix.Open(made, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	s.later(func() { _ = unix.Close(fd) })
	if err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return err
	}
	return os.Rename(made, folder)
}

// sweep takes away what killed bots of this user left of their batteries.
// Guarded by tests/attacks TestAKilledBatteryIsSwept.
func (b *Battery) sweep() {
	left, _ := filepath.Glob(filepath.Join(b.cfg.Temp, prefix+"*"))
	for _, folder := range left {
		info, err := os.Lstat(folder)
		if err != nil || !info.IsDir() {
			continue
		}
		if st, ok := info.Sys().(*syscall.Stat_t); !ok || int(st.Uid) != os.Geteuid() {
			continue
		}
		fd, err := unix.Open(folder, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err != nil {
			continue
		}
		if unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) == nil {
			forget(filepath.Base(folder))
			_ = os.RemoveAll(folder)
		}
		_ = unix.Close(fd)
	}
}

// forget takes away what a stage of this mark has outside of its folder.
func forget(mark string) {
	for _, dir := range []string{"/dev/shm", "/var/tmp"} {
		_ = os.Remove(filepath.Join(dir, mark))
	}
	for _, root := range cgroupRoots() {
		_ = os.Remove(filepath.Join(root, mark))
	}
	key := keyOf(mark)
	if id, err := call(unix.SYS_SEMGET, key, 0, 0); err == nil {
		_, _ = call(unix.SYS_SEMCTL, id, 0, unix.IPC_RMID, 0)
	}
	if id, err := call(unix.SYS_MSGGET, key, 0); err == nil {
		_, _ = call(unix.SYS_MSGCTL, id, unix.IPC_RMID, 0)
	}
	_ = unlinkQueue(mark)
}

// keyOf gives the System V key of a stage. It is new wherever it is used, since
// nothing that exists is taken over.
func keyOf(mark string) uintptr {
	n, _ := strconv.ParseUint(strings.TrimPrefix(mark, prefix)[:7], 16, 32) // a mark is made of hex digits
	return uintptr(n | 1<<28)
}

func cgroupRoots() []string {
	return []string{"/sys/fs/cgroup/unified", "/sys/fs/cgroup/memory", "/sys/fs/cgroup/pids", "/sys/fs/cgroup"}
}
