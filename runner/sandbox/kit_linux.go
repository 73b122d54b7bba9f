//go:build amd64 || arm64

package sandbox

import (
	"errors"
	"net"
	"os"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"parlour/runner/sandbox/entry"
)

// kit is what is opened for one start.
type kit struct {
	stdin, childStatus *os.File
	out                *output
	more               []*os.File // what else the child takes; where it is executed, its descriptors from entry.StepsFD on
	leash              *os.File   // the bot's end
	status             *net.UnixConn
	talk               talk

	program *entry.Program // of a child that is a clone of the bot
	begin   func() (pid int, err error)
}

func newKit(program string, self func() (int, error), l launch) (*kit, error) {
	k := &kit{talk: talk{who: insider{descriptor: -1}}}
	var err error
	if k.stdin, err = finite(l.cmd.Stdin); err != nil {
		return nil, &StartError{"check stdin", err}
	}
	if k.out, err = newOutput(); err != nil {
		k.close()
		return nil, &StartError{"open the output", err}
	}
	if k.status, k.childStatus, err = pair(); err != nil {
		k.close()
		return nil, &StartError{"make the status socket", err}
	}
	switch l.ties {
	case byNamespace, byGroup:
		err = k.clone(l, self)
	case byKeeper, byMaker:
		err = k.exec(program, l)
	}
	if err != nil {
		k.close()
		return nil, err
	}
	return k, nil
}

// clone makes the child of the bot itself: a process that shares its memory for
// as long as it performs the steps, so nothing is copied and no program is
// loaded before the run's own.
func (k *kit) clone(l launch, self func() (int, error)) error {
	bot, err := self()
	if err != nil {
		return &StartError{"look at the bot", err}
	}
	hard, err := hardLimits(l.steps)
	if err != nil {
		return &StartError{"look at the limits", err}
	}
	status := int(k.childStatus.Fd())
	begin := entry.Newborn{
		Stdio:   [3]int{int(k.stdin.Fd()), int(k.out.child[0].Fd()), int(k.out.child[1].Fd())},
		Keep:    []int{status, bot},
		Session: l.ties != byGroup, Group: l.ties == byGroup,
	}
	slices.Sort(begin.Keep)
	if l.group != nil {
		for _, f := range l.group.joins {
			begin.Groups = append(begin.Groups, int(f.Fd()))
		}
		k.more = l.group.joins
	}
	if l.spaces&unix.CLONE_NEWUSER != 0 {
		begin.UID = itoa(insideUID) + " " + itoa(int64(os.Geteuid())) + " 1"
		begin.GID = itoa(insideUID) + " " + itoa(int64(os.Getegid())) + " 1"
	}
	program, ok := entry.Compile(&begin, l.steps, entry.Frame{Status: status, Parent: bot, Hard: hard})
	if !ok {
		return errMalformed
	}
	k.program, k.begin = program, func() (int, error) { return program.Start(l.spaces) }
	return nil
}

var errMalformed = &StartError{"write the steps", errors.New("a step is malformed")}

// openSelf gives a descriptor of the bot's own process, by which a child sees
// whether it still lives.
func openSelf() (int, error) { return unix.PidfdOpen(os.Getpid(), 0) }

// hardLimits reads those of the bot that the steps could raise.
func hardLimits(steps []entry.Step) (map[int64]uint64, error) {
	hard := map[int64]uint64{}
	for _, s := range steps {
		if s.Op != entry.Rlimit {
			continue
		}
		var now unix.Rlimit
		if err := unix.Getrlimit(int(s.N[0]), &now); err != nil {
			return nil, err
		}
		hard[s.N[0]] = now.Max
	}
	return hard, nil
}

// exec makes the child of the bot's program, started anew by a maker or to leave
// a keeper behind.
func (k *kit) exec(program string, l launch) error {
	encoded, ok := entry.Encode(l.steps)
	if !ok {
		return errMalformed
	}
	steps, err := sealed("parlour-steps", encoded)
	if err != nil {
		return &StartError{"write the steps", err}
	}
	k.more = []*os.File{steps, k.childStatus}
	if err := k.furnish(program, l); err != nil {
		return err
	}
	path, argv := program, []string{entry.Name}
	if l.by.path != "" {
		path, argv = l.by.path, l.by.argv
	}
	files := append([]*os.File{k.stdin, k.out.child[0], k.out.child[1]}, k.more...)
	// The environment only spares the Go runtime threads and a look at the
	// cgroups; the program's environment is part of the last step.
	attr := &os.ProcAttr{Dir: "/", Env: []string{"GOMAXPROCS=1", "GODEBUG=containermaxprocs=0"}, Files: files, Sys: &syscall.SysProcAttr{Setsid: true}}
	k.begin = func() (int, error) {
		p, err := os.StartProcess(path, argv, attr)
		if err != nil {
			return 0, err
		}
		pid := p.Pid
		return pid, p.Release()
	}
	return nil
}

// furnish opens what the rung needs besides.
func (k *kit) furnish(program string, l launch) error {
	if l.ties == byKeeper {
		ours, theirs, err := socketpair()
		if err != nil {
			return &StartError{"make the leash", err}
		}
		k.leash, k.more = ours, append(k.more, theirs)
	}
	if l.by.path == "" {
		return nil
	}
	self, err := os.Open(program)
	if err != nil {
		return &StartError{"open the bot's own program", err}
	}
	k.more = append(k.more, self)
	for _, text := range l.by.data {
		f, err := sealed("parlour-file", []byte(text))
		if err != nil {
			return &StartError{"write the files of the view", err}
		}
		k.more = append(k.more, f)
	}
	return nil
}

// handshake listens until the child has become the program. A clone that ended
// itself has left why in the memory that it shared.
func (k *kit) handshake() error {
	err := k.talk.hear(k.status, 0)
	if err == nil {
		err = k.talk.outcome()
	}
	if k.program != nil {
		if step, why, failed := k.program.Failed(); failed {
			err = &StartError{step, why}
		}
	}
	if err != nil {
		k.talk.drop()
	}
	return err
}

// spareTime bounds the making of a box that nobody waits for yet.
const spareTime = 10 * time.Second

// await listens until the child waits for its word.
func (k *kit) await() error {
	if err := k.status.SetReadDeadline(time.Now().Add(spareTime)); err != nil {
		return &StartError{"listen to the child", err}
	}
	defer func() { _ = k.status.SetReadDeadline(time.Time{}) }()
	err := k.talk.hear(k.status, entry.Waiting)
	if step, why, failed := k.program.Failed(); failed {
		err = &StartError{step, why}
	}
	if err == nil && !k.talk.waits() {
		err = &StartError{"start", errors.New("the child died before it was ready")}
	}
	if err != nil {
		k.talk.drop()
	}
	return err
}

// handOver closes what the child has its own copies of.
func (k *kit) handOver() {
	files := append([]*os.File{k.stdin, k.childStatus}, k.more...)
	if k.out != nil {
		files = append(files, k.out.child[:]...)
	}
	for _, f := range files {
		if f != nil {
			_ = f.Close() // twice is harmless
		}
	}
}

func (k *kit) close() {
	k.handOver()
	if k.leash != nil {
		_ = k.leash.Close()
	}
	if k.status != nil {
		_ = k.status.Close()
	}
}
