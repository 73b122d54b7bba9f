//go:build linux && (amd64 || arm64)

package entry

import (
	"syscall"
	"unsafe"
)

// Numbers and flags that package syscall does not have. The numbers are the
// same on every architecture.
const (
	sysOpenTree     = 428
	sysMoveMount    = 429
	sysMountSetattr = 442

	atCWD              = ^uintptr(99) // AT_FDCWD, -100
	atSymlinkNofollow  = 0x100
	atEmptyPath        = 0x1000
	atRecursive        = 0x8000
	openTreeClone      = 1
	moveMountEmptyPath = 4
)

func hostname(name string) error {
	if err := syscall.Sethostname([]byte(name)); err != nil {
		return err
	}
	return syscall.Setdomainname([]byte(name))
}

func (c *child) tree(slot int64, attrs uint64, recursive bool, path string) error {
	p, err := cstring(path)
	if err != nil {
		return err
	}
	if slot < 0 || slot >= int64(len(c.slots)) {
		return refusal("there are too many mounts")
	}
	flags, deep := uintptr(openTreeClone|syscall.O_CLOEXEC), uintptr(0)
	if recursive {
		flags, deep = flags|atRecursive, atRecursive
	}
	fd, _, errno := syscall.RawSyscall(sysOpenTree, atCWD, uintptr(p), flags)
	if errno != 0 {
		return errno
	}
	c.slots[slot] = int(fd)
	if attrs == 0 {
		return nil
	}
	return attributes(fd, "", attrs, deep|atEmptyPath)
}

// attributes adds mount attributes; one that is set is never cleared here.
func attributes(dir uintptr, path string, set uint64, flags uintptr) error {
	p, err := cstring(path)
	if err != nil {
		return err
	}
	attr := struct{ set, clear, propagation, userns uint64 }{set: set}
	return errnoOf(syscall.RawSyscall6(sysMountSetattr, dir, uintptr(p), flags,
		uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0))
}

func (c *child) place(slot int64, path string) error {
	p, err := cstring(path)
	if err != nil {
		return err
	}
	if slot < 0 || slot >= int64(len(c.slots)) || c.slots[slot] < 0 {
		return refusal("nothing was cloned for it")
	}
	empty, err := cstring("")
	if err != nil {
		return err
	}
	fd := c.slots[slot]
	c.slots[slot] = -1
	err = errnoOf(syscall.RawSyscall6(sysMoveMount, uintptr(fd), uintptr(empty), atCWD, uintptr(p), moveMountEmptyPath, 0))
	closeFD(fd)
	return err
}

func mount(source, target, kind string, flags uintptr, options string) error {
	var p [4]unsafe.Pointer
	for i, s := range [...]string{source, target, kind, options} {
		var err error
		if p[i], err = cstring(s); err != nil {
			return err
		}
	}
	return errnoOf(syscall.RawSyscall6(syscall.SYS_MOUNT, uintptr(p[0]), uintptr(p[1]), uintptr(p[2]), flags, uintptr(p[3]), 0))
}

func folder(path string, mode uint32, uid, gid int64) error {
	p, err := cstring(path)
	if err != nil {
		return err
	}
	if err := errnoOf(syscall.RawSyscall(syscall.SYS_MKDIRAT, atCWD, uintptr(p), uintptr(mode))); err != nil {
		return err
	}
	return own(path, uid, gid)
}

// own gives a file to the run's user; -1 leaves it to its maker.
func own(path string, uid, gid int64) error {
	if uid < 0 {
		return nil
	}
	p, err := cstring(path)
	if err != nil {
		return err
	}
	return errnoOf(syscall.RawSyscall6(syscall.SYS_FCHOWNAT, atCWD, uintptr(p), uintptr(uid), uintptr(gid), atSymlinkNofollow, 0))
}

func symlink(target, path string) error {
	t, err := cstring(target)
	if err != nil {
		return err
	}
	p, err := cstring(path)
	if err != nil {
		return err
	}
	return errnoOf(syscall.RawSyscall(syscall.SYS_SYMLINKAT, uintptr(t), atCWD, uintptr(p)))
}

// file makes a new file; O_EXCL and O_NOFOLLOW keep it from landing elsewhere.
func file(path, content string, mode uint32, uid, gid int64) error {
	fd, err := open(path, syscall.O_WRONLY|syscall.O_CREAT|syscall.O_EXCL|syscall.O_NOFOLLOW, mode)
	if err != nil {
		return err
	}
	for len(content) > 0 && err == nil {
		var n int
		n, err = write(fd, content)
		content = content[n:]
	}
	closeFD(fd)
	if err != nil {
		return err
	}
	return own(path, uid, gid)
}

func device(path string, mode, major, minor uintptr) error {
	p, err := cstring(path)
	if err != nil {
		return err
	}
	return errnoOf(syscall.RawSyscall6(syscall.SYS_MKNODAT, atCWD, uintptr(p), syscall.S_IFCHR|mode, major<<8|minor, 0, 0))
}

func chdir(path string) error {
	p, err := cstring(path)
	if err != nil {
		return err
	}
	return errnoOf(syscall.RawSyscall(syscall.SYS_CHDIR, uintptr(p), 0, 0))
}

// pivot stacks the old root on the new one and drops it, so that no folder for
// it is needed and nothing of it stays reachable.
func pivot() error {
	dot, err := cstring(".")
	if err != nil {
		return err
	}
	if err := errnoOf(syscall.RawSyscall(syscall.SYS_PIVOT_ROOT, uintptr(dot), uintptr(dot), 0)); err != nil {
		return err
	}
	if err := errnoOf(syscall.RawSyscall(syscall.SYS_UMOUNT2, uintptr(dot), syscall.MNT_DETACH, 0)); err != nil {
		return err
	}
	return chdir("/")
}

func loopbackUp() error {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_DGRAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	request := struct {
		name  [16]byte
		flags uint16
		_     [22]byte
	}{name: [16]byte{'l', 'o'}, flags: syscall.IFF_UP | syscall.IFF_RUNNING}
	err = errnoOf(syscall.RawSyscall(syscall.SYS_IOCTL, uintptr(fd), syscall.SIOCSIFFLAGS, uintptr(unsafe.Pointer(&request))))
	closeFD(fd)
	return err
}

// listen opens the box's only address and hands the socket out, so that the
// broker answers inside the box without a process or a file there.
func listen(port uint16) error {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	err = syscall.Bind(fd, &syscall.SockaddrInet4{Port: int(port), Addr: [4]byte{127, 0, 0, 1}})
	if err == nil {
		err = syscall.Listen(fd, 128)
	}
	if err == nil {
		err = syscall.Sendmsg(StatusFD, []byte{Passing}, syscall.UnixRights(fd), nil, 0)
	}
	closeFD(fd)
	return err
}

// nullInput opens /dev/null of the new root as descriptor 0.
func nullInput() error {
	fd, err := syscall.Open("/dev/null", syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	if fd == 0 {
		return nil
	}
	err = syscall.Dup3(fd, 0, 0)
	_ = syscall.Close(fd)
	return err
}
