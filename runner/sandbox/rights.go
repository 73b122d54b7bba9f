//go:build linux && (amd64 || arm64)

package sandbox

import (
	"path"
	"slices"

	"golang.org/x/sys/unix"

	"parlour/runner/policy"
	"parlour/runner/sandbox/entry"
)

// brokerPort is the port of policy.BrokerAddr.
const brokerPort = 8080

// securebits: uid 0 means nothing, and no capability can be kept or raised; all
// of it is locked.
const securebits = 1<<0 | 1<<1 | 1<<3 | 1<<5 | 1<<6 | 1<<7

// rights plans what the child does behind the pivot: it opens the one address,
// gives up everything else and becomes the program.
type rights struct {
	job
	*steps
}

func (p rights) shed() {
	p.network()
	p.limits()
	p.surrender()
	p.undo()
	p.landlocked()
	p.filtered()
	p.end()
}

// network opens the one address that answers, or leaves lo down.
func (p rights) network() {
	if p.eff.Network() != policy.ModelOnly {
		return
	}
	if p.eff.Rung() == policy.RungFull { // bubblewrap has brought it up, and a host's is up
		p.add(entry.LoopbackUp, nil)
	}
	p.add(entry.Listen, []int64{brokerPort})
}

func (p rights) end() {
	if p.wait {
		p.add(entry.Await, nil)
	}
	p.add(entry.Umask, []int64{0o022})
	p.add(entry.CloseOnExec, nil)
	if p.report {
		p.add(entry.Report, nil)
		return
	}
	argv := append([]string{p.cmd.Name}, p.cmd.Args...)
	p.add(entry.Exec, []int64{int64(len(argv))}, slices.Concat([]string{p.program.inside}, argv, p.environment())...)
}

// environment names the run's places where they are.
func (p rights) environment() []string {
	if p.boxed() {
		return p.cmd.Env
	}
	return plainEnv(p.cmd.Env, p.base)
}

// limits sets what the kernel counts for each process or user. Guarded by
// tests/attacks TestLimitsHold.
func (p rights) limits() {
	l := p.eff.Limits()
	for _, r := range [][2]int64{
		{unix.RLIMIT_CORE, 0},
		{unix.RLIMIT_MSGQUEUE, 0},
		{unix.RLIMIT_FSIZE, l.Disk},
		{unix.RLIMIT_NOFILE, int64(l.OpenFiles)},
		{unix.RLIMIT_DATA, l.Memory},
		{unix.RLIMIT_CPU, int64(l.Processor().Seconds())},
		{unix.RLIMIT_NPROC, p.processes()},
	} {
		p.add(entry.Rlimit, r[:])
	}
}

// crowd is how many processes the bot's user may have besides a run that shares
// its user id with all of them. It only stops a run from filling the host.
const crowd = 2048

// processes is the limit on what the kernel counts for the run's user.
func (p rights) processes() int64 {
	if p.boxed() || p.root {
		return int64(p.eff.Limits().Processes)
	}
	return int64(p.eff.Limits().Processes) + crowd
}

// surrender gives up every right of the bot's user. The order matters: the
// bounding set needs a capability that the change of user takes away, and that
// change also cuts the tie to the parent, which is made again behind it.
// Guarded by tests/attacks TestRightsCannotBeRegained and
// TestDeathOfTheBotEndsTheRun.
func (p rights) surrender() {
	if p.mayDrop() {
		p.add(entry.Bounding, nil)
		p.add(entry.Securebits, []int64{securebits})
	}
	if p.root {
		p.add(entry.Identity, []int64{int64(p.uid), int64(p.uid)})
	}
	p.add(entry.Capless, nil)
	p.add(entry.NoNewPrivs, nil)
	p.add(entry.Watch, nil)
	p.add(entry.Chdir, nil, p.at(policy.WorkDir))
}

// undo tries, before the filters can hide it, to win back what surrender gave
// up. Each try must be refused.
func (p rights) undo() {
	if p.root {
		p.denied("become root", unix.SYS_SETRESUID, "", -1, 0, 0, 0)
	}
	p.denied("change groups", unix.SYS_SETGROUPS, "", -1, 0, 0)
	p.denied("mount", unix.SYS_MOUNT, p.at(policy.TempDir), 1, 0, 0, 0, unix.MS_REMOUNT|unix.MS_BIND)
	p.denied("leave by chroot", unix.SYS_CHROOT, p.at(policy.TempDir), 0)
	if !p.boxed() {
		return // here it is Landlock that refuses the rest
	}
	for _, t := range append([]string{""}, p.trees...) {
		p.denied("write "+t+"/", unix.SYS_OPENAT, t+"/.parlour", 1, -1, 0, create, 0o600)
	}
}

const create = unix.O_CREAT | unix.O_EXCL | unix.O_WRONLY | unix.O_CLOEXEC

// filtered enters the seccomp filter and tries what only it refuses.
func (p rights) filtered() {
	p.add(entry.Seccomp, nil, p.filter())
	p.denied("make a user namespace", unix.SYS_UNSHARE, "", -1, unix.CLONE_NEWUSER)
	p.denied("open a local socket", unix.SYS_SOCKET, "", -1, unix.AF_UNIX, unix.SOCK_STREAM, 0)
	p.add(entry.Blank, nil, "/proc/1/mountinfo")
	p.add(entry.Blank, nil, "/proc/cmdline")
	if !p.boxed() {
		p.strangers()
	}
	if p.report {
		p.undoMore()
	}
}

// filter gives the seccomp program of the run.
func (p rights) filter() string {
	offline, online := p.offline, p.online
	switch p.eff.Rung() {
	case policy.RungBwrap:
		offline, online = p.stillOffline, p.stillOnline
	case policy.RungLandlock:
		offline, online = p.sharedOffline, p.sharedOnline
	}
	if p.eff.Network() == policy.ModelOnly {
		return online
	}
	return offline
}

// strangers tries to reach what lies around a run without a view. Guarded by
// tests/attacks TestLandlockRungKeepsTheHostsFiles.
func (p rights) strangers() {
	outside := path.Dir(p.base)
	p.denied("list the root folder", unix.SYS_OPENAT, "/", 1, -1, 0, unix.O_RDONLY|unix.O_DIRECTORY)
	p.denied("list "+outside, unix.SYS_OPENAT, outside, 1, -1, 0, unix.O_RDONLY|unix.O_DIRECTORY)
	p.denied("write "+outside, unix.SYS_OPENAT, outside+"/.parlour", 1, -1, 0, create, 0o600)
	p.denied("write "+p.base, unix.SYS_OPENAT, p.base+"/.parlour", 1, -1, 0, create, 0o600)
	p.denied("list processes", unix.SYS_OPENAT, "/proc", 1, -1, 0, unix.O_RDONLY|unix.O_DIRECTORY)
	p.denied("look into process 1", unix.SYS_OPENAT, "/proc/1/environ", 1, -1, 0, unix.O_RDONLY)
	p.denied("signal process 1", unix.SYS_KILL, "", -1, 1, 0)
	p.denied("limit process 1", unix.SYS_PRLIMIT64, "", -1, 1, unix.RLIMIT_NOFILE)
}

// undoMore is what only the probe tries, so that a start stays cheap.
func (p rights) undoMore() {
	for _, s := range []struct {
		label string
		nr    int64
		args  []int64
	}{
		{"open a netlink socket", unix.SYS_SOCKET, []int64{unix.AF_NETLINK, unix.SOCK_RAW, 0}},
		{"open a datagram socket", unix.SYS_SOCKET, []int64{unix.AF_INET, unix.SOCK_DGRAM, 0}},
		{"open a multipath socket", unix.SYS_SOCKET, []int64{unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_MPTCP}},
		{"open a machine socket", unix.SYS_SOCKET, []int64{unix.AF_VSOCK, unix.SOCK_STREAM, 0}},
		{"use io_uring", unix.SYS_IO_URING_SETUP, []int64{1, 0}},
		{"load bpf", unix.SYS_BPF, []int64{0, 0, 0}},
		{"use keys", unix.SYS_KEYCTL, []int64{0, -3, 1}},
		{"trace", unix.SYS_PTRACE, []int64{unix.PTRACE_TRACEME}},
		{"use userfaultfd", unix.SYS_USERFAULTFD, []int64{1}},
		{"change personality", unix.SYS_PERSONALITY, []int64{0x0040000}},
		{"share memory", unix.SYS_SHMGET, []int64{0, 4096, 0o1600}},
		{"list mounts", unix.SYS_LISTMOUNT, []int64{0, 0, 0, 0}},
	} {
		p.denied(s.label, s.nr, "", -1, s.args...)
	}
	p.denied("write a kernel setting", unix.SYS_OPENAT, "/proc/sys/kernel/core_pattern", 1, -1, 0, unix.O_WRONLY)
	if p.eff.Mode() == policy.ReadOnly {
		p.denied("write the working folder", unix.SYS_OPENAT, p.at(policy.WorkDir)+"/.parlour", 1, -1, 0, create, 0o600)
	}
	if p.landlock > 0 {
		p.denied("read /proc/version", unix.SYS_OPENAT, "/proc/version", 1, -1, 0, unix.O_RDONLY)
	}
}
