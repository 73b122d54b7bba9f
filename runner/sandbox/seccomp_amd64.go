//go:build linux

package sandbox

import "golang.org/x/sys/unix"

const auditArch = unix.AUDIT_ARCH_X86_64

// refusedHere are the calls that only this architecture has.
var refusedHere = [...]uint32{
	unix.SYS_IOPL, unix.SYS_IOPERM, unix.SYS_MODIFY_LDT, unix.SYS_USELIB, unix.SYS_USTAT, unix.SYS_SYSFS,
	unix.SYS__SYSCTL, unix.SYS_CREATE_MODULE, unix.SYS_GET_KERNEL_SYMS, unix.SYS_QUERY_MODULE,
	unix.SYS_NFSSERVCTL, unix.SYS_UPROBE, unix.SYS_URETPROBE,
}

// spentHere is spent on this architecture alone.
var spentHere = [...]uint32{unix.SYS_INOTIFY_INIT}

// sharedHere are calls of older programs that change what others own; this
// architecture alone has them.
var sharedHere = [...]uint32{unix.SYS_CHMOD, unix.SYS_CHOWN, unix.SYS_LCHOWN}

// stillHere are those that change times.
var stillHere = [...]uint32{unix.SYS_UTIME, unix.SYS_UTIMES, unix.SYS_FUTIMESAT}
