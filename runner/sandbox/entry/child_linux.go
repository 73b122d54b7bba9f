//go:build linux && (amd64 || arm64)

package entry

import (
	"syscall"
	"unsafe"
)

// The one init of the product. In the sandbox child it does not return.
func init() {
	if called() {
		run()
		syscall.Exit(ExitCode)
	}
}

// called says whether argv[0] is exactly Name. It reads the kernel's copy,
// because os.Args is not set yet when this init runs.
func called() bool {
	fd, err := syscall.Open("/proc/self/cmdline", syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	var buf [len(Name) + 1]byte
	n, err := syscall.Read(fd, buf[:])
	_ = syscall.Close(fd)
	return err == nil && n == len(buf) && string(buf[:]) == Name+"\x00"
}

// run performs the steps. It returns only after a failure, which it has told.
func run() {
	data, err := readAll(StepsFD)
	if err != nil {
		tell("read the steps", err)
		return
	}
	steps, ok := Decode(data)
	if !ok {
		tell("read the steps", refusal("they are malformed"))
		return
	}
	c := child{ruleset: -1}
	for i := range c.slots {
		c.slots[i] = -1
	}
	for _, s := range steps {
		if err := c.perform(s); err != nil {
			tell(s.String(), err)
			return
		}
	}
	tell("end", refusal("the last step did not start a program"))
}

func readAll(fd int) ([]byte, error) {
	var st syscall.Stat_t
	if err := syscall.Fstat(fd, &st); err != nil {
		return nil, err
	}
	data := make([]byte, st.Size)
	for done := 0; done < len(data); {
		n, err := syscall.Pread(fd, data[done:], int64(done))
		if err != nil {
			return nil, err
		}
		if n == 0 {
			return nil, refusal("they end early")
		}
		done += n
	}
	return data, nil
}

// refusal is a failure that is not a system call's.
type refusal string

func (r refusal) Error() string { return string(r) }

// tell reports a failed step to the parent and on standard error.
func tell(step string, err error) {
	number := "0"
	if errno, ok := err.(syscall.Errno); ok {
		number = decimal(int64(errno))
	}
	text := err.Error()
	_, _ = write(StatusFD, string(rune(Failed))+step+"\x00"+number+"\x00"+text)
	_, _ = write(2, "parlour sandbox: "+step+": "+text+"\n")
}

// child is the state between steps: cloned mounts and the Landlock ruleset.
type child struct {
	slots   [64]int
	ruleset int
}

func (c *child) perform(s Step) error {
	switch s.Op {
	case Watch:
		return watch()
	case Umask:
		return errnoOf(syscall.RawSyscall(syscall.SYS_UMASK, uintptr(s.N[0]), 0, 0))
	case Hostname:
		return hostname(s.S[0])
	case Tree:
		return c.tree(s.N[0], uint64(s.N[1]), s.N[2] != 0, s.S[0])
	case Place:
		return c.place(s.N[0], s.S[0])
	case Mount:
		return mount(s.S[0], s.S[1], s.S[2], uintptr(s.N[0]), s.S[3])
	case Attributes:
		return attributes(atCWD, s.S[0], uint64(s.N[0]), 0)
	case Mkdir:
		return folder(s.S[0], uint32(s.N[0]), s.N[1], s.N[2])
	case Symlink:
		return symlink(s.S[0], s.S[1])
	case File:
		return file(s.S[0], s.S[1], uint32(s.N[0]), s.N[1], s.N[2])
	case Device:
		return device(s.S[0], uintptr(s.N[0]), uintptr(s.N[1]), uintptr(s.N[2]))
	case Chdir:
		return chdir(s.S[0])
	case Pivot:
		return pivot()
	case NullInput:
		return nullInput()
	case LoopbackUp:
		return loopbackUp()
	case Listen:
		return listen(uint16(s.N[0]))
	case Exec:
		return exec(s.S[0], s.S[1:1+s.N[0]], s.S[1+s.N[0]:])
	case Report:
		return report()
	}
	return c.restrain(s)
}

// restrain performs the steps that take rights away.
func (c *child) restrain(s Step) error {
	switch s.Op {
	case Rlimit:
		return limit(int(s.N[0]), uint64(s.N[1]))
	case Bounding:
		return bounding()
	case Securebits:
		return prctl(prSetSecurebits, uintptr(s.N[0]), 0)
	case Identity:
		return identity(uintptr(s.N[0]), uintptr(s.N[1]))
	case Capless:
		return capless()
	case NoNewPrivs:
		return prctl(prSetNoNewPrivs, 1, 0)
	case Ruleset:
		return c.newRuleset(s.N)
	case PathRule:
		return c.pathRule(s.S[0], uint64(s.N[0]))
	case PortRule:
		return c.portRule(uint64(s.N[0]), uint64(s.N[1]))
	case Restrict:
		return errnoOf(syscall.RawSyscall(sysLandlockRestrictSelf, uintptr(c.ruleset), 0, 0))
	case Seccomp:
		return seccomp(s.S[0])
	case Denied:
		return denied(s)
	case Blank:
		return blank(s.S[0])
	case CloseOnExec:
		return closeOnExec()
	}
	return refusal("the step is unknown")
}

func exec(path string, argv, env []string) error {
	if err := say(Ready); err != nil {
		return err
	}
	return syscall.Exec(path, argv, env)
}

func report() error {
	if err := say(Ready); err != nil {
		return err
	}
	syscall.Exit(0)
	return nil
}

func say(message rune) error {
	_, err := write(StatusFD, string(message))
	return err
}

func write(fd int, text string) (int, error) {
	n, _, errno := syscall.RawSyscall(syscall.SYS_WRITE, uintptr(fd), uintptr(unsafe.Pointer(unsafe.StringData(text))), uintptr(len(text)))
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}

func closeFD(fd int) { _, _, _ = syscall.RawSyscall(syscall.SYS_CLOSE, uintptr(fd), 0, 0) }

func open(path string, flags int, mode uint32) (int, error) {
	p, err := cstring(path)
	if err != nil {
		return -1, err
	}
	fd, _, errno := syscall.RawSyscall6(syscall.SYS_OPENAT, atCWD, uintptr(p), uintptr(flags|syscall.O_CLOEXEC), uintptr(mode), 0, 0)
	if errno != 0 {
		return -1, errno
	}
	return int(fd), nil
}

// The steps use raw system calls: only one thread matters here, and the
// scheduler would start others to stand in for it during a call.

// errnoOf turns the results of a raw system call into an error or nil.
func errnoOf(_, _ uintptr, errno syscall.Errno) error {
	if errno != 0 {
		return errno
	}
	return nil
}

func prctl(option, a, b uintptr) error {
	return errnoOf(syscall.RawSyscall6(syscall.SYS_PRCTL, option, a, b, 0, 0, 0))
}

func cstring(s string) (unsafe.Pointer, error) {
	p, err := syscall.BytePtrFromString(s)
	return unsafe.Pointer(p), err
}
