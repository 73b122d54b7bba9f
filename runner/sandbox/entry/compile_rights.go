//go:build linux && (amd64 || arm64)

package entry

import "syscall"

// restrains compiles the steps that take rights away.
func (c *compiler) restrains(s Step) bool {
	switch s.Op {
	case Rlimit:
		c.limit(s.N[0], uint64(s.N[1]))
	case Bounding:
		c.bounding()
	case Securebits:
		c.add(syscall.SYS_PRCTL, prSetSecurebits, uintptr(s.N[0]))
	case Identity:
		uid, gid := uintptr(s.N[0]), uintptr(s.N[1])
		c.add(syscall.SYS_SETGROUPS, 0, 0)
		c.add(syscall.SYS_SETRESGID, gid, gid, gid)
		c.add(syscall.SYS_SETRESUID, uid, uid, uid)
	case Capless:
		c.add(syscall.SYS_CAPSET, c.words(capabilityVersion3), c.words(0, 0, 0))
		c.add(syscall.SYS_PRCTL, prCapAmbient, capAmbientClearAll)
	case NoNewPrivs:
		c.add(syscall.SYS_PRCTL, prSetNoNewPrivs, 1)
	case Ruleset:
		c.ruleset = c.cell()
		rights := c.words(uint64(s.N[0]), uint64(s.N[1]), uint64(s.N[2]))
		c.add(sysLandlockCreateRuleset, rights, uintptr(s.N[3])).giving(c.ruleset)
	case PathRule:
		rule := c.words(uint64(s.N[0]), 0) // rights, and the folder's descriptor
		folder := rule + 8
		c.add(syscall.SYS_OPENAT, atCWD, c.text(s.S[0]), oPath|syscall.O_CLOEXEC).giving(folder)
		c.add(sysLandlockAddRule, 0, landlockPathBeneath, rule).on(c.ruleset)
		c.add(syscall.SYS_CLOSE).on(folder)
	case PortRule:
		c.add(sysLandlockAddRule, 0, landlockNetPort, c.words(uint64(s.N[0]), uint64(s.N[1]))).on(c.ruleset)
	case Restrict:
		c.add(sysLandlockRestrictSelf).on(c.ruleset)
	default:
		return false
	}
	return s.Op != PathRule && s.Op != PortRule && s.Op != Restrict || c.ruleset != 0
}

// limit sets both the soft and the hard limit. Where the hard limit is lower
// already, the lower one stays.
func (c *compiler) limit(resource int64, value uint64) {
	if hard, known := c.frame.Hard[resource]; known {
		value = min(value, hard)
	}
	c.add(syscall.SYS_PRLIMIT64, 0, uintptr(resource), c.words(value, value))
}

// bounding empties the set; past the last capability that this kernel has, it
// says so.
func (c *compiler) bounding() {
	c.add(syscall.SYS_PRCTL, prCapbsetDrop, 0)
	for capability := uintptr(1); capability < 64; capability++ {
		c.add(syscall.SYS_PRCTL, prCapbsetDrop, capability).or(syscall.EINVAL)
	}
}

// judges compiles the filter and the steps that try what must not work.
func (c *compiler) judges(s Step) bool {
	switch s.Op {
	case Seccomp:
		size := uint64(len(s.S[0]))
		if size == 0 || size%8 != 0 {
			return false
		}
		c.add(syscall.SYS_PRCTL, prSetSeccomp, seccompModeFilter, c.words(size/8, uint64(c.bytes(s.S[0]))))
	case Denied:
		call := c.add(uintptr(s.N[0]))
		for i := range call.args {
			call.args[i] = uintptr(s.N[2+i])
		}
		if at := s.N[1]; at >= 0 && at < int64(len(call.args)) {
			call.args[at] = c.text(s.S[1])
		}
		call.refused()
	case Blank:
		c.blank(s.S[0])
	default:
		return false
	}
	return true
}

// blank reads a path that must show nothing: it cannot be opened, or read, or it
// is empty.
func (c *compiler) blank(path string) {
	at := c.cell()
	open := c.add(syscall.SYS_OPENAT, atCWD, c.text(path), syscall.O_RDONLY|syscall.O_CLOEXEC).giving(at)
	open.or(syscall.EACCES, syscall.EPERM, syscall.ENOENT).skip = 2
	read := c.add(syscall.SYS_READ, 0, address(c.room(8)), 1).on(at).exactly(0)
	read.allow = ^uintptr(0)
	c.add(syscall.SYS_CLOSE).on(at)
}
