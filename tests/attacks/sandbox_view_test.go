//go:build linux

package attacks_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"parlour/runner/policy"
	"parlour/runner/sandbox"
)

// Scenario: the agent looks for anything of the host. The view holds what the
// plan put there, by name.
func TestViewIsExactlyThePlannedOne(t *testing.T) {
	t.Parallel()
	r := newBox(t)
	document := filepath.Join(t.TempDir(), "index.db")
	require.NoError(t, os.WriteFile(document, []byte("the document"), 0o644))
	cmd := r.command("list", "/", "/agent", "/dev", "/etc", "/home", "/home/agent", "/tmp", "/work", "/docs", "/usr/local", "/usr/src")
	cmd.Files = map[string]string{"/home/agent/.config/x.json": "{}"}
	cmd.Mounts = []sandbox.Mount{{Host: document, Inside: policy.DocsDir + "/index.db"}}
	root := []string{"agent", "dev", "docs", "etc", "home", "proc", "tmp", "work"}
	for _, name := range []string{"bin", "lib", "lib32", "lib64", "libx32", "sbin", "usr"} {
		if _, err := os.Lstat("/" + name); err == nil {
			root = append(root, name)
		}
	}
	got := map[string][]string{}
	decode(t, r.do(t, r.guest(t), cmd), &got)
	require.ElementsMatch(t, root, got["/"])
	delete(got, "/")
	want := map[string][]string{
		"/agent": {filepath.Base(r.self)}, "/etc": {"group", "hosts", "nsswitch.conf", "passwd"},
		"/dev":  {"fd", "full", "null", "random", "stderr", "stdin", "stdout", "urandom", "zero"},
		"/home": {"agent"}, "/home/agent": {".config"}, "/tmp": {}, "/work": {}, "/docs": {"index.db"},
	}
	for _, masked := range []string{"/usr/local", "/usr/src"} {
		want[masked] = got[masked]
		if _, err := os.Stat(masked); err == nil {
			want[masked] = []string{}
		}
	}
	require.Equal(t, want, got)
}

func TestMountsShowTheirContentAndStayReadOnly(t *testing.T) {
	t.Parallel()
	r := newBox(t)
	folder := t.TempDir()
	require.NoError(t, os.Chmod(folder, 0o777))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "a"), []byte("from the host"), 0o666))
	cmd := sandbox.Command{Name: "sh", Path: "/bin/sh", Env: []string{"PATH=/usr/bin:/bin"},
		Args:   []string{"-c", "cat /docs/a /usr/local/share/x/a /home/agent/f; (echo x >/docs/a) 2>/dev/null || echo kept; (echo x >/docs/b) 2>/dev/null || echo none"},
		Mounts: []sandbox.Mount{{Host: folder, Inside: "/docs"}, {Host: folder, Inside: "/usr/local/share/x"}},
		Files:  map[string]string{"/home/agent/f": " and a file\n"}}
	require.Equal(t, "from the hostfrom the host and a file\nkept\nnone\n", r.do(t, r.guest(t), cmd))
}

// Scenario: the environment of the bot holds tokens.
func TestEnvironmentIsExact(t *testing.T) {
	t.Parallel()
	r := newBox(t)
	require.Equal(t, plantedValue, os.Getenv("PARLOUR_PLANTED"))
	cmd := r.command("env")
	cmd.Env = []string{"HOME=/home/agent", "LANG=C.UTF-8"}
	got := []string{}
	decode(t, r.do(t, r.guest(t), cmd), &got)
	require.Equal(t, cmd.Env, got)
	cmd.Env = []string{}
	decode(t, r.do(t, r.guest(t), cmd), &got)
	require.Empty(t, got)
}

// Scenario: an allow-list that passes nothing ends up as nil, which in os/exec
// means everything.
func TestNilEnvironmentIsRefused(t *testing.T) {
	t.Parallel()
	r := newBox(t)
	cmd := r.command("env")
	cmd.Env = nil
	_, err := r.Start(t.Context(), r.guest(t), cmd)
	require.ErrorContains(t, err, "environment is nil")
}

// Scenario: a CLI reads standard input and would wait for ever, or reach the
// file behind it.
func TestStdinEnds(t *testing.T) {
	t.Parallel()
	r := newBox(t)
	require.Equal(t, "", report[string](t, r, r.guest(t), "stdin"))

	cmd := sandbox.Command{Name: "sh", Path: "/bin/sh", Env: []string{"PATH=/usr/bin:/bin"}, Stdin: []byte("what is it?"),
		Args: []string{"-c", "cat; (echo changed >/proc/self/fd/0) 2>/dev/null; (echo changed >&0; echo changed 1<>/proc/self/fd/0) 2>/dev/null; cat /proc/self/fd/0; readlink /proc/self/fd/0"}}
	out := r.do(t, r.guest(t), cmd)
	require.True(t, strings.HasPrefix(out, "what is it?what is it?"), out)
	require.Contains(t, out, "(deleted)", "the file has no path")

	cmd.Stdin = make([]byte, 17<<20)
	_, err := r.Start(t.Context(), r.guest(t), cmd)
	require.ErrorContains(t, err, "standard input would hold more than")
}

// Scenario: the bot logs to a file or a terminal, and hands it on as the run's
// output.
func TestOutputIsAlwaysAPipe(t *testing.T) {
	t.Parallel()
	r := newBox(t)
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	require.NoError(t, err)
	defer log.Close()
	run, err := r.Start(t.Context(), r.guest(t), sandbox.Command{Name: "sh", Path: "/bin/sh", Env: []string{"PATH=/usr/bin:/bin"},
		Args: []string{"-c", "readlink /proc/self/fd/1 /proc/self/fd/2"}, Stdout: log, Stderr: log})
	require.NoError(t, err)
	exit, err := run.Wait()
	require.NoError(t, err)
	require.Zero(t, exit.Code)
	text, err := os.ReadFile(log.Name())
	require.NoError(t, err)
	require.Regexp(t, `^pipe:\[\d+\]\npipe:\[\d+\]\n$`, string(text))
}
