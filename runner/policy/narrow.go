package policy

import (
	"fmt"
	"slices"
	"strings"
)

// The places inside every sandbox. They are constants so that the text, the
// plan and the probes cannot name different ones.
const (
	WorkDir  = "/work"       // the working folder: empty at the start
	HomeDir  = "/home/agent" // HOME: empty at the start
	TempDir  = "/tmp"        // TMPDIR: empty at the start
	AgentDir = "/agent"      // the runner's own program, read-only
	DocsDir  = "/docs"       // the index of the allowed documents, read-only
	// BrokerAddr is the only address that answers where the network is model-only.
	BrokerAddr = "127.0.0.1:8080"
)

// Handbook is the document set that is part of the program.
const Handbook = "handbook"

// Unsandboxed is what text and receipt say where the built-in handbook is read
// by a plain child.
const Unsandboxed = "not sandboxed on this host: built-in handbook only"

// NoView is what text and receipt say where a run has the host's files, network
// and processes around it, behind Landlock.
const NoView = "no view of its own: the run can tell which paths exist, with size and time, which processes exist, and what the host is called"

// Wish is what a tier's manifest and a runner's manifest ask for together. The
// zero Wish permits nothing and Narrow refuses it.
type Wish struct {
	Mode      Mode
	Armed     bool // DangerFullAccess was armed from a terminal
	Network   Network
	Tools     []Tool
	Documents []string
	Scratch   []string // writable folders of the runner besides HomeDir and TempDir
	Require   []Clause // empty: every clause is required
	Limits    Limits
}

// RefusedError says which required clauses the host does not enforce, why, and
// what would cure it.
type RefusedError struct {
	Missing []Clause
	Why     string
	Cure    string
}

// Error gives the clauses, the reason and the cure in one line.
func (e *RefusedError) Error() string {
	names := make([]string, len(e.Missing))
	for i, c := range e.Missing {
		names[i] = c.String()
	}
	return fmt.Sprintf("this host cannot enforce %s: %s; cure: %s", list(names), e.Why, e.Cure)
}

// Narrow gives the policy that this host will enforce for the wish, on the
// strongest rung that enforces every required clause. It refuses with a
// RefusedError where there is none, naming what the closest rung lacks, and with
// a plain error where the wish itself permits nothing. A mode that is not armed
// is lowered to read-only and noted. Guarded by tests/claims
// TestNarrowPicksTheStrongestRungThatHolds.
func Narrow(w Wish, c Capabilities) (Effective, error) {
	if w.Mode <= ModeNone || w.Mode > DangerFullAccess {
		return Effective{}, fmt.Errorf("no file mode is set: nothing may run")
	}
	if err := w.Limits.validate(); err != nil {
		return Effective{}, err
	}
	refused := &RefusedError{Missing: Clauses(), Why: orUnknown(c.Why), Cure: orUnknown(c.Cure)}
	for _, rung := range c.ladder() {
		missing := w.missing(rung)
		if len(missing) == 0 {
			return w.effective(rung), nil
		}
		if len(missing) < len(refused.Missing) {
			refused.Missing = missing
		}
	}
	return Effective{}, refused
}

// BuiltInDocs gives the policy of the bot's own reader of the handbook that is
// compiled into it, where the host cannot enforce what the tier requires: the
// strongest sandbox that there is, and a plain child where there is none. It
// reads the handbook and nothing else. Everything that the wish asks beyond that
// is dropped. Guarded by tests/claims TestPlainChildServesTheHandbookOnly and
// TestTheHandbookIsReadOnTheBestRung.
func BuiltInDocs(w Wish, c Capabilities) (Effective, error) {
	if !slices.Contains(w.Documents, Handbook) {
		return Effective{}, fmt.Errorf("the handbook is not among the tier's documents")
	}
	if err := w.Limits.validate(); err != nil {
		return Effective{}, err
	}
	bare := Wish{Mode: ReadOnly, Documents: []string{Handbook}, Limits: w.Limits}
	if rungs := c.ladder(); len(rungs) > 0 {
		return bare.effective(rungs[0]), nil
	}
	return bare.effective(Capabilities{
		Rung: RungPlain, OpenFiles: c.OpenFiles, Why: orUnknown(c.Why), Cure: orUnknown(c.Cure),
	}), nil
}

func (w Wish) missing(c Capabilities) []Clause {
	required := w.Require
	if len(required) == 0 {
		required = Clauses()
	}
	var missing []Clause
	for _, clause := range Clauses() {
		if slices.Contains(required, clause) && c.level(clause, w.Network) != Enforced {
			missing = append(missing, clause)
		}
	}
	return missing
}

func (w Wish) effective(c Capabilities) Effective {
	e := Effective{
		mode: w.Mode, network: w.Network, caps: c.alone(), limits: w.Limits,
		tools: sorted(w.Tools), documents: sorted(w.Documents),
	}
	if w.Mode == DangerFullAccess && !w.Armed {
		e.mode = ReadOnly
		e.notes = append(e.notes, "danger-full-access is not armed: this run is read-only")
	}
	e.scratch = canonical(append([]string{HomeDir, TempDir}, w.Scratch...))
	switch {
	case c.Rung == RungPlain:
		e.scratch = nil // one temporary folder of the host, whose name differs in each run
	case e.mode == WorkspaceWrite:
		e.writable = canonical(append([]string{WorkDir}, e.scratch...))
	case e.mode == DangerFullAccess:
		e.writable = []string{"/"}
	default:
		e.writable = e.scratch
	}
	switch c.Rung {
	case RungPlain:
		e.notes = append(e.notes, Unsandboxed)
	case RungLandlock:
		e.notes = append(e.notes, NoView)
	}
	if (c.Rung == RungFull || c.Rung == RungBwrap) && c.Landlock == 0 {
		e.notes = append(e.notes, "the kernel has no Landlock: the second wall is missing, and a run can read facts about the host in /proc")
	}
	return e
}

// canonical cleans the paths, drops those that are not absolute, doubled or
// inside another one, and sorts the rest.
func canonical(paths []string) []string {
	clean := []string{}
	for _, p := range paths {
		if c, ok := cleanPath(p); ok {
			clean = append(clean, c)
		}
	}
	slices.Sort(clean)
	kept := []string{}
	for _, p := range clean {
		inside := slices.ContainsFunc(kept, func(k string) bool {
			return p == k || strings.HasPrefix(p, strings.TrimSuffix(k, "/")+"/")
		})
		if !inside {
			kept = append(kept, p)
		}
	}
	return kept
}

func sorted[T ~string](in []T) []T {
	out := append([]T{}, in...)
	slices.Sort(out)
	return slices.Compact(out)
}

func orUnknown(s string) string {
	if s == "" {
		return "unknown"
	}
	return s
}
