//go:build linux

package sandbox

import "golang.org/x/sys/unix"

const auditArch = unix.AUDIT_ARCH_AARCH64

// refusedHere are the calls that only this architecture's table needs.
var refusedHere = [...]uint32{unix.SYS_NFSSERVCTL}

// spentHere is spent on this architecture alone.
var spentHere = [...]uint32{}
