//go:build linux

// Package realcli_test drives the real claude and codex, as they come from npm,
// through the real bot, sandbox and gateway, against the built-in mock model.
// It contacts no provider and skips where the programs are not installed:
//
//	npm ci --prefix tests/realcli --ignore-scripts
package realcli_test

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"parlour/bridge/ask"
	"parlour/runner/probe/mock"
	"parlour/tests/house"
)

// The keys of the providers, which no run may ever hold.
const (
	anthropicKey = "sk-ant-the-configured-key-0001"
	openaiKey    = "sk-the-configured-key-0002"
)

// agent is one real program.
type agent struct {
	runner string
	file   string // below node_modules
	key    string // of its provider
	header string // in which the provider gets the key
}

func agents() []agent {
	return []agent{
		{"claude", "@anthropic-ai/claude-code-linux-x64/claude", anthropicKey, "X-Api-Key"},
		{"codex", "codex/vendor/x86_64-unknown-linux-musl/bin/codex", openaiKey, "Authorization"},
	}
}

// place is a house with one real program and a mock model behind the gateway.
type place struct {
	*house.House
	model *mock.Model
	url   string // of the model
	file  string // of the program
	flags []string
}

func newPlace(t *testing.T, runner, file string, turns ...mock.Turn) *place {
	t.Helper()
	t.Parallel() // most of the time a program waits for its model, or the test for a limit
	path, err := filepath.Abs(filepath.Join("node_modules", file))
	require.NoError(t, err)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("%s is not installed: npm ci --prefix tests/realcli --ignore-scripts", runner)
	}
	p := &place{House: house.New(t), model: mock.New(turns...)}
	if rung, why := p.Sandbox(); rung != "full" {
		t.Skipf("needs the full sandbox: %s", why)
	}
	server := httptest.NewServer(p.model)
	t.Cleanup(server.Close)
	require.NoError(t, os.MkdirAll(p.Path("bin"), 0o755))
	require.NoError(t, os.Symlink(path, p.Path("bin", runner)))
	config := p.Write("config.yaml", "model:\n"+
		"  anthropic: {base_url: \""+server.URL+"\", key: {env: KEY_A}}\n"+
		"  openai: {base_url: \""+server.URL+"\", key: {env: KEY_O}}\n")
	p.Env = []string{
		"HOME=" + p.Path("home"), "PATH=" + p.Path("bin") + ":/usr/bin:/bin", "XDG_STATE_HOME=" + p.Path("state"),
		"KEY_A=" + anthropicKey, "KEY_O=" + openaiKey, "PARLOUR_RUNNERS=" + runner,
	}
	p.url, p.file, p.flags = server.URL, path, []string{"--config", config}
	return p
}

// ask asks and gives the outcome with everything that the bot printed.
func (p *place) ask(t *testing.T, question string, flags ...string) (ask.Ended, house.Result) {
	t.Helper()
	args := append([]string{"ask", "--json"}, p.flags...)
	got := p.Bot(append(append(args, flags...), "--", question)...)
	return got.Ended(t), got
}
