package runner

import (
	"slices"
	"strings"
)

// ShellLine gives a preview as one line for a POSIX shell, for people: the same
// program, arguments, environment and standard input. It is made from the very
// arguments that Run passes without any shell, and run by itself it has no
// sandbox. Guarded by FuzzShellLine.
func ShellLine(p Preview) string {
	line := "env -i " + ShellWords(slices.Concat(p.Pairs, p.Argv))
	if len(p.Stdin) == 0 {
		return line + " </dev/null"
	}
	// As in a run, the question is a file that ends and that has no name any
	// more when the program starts. A pipe would be something else.
	return "(f=$(mktemp) && printf %s " + quote(string(p.Stdin)) + ` >"$f" && exec <"$f" && rm -f "$f" && exec ` + line + ")"
}

// ShellWords gives arguments as the words of one line for a POSIX shell, which
// takes it apart into exactly these arguments.
func ShellWords(argv []string) string {
	words := []string{}
	for _, arg := range argv {
		words = append(words, quote(arg))
	}
	return strings.Join(words, " ")
}

// quote makes one word for a POSIX shell. Plain words stay readable.
func quote(s string) string {
	plain := s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=,+@%") == ""
	if plain {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
