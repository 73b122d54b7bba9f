//go:build linux && (amd64 || arm64)

package entry

import (
	"syscall"
	"unsafe"
)

// The one init of the product. In the sandbox child it does not return.
func init() {
	switch line := commandLine(); line {
	case Name + "\x00", SelfPath + "\x00" + Name + "\x00":
		run(false)
	case Name + "\x00" + kept + "\x00":
		run(true)
	default:
		return
	}
	syscall.Exit(ExitCode)
}

// kept is the argument of a child that has a keeper already.
const kept = "kept"

// commandLine gives the start of the kernel's copy of it, one byte longer than
// any that means the child, because os.Args is not set yet when this init runs.
func commandLine() string {
	fd, err := syscall.Open("/proc/self/cmdline", syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return ""
	}
	var buf [len(SelfPath) + len(Name) + 3]byte
	n, err := syscall.Read(fd, buf[:])
	_ = syscall.Close(fd)
	if err != nil {
		return ""
	}
	return string(buf[:n])
}

// run performs the steps, or only those behind Keep. It returns only after a
// failure, which it has told.
func run(kept bool) {
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
	c := compiler{Program: &Program{}, frame: Frame{Status: StatusFD, Parent: StatusFD}}
	for _, s := range steps {
		if kept {
			kept = s.Op != Keep
			continue
		}
		if step, err := c.do(s); err != nil {
			tell(step, err)
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

// do performs one step in this process: what is made of calls by the machine,
// and the two kinds that are more than that.
func (c *compiler) do(s Step) (step string, err error) {
	switch s.Op {
	case Keep:
		return s.String(), keep()
	case Copy:
		content, err := content(s)
		if err != nil {
			return s.String(), err
		}
		s = Step{Op: File, N: s.N[:3], S: []string{s.S[1], content}}
	case Rlimit:
		var now syscall.Rlimit
		if err := syscall.Getrlimit(int(s.N[0]), &now); err != nil {
			return s.String(), err
		}
		c.frame.Hard = map[int64]uint64{s.N[0]: now.Max}
	}
	first := len(c.calls)
	if !c.step(s) {
		return s.String(), refusal("the step is malformed")
	}
	return c.performFrom(first)
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
