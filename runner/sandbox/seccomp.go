//go:build linux && (amd64 || arm64)

package sandbox

import (
	"encoding/binary"
	"slices"

	"golang.org/x/sys/unix"
)

// lastCall is the highest system call that this filter knows. Anything above
// it does not exist in the box, so that a newer kernel adds no surface. The
// second call table of amd64, x32, has numbers from 0x40000000 on, which would
// otherwise bypass every rule.
const lastCall = unix.SYS_FILE_SETATTR

// Offsets in the kernel's struct seccomp_data; the low word of an argument
// comes first on both architectures.
const (
	dataCall = 0
	dataArch = 4
	dataArgs = 16
)

const (
	allow  = unix.SECCOMP_RET_ALLOW
	kill   = unix.SECCOMP_RET_KILL_PROCESS
	refuse = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	// pretend answers success and does nothing: for calls that harmless programs
	// make, and do not survive the refusal of.
	pretend    = unix.SECCOMP_RET_ERRNO
	exhausted  = unix.SECCOMP_RET_ERRNO | uint32(unix.EMFILE)
	notPresent = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
	// unsupported is the answer of a file system that lacks the feature.
	unsupported = unix.SECCOMP_RET_ERRNO | uint32(unix.EOPNOTSUPP)
)

// Flags that make a namespace, as clone and unshare take them.
const namespaceFlags = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC |
	unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET

// absent are calls that answer ENOSYS, so that libraries take their older way:
// clone3 hides its flags behind a pointer, where no filter can see them.
var absent = [...]uint32{
	unix.SYS_CLONE3,
	unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
}

// pretended are calls that would reach beyond the run: a lock on a file of the
// host's system could stop a program of the host that takes the same one.
var pretended = [...]uint32{unix.SYS_FLOCK}

// spent are calls that answer as if the system had no more of it: watching the
// host's system folders would tell which programs the host starts.
var spent = [...]uint32{unix.SYS_INOTIFY_INIT1}

// refused are calls that answer EPERM on every architecture.
var refused = [...]uint32{
	// The view.
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT,
	unix.SYS_OPEN_TREE, unix.SYS_OPEN_TREE_ATTR, unix.SYS_MOVE_MOUNT, unix.SYS_MOUNT_SETATTR,
	unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK,
	unix.SYS_STATMOUNT, unix.SYS_LISTMOUNT,
	unix.SYS_NAME_TO_HANDLE_AT, unix.SYS_OPEN_BY_HANDLE_AT,
	unix.SYS_FANOTIFY_INIT, unix.SYS_FANOTIFY_MARK,
	unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_QUOTACTL, unix.SYS_QUOTACTL_FD, unix.SYS_ACCT,
	// Namespaces.
	unix.SYS_UNSHARE, unix.SYS_SETNS,
	// Other processes.
	unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PROCESS_MADVISE,
	unix.SYS_KCMP, unix.SYS_PIDFD_GETFD, unix.SYS_MIGRATE_PAGES, unix.SYS_MOVE_PAGES,
	// Shared memory and queues outside the scratch folders.
	unix.SYS_SHMGET, unix.SYS_SHMAT, unix.SYS_SHMCTL, unix.SYS_SHMDT,
	unix.SYS_SEMGET, unix.SYS_SEMOP, unix.SYS_SEMCTL, unix.SYS_SEMTIMEDOP,
	unix.SYS_MSGGET, unix.SYS_MSGSND, unix.SYS_MSGRCV, unix.SYS_MSGCTL,
	unix.SYS_MQ_OPEN, unix.SYS_MQ_UNLINK, unix.SYS_MQ_TIMEDSEND, unix.SYS_MQ_TIMEDRECEIVE,
	unix.SYS_MQ_NOTIFY, unix.SYS_MQ_GETSETATTR, unix.SYS_MEMFD_SECRET,
	// The kernel itself.
	unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD,
	unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY,
	unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE,
	unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD, unix.SYS_REBOOT, unix.SYS_SYSLOG,
	unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_ADJTIMEX, unix.SYS_CLOCK_ADJTIME,
	unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME, unix.SYS_VHANGUP, unix.SYS_LOOKUP_DCOOKIE,
	unix.SYS_LSM_SET_SELF_ATTR,
}

// strictness is what a run needs and what is in its reach. The zero value is that
// of a box of its own, without sockets.
type strictness struct {
	sockets bool // TCP sockets may be made
	still   bool // the times of a device of the host are in reach
	shared  bool // the host's files, processes and session are in reach: see seccomp_shared.go
	mute    bool // nobody may be signalled, because nothing else keeps signals off others
}

// argRule judges one call by its arguments: it is refused where any test
// matches, and allowed where none does.
type argRule struct {
	call  uint32
	tests []argTest
}

// argTest looks at the low 32 bits of an argument, as the kernel does for
// arguments of type int: a high word changes nothing about what the call does
// and must not change what the filter says.
type argTest struct {
	arg    int
	mask   uint32 // 0: all bits
	values []uint32
	other  bool   // matches where the argument is none of the values
	fate   uint32 // 0: refuse
}

// argRules are the calls that are refused for some arguments only. Without
// sockets none can be made at all.
func argRules(s strictness) []argRule {
	rules := []argRule{
		{unix.SYS_CLONE, everyFlag(0, namespaceFlags)},
		// Whoever could cut the tie to the bot would outlive it. Guarded by
		// tests/journeys TestNobodyCanCutTheTieToTheBot.
		{unix.SYS_PRCTL, []argTest{{arg: 0, values: []uint32{unix.PR_SET_PDEATHSIG}, fate: pretend}}},
		{unix.SYS_PERSONALITY, []argTest{{arg: 0, values: []uint32{0, 0xffffffff}, other: true}}},
		// A watch on the host's folders would tell which programs the host starts, and
		// a lease on its files would let whoever changes them wait.
		{unix.SYS_FCNTL, []argTest{{arg: 1, values: []uint32{unix.F_NOTIFY, unix.F_SETLEASE}}}},
		{unix.SYS_IOCTL, []argTest{{arg: 1, values: append([]uint32{unix.TIOCSTI, unix.TIOCLINUX}, s.ioctls()...)}}},
		{unix.SYS_SENDTO, everyFlag(3, unix.MSG_FASTOPEN)},
		{unix.SYS_SENDMSG, everyFlag(2, unix.MSG_FASTOPEN)},
		{unix.SYS_SENDMMSG, everyFlag(3, unix.MSG_FASTOPEN)},
		// A pair of datagram sockets could still send to a name.
		{unix.SYS_SOCKETPAIR, []argTest{
			{arg: 0, values: []uint32{unix.AF_UNIX}, other: true},
			{arg: 1, mask: 0xf, values: []uint32{unix.SOCK_STREAM}, other: true},
		}},
	}
	rules = append(rules, s.strangers()...)
	if !s.sockets {
		return append(rules, argRule{unix.SYS_SOCKET, []argTest{{arg: 0, other: true}}})
	}
	return append(rules, argRule{unix.SYS_SOCKET, []argTest{
		{arg: 0, values: []uint32{unix.AF_INET, unix.AF_INET6}, other: true},
		{arg: 1, mask: 0xf, values: []uint32{unix.SOCK_STREAM}, other: true},
		{arg: 2, values: []uint32{0, unix.IPPROTO_TCP}, other: true},
	}})
}

// everyFlag matches where any of the flags is set.
func everyFlag(arg int, flags uint32) []argTest {
	return []argTest{{arg: arg, mask: flags, values: []uint32{0}, other: true}}
}

// filter gives the seccomp program in the kernel's byte form. It is the same
// for every run of a kind, so the engine makes it once. Guarded by seccomp_test.go, which
// interprets it, and by tests/attacks TestNoSocketButTCPToTheBroker.
func filter(s strictness) []byte {
	var p program
	// A foreign architecture has other numbers: nothing about it can be judged.
	p.load(dataArch)
	p.unless(unix.BPF_JEQ, auditArch, kill)
	p.load(dataCall)
	p.when(unix.BPF_JGT, lastCall, notPresent)
	return append(p, tree(spans(s))...).bytes()
}

// span is a row of calls, up to the next span, that have one fate.
type span struct {
	first uint32
	fate  program // ends every path with a verdict
}

// spans lists all known calls in order, with neighbours of one fate joined.
func spans(s strictness) []span {
	fates := map[uint32]program{}
	for _, nr := range absent {
		fates[nr] = verdict(notPresent)
	}
	for _, nr := range slices.Concat(refused[:], refusedHere[:]) {
		fates[nr] = verdict(refuse)
	}
	for _, nr := range s.refused() {
		fates[nr] = verdict(refuse)
	}
	for _, nr := range s.unknown() {
		fates[nr] = verdict(unsupported)
	}
	for _, nr := range slices.Concat(pretended[:], s.pretended()) {
		fates[nr] = verdict(pretend)
	}
	for _, nr := range slices.Concat(spent[:], spentHere[:]) {
		fates[nr] = verdict(exhausted)
	}
	for _, r := range argRules(s) {
		fates[r.call] = r.program()
	}
	var out []span
	for nr := range uint32(lastCall + 1) {
		fate, special := fates[nr]
		if !special {
			fate = verdict(allow)
		}
		if len(out) == 0 || !slices.Equal(out[len(out)-1].fate, fate) {
			out = append(out, span{nr, fate})
		}
	}
	return out
}

// tree finds a call's span by halving. The kernel walks the program for every
// known number when it is loaded, so a list would cost a start a tenth of a
// millisecond.
func tree(spans []span) program {
	if len(spans) == 1 {
		return spans[0].fate
	}
	half := len(spans) / 2
	low, high := tree(spans[:half]), tree(spans[half:])
	jump := program{{Code: unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K, Jt: uint8(len(low)), K: spans[half].first}}
	if len(low) > 255 { // too far for a conditional jump
		jump = program{
			{Code: unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K, Jf: 1, K: spans[half].first},
			{Code: unix.BPF_JMP | unix.BPF_JA, K: uint32(len(low))},
		}
	}
	return slices.Concat(jump, low, high)
}

func verdict(v uint32) program {
	var p program
	p.ret(v)
	return p
}

// program is a BPF program under construction.
type program []unix.SockFilter

func (p *program) load(offset uint32) {
	*p = append(*p, unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset})
}

func (p *program) ret(verdict uint32) {
	*p = append(*p, unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: verdict})
}

// when ends with the verdict where the comparison holds.
func (p *program) when(op uint16, k, verdict uint32) {
	*p = append(*p, unix.SockFilter{Code: unix.BPF_JMP | op | unix.BPF_K, Jf: 1, K: k})
	p.ret(verdict)
}

// unless ends with the verdict where the comparison does not hold.
func (p *program) unless(op uint16, k, verdict uint32) {
	*p = append(*p, unix.SockFilter{Code: unix.BPF_JMP | op | unix.BPF_K, Jt: 1, K: k})
	p.ret(verdict)
}

// program judges one call by its arguments.
func (r argRule) program() program {
	var p program
	for _, t := range r.tests {
		p.test(t)
	}
	p.ret(allow)
	return p
}

func (p *program) test(t argTest) {
	if t.fate == 0 {
		t.fate = refuse
	}
	p.load(dataArgs + uint32(8*t.arg))
	if t.mask != 0 {
		*p = append(*p, unix.SockFilter{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: t.mask})
	}
	if !t.other {
		for _, v := range t.values {
			p.when(unix.BPF_JEQ, v, t.fate)
		}
		return
	}
	// Each value jumps over the values behind it and the verdict.
	for i, v := range t.values {
		*p = append(*p, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: uint8(len(t.values) - i), K: v})
	}
	p.ret(t.fate)
}

func (p program) bytes() []byte {
	out := make([]byte, 0, 8*len(p))
	for _, f := range p {
		out = binary.NativeEndian.AppendUint16(out, f.Code)
		out = append(out, f.Jt, f.Jf)
		out = binary.NativeEndian.AppendUint32(out, f.K)
	}
	return out
}
