//go:build linux && (amd64 || arm64)

package sandbox

import (
	"slices"

	"golang.org/x/sys/unix"
)

// What follows is refused besides where a run has no view, no process tree and
// perhaps no user of its own, because Landlock does not know these calls. Guarded
// by seccomp_test.go and tests/attacks TestLandlockRungHolds.

// sharedPretended are calls that change the owner, mode or times of a file by its
// path or descriptor, and those that leave the group by which a run is ended.
// They answer success and do nothing: unpacking and copying programs end where
// they are refused.
var sharedPretended = [...]uint32{
	unix.SYS_SETSID, unix.SYS_SETPGID,
	unix.SYS_FCHMOD, unix.SYS_FCHMODAT, unix.SYS_FCHMODAT2, unix.SYS_FCHOWN, unix.SYS_FCHOWNAT,
}

// stillPretended are those of them that anybody may make who can write a file,
// such as a device.
var stillPretended = [...]uint32{unix.SYS_UTIMENSAT}

// sharedRefused are further calls that reach files by a way that Landlock does
// not watch, on some kernels or on all.
var sharedRefused = [...]uint32{unix.SYS_TRUNCATE, unix.SYS_FILE_SETATTR, unix.SYS_FILE_GETATTR}

// sharedUnknown are calls that answer as if the file system had no extended
// attributes.
var sharedUnknown = [...]uint32{
	unix.SYS_SETXATTR, unix.SYS_LSETXATTR, unix.SYS_FSETXATTR, unix.SYS_SETXATTRAT,
	unix.SYS_REMOVEXATTR, unix.SYS_LREMOVEXATTR, unix.SYS_FREMOVEXATTR, unix.SYS_REMOVEXATTRAT,
	unix.SYS_GETXATTR, unix.SYS_LGETXATTR, unix.SYS_FGETXATTR, unix.SYS_GETXATTRAT,
	unix.SYS_LISTXATTR, unix.SYS_LLISTXATTR, unix.SYS_FLISTXATTR, unix.SYS_LISTXATTRAT,
}

// signalling are the calls that send a signal.
var signalling = [...]uint32{
	unix.SYS_KILL, unix.SYS_TKILL, unix.SYS_TGKILL, unix.SYS_RT_SIGQUEUEINFO, unix.SYS_RT_TGSIGQUEUEINFO, unix.SYS_PIDFD_SEND_SIGNAL,
}

// sharedControls are requests of ioctl that change a file's attributes without
// the right to write it, or that name a process to be signalled.
var sharedControls = [...]uint32{
	unix.FS_IOC_SETFLAGS, fsSetXattr, unix.FS_IOC_ENABLE_VERITY, unix.FS_IOC_SET_ENCRYPTION_POLICY,
	fioSetOwn, unix.SIOCSPGRP,
}

// Numbers that package unix does not have.
const (
	fsSetXattr = 0x401c5820 // FS_IOC_FSSETXATTR
	fioSetOwn  = 0x8901     // FIOSETOWN
)

func (s strictness) pretended() []uint32 {
	var calls []uint32
	if s.shared || s.still {
		calls = slices.Concat(stillPretended[:], stillHere[:])
	}
	if s.shared {
		calls = slices.Concat(calls, sharedPretended[:], sharedHere[:])
	}
	return calls
}

func (s strictness) refused() []uint32 {
	var calls []uint32
	if s.shared {
		calls = append(calls, sharedRefused[:]...)
	}
	if s.mute {
		calls = append(calls, signalling[:]...)
	}
	return calls
}

func (s strictness) unknown() []uint32 {
	if !s.shared {
		return nil
	}
	return sharedUnknown[:]
}

func (s strictness) ioctls() []uint32 {
	if !s.shared {
		return nil
	}
	return sharedControls[:]
}

// strangers are calls that may name the caller alone: 0 as a process id. With
// the id of another process of the same user they would slow or stop it.
func (s strictness) strangers() []argRule {
	if !s.shared {
		return nil
	}
	self := []argTest{{arg: 0, values: []uint32{0}, other: true}}
	return []argRule{
		{unix.SYS_PRLIMIT64, self}, {unix.SYS_GETSID, self}, {unix.SYS_GETPGID, self},
		{unix.SYS_SCHED_SETAFFINITY, self}, {unix.SYS_SCHED_SETSCHEDULER, self},
		{unix.SYS_SCHED_SETPARAM, self}, {unix.SYS_SCHED_SETATTR, self},
		{unix.SYS_SETPRIORITY, []argTest{
			{arg: 0, values: []uint32{unix.PRIO_PROCESS}, other: true},
			{arg: 1, values: []uint32{0}, other: true},
		}},
		{unix.SYS_IOPRIO_SET, []argTest{
			{arg: 0, values: []uint32{1}, other: true}, // IOPRIO_WHO_PROCESS
			{arg: 1, values: []uint32{0}, other: true},
		}},
		{unix.SYS_FCNTL, []argTest{{arg: 1, values: []uint32{unix.F_NOTIFY, unix.F_SETLEASE, unix.F_SETOWN, unix.F_SETOWN_EX, unix.F_SETSIG}}}},
	}
}
