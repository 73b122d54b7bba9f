package main

import (
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// leastMutants keeps the list from melting away.
const leastMutants = 200

// The list fits the source: to move a safety line, or to rename its test, means
// to look at the list again.
func TestEveryMutantFitsTheSource(t *testing.T) {
	root := filepath.Join("..", "..")
	names := map[string]bool{}
	require.GreaterOrEqual(t, len(trials()), leastMutants)
	for _, m := range trials() {
		require.False(t, names[m.name], "%q stands twice", m.name)
		names[m.name] = true
		require.NotEqual(t, m.line, m.into, m.name)
		text, err := m.source(root)
		require.NoError(t, err)
		if filepath.Ext(m.file) == ".go" {
			_, err = parser.ParseFile(token.NewFileSet(), m.file, text, parser.SkipObjectResolution)
			require.NoError(t, err, "%q: the changed file does not parse", m.name)
		}
		require.True(t, declares(t, filepath.Join(root, m.pkg), m.test), "%q: %s has no test %s", m.name, m.pkg, m.test)
	}
}

// declares says whether a folder holds a test, or a fuzz test, of the name.
func declares(t *testing.T, dir, test string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	require.NoError(t, err)
	declared := regexp.MustCompile(`(?m)^func ` + test + `\([tf] \*testing\.[TF]\)`)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		if declared.Match(text) {
			return true
		}
	}
	return false
}

func TestALineStandsExactlyOnce(t *testing.T) {
	root := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(root, "a.go"), []byte("one two two"), 0o600))
	got, err := mutant{file: "a.go", line: "one", into: "none"}.source(root)
	require.NoError(t, err)
	require.Equal(t, "none two two", got)
	for line, want := range map[string]string{"two": "stands 2 times", "three": "stands 0 times"} {
		_, err := mutant{name: "x", file: "a.go", line: line}.source(root)
		require.ErrorContains(t, err, want)
	}
	_, err = mutant{file: "b.go"}.source(root)
	require.ErrorIs(t, err, os.ErrNotExist)
}

// What is not built here is not counted as noticed.
func TestAFileOfAnotherSystemIsNotTried(t *testing.T) {
	root := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(root, "a_plan9.go"), []byte("package a\n"), 0o600))
	b := bench{root: root, work: t.TempDir()}
	verdict, err := b.try(t.Context(), trial{mutant: mutant{file: "a_plan9.go", line: "package a", into: "package b"}})
	require.NoError(t, err)
	require.Equal(t, skipped, verdict)
}

// Nothing counts as noticed but a test that ran and failed.
func TestOnlyAFailureOfTheTestIsAKill(t *testing.T) {
	red := fmt.Errorf("go test: %w", &exec.ExitError{})
	const ran = "=== RUN   TestX\n"
	for _, c := range []struct {
		said string
		err  error
		want string
	}{
		{ran + "--- FAIL: TestX (0.00s)\n", red, killed},
		{ran + "panic: test timed out after 5m0s\n", red, killed},
		{ran + "--- PASS: TestX (0.00s)\n", nil, lives},
		{ran + "--- SKIP: TestX (0.00s)\n", nil, skipped},
	} {
		got, err := judge("TestX", c.said, c.err)
		require.NoError(t, err, c.said)
		require.Equal(t, c.want, got, c.said)
	}
	for said, err := range map[string]error{
		"testing: warning: no tests to run\n": nil, "panic: in TestMain\n": red, "x [build failed]\n": red,
		"=== RUN   TestXY\n--- FAIL: TestXY\n": red, ran: errors.New("there is no go tool"),
	} {
		_, got := judge("TestX", said, err)
		require.Error(t, got, said)
	}
}
