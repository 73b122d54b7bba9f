//go:build linux

package attacks_test

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"parlour/bridge/ask"
	"parlour/runner/policy"
	"parlour/tests/house"
)

// container turns this process into one of a default container, in which no
// namespace can be made and nothing can be mounted, and becomes the program
// that its arguments name.
func container(args []string) int {
	runtime.LockOSThread()
	filter := []unix.SockFilter{{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}}
	for _, nr := range []uint32{unix.SYS_UNSHARE, unix.SYS_SETNS, unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_OPEN_TREE, unix.SYS_FSOPEN} {
		filter = append(filter,
			unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 1, K: nr},
			unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)})
	}
	const spaces = unix.CLONE_NEWNS | unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS
	filter = append(filter,
		unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 1, K: unix.SYS_CLONE3},
		unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)},
		unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 3, K: unix.SYS_CLONE},
		unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 16},
		unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K, Jf: 1, K: spaces},
		unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)},
		unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW})
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
	if err == nil {
		err = unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&program)), 0, 0)
	}
	if err == nil {
		err = syscall.Exec(args[0], args, os.Environ())
	}
	fmt.Fprintln(os.Stderr, errors.Join(errors.New("become a container"), err))
	return 1
}

// inContainer runs the bot in a container that permits no sandbox.
func inContainer(t *testing.T, h *house.House, args ...string) house.Result {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := h.Command(args...)
	cmd.Args = append([]string{"container", cmd.Path}, args...)
	cmd.Path = self
	return house.Run(t, cmd)
}

func TestNothingButTheHandbookRunsWithoutASandbox(t *testing.T) {
	h := house.New(t)
	got := inContainer(t, h, "ask", "Who may edit a tier manifest?")
	require.Equal(t, 0, got.Code, got.Err)
	require.Contains(t, got.Out, "handbook/operator.md › ")
	require.Contains(t, got.Out, "sandbox off · "+policy.Unsandboxed)

	got = inContainer(t, h, "guardrail", "--tier", "guest")
	require.Equal(t, 0, got.Code, got.Err)
	require.Contains(t, got.Out, "Files: read-only. Not sandboxed on this host: built-in handbook only.")
	require.NotContains(t, got.Out, "not in your view", "nothing is promised that is not held")

	// Any other program is refused with the reason and the cure, and not started.
	marker := h.Path("started")
	h.Install(house.StandIn{Name: "standin", Binary: h.Program("bin/standin", "#!/bin/sh\ntouch "+marker+"\necho answer\n")})
	got = inContainer(t, h, "ask", "--manifests", h.Path("manifests"), "q")
	require.Equal(t, 3, got.Code, got.Err)
	require.Contains(t, got.Out, ask.Sentence(ask.NoSandbox))
	require.Contains(t, got.Out, "refused · tier guest · runner standin (unproven)")
	require.Contains(t, got.Out, "this host cannot enforce filesystem, network, processes: ")
	require.Contains(t, got.Out, "cure: ")
	require.NoFileExists(t, marker)

	// It is not passed over for the handbook either: that would hide the fault.
	h.Guest("[standin, docs]")
	got = inContainer(t, h, "ask", "--manifests", h.Path("manifests"), "Who may edit a tier manifest?")
	require.Equal(t, 3, got.Code, got.Out)
	require.NoFileExists(t, marker)

	// The same on this host as it is: it runs, in the box, where the marker is out of reach.
	ended := h.Ask("q")
	require.Equal(t, ask.Answered, ended.Outcome.Kind, "%+v", ended)
	require.NoFileExists(t, marker)
}
