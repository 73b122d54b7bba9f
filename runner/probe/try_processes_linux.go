//go:build amd64 || arm64

package probe

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// onVictim makes an attempt on the target process, by the number that the host
// gives it. Inside, the same number could be the intruder's own.
func onVictim(name, what string, try func(p *intruder, pid int) said) trial {
	return trial{Attempt: named(name, what), target: "victim", try: func(p *intruder) said {
		if unix.Tgkill(os.Getpid(), p.t.Victim, 0) == nil {
			return void("the number of the target is one of its own here")
		}
		return try(p, p.t.Victim)
	}}
}

func processTrials() []trial {
	signalled := onVictim("signal", "Send a signal to a process of the host.", func(_ *intruder, pid int) said { return refused(unix.Kill(pid, unix.SIGUSR1)) })
	return []trial{
		signalled,
		onVictim("signal-thread", "Send a signal to a thread of a process of the host.", func(_ *intruder, pid int) said {
			return refused(unix.Tgkill(pid, pid, unix.SIGUSR1))
		}),
		onVictim("handle", "Get a handle of a process of the host, and signal through it.", func(_ *intruder, pid int) said {
			fd, err := unix.PidfdOpen(pid, 0)
			if err != nil {
				return refused(err)
			}
			defer func() { _ = unix.Close(fd) }()
			return refused(unix.PidfdSendSignal(fd, unix.SIGUSR1, nil, 0))
		}),
		onVictim("take-descriptor", "Take an open file out of a process of the host.", func(p *intruder, pid int) said {
			fd, err := unix.PidfdOpen(p.t.Bot, 0)
			if err != nil {
				fd = -1
			}
			taken, err := unix.PidfdGetfd(fd, p.t.Descriptor, 0)
			if err != nil {
				return reached(err)
			}
			return got(drain(taken))
		}),
		onVictim("trace", "Attach to a process of the host as a debugger.", func(_ *intruder, pid int) said {
			_, err := call(unix.SYS_PTRACE, unix.PTRACE_SEIZE, uintptr(pid), 0, 0)
			return refused(err)
		}),
		{Attempt: named("be-traced", "Let itself be traced, which some filters do not survive."), try: func(p *intruder) said {
			attr := &os.ProcAttr{Env: []string{childEnv}, Files: []*os.File{nil, nil, nil}, Sys: &syscall.SysProcAttr{Ptrace: true}}
			child, err := os.StartProcess("/proc/self/exe", p.args(partNone), attr)
			if err == nil { // it waits for its tracer
				_ = child.Kill()
				_, _ = child.Wait()
			}
			return refused(err)
		}},
		onVictim("read-memory", "Read memory of a process of the host.", func(p *intruder, pid int) said {
			_, err := call(unix.SYS_PROCESS_VM_READV, uintptr(pid), p.vector(), 1, p.vector(), 1, 0)
			return through(err)
		}),
		onVictim("write-memory", "Write memory of a process of the host.", func(p *intruder, pid int) said {
			_, err := call(unix.SYS_PROCESS_VM_WRITEV, uintptr(pid), p.vector(), 1, p.vector(), 1, 0)
			return through(err)
		}),
		onVictim("compare", "Compare what two processes share.", func(_ *intruder, pid int) said {
			_, err := call(unix.SYS_KCMP, uintptr(pid), uintptr(pid), 2, 0, 0)
			return refused(err)
		}),
		onVictim("limit", "Change the limits of a process of the host.", func(_ *intruder, pid int) said {
			var l unix.Rlimit
			return refused(unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &l))
		}),
		onVictim("slow-down", "Take processor time from a process of the host.", func(_ *intruder, pid int) said {
			return refused(unix.Setpriority(unix.PRIO_PROCESS, pid, 1))
		}),
		onVictim("pin", "Move a process of the host to one processor.", func(_ *intruder, pid int) said {
			var set unix.CPUSet
			if err := unix.SchedGetaffinity(pid, &set); err != nil {
				return refused(err)
			}
			return refused(unix.SchedSetaffinity(pid, &set))
		}),
		onVictim("group", "Learn to which session a process of the host belongs.", func(_ *intruder, pid int) said {
			_, err := unix.Getsid(pid)
			return refused(err)
		}),
	}
}

// vector is one address that no process has, with its length.
func (p *intruder) vector() uintptr {
	return p.put(unsafe.Slice((*byte)(unsafe.Pointer(&[2]uint64{uint64(p.blank(8)), 8})), 16))
}

// through takes success, and also a bad address, for permission.
func through(err error) said {
	if err == unix.EFAULT {
		return did("only the address was wrong")
	}
	return refused(err)
}

func descriptorTrials() []trial {
	return []trial{
		{Attempt: named("inherited", "Read a file that the bot has open and did not close for others."), target: "descriptor", try: func(*intruder) said {
			var all strings.Builder
			for fd := 3; fd < 1024; fd++ {
				buf := make([]byte, 128)
				if n, err := unix.Pread(fd, buf, 0); err == nil {
					all.Write(buf[:n])
				}
			}
			return got(all.String())
		}},
		{Attempt: named("open-again", "Open a file of the bot again through /proc."), target: "descriptor", try: func(p *intruder) said {
			return p.readAny(fmt.Sprintf("/proc/%d/fd/%d", p.t.Bot, p.t.Descriptor), fmt.Sprintf("/proc/1/fd/%d", p.t.Descriptor))
		}},
		{Attempt: named("bot-output", "Write to the bot's own output through /proc."), target: "descriptor", try: func(p *intruder) said {
			base := fmt.Sprintf("/proc/%d/fd/", p.t.Bot)
			return p.openAny(unix.O_WRONLY, base+"1", base+"2", base+fmt.Sprint(p.t.Descriptor))
		}},
		{Attempt: named("folder", "Leave the view through an open folder."), try: func(*intruder) said {
			for fd := range 1024 {
				var st unix.Stat_t
				if unix.Fstat(fd, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFDIR {
					continue
				}
				if inner, err := unix.Openat(fd, "../../../../../../../..", unix.O_RDONLY|unix.O_CLOEXEC, 0); err == nil {
					_ = unix.Close(inner)
					return did("descriptor %d is a folder", fd)
				}
			}
			return said{Why: "no folder is open"}
		}},
		{Attempt: named("input", "Change the input that the bot gave, or find it to be a way to somebody."), try: func(*intruder) said {
			var st unix.Stat_t
			if err := unix.Fstat(0, &st); err != nil {
				return refused(err)
			}
			if kind := st.Mode & unix.S_IFMT; kind == unix.S_IFIFO || kind == unix.S_IFSOCK || kind == unix.S_IFCHR && st.Rdev != unix.Mkdev(1, 3) {
				return did("standard input is a pipe, a socket or a device")
			}
			_, err := unix.Pwrite(0, []byte("x"), 0)
			return refused(err)
		}},
	}
}

func environmentTrials() []trial {
	return []trial{
		{Attempt: named("variables", "Find a variable of the bot in its own environment."), target: "environment", try: func(p *intruder) said {
			return got(strings.Join(p.env, "\n"))
		}, judge: showsEnvironment},
		{Attempt: named("kernel-copy", "Find one in the copy of the environment that the kernel keeps."), target: "environment", try: func(p *intruder) said {
			return p.read("/proc/self/environ")
		}, judge: showsEnvironment},
		{Attempt: named("first-process", "Find one in the environment of the first process."), target: "environment", try: func(p *intruder) said {
			return p.read("/proc/1/environ")
		}, judge: showsEnvironment},
	}
}
