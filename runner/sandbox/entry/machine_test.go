//go:build linux && (amd64 || arm64)

package entry

import (
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// made gives a program whose calls belong to steps of one kind each.
func made(calls ...func(*Program)) *Program {
	p := &Program{}
	for _, c := range calls {
		p.steps = append(p.steps, Step{Op: Umask, N: []int64{0}})
		c(p)
	}
	return p
}

func TestTheMachineStopsAtTheFirstCallThatGoesWrong(t *testing.T) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	to := uintptr(w.Fd())
	say := func(word string) func(*Program) {
		return func(p *Program) {
			p.add(syscall.SYS_WRITE, to, p.bytes(word), uintptr(len(word))).exactly(uintptr(len(word)))
		}
	}
	missing := func(p *Program) *call {
		return p.add(syscall.SYS_OPENAT, atCWD, p.text("/nowhere/at/all"), syscall.O_RDONLY)
	}
	cases := map[string]struct {
		program *Program
		said    string
		err     error // nil: all was made
	}{
		"all succeed":       {made(say("a"), say("b")), "ab", nil},
		"an error":          {made(say("a"), func(p *Program) { missing(p) }, say("b")), "a", syscall.ENOENT},
		"an allowed error":  {made(func(p *Program) { missing(p).or(syscall.ENOENT) }, say("b")), "b", nil},
		"another one":       {made(func(p *Program) { missing(p).or(syscall.EACCES) }, say("b")), "", syscall.ENOENT},
		"it leaves out two": {made(func(p *Program) { missing(p).or(syscall.ENOENT).skip = 2 }, say("a"), say("b"), say("c")), "c", nil},
		"it leaves out all": {made(say("a"), func(p *Program) { missing(p).or(syscall.ENOENT).skip = 1 }, say("b")), "a", nil},
		"a wrong result":    {made(func(p *Program) { p.add(syscall.SYS_GETPID).exactly(0) }, say("b")), "", refusal("it did not have the one result that it must have")},
		"refused as it must be": {made(func(p *Program) {
			p.add(syscall.SYS_OPENAT, atCWD, p.text("/proc/self/oops"), syscall.O_RDONLY).refused()
		}, say("b")), "", syscall.ENOENT},
		"not refused": {made(func(p *Program) { p.add(syscall.SYS_GETPID).refused() }, say("b")), "", refusal("it did not have the one result that it must have")},
		"a high error": {made(func(p *Program) { // 24 is its number modulo 64
			p.add(syscall.SYS_SENDTO, to, p.bytes("x"), 1).or(syscall.ENOTSOCK % 64)
		}, say("b")), "", syscall.ENOTSOCK},
		"a call of nothing": {made(func(p *Program) { p.add(9999) }, say("b")), "", syscall.ENOSYS},
	}
	for name, c := range cases {
		_, err := c.program.performFrom(0)
		require.Equal(t, c.err, err, name)
		if c.said == "" {
			continue
		}
		got := make([]byte, 16)
		n, err := r.Read(got)
		require.NoError(t, err, name)
		require.Equal(t, c.said, string(got[:n]), name)
	}
}

func TestTheMachinePassesDescriptorsAndAllSixArguments(t *testing.T) {
	p := made(func(p *Program) {
		at := p.cell()
		p.add(syscall.SYS_OPENAT, atCWD, p.text("/proc/self/cmdline"), syscall.O_RDONLY|syscall.O_CLOEXEC).giving(at)
		p.add(syscall.SYS_READ, 0, p.bytes("x"), 1).on(at).exactly(1)
		p.add(syscall.SYS_CLOSE).on(at)
		// Memory at an offset needs all six arguments to be right.
		p.add(syscall.SYS_OPENAT, atCWD, p.text("/proc/self/exe"), syscall.O_RDONLY|syscall.O_CLOEXEC).giving(at)
		mapped := p.add(syscall.SYS_MMAP, 0, 4096, syscall.PROT_READ, syscall.MAP_PRIVATE, at, 4096)
		mapped.load = 1 << 4
		p.add(syscall.SYS_CLOSE).on(at)
		p.add(syscall.SYS_CLOSE).on(at).or(syscall.EBADF)
	})
	step, err := p.performFrom(0)
	require.NoError(t, err, step)
}

func TestACloneEndsAtItsFault(t *testing.T) {
	var status [2]int
	require.NoError(t, syscall.Pipe2(status[:], syscall.O_CLOEXEC))
	p := made(func(p *Program) {
		p.add(syscall.SYS_WRITE, uintptr(status[1]), p.bytes("ok"), 2).exactly(2)
		p.add(syscall.SYS_CHDIR, p.text("/nowhere/at/all"))
		p.add(syscall.SYS_WRITE, uintptr(status[1]), p.bytes("no"), 2)
	})
	pid, err := p.Start(0)
	require.NoError(t, err)
	var ended syscall.WaitStatus
	_, err = syscall.Wait4(pid, &ended, 0, nil)
	require.NoError(t, err)
	require.Equal(t, ExitCode, ended.ExitStatus())
	require.NoError(t, syscall.Close(status[1]))
	got := make([]byte, 8)
	n, err := syscall.Read(status[0], got)
	require.NoError(t, err)
	require.Equal(t, "ok", string(got[:n]))
	_, err, failed := p.Failed()
	require.True(t, failed)
	require.Equal(t, syscall.ENOENT, err)
}
