// Package entry is the child's side of the sandbox: it performs a list of steps
// that the parent has planned, one system call after another, and then becomes
// the agent's program.
//
// Steps are compiled into flat system calls, and a few lines of assembly make
// them: the machine. There are two ways to it. Program.Start clones the process
// into a child that shares its memory and makes the calls there, so nothing is
// copied and no program is loaded before the run's own. And a program that links
// this package is also its own sandbox child: started under the name in Name, its
// init reads the steps from StepsFD and performs them one by one; the rest of the
// program never runs. That way is for a child that another program starts, and
// for one that first leaves a keeper behind, which ends all of the run's
// processes where no namespace does. Under any other name init returns at once.
// The package imports only syscall and unsafe, so that its init runs before those
// of the large packages.
//
// It refuses to decide anything: what to mount, allow or drop is the plan's
// business. It never skips a step and never goes on after a call that failed, or
// that had another result than it must have: the child ends with ExitCode, and
// the parent knows which step and why, from the memory that both share or from
// StatusFD. On systems other than Linux on amd64 and arm64 the package holds only
// the list of steps.
package entry

// Name is the argv[0] under which a program is the sandbox child.
const Name = "parlour-sandbox-child"

// The child's descriptors besides 0, 1 and 2. All are closed by exec.
const (
	StepsFD  = 3 // a sealed file that holds the encoded steps
	StatusFD = 4 // a stream socket: the listener, a failure, or Ready go out on it
	LeashFD  = 5 // for Keep: a stream socket whose other end the parent holds while the run may live
	SelfFD   = 5 // under bubblewrap: the program's own file, which is in no view
)

// SelfPath is the path by which bubblewrap starts the child. The one argument
// after it is Name.
const SelfPath = "/proc/self/fd/5"

// ExitCode is the child's exit status when a step failed.
const ExitCode = 125

// The first byte of each message on StatusFD.
const (
	Passing = 'L' // one byte; the listening socket is attached
	Waiting = 'W' // one byte; the child goes on when it gets one
	Ready   = 'X' // one byte; every step is done and exec comes next
	Failed  = 'E' // followed by the step, a NUL, the errno in decimal (0: none), a NUL and a text
)
