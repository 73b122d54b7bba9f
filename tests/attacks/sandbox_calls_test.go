//go:build linux

package attacks_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// boxedIdentity is what a boxed agent is to the kernel.
type boxedIdentity struct {
	UID, GID     int
	Groups       []int
	Capabilities [2]uint32 // effective and permitted, of the first 32
	Bounding     bool      // any left
	NoNewPrivs   int
	Securebits   int
	Hostname     string
	PID, Session int
	Folder       string
	Dumpable     int
	Tie          int // the signal that it gets when its parent dies
}

func (boxedAgent) identity() boxedIdentity {
	i := boxedIdentity{UID: os.Getuid(), GID: os.Getgid(), PID: os.Getpid()}
	i.Groups, _ = os.Getgroups()
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	_ = unix.Capget(&header, &data[0])
	i.Capabilities = [2]uint32{data[0].Effective | data[1].Effective, data[0].Permitted | data[1].Permitted}
	for c := range uintptr(64) {
		if has, err := unix.PrctlRetInt(unix.PR_CAPBSET_READ, c, 0, 0, 0); err == nil && has == 1 {
			i.Bounding = true
		}
	}
	i.NoNewPrivs, _ = unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)
	i.Securebits, _ = unix.PrctlRetInt(unix.PR_GET_SECUREBITS, 0, 0, 0, 0)
	i.Dumpable, _ = unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0)
	_ = unix.Prctl(unix.PR_GET_PDEATHSIG, uintptr(unsafe.Pointer(&i.Tie)), 0, 0, 0)
	i.Hostname, _ = os.Hostname()
	i.Session, _ = unix.Getsid(0)
	i.Folder, _ = os.Getwd()
	return i
}

// strangers tries to reach other processes and names what worked.
func (boxedAgent) strangers(pids []string) any {
	done := []string{}
	for _, text := range pids {
		pid, _ := strconv.Atoi(text)
		note := func(what string, err error) {
			if err == nil {
				done = append(done, what+" "+text)
			}
		}
		note("signal", unix.Kill(pid, unix.SIGCONT))
		note("signal by thread", unix.Tgkill(pid, pid, unix.SIGCONT))
		if pid != 1 { // that would mean everybody whom it may signal, which is its own
			note("signal the group of", unix.Kill(-pid, unix.SIGCONT))
		}
		if fd, err := unix.PidfdOpen(pid, 0); err == nil {
			note("signal by descriptor", unix.PidfdSendSignal(fd, unix.SIGCONT, nil, 0))
		}
		note("slow", unix.Setpriority(unix.PRIO_PROCESS, pid, 19))
		note("limit", unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &unix.Rlimit{}))
		var set unix.CPUSet
		set.Set(0)
		note("bind to one processor", unix.SchedSetaffinity(pid, &set))
		note("trace", unix.PtraceAttach(pid))
		for _, f := range []string{"environ", "maps", "mem", "status", "cmdline", "fd/0", "root/etc/passwd"} {
			_, err := os.ReadFile("/proc/" + text + "/" + f)
			note("read "+f+" of", err)
		}
		note("adjust", os.WriteFile("/proc/"+text+"/oom_score_adj", []byte("1000"), 0))
		_, err := os.Readlink("/proc/" + text + "/exe")
		note("follow", err)
	}
	if err := unix.Setpriority(unix.PRIO_USER, 0, 19); err == nil {
		done = append(done, "slow everybody of the user")
	}
	return done
}

// refusedErrors are those that mean "you may not" or "there is no such thing".
var refusedErrors = [...]unix.Errno{unix.EPERM, unix.EACCES, unix.ENOSYS, unix.EROFS}

// forbiddenCalls makes each call that a box must refuse and names those that
// were not refused.
func (boxedAgent) forbiddenCalls() []string {
	holes := []string{}
	empty, tmp := [64]byte{}, []byte("/tmp\x00")
	nothing, folder := uintptr(unsafe.Pointer(&empty[0])), uintptr(unsafe.Pointer(&tmp[0]))
	for _, c := range []struct {
		name string
		nr   uintptr
		args [6]uintptr
	}{
		{"become root", unix.SYS_SETUID, [6]uintptr{0}},
		{"become root's group", unix.SYS_SETGID, [6]uintptr{0}},
		{"take groups", unix.SYS_SETGROUPS, [6]uintptr{1, nothing}},
		{"mount", unix.SYS_MOUNT, [6]uintptr{folder, folder, nothing, unix.MS_BIND}},
		{"unmount", unix.SYS_UMOUNT2, [6]uintptr{folder, unix.MNT_DETACH}},
		{"clone a mount", unix.SYS_OPEN_TREE, [6]uintptr{^uintptr(99), folder, 1}},
		{"open a file system", unix.SYS_FSOPEN, [6]uintptr{nothing}},
		{"list mounts", unix.SYS_LISTMOUNT, [6]uintptr{nothing, nothing, 1}},
		{"look at a mount", unix.SYS_STATMOUNT, [6]uintptr{nothing, nothing, 1}},
		{"chroot", unix.SYS_CHROOT, [6]uintptr{folder}},
		{"pivot", unix.SYS_PIVOT_ROOT, [6]uintptr{folder, folder}},
		{"own mounts", unix.SYS_UNSHARE, [6]uintptr{unix.CLONE_NEWNS}},
		{"own users", unix.SYS_UNSHARE, [6]uintptr{unix.CLONE_NEWUSER}},
		{"own users by clone", unix.SYS_CLONE, [6]uintptr{unix.CLONE_NEWUSER | uintptr(unix.SIGCHLD)}},
		{"clone3", unix.SYS_CLONE3, [6]uintptr{nothing, 64}},
		{"enter a namespace", unix.SYS_SETNS, [6]uintptr{0, 0}},
		{"trace", unix.SYS_PTRACE, [6]uintptr{unix.PTRACE_SEIZE, 1}},
		{"be traced", unix.SYS_PTRACE, [6]uintptr{unix.PTRACE_TRACEME}},
		{"read memory", unix.SYS_PROCESS_VM_READV, [6]uintptr{1, nothing, 0, nothing, 0}},
		{"take a descriptor", unix.SYS_PIDFD_GETFD, [6]uintptr{0, 0, 0}},
		{"bpf", unix.SYS_BPF, [6]uintptr{0, nothing, 8}},
		{"io_uring", unix.SYS_IO_URING_SETUP, [6]uintptr{1, nothing}},
		{"keys", unix.SYS_KEYCTL, [6]uintptr{0, ^uintptr(2), 1}},
		{"add a key", unix.SYS_ADD_KEY, [6]uintptr{nothing, nothing, 0, 0, ^uintptr(2)}},
		{"userfaultfd", unix.SYS_USERFAULTFD, [6]uintptr{1}},
		{"perf", unix.SYS_PERF_EVENT_OPEN, [6]uintptr{nothing, 0, ^uintptr(0), ^uintptr(0), 0}},
		{"personality", unix.SYS_PERSONALITY, [6]uintptr{0x0040000}},
		{"shared memory", unix.SYS_SHMGET, [6]uintptr{0, 4096, 0o1600}},
		{"semaphores", unix.SYS_SEMGET, [6]uintptr{0, 1, 0o1600}},
		{"messages", unix.SYS_MSGGET, [6]uintptr{0, 0o1600}},
		{"queues", unix.SYS_MQ_OPEN, [6]uintptr{folder, unix.O_CREAT | unix.O_RDWR, 0o600, 0}},
		{"open by handle", unix.SYS_OPEN_BY_HANDLE_AT, [6]uintptr{0, nothing, 0}},
		{"make a handle", unix.SYS_NAME_TO_HANDLE_AT, [6]uintptr{^uintptr(99), folder, nothing, nothing, 0}},
		{"watch everything", unix.SYS_FANOTIFY_INIT, [6]uintptr{0, 0}},
		{"load a module", unix.SYS_FINIT_MODULE, [6]uintptr{0, nothing, 0}},
		{"load a kernel", unix.SYS_KEXEC_LOAD, [6]uintptr{0, 0, nothing, 0}},
		{"reboot", unix.SYS_REBOOT, [6]uintptr{0, 0, 0}},
		{"read the kernel log", unix.SYS_SYSLOG, [6]uintptr{10}},
		{"set the clock", unix.SYS_CLOCK_SETTIME, [6]uintptr{0, nothing}},
		{"swap", unix.SYS_SWAPON, [6]uintptr{folder, 0}},
		{"account", unix.SYS_ACCT, [6]uintptr{0}},
		{"quota", unix.SYS_QUOTACTL, [6]uintptr{0, 0, 0, nothing}},
		{"name the host", unix.SYS_SETHOSTNAME, [6]uintptr{folder, 4}},
		{"type into the terminal", unix.SYS_IOCTL, [6]uintptr{0, unix.TIOCSTI | 1<<32, nothing}},
		{"paste into the terminal", unix.SYS_IOCTL, [6]uintptr{0, unix.TIOCLINUX, nothing}},
		{"secret memory", unix.SYS_MEMFD_SECRET, [6]uintptr{0}},
		{"a call of the future", 4000, [6]uintptr{}},
		{"a call of the second table", 0x40000000 | unix.SYS_GETPID, [6]uintptr{}},
	} {
		_, _, errno := unix.RawSyscall6(c.nr, c.args[0], c.args[1], c.args[2], c.args[3], c.args[4], c.args[5])
		if !isRefusal(errno) && !(c.nr == unix.SYS_SETUID || c.nr == unix.SYS_SETGID) || errno == 0 {
			holes = append(holes, fmt.Sprintf("%s: %v", c.name, errno))
		}
	}
	if err := fastOpen(); !isRefusal(err) {
		holes = append(holes, fmt.Sprintf("connect by sending: %v", err))
	}
	return holes
}

// fastOpen sends to an address without connect, which Landlock does not see. It
// looks like a refusal where no socket can be made.
func fastOpen() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Sendto(fd, []byte("x"), unix.MSG_FASTOPEN, &unix.SockaddrInet4{Port: 8080, Addr: [4]byte{127, 0, 0, 1}})
}

func isRefusal(err error) bool {
	for _, e := range refusedErrors {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// sockets tries every kind of socket and gives the kinds that could be made.
func (boxedAgent) sockets() []string {
	made := []string{}
	for domain := range 47 {
		for _, kind := range []int{unix.SOCK_STREAM, unix.SOCK_DGRAM, unix.SOCK_RAW, unix.SOCK_SEQPACKET, unix.SOCK_RDM} {
			for _, protocol := range []int{0, unix.IPPROTO_TCP, unix.IPPROTO_UDP, unix.IPPROTO_ICMP, unix.IPPROTO_SCTP, unix.IPPROTO_MPTCP} {
				if fd, err := unix.Socket(domain, kind, protocol); err == nil {
					made = append(made, fmt.Sprintf("%d/%d/%d", domain, kind, protocol))
					_ = unix.Close(fd)
				}
			}
		}
	}
	if _, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM, 0); err == nil {
		made = append(made, "datagram pair")
	}
	return made
}

// dialAll gives the addresses that answered, as network, space, address.
func (boxedAgent) dialAll(targets []string) any {
	answered := []string{}
	for i := 0; i+1 < len(targets); i += 2 {
		c, err := net.DialTimeout(targets[i], targets[i+1], 5*time.Second)
		if err == nil {
			answered = append(answered, targets[i]+" "+targets[i+1])
			_ = c.Close()
		}
	}
	return answered
}

func (boxedAgent) limits() map[string]uint64 {
	got := map[string]uint64{}
	for name, r := range map[string]int{"core": unix.RLIMIT_CORE, "file": unix.RLIMIT_FSIZE, "open": unix.RLIMIT_NOFILE,
		"data": unix.RLIMIT_DATA, "processes": unix.RLIMIT_NPROC, "queue": unix.RLIMIT_MSGQUEUE, "processor": unix.RLIMIT_CPU} {
		var l unix.Rlimit
		_ = unix.Getrlimit(r, &l)
		got[name] = l.Max
	}
	return got
}
