//go:build linux

package sandbox

import "golang.org/x/sys/unix"

const auditArch = unix.AUDIT_ARCH_AARCH64

// refusedHere are the calls that only this architecture's table needs.
var refusedHere = [...]uint32{unix.SYS_NFSSERVCTL}

// spentHere is spent on this architecture alone.
var spentHere = [...]uint32{}

// sharedHere are calls of older programs that change what others own; this
// architecture has none.
var sharedHere = [...]uint32{}

// stillHere are those that change times; there is none either.
var stillHere = [...]uint32{}
