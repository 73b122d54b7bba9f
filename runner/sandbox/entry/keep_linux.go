//go:build linux && (amd64 || arm64)

package entry

import (
	"syscall"
	"unsafe"
)

const (
	sysPidfdOpen = 434

	prSetDumpable       = 4
	prSetName           = 15
	prSetChildSubreaper = 36

	waitAll = 0x40000000 // __WALL
)

// keep starts the child anew, in a session of its own that the run's filter lets
// nobody leave, to go on behind this step. This process never returns: it takes
// up every orphan of the run, and ends all of it when the program ends or the
// parent lets go of the leash, by its death too. It stands outside of the run's
// limits and filters, and holds nothing but the leash. A fork alone would not do:
// the Go runtime does not survive the loss of its other threads. Guarded by
// tests/attacks TestNoProcessSurvivesOnAnyRung.
func keep() error {
	if err := prctl(prSetChildSubreaper, 1, 0); err != nil {
		return err
	}
	pid, err := syscall.ForkExec("/proc/self/exe", []string{Name, kept}, &syscall.ProcAttr{
		Env:   []string{"GOMAXPROCS=1", "GODEBUG=containermaxprocs=0"},
		Files: []uintptr{0, 1, 2, StepsFD, StatusFD},
		Sys:   &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL},
	})
	if err != nil {
		return err
	}
	mirror(guard(pid))
	return nil
}

// guard waits for the end of the program or of the leash, ends every process of
// the run, and gives the program's status.
func guard(pid int) syscall.WaitStatus {
	if fd, ok := unburden(pid); ok {
		await(fd)
	}
	// The signal reaches all members of the group at once, so none can fork out of it.
	_ = syscall.Kill(-pid, syscall.SIGKILL)
	status := syscall.WaitStatus(ExitCode << 8)
	for {
		var s int32
		got, _, errno := syscall.Syscall6(syscall.SYS_WAIT4, ^uintptr(0), uintptr(unsafe.Pointer(&s)), waitAll, 0, 0, 0)
		switch {
		case errno == syscall.EINTR:
		case errno != 0:
			return status // no child is left
		case int(got) == pid:
			status = syscall.WaitStatus(s)
		}
	}
}

// unburden gives back all that the keeper does not need: the run's output, so
// that its end is seen, the tie that would kill the keeper before its work is
// done, and the right to be looked into. It gives a descriptor of the program.
func unburden(pid int) (int, bool) {
	fd, _, errno := syscall.RawSyscall(sysPidfdOpen, uintptr(pid), 0, 0)
	if errno != 0 {
		return -1, false
	}
	name := [16]byte{}
	copy(name[:], keeperName)
	for _, err := range []error{
		prctl(prSetName, uintptr(unsafe.Pointer(&name)), 0),
		prctl(prSetPdeathsig, 0, 0),
		prctl(prSetDumpable, 0, 0),
		syscall.Setrlimit(syscall.RLIMIT_CORE, &syscall.Rlimit{}),
		errnoOf(syscall.RawSyscall(syscall.SYS_DUP3, fd, 3, syscall.O_CLOEXEC)),
		errnoOf(syscall.RawSyscall(syscall.SYS_DUP3, LeashFD, 4, syscall.O_CLOEXEC)),
		errnoOf(syscall.RawSyscall(sysCloseRange, 5, 1<<32-1, 0)),
		errnoOf(syscall.RawSyscall(sysCloseRange, 0, 2, 0)),
	} {
		if err != nil {
			return -1, false
		}
	}
	return 3, true
}

// keeperName is what the operator's list of processes shows.
const keeperName = "parlour-keeper"

// await returns when the process of the descriptor has ended or the leash, which
// is at 4, has no other end any more.
func await(fd int) {
	watched := [2]struct {
		fd      int32
		events  int16
		revents int16
	}{{fd: int32(fd), events: pollIn}, {fd: 4}}
	for {
		_, _, errno := syscall.Syscall6(syscall.SYS_PPOLL, uintptr(unsafe.Pointer(&watched)), uintptr(len(watched)), 0, 0, 0, 0)
		if errno != syscall.EINTR {
			return
		}
	}
}

// mirror ends the keeper as the program ended, so that the parent sees it.
func mirror(status syscall.WaitStatus) {
	if status.Signaled() {
		var usual [32]byte // SIG_DFL
		sig := uintptr(status.Signal())
		_, _, _ = syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, sig, uintptr(unsafe.Pointer(&usual)), 0, 8, 0, 0)
		_ = syscall.Kill(syscall.Getpid(), status.Signal())
		syscall.Exit(128 + int(sig))
	}
	syscall.Exit(status.ExitStatus())
}

// content reads a regular file, of which the run gets a copy because its user
// cannot reach it where it lies.
func content(s Step) (string, error) {
	from, err := open(s.S[0], syscall.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return "", err
	}
	defer closeFD(from)
	var st syscall.Stat_t
	if err := syscall.Fstat(from, &st); err != nil {
		return "", err
	}
	if st.Mode&syscall.S_IFMT != syscall.S_IFREG || st.Size > s.N[3] {
		return "", refusal("it is not a regular file of a bearable size")
	}
	text, err := readAll(from)
	return string(text), err
}
