// Package house runs the built bot as a person would: with files, a home and an
// environment of the test's own, and nothing of the test's process.
package house

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"parlour/bridge/ask"
)

// House is one operator's machine: a home, manifests and a state folder.
type House struct {
	t   testing.TB
	Dir string
	Env []string // whole environment of the bot
	// Around names the kind of host that the bot runs on: Container, say. Empty is this one.
	Around string
}

// New makes an empty house.
func New(t testing.TB) *House {
	t.Helper()
	dir := t.TempDir()
	h := &House{t: t, Dir: dir}
	for _, d := range []string{"home", "state", "manifests/tiers", "manifests/runners"} {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, d), 0o700))
	}
	h.Env = []string{"HOME=" + h.Path("home"), "PATH=/usr/bin:/bin", "XDG_STATE_HOME=" + h.Path("state")}
	return h
}

// OpenTemp gives the bot a temporary folder that every user can enter, as a
// host's is, and gives its path. That of a test is private.
func (h *House) OpenTemp(t testing.TB) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "house-")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	require.NoError(t, os.Chmod(folder, 0o755))
	h.Env = append(h.Env, "TMPDIR="+folder)
	return folder
}

// Path gives a path in the house.
func (h *House) Path(parts ...string) string {
	return filepath.Join(append([]string{h.Dir}, parts...)...)
}

// Write puts a file into the house, readable and writable by its owner.
func (h *House) Write(name, text string) string {
	h.t.Helper()
	path := h.Path(name)
	require.NoError(h.t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(h.t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// Program puts an executable script into the house.
func (h *House) Program(name, script string) string {
	h.t.Helper()
	path := h.Write(name, script)
	require.NoError(h.t, os.Chmod(path, 0o755))
	return path
}

// Result is what a command did.
type Result struct {
	Code     int
	Out, Err string
}

// Ended reads the output of `ask --json`.
func (r Result) Ended(t testing.TB) ask.Ended {
	t.Helper()
	var ended ask.Ended
	require.NoError(t, json.Unmarshal([]byte(r.Out), &ended), "out %q, err %q", r.Out, r.Err)
	return ended
}

// Command prepares the bot with arguments. Its stdin is empty.
func (h *House) Command(args ...string) *exec.Cmd {
	h.t.Helper()
	cmd := exec.Command(Bot(h.t), args...)
	cmd.Env = append([]string{}, h.Env...)
	cmd.Dir = h.Dir
	if h.Around == "" {
		return cmd
	}
	cmd, err := inside(cmd, h.Around)
	require.NoError(h.t, err)
	return cmd
}

// Bot runs the bot to its end.
func (h *House) Bot(args ...string) Result {
	h.t.Helper()
	return Run(h.t, h.Command(args...))
}

// Ask asks as guest with the house's own manifests and gives the outcome.
func (h *House) Ask(question string, flags ...string) ask.Ended {
	h.t.Helper()
	args := slices.Concat([]string{"ask", "--json", "--manifests", h.Path("manifests")}, flags, []string{"--", question})
	return h.Bot(args...).Ended(h.t)
}

// Log gives the events of the house's own journal.
func (h *House) Log() []ask.Event {
	h.t.Helper()
	got := h.Bot("events", "--json", "--limit", "1000")
	require.Equal(h.t, 0, got.Code, got.Err)
	events := []ask.Event{}
	decoder := json.NewDecoder(strings.NewReader(got.Out))
	for decoder.More() {
		var e ask.Event
		require.NoError(h.t, decoder.Decode(&e))
		events = append(events, e)
	}
	return events
}

// Run runs a command to its end.
func Run(t testing.TB, cmd *exec.Cmd) Result {
	t.Helper()
	var out, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaint
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		require.NoError(t, err)
	}
	return Result{Code: cmd.ProcessState.ExitCode(), Out: out.String(), Err: complaint.String()}
}

// Bot gives the path of the built bot: the one that PARLOUR_TEST_BOT names, or
// one that is built once for the test process.
func Bot(t testing.TB) string {
	t.Helper()
	if path := os.Getenv("PARLOUR_TEST_BOT"); path != "" {
		return path
	}
	path, err := build()
	require.NoError(t, err)
	return path
}

var build = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "parlour-bot-")
	if err != nil {
		return "", err
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		return "", err
	}
	path := filepath.Join(dir, "bot")
	cmd := exec.Command("go", "build", "-buildvcs=false", "-o", path, "parlour/cmd/bot")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", errors.New(string(out))
	}
	return path, nil
})
