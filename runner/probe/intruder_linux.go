//go:build amd64 || arm64

package probe

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The parts that the bot's program plays in the battery.
const (
	partTry    = "try"    // make every attempt from inside
	partLimits = "limits" // run into every limit from inside
	partHold   = "hold"   // stay, whatever asks it to end
	partStay   = "stay"   // start some that stay, and stay
	partUse    = "use"    // use up memory
	partNone   = "none"   // end at once
	partVictim = "victim" // be a target outside
)

// Main plays one part. Its arguments are exactly PART MARK.
func Main(ctx context.Context, args, environ []string, stdin io.Reader, stdout, stderr io.Writer) int {
	if len(args) != 2 {
		_, _ = fmt.Fprintln(stderr, "usage: PART MARK")
		return 2
	}
	p := &intruder{mark: args[1], env: environ, out: json.NewEncoder(stdout), print: stdout}
	switch args[0] {
	case partNone:
		return 0
	case partHold:
		return hold(p)
	case partUse:
		return use(p, stdin)
	case partVictim:
		return suffer(p, stdin)
	}
	if err := json.NewDecoder(stdin).Decode(&p.t); err != nil {
		_, _ = fmt.Fprintln(stderr, "probe: read the targets:", err)
		return 2
	}
	var err error
	if p.page, err = unix.Mmap(-1, 0, 1<<16, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON); err != nil {
		_, _ = fmt.Fprintln(stderr, "probe: get memory:", err)
		return 2
	}
	switch args[0] {
	case partTry:
		tryAll(p, func(t trial) bool { return !t.alone })
	case partLimits:
		tryAll(p, func(t trial) bool { return t.alone })
	case partStay:
		return stay(p, ctx)
	default:
		_, _ = fmt.Fprintln(stderr, "probe: there is no such part")
		return 2
	}
	return 0
}

// intruder makes the attempts. Nothing in here knows what the targets hold.
type intruder struct {
	t     targets
	mark  string
	env   []string
	out   *json.Encoder
	print io.Writer
	page  []byte // memory whose address does not change
	used  int
}

// patience bounds one attempt.
const patience = 5 * time.Second

func tryAll(p *intruder, which func(trial) bool) {
	for _, t := range table() {
		if t.try == nil || !which(t) {
			continue
		}
		answer := apart(p, t)
		answer.ID = t.ID()
		if len(answer.Got) > maxGot {
			answer.Got = answer.Got[:maxGot]
		}
		if p.out.Encode(answer) != nil {
			return // nobody listens any more
		}
	}
}

// maxGot is the most that the intruder tells of what it read.
const maxGot = 32 << 10

// apart makes one attempt on a thread of its own, which ends with it: what a
// success changes of the thread, such as its namespaces or its user, does not
// help or hinder the next attempt.
func apart(p *intruder, t trial) said {
	answer := make(chan said, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		p.used = 0
		answer <- t.try(p)
	}()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case s := <-answer:
		return s
	case <-timer.C:
		return void("it took longer than %s", patience)
	}
}

func did(format string, args ...any) said { return said{Did: true, Why: fmt.Sprintf(format, args...)} }
func void(format string, args ...any) said {
	return said{Void: true, Why: fmt.Sprintf(format, args...)}
}
func none(err error) said  { return said{None: true, Why: err.Error()} }
func got(text string) said { return said{Got: text} }

// refused takes an error for a refusal, and no error for success.
func refused(err error) said {
	if err == nil {
		return did("it succeeded")
	}
	return said{Why: err.Error()}
}

// refusals are the errors that mean "you may not" or "there is no such thing".
var refusals = [...]unix.Errno{
	unix.EPERM, unix.EACCES, unix.EROFS, unix.ENOSYS, unix.EAFNOSUPPORT, unix.EPROTONOSUPPORT, unix.ESOCKTNOSUPPORT, unix.EOPNOTSUPP,
}

// reached takes any other error for proof that the call was let through: its
// arguments are nonsense, so that it does nothing where it is permitted.
func reached(err error) said {
	if err == nil {
		return did("the call was let through")
	}
	for _, r := range refusals {
		if errors.Is(err, r) {
			return refused(err)
		}
	}
	return did("the call was let through: %v", err)
}

// call makes a system call by its number.
func call(nr uintptr, args ...uintptr) (uintptr, error) {
	var a [6]uintptr
	copy(a[:], args)
	r, _, errno := unix.Syscall6(nr, a[0], a[1], a[2], a[3], a[4], a[5])
	if errno != 0 {
		return 0, errno
	}
	return r, nil
}

// put copies bytes to where the kernel can find them and gives the address.
func (p *intruder) put(content []byte) uintptr {
	p.used = (p.used + 15) &^ 15
	at := p.used
	p.used += len(content)
	copy(p.page[at:], content)
	return uintptr(unsafe.Pointer(&p.page[at]))
}

// text is put for a string that ends in NUL.
func (p *intruder) text(s string) uintptr { return p.put(append([]byte(s), 0)) }

// blank is put for zeros.
func (p *intruder) blank(n int) uintptr { return p.put(make([]byte, n)) }

func closeIf(fd uintptr, err error) error {
	if err == nil {
		_ = unix.Close(int(fd))
	}
	return err
}

// opens is an attempt to open one of several files of the host.
func opens(name, what string, flags int, paths ...string) trial {
	return trial{Attempt: named(name, what), paths: paths, try: func(p *intruder) said { return p.openAny(flags, paths...) }}
}

// open opens and closes.
func (p *intruder) open(path string, flags int) said {
	if path == "" {
		return void("nobody said where it is")
	}
	fd, err := unix.Open(path, flags|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err == nil {
		_ = unix.Close(fd)
	}
	return refused(err)
}

// read gives the start of a file, and never waits for it.
func (p *intruder) read(path string) said {
	text, err := readStart(path)
	if err != nil {
		return refused(err)
	}
	return got(text)
}

func readStart(path string) (string, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", err
	}
	defer func() { _ = unix.Close(fd) }()
	return drain(fd), nil
}

func drain(fd int) string {
	var all bytes.Buffer
	buf := make([]byte, 16<<10)
	for all.Len() < maxGot {
		n, err := unix.Read(fd, buf)
		if err != nil || n <= 0 {
			break
		}
		all.Write(buf[:n])
	}
	return all.String()
}

// readAny reads several files, of which each counts.
func (p *intruder) readAny(paths ...string) said {
	var all strings.Builder
	var last error
	for _, path := range paths {
		text, err := readStart(path)
		if err != nil {
			last = err
			continue
		}
		fmt.Fprintf(&all, "%s\n", text)
	}
	if all.Len() == 0 {
		return said{Why: fmt.Sprint(last)}
	}
	return got(all.String())
}

// list gives the names in a folder.
func (p *intruder) list(path string) said {
	entries, err := os.ReadDir(path)
	names := []string{}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if err != nil && len(names) == 0 {
		return refused(err)
	}
	return got(strings.Join(names, "\n"))
}
