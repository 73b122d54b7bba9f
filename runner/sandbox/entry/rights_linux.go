//go:build linux && (amd64 || arm64)

package entry

import (
	"syscall"
	"unsafe"
)

// Numbers that package syscall does not have.
const (
	sysCloseRange            = 436
	sysLandlockCreateRuleset = 444
	sysLandlockAddRule       = 445
	sysLandlockRestrictSelf  = 446

	prSetPdeathsig  = 1
	prSetSeccomp    = 22
	prCapbsetDrop   = 24
	prSetSecurebits = 28
	prSetNoNewPrivs = 38
	prCapAmbient    = 47

	seccompModeFilter   = 2
	capAmbientClearAll  = 4
	closeRangeCloexec   = 4
	capabilityVersion3  = 0x20080522
	landlockPathBeneath = 1
	landlockNetPort     = 2
	oPath               = 0x200000
	pollHangup          = 0x10
)

// watch ties the child's life to the parent's. The parent may have died before
// the call, and getppid says nothing across a pid namespace, so the other end
// of the socket is looked at afterwards. A change of user clears the tie.
func watch() error {
	if err := prctl(prSetPdeathsig, uintptr(syscall.SIGKILL), 0); err != nil {
		return err
	}
	ask := struct {
		fd      int32
		events  int16
		revents int16
	}{fd: StatusFD}
	var now syscall.Timespec
	_, _, errno := syscall.RawSyscall6(syscall.SYS_PPOLL, uintptr(unsafe.Pointer(&ask)), 1, uintptr(unsafe.Pointer(&now)), 0, 0, 0)
	if errno != 0 {
		return errno
	}
	if ask.revents&pollHangup != 0 {
		return refusal("the parent is gone")
	}
	return nil
}

// limit sets both the soft and the hard limit. Where the hard limit is lower
// already, the lower one stays.
func limit(resource int, value uint64) error {
	var now syscall.Rlimit
	if err := syscall.Getrlimit(resource, &now); err != nil {
		return err
	}
	value = min(value, now.Max)
	return errnoOf(syscall.RawSyscall6(syscall.SYS_PRLIMIT64, 0, uintptr(resource),
		uintptr(unsafe.Pointer(&syscall.Rlimit{Cur: value, Max: value})), 0, 0, 0))
}

func bounding() error {
	for capability := uintptr(0); capability < 64; capability++ {
		err := prctl(prCapbsetDrop, capability, 0)
		if err == syscall.EINVAL && capability > 0 {
			return nil // past the last one that this kernel has
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// identity uses raw calls: only this thread becomes the agent, and the others
// end at exec.
func identity(uid, gid uintptr) error {
	if err := errnoOf(syscall.RawSyscall(syscall.SYS_SETGROUPS, 0, 0, 0)); err != nil {
		return err
	}
	if err := errnoOf(syscall.RawSyscall(syscall.SYS_SETRESGID, gid, gid, gid)); err != nil {
		return err
	}
	return errnoOf(syscall.RawSyscall(syscall.SYS_SETRESUID, uid, uid, uid))
}

func capless() error {
	header := struct {
		version uint32
		pid     int32
	}{version: capabilityVersion3}
	var none [2]struct{ effective, permitted, inheritable uint32 }
	err := errnoOf(syscall.RawSyscall(syscall.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&none)), 0))
	if err != nil {
		return err
	}
	return prctl(prCapAmbient, capAmbientClearAll, 0)
}

func (c *child) newRuleset(n []int64) error {
	attr := struct{ files, network, scoped uint64 }{uint64(n[0]), uint64(n[1]), uint64(n[2])}
	fd, _, errno := syscall.RawSyscall(sysLandlockCreateRuleset, uintptr(unsafe.Pointer(&attr)), uintptr(n[3]), 0)
	if errno != 0 {
		return errno
	}
	c.ruleset = int(fd)
	return nil
}

func (c *child) pathRule(path string, access uint64) error {
	fd, err := open(path, oPath, 0)
	if err != nil {
		return err
	}
	// The kernel's structure is packed: 8 bytes of rights and 4 of descriptor.
	attr := struct {
		access uint64
		parent int32
		_      int32
	}{access: access, parent: int32(fd)}
	err = errnoOf(syscall.RawSyscall6(sysLandlockAddRule, uintptr(c.ruleset), landlockPathBeneath, uintptr(unsafe.Pointer(&attr)), 0, 0, 0))
	closeFD(fd)
	return err
}

func (c *child) portRule(access, port uint64) error {
	attr := struct{ access, port uint64 }{access, port}
	return errnoOf(syscall.RawSyscall6(sysLandlockAddRule, uintptr(c.ruleset), landlockNetPort, uintptr(unsafe.Pointer(&attr)), 0, 0, 0))
}

func seccomp(filter string) error {
	code := []byte(filter)
	if len(code) == 0 || len(code)%8 != 0 {
		return refusal("the filter is malformed")
	}
	program := struct {
		length uint16
		_      [6]byte
		code   unsafe.Pointer
	}{length: uint16(len(code) / 8), code: unsafe.Pointer(&code[0])}
	return errnoOf(syscall.RawSyscall6(syscall.SYS_PRCTL, prSetSeccomp, seccompModeFilter, uintptr(unsafe.Pointer(&program)), 0, 0, 0))
}

// denied makes a call that must be refused. An error that does not mean
// "refused", such as a bad address, counts as a hole: the call was looked at.
func denied(s Step) error {
	text, err := syscall.BytePtrFromString(s.S[1])
	if err != nil {
		return err
	}
	var args [6]uintptr
	for i := range args {
		args[i] = uintptr(s.N[2+i])
	}
	if at := s.N[1]; at >= 0 && at < int64(len(args)) {
		args[at] = uintptr(unsafe.Pointer(text))
	}
	_, _, errno := syscall.RawSyscall6(uintptr(s.N[0]), args[0], args[1], args[2], args[3], args[4], args[5])
	_ = *text // keeps the string alive over the call
	switch errno {
	case syscall.EPERM, syscall.EACCES, syscall.EROFS, syscall.ENOSYS:
		return nil
	case 0:
		return refusal("it worked")
	}
	return refusal("it was not refused: " + errno.Error())
}

// blank reads a path that must show nothing.
func blank(path string) error {
	fd, err := open(path, syscall.O_RDONLY, 0)
	if err == syscall.EACCES || err == syscall.EPERM || err == syscall.ENOENT {
		return nil
	}
	if err != nil {
		return err
	}
	var buf [1]byte
	n, err := syscall.Read(fd, buf[:])
	closeFD(fd)
	if err == nil && n > 0 {
		return refusal("it shows something")
	}
	return nil
}

// closeOnExec marks every descriptor above 2. A kernel before 5.11 cannot do it
// in one call; there each possible one is marked.
func closeOnExec() error {
	err := errnoOf(syscall.RawSyscall(sysCloseRange, 3, 1<<32-1, closeRangeCloexec))
	if err != syscall.ENOSYS && err != syscall.EINVAL {
		return err
	}
	var now syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &now); err != nil {
		return err
	}
	for fd := uintptr(3); fd < uintptr(now.Max); fd++ {
		_, _, _ = syscall.RawSyscall(syscall.SYS_FCNTL, fd, syscall.F_SETFD, syscall.FD_CLOEXEC)
	}
	return nil
}
