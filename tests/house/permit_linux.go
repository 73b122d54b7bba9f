package house

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// becomePermitted becomes the program that the arguments name, on a host where
// bubblewrap alone may make namespaces, as an AppArmor profile for it has it. A
// clerk beside it, which is told of each such call, decides by the caller's
// program. It returns only when that failed.
func becomePermitted(args []string) int {
	runtime.LockOSThread()
	listener, err := permitFilter()
	if err == nil {
		clerk := exec.Command("/proc/self/exe")
		clerk.Args = []string{Clerk}
		clerk.ExtraFiles = []*os.File{listener}
		clerk.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		err = clerk.Start()
	}
	if err == nil {
		err = syscall.Exec(args[0], args, os.Environ())
	}
	fmt.Fprintln(os.Stderr, errors.Join(errors.New("become permitted"), err))
	return 1
}

// permitFilter asks a clerk about every call that makes a namespace.
func permitFilter() (*os.File, error) {
	const spaces = unix.CLONE_NEWNS | unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP
	const ask = unix.SECCOMP_RET_USER_NOTIF
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 1, K: unix.SYS_CLONE3},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 1, K: unix.SYS_UNSHARE},
		{Code: unix.BPF_RET | unix.BPF_K, K: ask},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 3, K: unix.SYS_CLONE},
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 16},
		{Code: unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K, Jf: 1, K: spaces},
		{Code: unix.BPF_RET | unix.BPF_K, K: ask},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return nil, err
	}
	fd, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER, uintptr(unsafe.Pointer(&program)))
	if errno != 0 {
		return nil, errno
	}
	return os.NewFile(fd, "listener"), nil
}

// notice and verdict are the kernel's seccomp_notif and seccomp_notif_resp.
type notice struct {
	id   uint64
	pid  uint32
	_    uint32
	call [64]byte
}

type verdict struct {
	id    uint64
	value int64
	errno int32
	flags uint32
}

// becomeClerk answers until it is killed: yes for bubblewrap, no for others.
func becomeClerk() int {
	const receive, send, goOn = 0xc0502100, 0xc0182101, 1
	for {
		var n notice
		_, _, errno := unix.Syscall(unix.SYS_IOCTL, 3, receive, uintptr(unsafe.Pointer(&n)))
		if errno == unix.EINTR || errno == unix.ENOENT {
			continue
		}
		if errno != 0 {
			return 1
		}
		v := verdict{id: n.id, errno: -int32(unix.EPERM)}
		if same("/proc/"+strconv.Itoa(int(n.pid))+"/exe", "/usr/bin/bwrap") {
			v = verdict{id: n.id, flags: goOn}
		}
		_, _, _ = unix.Syscall(unix.SYS_IOCTL, 3, send, uintptr(unsafe.Pointer(&v)))
	}
}

func same(a, b string) bool {
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	return errX == nil && errY == nil && os.SameFile(x, y)
}
