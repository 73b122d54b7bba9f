package runner

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzShellLine has a real shell take the line apart: it must come to exactly
// the arguments and variables from which it was made.
func FuzzShellLine(f *testing.F) {
	shell, err := exec.LookPath("sh")
	if err != nil {
		f.Skip("needs a POSIX shell")
	}
	f.Add("--", "what is it?", "A", "b c")
	f.Add("'; touch /tmp/x; '", "$(id) `id` ${HOME} \\ \n\t!", "QUOTE", "it's \"so\" $1")
	f.Add("", "-", "EMPTY", "")
	f.Add("~", "*?[a]{b,c}", "TILDE", "~root")
	f.Add("é\u202e", "a=b", "HASH", "#x")
	f.Fuzz(func(t *testing.T, first, second, name, value string) {
		if strings.ContainsRune(first+second+value, 0) || strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" || name == "" {
			t.Skip("no argument or variable of a program can hold this")
		}
		script := `printf '%s\0' "$#" "$@"; printf '%s' "$` + name + `"`
		line := ShellLine(Preview{
			Argv:  []string{shell, "-c", script, "zero", first, second},
			Pairs: []string{"PATH=/usr/bin:/bin", name + "=" + value},
		})
		if name == "PATH" {
			return
		}
		cmd := exec.Command(shell, "-c", line)
		cmd.Env = []string{"PATH=/usr/bin:/bin"}
		out, err := cmd.Output()
		require.NoError(t, err, line)
		require.Equal(t, "2\x00"+first+"\x00"+second+"\x00"+value, string(out), line)
	})
}
