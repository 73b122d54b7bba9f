package runner

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzShellLine has a real shell take the line apart: it must come to exactly
// the arguments, variables and standard input from which it was made.
func FuzzShellLine(f *testing.F) {
	shell, err := exec.LookPath("sh")
	if err != nil {
		f.Skip("needs a POSIX shell")
	}
	f.Add("--", "what is it?", "A", "b c", "")
	f.Add("'; touch /tmp/x; '", "$(id) `id` ${HOME} \\ \n\t!", "QUOTE", "it's \"so\" $1", "'; touch /tmp/x; '%s%n \\n $(id)\n\n")
	f.Add("", "-", "EMPTY", "", "-")
	f.Add("~", "*?[a]{b,c}", "TILDE", "~root", "EOF\n<<EOF\n")
	f.Add("é\u202e", "a=b", "HASH", "#x", "é\u202e\n")
	f.Fuzz(func(t *testing.T, first, second, name, value, stdin string) {
		if strings.ContainsRune(first+second+value+stdin, 0) || strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" || name == "" {
			t.Skip("no argument or variable of a program can hold this")
		}
		script := `printf '%s\0' "$#" "$@"; printf '%s\0' "$` + name + `"; exec cat`
		line := ShellLine(Preview{
			Argv:  []string{shell, "-c", script, "zero", first, second},
			Pairs: []string{"PATH=/usr/bin:/bin", name + "=" + value},
			Stdin: []byte(stdin),
		})
		if name == "PATH" {
			return
		}
		cmd := exec.Command(shell, "-c", line)
		cmd.Env = []string{"PATH=/usr/bin:/bin", "TMPDIR=" + t.TempDir()}
		cmd.Stdin = strings.NewReader("the caller's own input")
		out, err := cmd.Output()
		require.NoError(t, err, line)
		require.Equal(t, "2\x00"+first+"\x00"+second+"\x00"+value+"\x00"+stdin, string(out), line)
	})
}

// TestTheLineLeavesNoFile: the question is a file that has no name any more when
// the program reads it.
func TestTheLineLeavesNoFile(t *testing.T) {
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("needs a POSIX shell")
	}
	temp := t.TempDir()
	line := ShellLine(Preview{Argv: []string{shell, "-c", `ls -A "$0"; cat; exit 7`, temp}, Pairs: []string{"PATH=/usr/bin:/bin"}, Stdin: []byte("the question")})
	cmd := exec.Command(shell, "-c", line)
	cmd.Env = []string{"PATH=/usr/bin:/bin", "TMPDIR=" + temp}
	out, err := cmd.Output()
	require.ErrorContains(t, err, "exit status 7", "the program's own end")
	require.Equal(t, "the question", string(out), line)
}
