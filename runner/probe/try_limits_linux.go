//go:build amd64 || arm64

package probe

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"parlour/runner/policy"
)

// limitTrials run into the limits of the policy. They are made in a sandbox of
// their own, since what reaches a limit may not live to tell.
func limitTrials() []trial {
	files := policy.Clauses()[:1]
	list := []trial{
		{Attempt: named("open-files", "Have more files open than the limit."), limit: "open files", single: true, try: openMany},
		{Attempt: Attempt{Name: "file-size", What: "Make a file that is longer than all the space of the run.", Needs: files}, limit: "scratch space", single: true, try: longFile},
		{Attempt: Attempt{Name: "disk", What: "Write more than the space of the run, in all scratch folders together.", Needs: files}, limit: "scratch space", try: fill},
		{Attempt: Attempt{Name: "file-count", What: "Make more files than the run may have.", Needs: files}, limit: "scratch space", try: crowd},
		{Attempt: named("core", "Leave a core file at a crash."), try: hardLimit(unix.RLIMIT_CORE, "a core file")},
		{Attempt: named("queues", "Fill the kernel's message queues."), try: hardLimit(unix.RLIMIT_MSGQUEUE, "messages")},
		{Attempt: named("raise", "Raise a limit of its own."), limit: "open files", single: true, try: func(*intruder) said {
			var l unix.Rlimit
			if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l); err != nil {
				return refused(err)
			}
			l.Max++
			return refused(unix.Setrlimit(unix.RLIMIT_NOFILE, &l))
		}},
		{Attempt: named("real-time", "Run before every other process of the host."), try: func(p *intruder) said {
			priority := []byte{1, 0, 0, 0}
			_, err := call(unix.SYS_SCHED_SETSCHEDULER, 0, 1, p.put(priority))
			return refused(err)
		}},
		{Attempt: named("memory", "Use more memory than the limit in one process."), limit: "memory", single: true, try: func(p *intruder) said {
			return refused(useMemory(p))
		}},
		{Attempt: named("processor", "Compute for longer than the run may last, in one process."), limit: "processor time", single: true,
			try: endlessComputing},
		{Attempt: named("processes", "Start more processes than the limit."), limit: "processes", try: multiply},
	}
	for i := range list {
		list[i].alone = true
	}
	return list
}

func hardLimit(resource int, what string) func(*intruder) said {
	return func(*intruder) said {
		var l unix.Rlimit
		if err := unix.Getrlimit(resource, &l); err != nil {
			return refused(err)
		}
		if l.Max != 0 {
			return did("its limit for %s is %d", what, l.Max)
		}
		return said{Why: "its limit is 0"}
	}
}

// endlessComputing looks at the limit instead of waiting for it.
func endlessComputing(*intruder) said {
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_CPU, &l); err != nil {
		return refused(err)
	}
	if l.Max == unix.RLIM_INFINITY {
		return did("its processor time is not limited")
	}
	return said{Why: "its processor time is limited"}
}

func openMany(p *intruder) said {
	var fds []int
	defer func() {
		for _, fd := range fds {
			_ = unix.Close(fd)
		}
	}()
	for len(fds) <= p.t.Limits.OpenFile {
		fd, err := unix.Open("/dev/null", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return refused(err)
		}
		fds = append(fds, fd)
	}
	return did("it had %d files open", len(fds))
}

func longFile(p *intruder) said {
	signal.Ignore(unix.SIGXFSZ)
	path := p.scratch("long")
	f, err := os.Create(path)
	if err != nil {
		return void("make a file: %v", err)
	}
	defer func() { _, _ = f.Close(), os.Remove(path) }()
	return refused(f.Truncate(p.t.Limits.Disk + 1))
}

// fill writes into every scratch folder until it is refused.
func fill(p *intruder) said {
	signal.Ignore(unix.SIGXFSZ)
	sum, block := int64(0), make([]byte, 256<<10)
	for _, folder := range p.folders() {
		path := filepath.Join(folder, p.mark+"-fill")
		f, err := os.Create(path)
		for err == nil && sum <= p.t.Limits.Disk {
			var n int
			n, err = f.Write(block)
			sum += int64(n)
		}
		defer func() { _, _ = f.Close(), os.Remove(path) }()
	}
	if sum > p.t.Limits.Disk {
		return did("it wrote %d bytes", sum)
	}
	return said{Why: "it was stopped after " + strconv.FormatInt(sum, 10) + " bytes"}
}

// crowd makes files until it is refused. Each folder may hold as many.
func crowd(p *intruder) said {
	most, made := (p.t.Limits.Files+1)*len(p.folders()), 0
	for _, folder := range p.folders() {
		inner := filepath.Join(folder, p.mark+"-crowd")
		if os.Mkdir(inner, 0o700) != nil {
			continue
		}
		for i := 0; made <= most; i++ {
			if os.WriteFile(filepath.Join(inner, strconv.Itoa(i)), nil, 0o600) != nil {
				break
			}
			made++
		}
		defer func() { _ = os.RemoveAll(inner) }()
	}
	if made > most {
		return did("it made %d files", made)
	}
	return said{Why: fmt.Sprintf("it was stopped after %d files", made)}
}

// useMemory lets a child use more memory than the limit, really, and tells
// whether it lived.
func useMemory(p *intruder) error {
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintln(w, p.t.Limits.Memory+32<<20)
	_ = w.Close()
	defer func() { _ = r.Close() }()
	process, err := os.StartProcess("/proc/self/exe", p.args(partUse), &os.ProcAttr{Env: []string{childEnv}, Files: []*os.File{r, nil, nil}})
	if err != nil {
		return err
	}
	state, err := process.Wait()
	if err == nil && !state.Success() {
		err = fmt.Errorf("the child ended: %s", state)
	}
	return err
}

// use maps and touches as many bytes as standard input says.
func use(p *intruder, stdin io.Reader) int {
	var n int
	if _, err := fmt.Fscan(stdin, &n); err != nil {
		return 2
	}
	memory, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return 1
	}
	for i := 0; i < len(memory); i += 4096 {
		memory[i] = 1
	}
	return 0
}

// multiply starts children until it is refused. Each of them has several
// threads, which the kernel counts too.
func multiply(p *intruder) said {
	children := []*holder{}
	defer func() {
		for _, c := range children {
			c.end()
		}
	}()
	for range p.t.Limits.Processes + 1 {
		c, err := p.holding(&syscall.SysProcAttr{})
		if err != nil {
			return refused(err)
		}
		children = append(children, c)
		if tasks := threadsOf(children); tasks > p.t.Limits.Processes {
			return did("%d tasks live", tasks)
		}
	}
	return did("%d processes live", len(children))
}

func threadsOf(children []*holder) (n int) {
	for _, c := range children {
		status, _ := readStart("/proc/" + strconv.Itoa(c.process.Pid) + "/status")
		threads := 1 // what cannot be read is one at least
		for line := range strings.Lines(status) {
			if f := strings.Fields(line); len(f) == 2 && f[0] == "Threads:" {
				threads, _ = strconv.Atoi(f[1])
			}
		}
		n += threads
	}
	return n
}

// holder is a child that stays.
type holder struct {
	process *os.Process
	output  *os.File
}

func (h *holder) end() {
	_ = h.process.Kill()
	_, _ = h.process.Wait()
	_ = h.output.Close()
}

// holding starts a child that stays, and returns when it does. The child also
// holds the run's output.
func (p *intruder) holding(attr *syscall.SysProcAttr) (*holder, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	process, err := os.StartProcess("/proc/self/exe", p.args(partHold), &os.ProcAttr{Env: []string{childEnv, marker(p.t.Token)}, Files: []*os.File{nil, w, nil, os.Stdout}, Sys: attr})
	_ = w.Close()
	if err != nil {
		_ = r.Close()
		return nil, err
	}
	h := &holder{process, r}
	if _, err := bufio.NewReader(r).ReadString('\n'); err != nil {
		h.end()
		return nil, fmt.Errorf("the child did not live: %w", err)
	}
	return h, nil
}

// longest is when a process of the battery ends by itself, should all else fail.
const longest = time.Minute

// hold stays, whatever asks it to end but the kernel.
func hold(p *intruder) int {
	signal.Ignore(unix.SIGTERM, unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGPIPE)
	_, _ = fmt.Fprintln(p.print, "holding")
	timer := time.NewTimer(longest)
	<-timer.C
	return 0
}

// stay starts processes that left the session and stay, tells, and stays too.
func stay(p *intruder, ctx context.Context) int {
	for range stayers {
		if _, err := p.holding(&syscall.SysProcAttr{Setsid: true}); err != nil {
			_, _ = fmt.Fprintln(p.print, "no child:", err)
			return 1
		}
	}
	return hold(p)
}

// stayers is how many processes the run has that is killed.
const stayers = 3

// suffer is a target outside: it tells of every signal, and ends with its input.
func suffer(p *intruder, stdin io.Reader) int {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, unix.SIGUSR1)
	go func() {
		for range signals {
			_, _ = fmt.Fprintln(p.print, "signalled")
		}
	}()
	_, _ = fmt.Fprintln(p.print, "ready")
	_, _ = io.Copy(io.Discard, stdin)
	return 0
}

// survivorTrials are about what lives on. All but the first are judged by what
// the stage saw after the run.
func survivorTrials() []trial {
	return []trial{
		{Attempt: named("cut-the-tie", "Cut the tie by which the run ends with the bot."), try: func(p *intruder) said {
			// The tie is the first thread's. Whether any thread can change its own shows the same.
			_ = unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0)
			at := p.blank(8)
			if err := unix.Prctl(unix.PR_GET_PDEATHSIG, at, 0, 0, 0); err != nil {
				return refused(err)
			}
			if p.at(at, 1) != "\x00" {
				_ = unix.Prctl(unix.PR_SET_PDEATHSIG, 0, 0, 0, 0)
				return did("the tie can be changed")
			}
			return said{Why: "the tie holds"}
		}},
		{Attempt: named("after-the-end", "Leave a process that left its session and ignores every request to end."), target: "survivors", try: func(p *intruder) said {
			if _, err := p.holding(&syscall.SysProcAttr{Setsid: true}); err != nil {
				return void("start a child: %v", err)
			}
			return got("")
		}, judge: func(s *stage, _ said) (bool, string) {
			return s.outlived, "a process lived on after the end of the run"
		}},
		{Attempt: named("held-output", "Hold the output open after the end, so that nobody knows that it ended."), try: func(*intruder) said { return got("") },
			judge: func(s *stage, _ said) (bool, string) { return s.heldOutput, "the output stayed open" }},
		{Attempt: named("killed", "Live on after the whole run was killed."), alone: true, judge: func(s *stage, _ said) (bool, string) {
			return s.survived, "a process lived on after the run was killed"
		}},
	}
}
