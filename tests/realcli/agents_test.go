//go:build linux

package realcli_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"parlour/bridge/ask"
	"parlour/runner/probe/mock"
)

func TestARealAgentAnswersAGuest(t *testing.T) {
	for _, a := range agents() {
		t.Run(a.runner, func(t *testing.T) {
			p := newPlace(t, a.runner, a.file, mock.Turn{Text: "The answer of the model."})
			ended, got := p.ask(t, "what is it?")
			require.Equal(t, ask.Answered, ended.Outcome.Kind, "%+v %s", ended, got.Err)
			require.Equal(t, "The answer of the model.", ended.Outcome.Text)
			require.Equal(t, a.runner, ended.Receipt.Choice.Runner)
			require.Equal(t, "full", ended.Receipt.Rung)
			require.Positive(t, ended.Receipt.Tokens)
			require.Contains(t, ended.Receipt.Egress, "1 requests")

			asked := p.model.Requests()
			require.Len(t, asked, 1)
			body := string(asked[0].Body)
			require.Contains(t, strings.Join(asked[0].Header.Values(a.header), " "), a.key)
			require.Contains(t, body, "Who asks: a person of the tier guest.", "the policy text")
			require.Contains(t, body, "| what is it?", "the fenced question")
			require.NotContains(t, body, `"tools":[{`)
			require.NotContains(t, got.Out+got.Err, "the-configured-key")
		})
	}
}

func TestARealAgentReadsForTheTeam(t *testing.T) {
	a := agents()[0] // codex has no tools that read and do nothing else
	p := newPlace(t, a.runner, a.file,
		mock.Turn{Calls: []mock.Call{{Name: "Read", Input: `{"file_path":"/proc/self/environ"}`}}},
		mock.Turn{Calls: []mock.Call{{Name: "Glob", Input: `{"pattern":"/etc/*"}`}}},
		mock.Turn{Text: "what I read"})
	ended, got := p.ask(t, "what is it?", "--as", "team")
	require.Equal(t, "what I read", ended.Outcome.Text, "%+v %s", ended, got.Err)
	requests := p.model.Requests()
	require.Len(t, requests, 3)
	var body struct{ Tools []struct{ Name string } }
	require.NoError(t, json.Unmarshal(requests[0].Body, &body))
	names := []string{}
	for _, tool := range body.Tools {
		names = append(names, tool.Name)
	}
	require.ElementsMatch(t, []string{"Glob", "Grep", "Read"}, names)
	for _, r := range requests {
		require.NotContains(t, string(r.Body), "ANTHROPIC_API_KEY=", "its own environment, with the run's token")
		require.NotContains(t, string(r.Body), "nsswitch.conf", "the system's folders")
	}
}

// TestThePlainProgramsTellOfTheirOwner is the control arm: the same programs in
// the same home, run plainly by the test, do send what was planted.
func TestThePlainProgramsTellOfTheirOwner(t *testing.T) {
	for _, a := range agents() {
		t.Run(a.runner, func(t *testing.T) {
			p := newPlace(t, a.runner, a.file, mock.Turn{Text: "an answer"}, mock.Turn{Text: "an answer"}, mock.Turn{Text: "an answer"})
			plantOwner(t, p)
			args := []string{"-p", "who am I?"}
			if a.runner == "codex" {
				args = []string{"exec", "--skip-git-repo-check", "-c", `model_provider="b"`, "-c", `model_providers.b.name="b"`,
					"-c", `model_providers.b.base_url="` + p.url + `/v1"`, "-c", `model_providers.b.wire_api="responses"`,
					"-c", `model_providers.b.env_key="KEY_O"`, "-m", "gpt-5.4", "who am I?"}
			}
			cmd := exec.CommandContext(t.Context(), p.file, args...)
			cmd.Dir = p.Path("home", "project")
			cmd.Env = append(p.Env, "ANTHROPIC_BASE_URL="+p.url, "ANTHROPIC_API_KEY=dummy", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1",
				"NO_PROXY=127.0.0.1", "no_proxy=127.0.0.1")
			_, _ = cmd.CombinedOutput() // how it ends does not matter
			found := map[string]bool{}
			for _, r := range p.model.Requests() {
				for _, s := range regexp.MustCompile(`SENTINEL-x+`).FindAllString(string(r.Body)+fmt.Sprint(r.Header), -1) {
					found[s] = true
				}
			}
			require.Greater(t, len(found), 3, "the plain program told nothing: the plants are in the wrong places")
		})
	}
}

// TestCodexCallsAMendedFaultAnError: where codex connects again by itself and
// the turn then succeeds, its output holds an error all the same. The bot's
// decoder is made for that.
func TestCodexCallsAMendedFaultAnError(t *testing.T) {
	a := agents()[1]
	p := newPlace(t, a.runner, a.file, mock.Turn{Text: "half of it", Fault: mock.Cut}, mock.Turn{Text: "all of it"})
	cmd := exec.CommandContext(t.Context(), p.file, "exec", "--json", "--ephemeral", "--skip-git-repo-check", "-c", `model_provider="b"`,
		"-c", `model_providers.b.name="b"`, "-c", `model_providers.b.base_url="`+p.url+`/v1"`, "-c", `model_providers.b.wire_api="responses"`,
		"-c", `model_providers.b.env_key="KEY_O"`, "-c", "model_providers.b.stream_max_retries=1", "-m", "gpt-5.4", "what is it?")
	cmd.Dir, cmd.Env = p.Path("home"), p.Env
	out, err := cmd.Output()
	require.NoError(t, err, string(out))
	require.Equal(t, 2, p.model.Asked())
	require.Regexp(t, `(?s)\n\{"type":"error","message":"Reconnecting\.\.\. 1/1 .*"type":"agent_message","text":"all of it"\}\}\n\{"type":"turn\.completed",[^\n]*\n$`, string(out))
}

func TestAClaudeThatIsTooOldIsPassedOver(t *testing.T) {
	p := newPlace(t, "claude", "claude-too-old/claude", mock.Turn{Text: "never asked for"})
	ended, _ := p.ask(t, "what is it?")
	require.Equal(t, ask.NoRunner, ended.Outcome.Cause)
	require.Equal(t, []ask.Skip{{Runner: "claude", Reason: "installed, but too old: it does not offer --restricted"}}, ended.Receipt.Choice.Skipped)
	require.Empty(t, p.model.Requests(), "no model was asked")
}

func TestAForcedToolCallEndsTheRunWithoutEffect(t *testing.T) {
	target := filepath.Join(t.TempDir(), "written")
	calls := map[string][]string{
		"claude": {"Bash", "Write", "Read", "WebFetch", "WebSearch", "Agent", "Skill", "ToolSearch", "Edit", "made_up"},
		"codex":  {"shell", "exec_command", "apply_patch", "web_search", "view_image", "spawn_agent", "made_up"},
	}
	for _, a := range agents() {
		for _, tool := range calls[a.runner] {
			t.Run(a.runner+" "+tool, func(t *testing.T) {
				input := `{"command":"touch ` + target + `","cmd":"touch ` + target + `","file_path":"` + target + `","content":"x","url":"http://127.0.0.1:1/","path":"/etc/passwd"}`
				p := newPlace(t, a.runner, a.file, mock.Turn{Calls: []mock.Call{{Name: tool, Input: input}}}, mock.Turn{Text: "done"})
				ended, _ := p.ask(t, "what is it?")
				require.Equal(t, ask.ToolCall, ended.Outcome.Cause, "%+v", ended)
				require.Contains(t, ended.Receipt.Egress, tool, "the call is counted")
				require.NoFileExists(t, target)
				require.Equal(t, 1, p.model.Asked())
			})
		}
	}
}

func TestHostilePromptsAreAnsweredAsText(t *testing.T) {
	for _, a := range agents() {
		for name, question := range map[string]string{
			"slash command": "/help", "absolute path": "@/etc/passwd", "path": "@in.txt", "skill": "$skill", "flag": "--help", "bang": "!ls",
			"dash": "-", "64 KiB": strings.Repeat("word ", 14_000)[:64<<10], "192 KiB in its fence": strings.Repeat("a\n", 32<<10),
		} {
			t.Run(a.runner+" "+name, func(t *testing.T) {
				p := newPlace(t, a.runner, a.file, mock.Turn{Text: "as text"})
				ended, got := p.ask(t, "", "--prompt-file", p.Write("question.txt", question))
				require.Equal(t, "as text", ended.Outcome.Text, "%+v %s", ended, got.Err)
				require.NotContains(t, string(p.model.Requests()[0].Body), "root:x:0:0")
			})
		}
	}
}

func TestEachFaultOfTheProviderHasItsOutcome(t *testing.T) {
	for _, a := range agents() {
		for name, c := range map[string]struct {
			turn mock.Turn
			want ask.Cause
		}{
			"401":           {mock.Turn{Fault: mock.Unauthorized}, ask.ModelDenied},
			"429":           {mock.Turn{Fault: mock.TooMany}, ask.ModelBusy},
			"500":           {mock.Turn{Fault: mock.Internal}, ask.ModelDown},
			"529":           {mock.Turn{Fault: mock.Overloaded}, ask.ModelBusy},
			"reset":         {mock.Turn{Fault: mock.Reset}, ask.ModelDown},
			"broken stream": {mock.Turn{Fault: mock.Broken}, ask.ModelDown},
			"empty":         {mock.Turn{Fault: mock.Empty}, ask.Empty},
		} {
			t.Run(a.runner+" "+name, func(t *testing.T) {
				p := newPlace(t, a.runner, a.file, c.turn, c.turn, c.turn, c.turn)
				ended, got := p.ask(t, "what is it?")
				require.Equal(t, c.want, ended.Outcome.Cause, "%+v", ended)
				require.Equal(t, ask.Sentence(c.want), ended.Outcome.Text)
				require.NotContains(t, got.Out+got.Err, "the-configured-key")
				require.NotContains(t, ended.Outcome.Text, "127.0.0.1")
			})
		}
	}
}

func TestALongSilenceAndALongAnswerHaveTheirOutcome(t *testing.T) {
	for _, a := range agents() {
		limits := func(p *place, lines string) []string {
			p.Write("manifests/tiers/guest.yaml", "tier: guest\nlimits: {"+lines+"}\n")
			return []string{"--manifests", p.Path("manifests")}
		}
		t.Run(a.runner+" hangs", func(t *testing.T) {
			p := newPlace(t, a.runner, a.file, mock.Turn{Fault: mock.Hang}, mock.Turn{Fault: mock.Hang})
			ended, _ := p.ask(t, "what is it?", limits(p, "stall: 3s, wall: 60s")...)
			require.Contains(t, []ask.Cause{ask.Stalled, ask.ModelDown}, ended.Outcome.Cause, "%+v", ended)
		})
		t.Run(a.runner+" is slow", func(t *testing.T) {
			p := newPlace(t, a.runner, a.file, mock.Turn{Fault: mock.Hang}, mock.Turn{Fault: mock.Hang})
			ended, _ := p.ask(t, "what is it?", limits(p, "stall: 60s, wall: 4s")...)
			require.Equal(t, ask.WallClock, ended.Outcome.Cause, "%+v", ended)
		})
		t.Run(a.runner+" says 1 MiB", func(t *testing.T) {
			p := newPlace(t, a.runner, a.file, mock.Long(1<<20))
			ended, _ := p.ask(t, "what is it?")
			require.LessOrEqual(t, len(ended.Outcome.Text), 64<<10)
			if ended.Outcome.Kind == ask.Answered {
				require.Contains(t, ended.Outcome.Text, "[cut: the answer was longer than 64 KiB]")
			}
		})
		t.Run(a.runner+" without its provider", func(t *testing.T) {
			p := newPlace(t, a.runner, a.file)
			config := p.Write("dead.yaml", "model:\n  anthropic: {base_url: \"http://127.0.0.1:1\", key: {env: KEY_A}}\n"+
				"  openai: {base_url: \"http://127.0.0.1:1\", key: {env: KEY_O}}\n")
			p.flags = []string{"--config", config}
			ended, _ := p.ask(t, "what is it?")
			require.Equal(t, ask.ModelDown, ended.Outcome.Cause, "%+v", ended)
			require.NotContains(t, ended.Outcome.Text, "127.0.0.1")
		})
	}
}

// TestNoModelBringsToolsToAGuest: codex chooses its tools by the model's name.
func TestNoModelBringsToolsToAGuest(t *testing.T) {
	a := agents()[1]
	for _, model := range []string{"gpt-5.4", "gpt-5.5", "gpt-5.6-luna", "gpt-6", "gpt-6-sol"} {
		t.Run(model, func(t *testing.T) {
			p := newPlace(t, a.runner, a.file, mock.Turn{Text: "an answer"})
			p.Write("manifests/tiers/guest.yaml", "tier: guest\npolicy:\n  mode: read-only\n  network: model-only\n  runners: [codex]\n  model: {openai: "+model+", output_tokens: 4096}\n")
			ended, got := p.ask(t, "what is it?", "--manifests", p.Path("manifests"))
			require.Equal(t, "an answer", ended.Outcome.Text, "%+v %s", ended, got.Err)
			body := string(p.model.Requests()[0].Body)
			require.Contains(t, body, `"model":"`+model+`"`)
			for _, tool := range []string{`"type":"additional_tools"`, `"name":"`, `"tools":[{`} {
				require.NotContains(t, body, tool)
			}
		})
	}
}

// TestNothingOfTheOwnerReachesTheModel plants sentinels in everything that an
// agent program is known to read, and looks for them in every recorded request
// and in everything that the bot printed.
func TestNothingOfTheOwnerReachesTheModel(t *testing.T) {
	for _, a := range agents() {
		t.Run(a.runner, func(t *testing.T) {
			p := newPlace(t, a.runner, a.file, mock.Turn{Text: "an answer"})
			n := plantOwner(t, p)
			require.GreaterOrEqual(t, n, 40)
			cmd := p.Command(append(append([]string{"ask", "--json"}, p.flags...), "--", "who am I? /memory $skill @CLAUDE.md")...)
			cmd.Dir = p.Path("home", "project")
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, string(out))
			require.NotContains(t, string(out), "SENTINEL")
			require.NotEmpty(t, p.model.Requests())
			for _, r := range p.model.Requests() {
				require.NotContains(t, string(r.Body), "SENTINEL")
				for name, values := range r.Header {
					require.NotContains(t, name+strings.Join(values, " "), "SENTINEL")
				}
			}
			events := p.Bot(append([]string{"events", "--json"}, p.flags...)...)
			require.NotContains(t, events.Out, "SENTINEL")
		})
	}
}

// plantOwner fills the home of the bot's user and the environment of the bot,
// and says how many sentinels there are.
func plantOwner(t *testing.T, p *place) int {
	t.Helper()
	n := 0
	s := func() string { n++; return "SENTINEL-" + strings.Repeat("x", n) }
	for _, name := range []string{
		".claude/CLAUDE.md", ".claude/rules/a.md", ".claude/projects/-home/memory/MEMORY.md", ".claude/skills/skill/SKILL.md",
		".claude/agents/a.md", ".claude/commands/help.md", ".claude/output-styles/a.md", "CLAUDE.md", "CLAUDE.local.md", "AGENTS.md", "GEMINI.md",
		".codex/AGENTS.md", ".codex/skills/skill/SKILL.md", ".codex/prompts/a.md", ".agents/skills/skill/SKILL.md", ".agents/AGENTS.md",
		"project/CLAUDE.md", "project/AGENTS.md", "project/.claude/CLAUDE.md", "project/.claude/rules/a.md", "project/.claude/skills/skill/SKILL.md",
		"project/.agents/skills/skill/SKILL.md", "project/in.txt", "project/.env", "project/README.md",
		".gitconfig", ".ssh/id_test", ".netrc", ".npmrc", ".bashrc", ".profile", ".config/gh/hosts.yml",
	} {
		p.Write(filepath.Join("home", name), "---\nname: skill\ndescription: "+s()+"\n---\n# "+s()+"\n")
	}
	p.Write("home/.claude.json", `{"oauthAccount":{"emailAddress":"`+s()+`@x.example","accountUuid":"`+s()+`"},"mcpServers":{"m":{"command":"/bin/echo","args":["`+s()+`"]}}}`)
	p.Write("home/.claude/settings.json", `{"env":{"ANTHROPIC_CUSTOM_HEADERS":"X-Leak: `+s()+`"},"language":"`+s()+`","hooks":{"SessionStart":[{"hooks":[{"type":"command","command":"echo `+s()+`"}]}]}}`)
	p.Write("home/.codex/config.toml", "developer_instructions = \""+s()+"\"\n[mcp_servers.m]\ncommand = \"/bin/echo\"\nargs = [\""+s()+"\"]\n")
	p.Write("home/project/.mcp.json", `{"mcpServers":{"m":{"command":"/bin/echo","args":["`+s()+`"]}}}`)
	for _, name := range []string{"ANTHROPIC_CUSTOM_HEADERS", "CLAUDE_CODE_OAUTH_TOKEN", "OPENAI_API_KEY", "HTTPS_PROXY", "HTTP_PROXY", "GIT_AUTHOR_NAME", "EDITOR", "USER", "LOGNAME"} {
		value := s()
		if strings.HasSuffix(name, "PROXY") {
			value = "http://" + value + ":1"
		}
		p.Env = append(p.Env, name+"="+value)
	}
	require.NoError(t, os.MkdirAll(p.Path("home", "project"), 0o755))
	return n
}
