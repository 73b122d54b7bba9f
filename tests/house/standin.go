package house

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/stretchr/testify/require"
)

// StandIn describes an agent program that a test provides, driven by a runner
// file as any other program is.
type StandIn struct {
	Name     string   // of the runner, and argv[0] of the program
	Binary   string   // absolute path
	Args     []string // before the question
	EnvAllow []string
	Env      map[string]string
	Stall    string // "" or a duration
	Extra    string // more lines of the runner file
}

// Install writes the runner file, and a guest manifest whose only runner it is.
// limits are lines such as "wall: 2s"; what they leave out is as shipped.
func (h *House) Install(s StandIn, limits ...string) {
	h.t.Helper()
	h.needsSandbox()
	var b strings.Builder
	fmt.Fprintf(&b, "name: %s\nbinaries: [%q]\nprovider: none\n", s.Name, s.Binary)
	b.WriteString("safe:\n  owner: {ok: true}\n  team: {ok: true}\n  guest: {ok: true}\n")
	fmt.Fprintf(&b, "args: %s\nprompt: argument\nanswer: text\n", quoted(s.Args))
	fmt.Fprintf(&b, "env_allow: %s\n", quoted(s.EnvAllow))
	if len(s.Env) > 0 {
		b.WriteString("env:\n")
		for name, value := range s.Env {
			fmt.Fprintf(&b, "  %s: %q\n", name, value)
		}
	}
	if s.Stall != "" {
		fmt.Fprintf(&b, "stall: %s\n", s.Stall)
	}
	h.Write("manifests/runners/"+s.Name+".yaml", b.String()+s.Extra)
	h.Guest("["+s.Name+"]", limits...)
}

// needsSandbox skips where this host has no sandbox, since only there can a
// stand-in run.
func (h *House) needsSandbox() {
	h.t.Helper()
	if rung, why := h.Sandbox(); rung != "full" && h.Around == "" {
		h.t.Skipf("needs the full sandbox: %s", why)
	}
}

// Sandbox says what the bot can build on this host, and why it is not more.
func (h *House) Sandbox() (rung, why string) {
	h.t.Helper()
	got := h.Bot("runners", "--json")
	var seen struct{ Sandbox struct{ Rung, Why string } }
	require.NoError(h.t, json.Unmarshal([]byte(got.Out), &seen), got.Err)
	return seen.Sandbox.Rung, seen.Sandbox.Why
}

// Guest writes a guest manifest with a list of runners.
func (h *House) Guest(runners string, limits ...string) {
	h.t.Helper()
	text := "tier: guest\npolicy:\n  mode: read-only\n  network: none\n  runners: " + runners + "\n"
	if len(limits) > 0 {
		text += "limits: {" + strings.Join(limits, ", ") + "}\n"
	}
	h.Write("manifests/tiers/guest.yaml", text)
}

func quoted(items []string) string {
	words := make([]string, len(items))
	for i, item := range items {
		words[i] = fmt.Sprintf("%q", item)
	}
	return "[" + strings.Join(words, ", ") + "]"
}

// Link puts a copy of a program under another name into the house, for stand-ins
// that choose their part by argv[0].
func (h *House) Link(name, program string) string {
	h.t.Helper()
	path := h.Path(name)
	text, err := os.ReadFile(program)
	require.NoError(h.t, err)
	h.Write(name, "")
	require.NoError(h.t, os.WriteFile(path, text, 0o600))
	require.NoError(h.t, os.Chmod(path, 0o755))
	return path
}
