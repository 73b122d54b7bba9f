// Package policy holds the one value that both builds a run's sandbox and is
// printed to the agent inside it.
//
// A Wish is what a tier asks for, Capabilities are what this host can enforce,
// and Narrow turns the two into an Effective or refuses. Only Narrow and
// BuiltInDocs make an Effective, its fields are unexported, and it is never
// changed afterwards. The package does no I/O, imports nothing of ours, and
// never weakens a clause silently: what cannot be enforced is refused, and what
// is lowered is said in Notes.
package policy

import "fmt"

// Mode is how far a run's file effects may reach. The zero Mode permits no run.
type Mode int8

// The modes, from no run at all to the whole host.
const (
	ModeNone         Mode = iota
	ReadOnly              // nothing but scratch folders can be written
	WorkspaceWrite        // the working folder can be written too
	DangerFullAccess      // no file boundary; needs arming from a terminal
)

var modeNames = [...]string{"none", "read-only", "workspace-write", "danger-full-access"}

// String gives the field's term for the mode.
func (m Mode) String() string { return name(modeNames[:], int(m)) }

// ParseMode reads one of read-only, workspace-write, danger-full-access.
func ParseMode(s string) (Mode, error) {
	i, err := parse("mode", modeNames[1:], s)
	return Mode(i + 1), err
}

// Network is what a run can reach. The zero Network reaches nothing.
type Network int8

// The networks.
const (
	NetworkNone Network = iota // no address answers
	ModelOnly                  // one loopback address: the broker that holds the model key
)

var networkNames = [...]string{"none", "model-only"}

// String gives the manifest's word for the network.
func (n Network) String() string { return name(networkNames[:], int(n)) }

// ParseNetwork reads model-only or none.
func ParseNetwork(s string) (Network, error) {
	i, err := parse("network", networkNames[:], s)
	return Network(i), err
}

// Clause is one boundary that a policy can require of the host.
type Clause int8

// The clauses, in the order in which they are printed.
const (
	Filesystem Clause = iota
	NetworkReach
	Processes
)

var clauseNames = [...]string{"filesystem", "network", "processes"}

// String gives the manifest's word for the clause.
func (c Clause) String() string { return name(clauseNames[:], int(c)) }

// ParseClause reads filesystem, network or processes.
func ParseClause(s string) (Clause, error) {
	i, err := parse("clause", clauseNames[:], s)
	return Clause(i), err
}

// Clauses lists every clause; a Wish that names none requires all of them.
func Clauses() []Clause { return []Clause{Filesystem, NetworkReach, Processes} }

// Level says how well the host enforces something. The zero Level is not at all.
type Level int8

// The levels.
const (
	None     Level = iota // nothing enforces it
	Soft                  // it holds in part: per process, or with a named gap
	Enforced              // the kernel or the bot enforces it
)

var levelNames = [...]string{"none", "soft", "enforced"}

// String gives the word that text and receipts use.
func (l Level) String() string { return name(levelNames[:], int(l)) }

// Tool is one ability that an agent may be offered.
type Tool string

// The tools. An absent tool is removed by the CLI's flags and on the wire.
const (
	Read   Tool = "read"
	Search Tool = "search"
)

// ParseTool reads read or search.
func ParseTool(s string) (Tool, error) {
	names := []string{string(Read), string(Search)}
	i, err := parse("tool", names, s)
	if err != nil {
		return "", err
	}
	return Tool(names[i]), nil
}

// Rung is a way of building a sandbox. The zero Rung builds none.
type Rung int8

// The rungs, from none to the strongest.
const (
	RungNone     Rung = iota
	RungPlain         // a plain child, for the built-in handbook only
	RungLandlock      // the host's own view and network behind Landlock and seccomp, for containers
	RungBwrap         // as RungFull, but bubblewrap makes the namespaces and the view
	RungFull          // own namespaces, own view, seccomp, and Landlock where present
)

var rungNames = [...]string{"none", "off", "landlock", "bwrap", "full"}

// Rungs lists the sandboxes, the strongest first.
func Rungs() []Rung { return []Rung{RungFull, RungBwrap, RungLandlock} }

// ParseRung reads the name of a sandbox: full, bwrap or landlock.
func ParseRung(s string) (Rung, error) {
	i, err := parse("rung", rungNames[RungLandlock:], s)
	return RungLandlock + Rung(i), err
}

// String gives the rung's name as receipts print it.
func (r Rung) String() string { return name(rungNames[:], int(r)) }

func name(names []string, i int) string {
	if i < 0 || i >= len(names) {
		return "unknown"
	}
	return names[i]
}

func parse(what string, names []string, s string) (int, error) {
	for i, n := range names {
		if n == s {
			return i, nil
		}
	}
	return 0, &UnknownWordError{What: what, Got: s, Known: names}
}

// UnknownWordError names a word that policy does not know and those that it does.
type UnknownWordError struct {
	What, Got string
	Known     []string
}

// Error gives the word and the known ones in one line.
func (e *UnknownWordError) Error() string {
	return fmt.Sprintf("unknown %s %q (known: %s)", e.What, e.Got, list(e.Known))
}
