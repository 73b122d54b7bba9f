package house

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// containerCaps are the 14 capabilities that Docker leaves root in a container.
var containerCaps = [...]uintptr{
	unix.CAP_CHOWN, unix.CAP_DAC_OVERRIDE, unix.CAP_FOWNER, unix.CAP_FSETID, unix.CAP_KILL, unix.CAP_SETGID, unix.CAP_SETUID,
	unix.CAP_SETPCAP, unix.CAP_NET_BIND_SERVICE, unix.CAP_NET_RAW, unix.CAP_SYS_CHROOT, unix.CAP_MKNOD, unix.CAP_AUDIT_WRITE, unix.CAP_SETFCAP,
}

// inside changes a command so that it runs on another kind of host. In a default
// container no namespace can be made and nothing mounted, and root has 14
// capabilities.
func inside(cmd *exec.Cmd, name string) (*exec.Cmd, error) {
	self, err := os.Executable()
	cmd.Args = append([]string{name, cmd.Path}, cmd.Args[1:]...)
	cmd.Path = self
	return cmd, err
}

// Become plays the part of that name, where it is one of this package, and then
// does not return.
func Become(name string, args []string) {
	switch name {
	case Container, BareContainer:
		os.Exit(becomeContainer(name, args))
	case Permitted:
		os.Exit(becomePermitted(args))
	case Clerk:
		os.Exit(becomeClerk())
	}
}

// becomeContainer gives up what a container has not and becomes the program that
// the arguments name. It returns only when that failed.
func becomeContainer(name string, args []string) int {
	runtime.LockOSThread()
	err := containerFilter(name)
	for c := uintptr(0); err == nil && os.Geteuid() == 0 && c <= unix.CAP_LAST_CAP; c++ {
		if !slices.Contains(containerCaps[:], c) {
			err = unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0)
		}
	}
	if err == nil {
		err = syscall.Exec(args[0], args, os.Environ())
	}
	fmt.Fprintln(os.Stderr, errors.Join(errors.New("become a container"), err))
	return 1
}

// containerFilter refuses what the default filters of Docker and Podman refuse
// of mounts and namespaces.
func containerFilter(name string) error {
	refused := []uint32{unix.SYS_UNSHARE, unix.SYS_SETNS, unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_OPEN_TREE,
		unix.SYS_MOVE_MOUNT, unix.SYS_MOUNT_SETATTR, unix.SYS_FSOPEN, unix.SYS_FSMOUNT}
	absent := []uint32{unix.SYS_CLONE3}
	if name == BareContainer {
		absent = append(absent, unix.SYS_LANDLOCK_CREATE_RULESET, unix.SYS_LANDLOCK_ADD_RULE, unix.SYS_LANDLOCK_RESTRICT_SELF)
	}
	filter := []unix.SockFilter{{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}}
	verdict := func(calls []uint32, errno unix.Errno) {
		for _, nr := range calls {
			filter = append(filter,
				unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 1, K: nr},
				unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(errno)})
		}
	}
	verdict(refused, unix.EPERM)
	verdict(absent, unix.ENOSYS)
	const spaces = unix.CLONE_NEWNS | unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP
	filter = append(filter,
		unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 3, K: unix.SYS_CLONE},
		unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 16},
		unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K, Jf: 1, K: spaces},
		unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)},
		unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW})
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if os.Geteuid() != 0 { // root needs no promise, and a container of Docker has made none
		if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
			return err
		}
	}
	return unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&program)), 0, 0)
}
