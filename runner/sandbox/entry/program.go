//go:build linux && (amd64 || arm64)

package entry

import (
	"syscall"
	"unsafe"
)

// call is one system call as the child makes it: words without a Go pointer,
// because a clone of the bot has no Go runtime of its own. The machines read it
// by its offsets.
type call struct {
	nr    uintptr
	args  [6]uintptr
	load  uintptr // bit n: args[n] is the address of an int32 that is the argument
	store uintptr // address of an int32 that takes the result; 0: it is dropped
	allow uintptr // bit 0: success; bit n: the error n
	want  uintptr // the one result that is success, or anyResult
	skip  uintptr // how many calls an allowed error leaves out
}

// anyResult accepts every result that is no error.
const anyResult = ^uintptr(0)

// fault is the call at which a machine stopped.
type fault struct {
	at    uintptr // its address; that behind the last call where all were made
	errno uintptr // 0: it had a result that it must not have
	stay  uintptr // not 0: the machine returns instead of ending its process
}

// Program is a compiled list of steps. It must be kept alive until the child has
// become the agent's program or is gone, because the child reads its memory.
type Program struct {
	memory
	calls []call
	owner []int // of each call, its step
	steps []Step
	fault fault
	exec  int // the call of the Exec step
}

// Become says with which arguments and environment the program starts. For a
// child that waits it may be called again, before the word that it waits for.
func (p *Program) Become(argv, env []string) {
	c := &p.calls[p.exec]
	c.args[1], c.args[2] = p.list(argv), p.list(env)
}

// add appends a call of the last step. It must succeed, with any result.
func (p *Program) add(nr uintptr, args ...uintptr) *call {
	c := call{nr: nr, allow: 1, want: anyResult}
	copy(c.args[:], args)
	p.calls = append(p.calls, c)
	p.owner = append(p.owner, len(p.steps)-1)
	return &p.calls[len(p.calls)-1]
}

// on makes the first argument the descriptor in a cell.
func (c *call) on(cell uintptr) *call {
	c.args[0], c.load = cell, 1
	return c
}

// giving stores the result in a cell.
func (c *call) giving(cell uintptr) *call {
	c.store = cell
	return c
}

// exactly accepts one result only.
func (c *call) exactly(result uintptr) *call {
	c.want = result
	return c
}

// or accepts these errors as well.
func (c *call) or(errors ...syscall.Errno) *call {
	for _, e := range errors {
		c.allow |= 1 << e
	}
	return c
}

// refused accepts nothing but a refusal. An error that does not mean "refused",
// such as a bad address, counts as a hole: the call was looked at.
func (c *call) refused() {
	c.allow = 0
	c.or(syscall.EPERM, syscall.EACCES, syscall.EROFS, syscall.ENOSYS)
}

// performFrom makes the calls from the one at index first on in this process, and
// gives the error of the one that went wrong.
func (p *Program) performFrom(first int) (step string, err error) {
	if first == len(p.calls) {
		return "", nil
	}
	p.fault = fault{stay: 1}
	perform(&p.calls[first], uintptr(len(p.calls)-first), &p.fault)
	if p.fault.at == p.end() {
		return "", nil
	}
	step, err, _ = p.Failed()
	return step, err
}

// end is the address behind the last call.
func (p *Program) end() uintptr {
	return uintptr(unsafe.Pointer(unsafe.SliceData(p.calls))) + uintptr(len(p.calls))*unsafe.Sizeof(call{})
}

// Failed says at which step the child ended itself, and why. It is asked when
// the child can make no call any more.
func (p *Program) Failed() (step string, err error, failed bool) {
	if p.fault.at == 0 {
		return "", nil, false
	}
	i := (p.fault.at - uintptr(unsafe.Pointer(unsafe.SliceData(p.calls)))) / unsafe.Sizeof(call{})
	if i >= uintptr(len(p.calls)) {
		return "end", refusal("the last step did not start a program"), true
	}
	errno := syscall.Errno(p.fault.errno)
	if p.owner[i] < 0 {
		return "become a process of its own", errno, true
	}
	s := p.steps[p.owner[i]]
	switch {
	case errno == 0 && s.Op == Blank:
		return s.String(), refusal("it shows something"), true
	case errno == 0 && s.Op == Watch:
		return s.String(), refusal("the parent is gone"), true
	case errno == 0 && s.Op == Denied:
		return s.String(), refusal("it worked"), true
	case errno == 0:
		return s.String(), refusal("it did not have the one result that it must have"), true
	case s.Op == Denied:
		return s.String(), refusal("it was not refused: " + errno.Error()), true
	}
	return s.String(), errno, true
}

// refusal is a failure that is not a system call's.
type refusal string

func (r refusal) Error() string { return string(r) }
