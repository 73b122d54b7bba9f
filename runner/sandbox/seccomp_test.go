//go:build linux && (amd64 || arm64)

package sandbox

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// simulate runs a filter as the kernel would.
func simulate(t *testing.T, code []byte, arch, nr uint32, args ...uint64) uint32 {
	t.Helper()
	data := make([]byte, 64)
	binary.NativeEndian.PutUint32(data[dataCall:], nr)
	binary.NativeEndian.PutUint32(data[dataArch:], arch)
	for i, a := range args {
		binary.NativeEndian.PutUint64(data[dataArgs+8*i:], a)
	}
	var acc uint32
	for pc := 0; ; pc++ {
		require.Less(t, 8*pc, len(code), "the filter runs over its end")
		op, jt, jf := binary.NativeEndian.Uint16(code[8*pc:]), code[8*pc+2], code[8*pc+3]
		k := binary.NativeEndian.Uint32(code[8*pc+4:])
		holds := false
		switch op {
		case unix.BPF_LD | unix.BPF_W | unix.BPF_ABS:
			acc = binary.NativeEndian.Uint32(data[k:])
			continue
		case unix.BPF_ALU | unix.BPF_AND | unix.BPF_K:
			acc &= k
			continue
		case unix.BPF_RET | unix.BPF_K:
			return k
		case unix.BPF_JMP | unix.BPF_JA:
			pc += int(k)
			continue
		case unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K:
			holds = acc == k
		case unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K:
			holds = acc >= k
		case unix.BPF_JMP | unix.BPF_JGT | unix.BPF_K:
			holds = acc > k
		default:
			require.Fail(t, "unknown instruction", "%#x", op)
		}
		if holds {
			pc += int(jt)
		} else {
			pc += int(jf)
		}
	}
}

func TestFilterGuardsArchitectureAndRange(t *testing.T) {
	for _, sockets := range []bool{false, true} {
		code := filter(strictness{sockets: sockets})
		require.Less(t, len(code)/8, unix.BPF_MAXINSNS)
		for _, arch := range []uint32{unix.AUDIT_ARCH_I386, unix.AUDIT_ARCH_ARM, 0, auditArch ^ 1} {
			require.EqualValues(t, kill, simulate(t, code, arch, unix.SYS_READ))
		}
		const x32Bit = 0x40000000
		for _, nr := range []uint32{lastCall + 1, lastCall + 1000, x32Bit, x32Bit | unix.SYS_READ, ^uint32(0)} {
			require.EqualValues(t, notPresent, simulate(t, code, auditArch, nr), "%#x", nr)
		}
	}
}

func TestFilterJudgesEveryKnownCall(t *testing.T) {
	code := filter(strictness{sockets: true})
	want := map[uint32]uint32{}
	for _, nr := range absent {
		want[nr] = notPresent
	}
	for _, nr := range append(refused[:], refusedHere[:]...) {
		want[nr] = refuse
	}
	for _, nr := range pretended {
		want[nr] = pretend
	}
	for _, nr := range append(spent[:], spentHere[:]...) {
		want[nr] = exhausted
	}
	judged := map[uint32]bool{}
	for _, r := range argRules(strictness{sockets: true}) {
		judged[r.call] = true
		require.NotContains(t, want, r.call, "a call has two fates")
	}
	for nr := range uint32(lastCall + 1) {
		if judged[nr] {
			continue
		}
		verdict, special := want[nr]
		if !special {
			verdict = allow
		}
		require.Equal(t, verdict, simulate(t, code, auditArch, nr), "call %d", nr)
	}
}

func TestFilterJudgesArguments(t *testing.T) {
	const high = 1 << 32 // a high word that the kernel ignores
	for _, c := range []struct {
		name string
		nr   uint32
		args []uint64
		want uint32
	}{
		{"thread", unix.SYS_CLONE, []uint64{unix.CLONE_VM | unix.CLONE_THREAD | unix.CLONE_SIGHAND}, allow},
		{"fork", unix.SYS_CLONE, []uint64{uint64(unix.SIGCHLD)}, allow},
		{"user namespace", unix.SYS_CLONE, []uint64{unix.CLONE_NEWUSER}, refuse},
		{"mount namespace among others", unix.SYS_CLONE, []uint64{unix.CLONE_VM | unix.CLONE_NEWNS | high}, refuse},
		{"network namespace", unix.SYS_CLONE, []uint64{unix.CLONE_NEWNET}, refuse},
		{"cgroup namespace", unix.SYS_CLONE, []uint64{unix.CLONE_NEWCGROUP}, refuse},
		{"cut the tie to the parent", unix.SYS_PRCTL, []uint64{unix.PR_SET_PDEATHSIG | high, 0}, pretend},
		{"name a thread", unix.SYS_PRCTL, []uint64{unix.PR_SET_NAME}, allow},
		{"personality 0", unix.SYS_PERSONALITY, []uint64{0}, allow},
		{"personality asked", unix.SYS_PERSONALITY, []uint64{0xffffffff}, allow},
		{"personality without randomisation", unix.SYS_PERSONALITY, []uint64{0x0040000}, refuse},
		{"type into a terminal", unix.SYS_IOCTL, []uint64{0, unix.TIOCSTI}, refuse},
		{"type with a high word", unix.SYS_IOCTL, []uint64{0, unix.TIOCSTI | high}, refuse},
		{"paste into a terminal", unix.SYS_IOCTL, []uint64{0, unix.TIOCLINUX}, refuse},
		{"watch a folder", unix.SYS_FCNTL, []uint64{3, unix.F_NOTIFY | high}, refuse},
		{"watch a folder by its name", unix.SYS_INOTIFY_INIT1, nil, exhausted},
		{"lock a file", unix.SYS_FLOCK, nil, pretend},
		{"lease a file", unix.SYS_FCNTL, []uint64{3, unix.F_SETLEASE}, refuse},
		{"flags of a descriptor", unix.SYS_FCNTL, []uint64{3, unix.F_GETFD}, allow},
		{"window size", unix.SYS_IOCTL, []uint64{0, unix.TIOCGWINSZ}, allow},
		{"tcp", unix.SYS_SOCKET, []uint64{unix.AF_INET, unix.SOCK_STREAM | unix.SOCK_CLOEXEC | unix.SOCK_NONBLOCK, 0}, allow},
		{"tcp named", unix.SYS_SOCKET, []uint64{unix.AF_INET6, unix.SOCK_STREAM, unix.IPPROTO_TCP}, allow},
		{"multipath", unix.SYS_SOCKET, []uint64{unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_MPTCP}, refuse},
		{"multipath with a high word", unix.SYS_SOCKET, []uint64{unix.AF_INET | high, unix.SOCK_STREAM | high, unix.IPPROTO_MPTCP | high}, refuse},
		{"udp", unix.SYS_SOCKET, []uint64{unix.AF_INET, unix.SOCK_DGRAM, 0}, refuse},
		{"raw", unix.SYS_SOCKET, []uint64{unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP}, refuse},
		{"unix", unix.SYS_SOCKET, []uint64{unix.AF_UNIX, unix.SOCK_STREAM, 0}, refuse},
		{"netlink", unix.SYS_SOCKET, []uint64{unix.AF_NETLINK, unix.SOCK_RAW, 0}, refuse},
		{"vsock", unix.SYS_SOCKET, []uint64{unix.AF_VSOCK, unix.SOCK_STREAM, 0}, refuse},
		{"pair", unix.SYS_SOCKETPAIR, []uint64{unix.AF_UNIX, unix.SOCK_STREAM | unix.SOCK_CLOEXEC, 0}, allow},
		{"datagram pair", unix.SYS_SOCKETPAIR, []uint64{unix.AF_UNIX, unix.SOCK_DGRAM, 0}, refuse},
		{"other pair", unix.SYS_SOCKETPAIR, []uint64{unix.AF_TIPC, unix.SOCK_STREAM, 0}, refuse},
		{"send", unix.SYS_SENDTO, []uint64{0, 0, 0, unix.MSG_NOSIGNAL}, allow},
		{"send while connecting", unix.SYS_SENDTO, []uint64{0, 0, 0, unix.MSG_NOSIGNAL | unix.MSG_FASTOPEN}, refuse},
		{"send a message while connecting", unix.SYS_SENDMSG, []uint64{0, 0, unix.MSG_FASTOPEN | high}, refuse},
		{"send messages while connecting", unix.SYS_SENDMMSG, []uint64{0, 0, 0, unix.MSG_FASTOPEN}, refuse},
	} {
		require.Equal(t, c.want, simulate(t, filter(strictness{sockets: true}), auditArch, c.nr, c.args...), c.name)
	}
}

// Without a view and a process tree of its own a run may name itself alone, and
// what Landlock does not watch does nothing.
func TestSharedFilterKeepsToTheCaller(t *testing.T) {
	const high, other = 1 << 32, 4711
	shared, mute := filter(strictness{shared: true}), filter(strictness{shared: true, mute: true})
	require.Less(t, len(mute)/8, unix.BPF_MAXINSNS)
	for _, c := range []struct {
		name string
		nr   uint32
		args []uint64
		want uint32
	}{
		{"own limit", unix.SYS_PRLIMIT64, []uint64{0, unix.RLIMIT_NOFILE}, allow},
		{"own limit with a high word", unix.SYS_PRLIMIT64, []uint64{high}, allow},
		{"another's limit", unix.SYS_PRLIMIT64, []uint64{other}, refuse},
		{"another's processor", unix.SYS_SCHED_SETAFFINITY, []uint64{other}, refuse},
		{"own processor", unix.SYS_SCHED_SETAFFINITY, []uint64{0}, allow},
		{"another's scheduler", unix.SYS_SCHED_SETSCHEDULER, []uint64{other}, refuse},
		{"another's priority", unix.SYS_SETPRIORITY, []uint64{unix.PRIO_PROCESS, other}, refuse},
		{"the user's priority", unix.SYS_SETPRIORITY, []uint64{unix.PRIO_USER, 0}, refuse},
		{"own priority", unix.SYS_SETPRIORITY, []uint64{unix.PRIO_PROCESS, 0}, allow},
		{"the user's disk priority", unix.SYS_IOPRIO_SET, []uint64{3, 0}, refuse},
		{"own disk priority", unix.SYS_IOPRIO_SET, []uint64{1, 0}, allow},
		{"an owner for signals", unix.SYS_FCNTL, []uint64{3, unix.F_SETOWN}, refuse},
		{"an owner with a high word", unix.SYS_FCNTL, []uint64{3, unix.F_SETOWN_EX | high}, refuse},
		{"a flag of a descriptor", unix.SYS_FCNTL, []uint64{3, unix.F_SETFD}, allow},
		{"an owner by ioctl", unix.SYS_IOCTL, []uint64{3, fioSetOwn}, refuse},
		{"attributes by ioctl", unix.SYS_IOCTL, []uint64{3, unix.FS_IOC_SETFLAGS}, refuse},
		{"leave the session", unix.SYS_SETSID, nil, pretend},
		{"leave the group", unix.SYS_SETPGID, []uint64{0, 0}, pretend},
		{"mode by path", unix.SYS_FCHMODAT, nil, pretend},
		{"mode by descriptor", unix.SYS_FCHMOD, nil, pretend},
		{"times", unix.SYS_UTIMENSAT, nil, pretend},
		{"extended attribute", unix.SYS_SETXATTR, nil, unsupported},
		{"length by path", unix.SYS_TRUNCATE, nil, refuse},
		{"length by descriptor", unix.SYS_FTRUNCATE, nil, allow},
		{"tcp", unix.SYS_SOCKET, []uint64{unix.AF_INET, unix.SOCK_STREAM}, refuse},
	} {
		require.Equal(t, c.want, simulate(t, shared, auditArch, c.nr, c.args...), c.name)
		require.Equal(t, c.want, simulate(t, mute, auditArch, c.nr, c.args...), c.name)
	}
	for _, nr := range signalling {
		require.EqualValues(t, allow, simulate(t, shared, auditArch, nr, other), "%d", nr)
		require.EqualValues(t, refuse, simulate(t, mute, auditArch, nr, other), "%d", nr)
	}
	still := filter(strictness{still: true})
	require.EqualValues(t, pretend, simulate(t, still, auditArch, unix.SYS_UTIMENSAT))
	require.EqualValues(t, allow, simulate(t, still, auditArch, unix.SYS_FCHMODAT))
	require.EqualValues(t, allow, simulate(t, still, auditArch, unix.SYS_SETSID))
}

func TestNoNetworkMeansNoSocket(t *testing.T) {
	for _, domain := range []uint64{unix.AF_INET, unix.AF_INET6, unix.AF_UNIX, 0, ^uint64(0)} {
		require.EqualValues(t, refuse, simulate(t, filter(strictness{}), auditArch, unix.SYS_SOCKET, domain, unix.SOCK_STREAM, 0))
	}
}
