package manifests

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// Fault is one thing that is wrong in one file.
type Fault struct {
	File   string
	Line   int    // 0: the fault is about the whole file or folder
	Column int    // in characters from 1 on; 0: the line is all that is known
	What   string // what is there
	Right  string // what would be right
}

// String gives the fault in one line, as compilers print theirs.
func (f Fault) String() string {
	return fmt.Sprintf("%s: %s; right: %s", spot{f.Line, f.Column}.in(f.File), f.What, f.Right)
}

// spot is a place in a file.
type spot struct{ line, column int }

func spotOf(n *yaml.Node) spot { return spot{n.Line, n.Column} }

// String gives the place as far as it is known.
func (s spot) String() string {
	if s.column > 0 {
		return fmt.Sprintf("%d:%d", s.line, s.column)
	}
	return strconv.Itoa(s.line)
}

// in gives the place as editors and terminals understand it.
func (s spot) in(file string) string {
	if s.line > 0 {
		return file + ":" + s.String()
	}
	return file
}

// Faults are all faults of all files, sorted by place. It is the error of Load
// and Check.
type Faults []Fault

// Error gives one line for each fault.
func (f Faults) Error() string {
	lines := make([]string, len(f))
	for i, fault := range f {
		lines[i] = fault.String()
	}
	return strings.Join(lines, "\n")
}

// sorted gives the faults by file, line and column, each once.
func (f Faults) sorted() Faults {
	out := slices.Clone(f)
	slices.SortFunc(out, func(a, b Fault) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column),
			cmp.Compare(a.What, b.What), cmp.Compare(a.Right, b.Right))
	})
	return slices.Compact(out)
}

// mostShown is how much of a value a fault repeats.
const mostShown = 40

// show quotes a value for a fault: in ASCII, so that what cannot be seen is
// named by its code point, and short. A value that looks like a secret that was
// pasted into the wrong field is not repeated.
// Guarded by TestFaultsRepeatNoSecret.
func show(s string) string {
	for _, prefix := range []string{"xoxb-", "xoxp-", "xapp-", "sk-", "AIza", "ghp_", "github_pat_"} {
		if strings.HasPrefix(s, prefix) {
			return strconv.Quote(prefix+"…") + " (not shown: it looks like a secret)"
		}
	}
	if utf8.RuneCountInString(s) > mostShown {
		return strconv.QuoteToASCII(string([]rune(s)[:mostShown])) + " (shortened)"
	}
	return strconv.QuoteToASCII(s)
}

// ShowPath quotes a path for a person, and not its end where that looks like a
// secret that was pasted into the wrong place.
func ShowPath(p string) string {
	if base := show(filepath.Base(p)); strings.Contains(base, "not shown") {
		return base
	}
	return p
}

// invisible names the code points of a value that are not plain printable ASCII.
func invisible(s string) string {
	var names []string
	for _, c := range s {
		name := fmt.Sprintf("U+%04X", c)
		if (c <= ' ' || c > '~') && !slices.Contains(names, name) && len(names) < 8 {
			names = append(names, name)
		}
	}
	return strings.Join(names, " ")
}
