//go:build linux && (amd64 || arm64)

package entry

import "syscall"

// tree clones a mount and waits with it in a slot.
func (c *compiler) tree(s Step) bool {
	slot, set := s.N[0], s.N[1]
	if slot < 0 || slot >= int64(len(c.slots)) {
		return false
	}
	c.slots[slot] = c.cell()
	flags, deep := uintptr(openTreeClone|syscall.O_CLOEXEC), uintptr(0)
	if s.N[2] != 0 {
		flags, deep = flags|atRecursive, atRecursive
	}
	c.add(sysOpenTree, atCWD, c.text(s.S[0]), flags).giving(c.slots[slot])
	if set != 0 {
		c.add(sysMountSetattr, 0, c.text(""), deep|atEmptyPath, c.attributes(set), attributesSize).on(c.slots[slot])
	}
	return true
}

// attributes adds mount attributes; one that is set is never cleared here.
func (c *compiler) attributes(set int64) uintptr { return c.words(uint64(set), 0, 0, 0) }

func (c *compiler) place(s Step) bool {
	slot := s.N[0]
	if slot < 0 || slot >= int64(len(c.slots)) || c.slots[slot] == 0 {
		return false
	}
	c.add(sysMoveMount, 0, c.text(""), atCWD, c.text(s.S[0]), moveMountEmptyPath).on(c.slots[slot])
	c.add(syscall.SYS_CLOSE).on(c.slots[slot])
	c.slots[slot] = 0
	return true
}

// own gives a file to the run's user; -1 leaves it to its maker.
func (c *compiler) own(path string, uid, gid int64) {
	if uid >= 0 {
		c.add(syscall.SYS_FCHOWNAT, atCWD, c.text(path), uintptr(uid), uintptr(gid), atSymlinkNofollow)
	}
}

// file makes a new file; O_EXCL and O_NOFOLLOW keep it from landing elsewhere.
func (c *compiler) file(s Step) {
	const flags = syscall.O_WRONLY | syscall.O_CREAT | syscall.O_EXCL | syscall.O_NOFOLLOW | syscall.O_CLOEXEC
	at, size := c.cell(), uintptr(len(s.S[1]))
	c.add(syscall.SYS_OPENAT, atCWD, c.text(s.S[0]), flags, uintptr(s.N[0])).giving(at)
	if size > 0 {
		c.add(syscall.SYS_WRITE, 0, c.bytes(s.S[1]), size).on(at).exactly(size)
	}
	c.add(syscall.SYS_CLOSE).on(at)
	c.own(s.S[0], s.N[1], s.N[2])
}

// pivot stacks the old root on the new one and drops it, so that no folder for
// it is needed and nothing of it stays reachable.
func (c *compiler) pivot() {
	dot := c.text(".")
	c.add(syscall.SYS_PIVOT_ROOT, dot, dot)
	c.add(syscall.SYS_UMOUNT2, dot, syscall.MNT_DETACH)
	c.add(syscall.SYS_CHDIR, c.text("/"))
}
