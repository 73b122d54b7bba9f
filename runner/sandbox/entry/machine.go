//go:build linux && (amd64 || arm64)

package entry

import (
	"syscall"
	"unsafe"
)

// clone starts a process that shares the caller's memory and makes the calls. It
// gives the process id, or a negative error number. The child runs on the stack
// that ends at the address, touches nothing of Go, and ends its process at the
// first call that goes wrong. Its thread must take no signal meanwhile: a handler
// of Go's would run in the child.
//
//go:noescape
func clone(flags, stack uintptr, first *call, count uintptr, f *fault) uintptr

// perform makes the calls in this process. It returns at the first that goes
// wrong, or behind the last one.
//
//go:noescape
func perform(first *call, count uintptr, f *fault)

// stackSize is more than the child uses: the kernel puts nothing there either,
// because no signal has a handler.
const stackSize = 512

const (
	sigBlock   = 0
	sigSetMask = 2
	sigsetSize = 8
)

// Start clones the process into a child that performs the program in the new
// namespaces that flags name. The child ends with the calling thread, so the
// caller holds it until the child has ended.
func (p *Program) Start(flags uintptr) (pid int, err error) {
	stack := p.room(stackSize)
	all, before := ^uint64(0), uint64(0)
	if err := signalMask(sigBlock, &all, &before); err != nil {
		return 0, err
	}
	flags |= syscall.CLONE_VM | uintptr(syscall.SIGCHLD)
	got := int(clone(flags, (address(stack)+stackSize)&^15, unsafe.SliceData(p.calls), uintptr(len(p.calls)), &p.fault))
	if err := signalMask(sigSetMask, &before, nil); err != nil {
		return 0, err
	}
	if got < 0 {
		return 0, syscall.Errno(-got)
	}
	return got, nil
}

func signalMask(how uintptr, set, before *uint64) error {
	_, _, errno := syscall.RawSyscall6(syscall.SYS_RT_SIGPROCMASK, how,
		uintptr(unsafe.Pointer(set)), uintptr(unsafe.Pointer(before)), sigsetSize, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}
