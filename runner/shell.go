package runner

import "strings"

// ShellLine gives a preview as one line for a POSIX shell, for people: the same
// program, arguments and environment, and a standard input that is closed. It
// is made from the very arguments that Run passes without any shell, and run by
// itself it has no sandbox. Guarded by FuzzShellLine.
func ShellLine(p Preview) string {
	words := []string{"env", "-i"}
	for _, pair := range p.Pairs {
		words = append(words, quote(pair))
	}
	for _, arg := range p.Argv {
		words = append(words, quote(arg))
	}
	return strings.Join(words, " ") + " </dev/null"
}

// quote makes one word for a POSIX shell. Plain words stay readable.
func quote(s string) string {
	plain := s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=,+@%") == ""
	if plain {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
