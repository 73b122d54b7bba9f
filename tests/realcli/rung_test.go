//go:build linux

package realcli_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"parlour/bridge/ask"
	"parlour/runner/probe/mock"
	"parlour/tests/house"
)

func TestMain(m *testing.M) {
	house.Become(filepath.Base(os.Args[0]), os.Args[1:])
	os.Exit(m.Run())
}

// TestARealAgentAnswersInADefaultContainer: where there are no namespaces, a tier
// that requires the files alone is served by the real programs, and nothing of
// the container is in what they send.
func TestARealAgentAnswersInADefaultContainer(t *testing.T) {
	for _, a := range agents() {
		t.Run(a.runner, func(t *testing.T) {
			p := newPlace(t, a.runner, a.file, mock.Turn{Text: "The answer of the model."})
			p.Around = house.Container
			folder := p.OpenTemp(t)
			if rung, why := p.Sandbox(); rung != "landlock" {
				t.Skipf("needs the landlock rung: %s", why)
			}
			// Every user must be able to reach the program: no view shows it.
			bin := filepath.Join(folder, "bin")
			require.NoError(t, os.Mkdir(bin, 0o755))
			program, err := os.ReadFile(p.file)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(filepath.Join(bin, a.runner), program, 0o755))
			p.Env = append(p.Env, "PATH="+bin+":/usr/bin:/bin")
			p.Write("manifests/tiers/guest.yaml", "tier: guest\npolicy:\n  mode: read-only\n  network: model-only\n  require: [filesystem]\n"+
				"  runners: [claude, codex]\n  model: {anthropic: claude-haiku-4-5, openai: gpt-5.4, output_tokens: 4096}\n")
			ended, got := p.ask(t, "what is it?", "--manifests", p.Path("manifests"))
			require.Equal(t, ask.Answered, ended.Outcome.Kind, "%+v %s", ended, got.Err)
			require.Equal(t, "The answer of the model.", ended.Outcome.Text)
			require.Equal(t, "landlock", ended.Receipt.Rung)
			for _, r := range p.model.Requests() {
				require.NotContains(t, string(r.Body), filepath.Dir(p.Dir), "the operator's folders")
			}
		})
	}
}
