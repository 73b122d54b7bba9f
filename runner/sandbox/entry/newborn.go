//go:build linux && (amd64 || arm64)

package entry

import "syscall"

// Newborn is what makes a clone of the bot a process of its own, before the
// first step.
type Newborn struct {
	Stdio   [3]int // descriptors of the bot that become 0, 1 and 2
	Keep    []int  // further ones that stay, in rising order; all others are closed
	Groups  []int  // the files of control groups that it joins; it then has a view of groups of its own
	Session bool   // it leads a session of its own
	Group   bool   // it leads a process group of its own
	UID     string // the line of its user namespace's map; empty: it has none
	GID     string
}

// newborn compiles it. Groups and descriptors go first: until those are closed the
// child holds open whatever the bot has. Then signals are set right, since the
// clone has the bot's handlers and the caller's mask.
func (c *compiler) newborn(b Newborn) {
	for _, group := range b.Groups {
		c.add(syscall.SYS_WRITE, uintptr(group), c.bytes("0"), 1).exactly(1)
	}
	if len(b.Groups) > 0 {
		c.add(syscall.SYS_UNSHARE, syscall.CLONE_NEWCGROUP)
	}
	for to, from := range b.Stdio {
		c.add(syscall.SYS_DUP3, uintptr(from), uintptr(to), 0)
	}
	first := 3
	for _, keep := range b.Keep {
		if keep > first {
			c.add(sysCloseRange, uintptr(first), uintptr(keep-1), 0)
		}
		first = keep + 1
	}
	c.add(sysCloseRange, uintptr(first), lastDescriptor, 0)
	if b.Session {
		c.add(syscall.SYS_SETSID)
	}
	if b.Group {
		c.add(syscall.SYS_SETPGID, 0, 0)
	}
	c.signals()
	if b.UID == "" {
		return
	}
	for _, f := range [][2]string{{"setgroups", "deny"}, {"uid_map", b.UID}, {"gid_map", b.GID}} {
		at, size := c.cell(), uintptr(len(f[1]))
		c.add(syscall.SYS_OPENAT, atCWD, c.text("/proc/self/"+f[0]), syscall.O_WRONLY|syscall.O_CLOEXEC).giving(at)
		c.add(syscall.SYS_WRITE, 0, c.bytes(f[1]), size).on(at).exactly(size)
		c.add(syscall.SYS_CLOSE).on(at)
	}
}

const lastSignal = 64

// signals gives each signal its default and lets all of them in. No handler of
// the bot may run in a process that shares its memory.
func (c *compiler) signals() {
	standard := c.words(0, 0, 0, 0)
	for n := uintptr(1); n <= lastSignal; n++ {
		c.add(syscall.SYS_RT_SIGACTION, n, standard, 0, sigsetSize).or(syscall.EINVAL)
	}
	c.add(syscall.SYS_RT_SIGPROCMASK, sigSetMask, c.words(0), 0, sigsetSize)
}
