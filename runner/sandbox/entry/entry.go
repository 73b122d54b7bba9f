// Package entry is the child's side of the sandbox: it performs a list of steps
// that the parent has planned, one system call after another, and then becomes
// the agent's program.
//
// A program that links this package is also its own sandbox child. When it is
// started under the name in Name, its init reads the steps from StepsFD,
// performs them in order and ends in exec; the rest of the program never runs.
// Where no namespace ends a run, the child first leaves a keeper behind, which
// ends all of the run's processes when the program ends or the parent lets go.
// Under any other name init returns at once. The package imports only syscall
// and unsafe, so that its init runs before those of the large packages.
//
// It refuses to decide anything: what to mount, allow or drop is the plan's
// business. It never skips a step and never goes on after one that failed: the
// child then says which step and why, on StatusFD and in one line on standard
// error, and exits with ExitCode. On systems other than Linux on amd64 and
// arm64 the package holds only the list of steps.
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
