//go:build amd64 || arm64

package probe

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"parlour/runner/policy"
)

func ipcTrials() []trial {
	return []trial{
		{Attempt: named("shared-memory", "Read System V shared memory of the host."), target: "shared", try: func(p *intruder) said {
			memory, err := unix.SysvShmAttach(p.t.Shared, 0, unix.SHM_RDONLY)
			if err != nil {
				return refused(err)
			}
			text := strings.Clone(string(memory[:min(128, len(memory))]))
			_ = unix.SysvShmDetach(memory)
			return got(text)
		}},
		{Attempt: named("own-shared-memory", "Make shared memory that outlives the run."), try: func(*intruder) said {
			id, err := unix.SysvShmGet(unix.IPC_PRIVATE, 4096, unix.IPC_CREAT|0o600)
			if err == nil {
				_, _ = unix.SysvShmCtl(id, unix.IPC_RMID, nil)
			}
			return refused(err)
		}},
		{Attempt: named("semaphores", "Use semaphores of the host."), target: "semaphores", try: func(p *intruder) said {
			_, err := call(unix.SYS_SEMCTL, uintptr(p.t.Semaphores), 0, semGetValue, 0)
			return refused(err)
		}},
		{Attempt: named("messages", "Take a message out of a System V queue of the host."), target: "messages", try: func(p *intruder) said {
			at := p.blank(256)
			n, err := call(unix.SYS_MSGRCV, uintptr(p.t.Messages), at, 128, 0, unix.IPC_NOWAIT)
			if err != nil {
				return refused(err)
			}
			return got(p.at(at+8, int(n)))
		}},
		{Attempt: named("queue", "Take a message out of a POSIX queue of the host."), target: "queue", try: func(p *intruder) said {
			fd, err := call(unix.SYS_MQ_OPEN, p.text(p.t.Queue), unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0, 0)
			if err != nil {
				return refused(err)
			}
			defer func() { _ = unix.Close(int(fd)) }()
			at := p.blank(8192)
			n, err := call(unix.SYS_MQ_TIMEDRECEIVE, fd, at, 8192, 0, 0)
			if err != nil {
				return did("it could be opened")
			}
			return got(p.at(at, int(n)))
		}},
		{Attempt: named("read-key", "Read a key that the bot's user keeps in the kernel."), target: "key", try: func(p *intruder) said {
			at := p.blank(256)
			n, err := call(unix.SYS_KEYCTL, unix.KEYCTL_READ, uintptr(p.t.Key), at, 128)
			if err != nil {
				return refused(err)
			}
			return got(p.at(at, min(int(n), 128)))
		}},
		{Attempt: named("find-key", "Find a key of the bot's user by its name."), target: "key", try: func(p *intruder) said {
			_, err := unix.KeyctlSearch(unix.KEY_SPEC_USER_KEYRING, "user", p.t.KeyName, 0)
			return refused(err)
		}},
		{Attempt: named("add-key", "Keep a key in the kernel."), try: func(p *intruder) said {
			id, err := unix.AddKey("user", p.mark, []byte("x"), unix.KEY_SPEC_PROCESS_KEYRING)
			if err == nil {
				_, _ = unix.KeyctlInt(unix.KEYCTL_REVOKE, id, 0, 0, 0)
			}
			return refused(err)
		}},
		{Attempt: named("lease", "Lease a program of the host, so that whoever replaces it waits."), try: func(*intruder) said {
			fd, err := unix.Open("/proc/self/exe", unix.O_RDONLY|unix.O_CLOEXEC, 0)
			if err != nil {
				return refused(err)
			}
			defer func() { _ = unix.Close(fd) }()
			_, err = unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_RDLCK)
			return refused(err)
		}},
		{Attempt: named("lock", "Lock a program of the host, so that others wait for it."), try: func(*intruder) said {
			return lockTwice("/proc/self/exe")
		}},
	}
}

// semGetValue is GETVAL of semctl.
const semGetValue = 12

// at reads back what the kernel put into the intruder's memory.
func (p *intruder) at(address uintptr, n int) string {
	offset := address - uintptr(unsafe.Pointer(&p.page[0]))
	return string(p.page[offset:][:n])
}

// lockTwice finds out whether a lock is one, by taking it a second time.
func lockTwice(path string) said {
	var fds [2]int
	for i := range fds {
		var err error
		if fds[i], err = unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0); err != nil {
			return refused(err)
		}
		defer func() { _ = unix.Close(fds[i]) }()
	}
	if err := unix.Flock(fds[0], unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return refused(err)
	}
	if err := unix.Flock(fds[1], unix.LOCK_EX|unix.LOCK_NB); err == unix.EWOULDBLOCK {
		return did("the lock holds")
	}
	return said{Why: "the lock locks nothing"}
}

func kernelTrials() []trial {
	bad := func(name, what string, nr uintptr, args ...uintptr) trial {
		return trial{Attempt: named(name, what), target: "call " + name, nr: nr, args: args, try: func(*intruder) said {
			_, err := call(nr, args...)
			return reached(err)
		}}
	}
	// A kernel can be built without these.
	maybe := func(name, what string, nr uintptr, args ...uintptr) trial {
		t := bad(name, what, nr, args...)
		t.optional = true
		return t
	}
	minus := ^uintptr(0)
	files := policy.Clauses()[:1]
	list := []trial{
		{Attempt: named("bpf", "Load something into the kernel's own virtual machine."), try: func(p *intruder) said {
			array := unsafe.Slice((*byte)(unsafe.Pointer(&[4]uint32{2, 4, 4, 1})), 16) // kind, key, value, entries
			fd, err := call(unix.SYS_BPF, 0, p.put(array), 16)
			return refused(closeIf(fd, err))
		}},
		{Attempt: named("perf", "Measure what the processor does."), try: func(*intruder) said {
			attr := unix.PerfEventAttr{Type: unix.PERF_TYPE_SOFTWARE, Config: unix.PERF_COUNT_SW_TASK_CLOCK, Bits: unix.PerfBitDisabled | unix.PerfBitExcludeKernel | unix.PerfBitExcludeHv}
			attr.Size = uint32(unsafe.Sizeof(attr))
			fd, err := unix.PerfEventOpen(&attr, 0, -1, -1, unix.PERF_FLAG_FD_CLOEXEC)
			return refused(closeIf(uintptr(fd), err))
		}},
		{Attempt: named("io-uring", "Make system calls through a ring, where no filter sees them."), try: func(p *intruder) said {
			fd, err := call(unix.SYS_IO_URING_SETUP, 1, p.blank(120))
			return refused(closeIf(fd, err))
		}},
		{Attempt: named("userfaultfd", "Stop the kernel in the middle of its work by faults in memory."), try: func(*intruder) said {
			fd, err := call(unix.SYS_USERFAULTFD, 1|unix.O_CLOEXEC)
			return refused(closeIf(fd, err))
		}},
		{Attempt: named("personality", "Switch off the random layout of memory."), try: func(*intruder) said {
			_, err := call(unix.SYS_PERSONALITY, 0x0040000)
			return refused(err)
		}},
		{Attempt: named("log", "Read the kernel's log."), try: func(*intruder) said {
			_, err := call(unix.SYS_SYSLOG, 10)
			return refused(err)
		}},
		maybe("new-kernel", "Load another kernel.", unix.SYS_KEXEC_LOAD, 0, 0, 0, 0xffff),
		maybe("new-kernel-file", "Load another kernel from a file.", unix.SYS_KEXEC_FILE_LOAD, minus, minus, 0, 0, 0xffff),
		maybe("load-module", "Load a module into the kernel.", unix.SYS_INIT_MODULE, 0, 0, 0),
		maybe("load-module-file", "Load a module from a file.", unix.SYS_FINIT_MODULE, minus, 0, 0),
		maybe("unload-module", "Take a module out of the kernel.", unix.SYS_DELETE_MODULE, minus, 0),
		bad("restart", "Restart the host.", unix.SYS_REBOOT, 0, 0, 0, 0),
		bad("clock", "Set the host's clock.", unix.SYS_SETTIMEOFDAY, 0, 0),
		bad("name", "Name the host.", unix.SYS_SETHOSTNAME, 0, minus),
		maybe("accounting", "Have the kernel write a line for each process that ends.", unix.SYS_ACCT, minus),
		maybe("quota", "Change how much others may store.", unix.SYS_QUOTACTL, 0x800004<<8, minus, 0, 0),
		maybe("swap", "Give the kernel a file to swap to.", unix.SYS_SWAPON, minus, 0),
		maybe("handles", "Make a file handle, which needs no path later.", unix.SYS_NAME_TO_HANDLE_AT, minus, minus, minus, minus, 0),
		bad("second-table", "Make a call by its number in the processor's second table.", 0x40000000|unix.SYS_GETPID),
		{Attempt: named("secret-memory", "Get memory that not even the kernel sees."), try: func(*intruder) said {
			fd, err := call(unix.SYS_MEMFD_SECRET, unix.O_CLOEXEC)
			return refused(closeIf(fd, err))
		}},
	}
	for i := range list {
		if list[i].Name == "handles" {
			list[i].Needs = files
		}
	}
	return list
}

func privilegeTrials() []trial {
	return append(userTrials(), capabilityTrials()...)
}

func userTrials() []trial {
	return []trial{
		{Attempt: named("become-root", "Become root."), try: func(*intruder) said {
			_, err := call(unix.SYS_SETRESUID, 0, 0, 0)
			if id, _ := call(unix.SYS_GETEUID); id == 0 {
				return did("its user id is 0")
			}
			return refused(err)
		}},
		{Attempt: named("root-outside", "Be root in the host's eyes."), target: "root", try: func(*intruder) said {
			table, err := os.ReadFile("/proc/self/uid_map")
			if err != nil { // it is hidden; no rung of a bot that is root has user ids of its own
				table = []byte("0 0 4294967295")
			}
			if id, ok := outside(string(table), os.Geteuid()); !ok || id != 0 {
				return said{Why: "the host knows it as " + strconv.Itoa(id)}
			}
			return did("the host knows it as root")
		}},
		{Attempt: named("become-root-group", "Join the group of root."), try: func(*intruder) said {
			_, err := call(unix.SYS_SETRESGID, 0, 0, 0)
			if id, _ := call(unix.SYS_GETEGID); id == 0 {
				return did("its group id is 0")
			}
			return refused(err)
		}},
		{Attempt: named("take-groups", "Join other groups."), try: func(p *intruder) said {
			_, err := call(unix.SYS_SETGROUPS, 1, p.blank(4))
			return refused(err)
		}},
		{Attempt: named("keep-groups", "Keep the bot's supplementary groups by their numbers."), target: "groups", try: func(p *intruder) said {
			held, err := os.Getgroups()
			if err != nil {
				return refused(err)
			}
			words := []string{}
			for _, g := range held {
				words = append(words, strconv.Itoa(g))
			}
			return got(strings.Join(words, "\n"))
		}, judge: keepsGroups},
		{Attempt: named("owner", "Give a file of its own to somebody else."), try: func(p *intruder) said {
			path := p.scratch("given")
			if err := os.WriteFile(path, nil, 0o700); err != nil {
				return void("make a file: %v", err)
			}
			defer func() { _ = os.Remove(path) }()
			err := os.Chown(path, 1, 1)
			var st unix.Stat_t
			if serr := unix.Stat(path, &st); err == nil && serr == nil && st.Uid != 1 {
				return said{Why: "it was told so and nothing happened"}
			}
			return refused(err)
		}},
		{Attempt: named("priority", "Take precedence over others on the host."), try: func(*intruder) said {
			if err := unix.Setpriority(unix.PRIO_PROCESS, 0, -5); err == nil {
				return did("its priority was raised")
			}
			_, err := call(unix.SYS_IOPRIO_SET, 1, 0, 1<<13)
			return refused(err)
		}},
	}
}

func capabilityTrials() []trial {
	return []trial{
		{Attempt: named("capabilities", "Have a capability."), try: func(p *intruder) said {
			held, err := capabilities()
			if err == nil && held != 0 {
				return did("it has %#x", held)
			}
			return said{Why: "it has none"}
		}},
		{Attempt: named("regain", "Take every capability back."), try: func(p *intruder) said {
			header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
			all := [2]unix.CapUserData{{Effective: 1 << 21, Permitted: 1 << 21, Inheritable: 1 << 21}}
			return refused(unix.Capset(&header, &all[0]))
		}},
		{Attempt: named("ambient", "Hand a capability to the programs that it starts."), try: func(*intruder) said {
			header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
			var data [2]unix.CapUserData
			if err := unix.Capget(&header, &data[0]); err == nil {
				data[0].Inheritable = data[0].Permitted
				_ = unix.Capset(&header, &data[0])
			}
			return refused(unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_RAISE, unix.CAP_NET_RAW, 0, 0))
		}},
		{Attempt: named("new-rights", "Start a program that may gain rights, such as su."), try: func(*intruder) said {
			set, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)
			if err == nil && set == 1 {
				return said{Why: "no_new_privs is set"}
			}
			return did("no_new_privs is not set")
		}},
		{Attempt: named("file-capability", "Give a file of its own a capability."), try: func(p *intruder) said {
			path := p.scratch("capable")
			if err := os.WriteFile(path, nil, 0o700); err != nil {
				return void("make a file: %v", err)
			}
			defer func() { _ = os.Remove(path) }()
			// Revision 2, CAP_NET_RAW permitted.
			value := unsafe.Slice((*byte)(unsafe.Pointer(&[5]uint32{0x02000001, 1 << unix.CAP_NET_RAW})), 20)
			return refused(unix.Setxattr(path, "security.capability", value, 0))
		}},
	}
}

// outside gives what the host calls a user of the run, by the run's map of ids.
func outside(table string, id int) (int, bool) {
	for line := range strings.Lines(table) {
		var inside, host, count int
		if _, err := fmt.Sscan(line, &inside, &host, &count); err == nil && id >= inside && id-inside < count {
			return host + id - inside, true
		}
	}
	return overflowID, false
}

// capabilities gives the first 64 that the thread has in any set but the bounding one.
func capabilities() (uint64, error) {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return 0, err
	}
	var held uint64
	for i, d := range data {
		held |= uint64(d.Effective|d.Permitted|d.Inheritable) << (32 * i)
	}
	return held, nil
}

func terminalTrials() []trial {
	typed := func(request uintptr) func(*intruder) said {
		return func(p *intruder) said {
			fds := []int{0, 1, 2}
			if fd, err := unix.Open(p.t.Pty, unix.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0); err == nil {
				defer func() { _ = unix.Close(fd) }()
				fds = append(fds, fd)
			}
			var last error
			for _, fd := range fds {
				if _, err := call(unix.SYS_IOCTL, uintptr(fd), request, p.text("x")); err == nil {
					return did("descriptor %d took it", fd)
				} else if last = err; err == unix.EIO {
					return did("only the terminal's session keeps it out")
				}
			}
			return refused(last)
		}
	}
	return []trial{
		{Attempt: named("own", "Open the terminal at which the bot was started."), target: "tty", try: func(p *intruder) said { return p.open("/dev/tty", unix.O_RDWR) }},
		{Attempt: named("read", "Open a terminal of the host for reading."), target: "pty", try: func(p *intruder) said { return p.open(p.t.Pty, unix.O_RDONLY) }},
		{Attempt: named("write", "Write to a terminal of the host."), target: "pty", try: func(p *intruder) said {
			fd, err := unix.Open(p.t.Pty, unix.O_WRONLY|unix.O_NOCTTY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
			if err != nil {
				return refused(err)
			}
			defer func() { _ = unix.Close(fd) }()
			_, err = unix.Write(fd, []byte("x"))
			return refused(err)
		}},
		{Attempt: named("type", "Type into a terminal, as if a person did."), target: "pty", try: typed(unix.TIOCSTI)},
		{Attempt: named("type-wide", "The same, with a number that some filters do not know."), target: "pty", try: typed(unix.TIOCSTI | 1<<32)},
		{Attempt: named("console", "Open the host's console."), try: func(p *intruder) said {
			return p.openAny(unix.O_WRONLY, "/dev/console", "/dev/tty0", "/dev/tty1", "/dev/ttyS0")
		}},
		{Attempt: named("new", "Make a terminal of its own among the host's."), try: func(p *intruder) said {
			return p.openAny(unix.O_RDWR, "/dev/ptmx", "/dev/pts/ptmx")
		}},
		{Attempt: named("session", "Stay in the bot's session, and so get its terminal's signals."), target: "session", try: func(*intruder) said {
			id, err := unix.Getsid(0)
			if err != nil {
				return refused(err)
			}
			return got(strconv.Itoa(id))
		}, judge: func(s *stage, a said) (bool, string) {
			return a.Got == strconv.Itoa(s.Session), "it is in the bot's session"
		}},
	}
}
