//go:build linux

package realcli_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"parlour/bridge/ask"
	"parlour/guardrail/secret"
	"parlour/runner/broker"
	"parlour/runner/policy"
	"parlour/runner/sandbox"
	"parlour/tests/house"
)

// inert is what claude offers besides its tools; the gateway takes it out.
var inert = []string{"DeferredToolPlaceholder"}

// request is one model request, read.
type request struct {
	highest  []string // what its highest role says
	question string   // the last that its lowest role says
	tools    []string // sorted
	asker    string
}

func readRequest(t *testing.T, runner string, body []byte) request {
	t.Helper()
	if runner == "claude" {
		return readMessages(t, body)
	}
	return readResponses(t, body)
}

// parts is text, as a string or as blocks.
type parts []string

func (p *parts) UnmarshalJSON(raw []byte) error {
	text := ""
	if json.Unmarshal(raw, &text) == nil {
		*p = parts{strings.TrimSpace(text)}
		return nil
	}
	var blocks []struct{ Text string }
	err := json.Unmarshal(raw, &blocks)
	for _, b := range blocks {
		*p = append(*p, strings.TrimSpace(b.Text)) // codex trims at the ends
	}
	return err
}

func (p parts) last() string {
	if len(p) == 0 {
		return ""
	}
	return p[len(p)-1]
}

func readMessages(t *testing.T, body []byte) request {
	t.Helper()
	var r struct {
		System   parts
		Messages []struct {
			Role    string
			Content parts
		}
		Tools    []struct{ Name string }
		Metadata struct {
			User string `json:"user_id"`
		}
	}
	require.NoError(t, json.Unmarshal(body, &r), string(body))
	require.NotEmpty(t, r.Messages)
	end := r.Messages[len(r.Messages)-1]
	require.Equal(t, "user", end.Role)
	out := request{highest: r.System, question: end.Content.last(), tools: []string{}, asker: r.Metadata.User}
	for _, tool := range r.Tools {
		out.tools = append(out.tools, tool.Name)
	}
	slices.Sort(out.tools)
	return out
}

func readResponses(t *testing.T, body []byte) request {
	t.Helper()
	var r struct {
		Instructions string
		Input        []struct {
			Type, Role string
			Content    parts
			Tools      []struct{ Name string }
		}
		Tools  []struct{ Type, Name string }
		Safety string `json:"safety_identifier"`
	}
	require.NoError(t, json.Unmarshal(body, &r), string(body))
	require.NotContains(t, r.Instructions, "Sandbox policy")
	out := request{tools: []string{}, asker: r.Safety}
	for _, item := range r.Input {
		switch item.Role {
		case "developer":
			out.highest = append(out.highest, item.Content...)
		case "user":
			out.question = item.Content.last()
		}
		for _, tool := range item.Tools {
			out.tools = append(out.tools, tool.Name)
		}
	}
	for _, tool := range r.Tools {
		out.tools = append(out.tools, tool.Type+tool.Name)
	}
	slices.Sort(out.tools)
	return out
}

// raw is a request as the CLI sent it into its gateway.
type raw struct {
	header string
	body   []byte
}

// sent starts the run of a request header once more, by the invocation that the
// bot prints, in the same kind of box and behind the same gateway, and gives
// what the CLI itself sent there, with the run's token.
func (w *town) sent(t *testing.T, a agent, tier string, header ask.RequestHeader) (raw, string) {
	t.Helper()
	temp := t.TempDir()
	engine, err := sandbox.New(sandbox.Config{Self: house.Bot(t), Temp: temp})
	require.NoError(t, err)
	protocol, tools, names := broker.Anthropic, []policy.Tool(nil), []string(nil)
	if a.runner == "codex" {
		protocol = broker.OpenAI
	}
	if tier == "team" {
		tools, names = []policy.Tool{policy.Read, policy.Search}, []string{"Read", "Grep", "Glob"}
	}
	effective, err := policy.Narrow(policy.Wish{
		Mode: policy.ReadOnly, Network: policy.ModelOnly, Tools: tools,
		Limits: policy.Limits{
			Wall: time.Minute, Memory: 3 << 29, Disk: 256 << 20, Files: 20000, Processes: 64, OpenFiles: 1024, Answer: 64 << 10, ModelRequests: 20, OutputTokens: 4096,
		},
	}, engine.Probe(t.Context()))
	require.NoError(t, err)
	grant, err := broker.For(effective, "some-model", names)
	require.NoError(t, err)
	grant.Asker = header.Asker
	session, err := broker.Open(t.Context(), broker.Upstream{Protocol: protocol, BaseURL: w.url, Key: secret.New(a.key)}, grant, broker.Hooks{})
	require.NoError(t, err)
	defer func() { _ = session.Close() }()
	token := session.Token().Reveal()

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	run, err := engine.Start(ctx, effective, w.command(t, a, tier, header, token))
	require.NoError(t, err)
	listener := &recorder{Listener: run.Listener()}
	go func() { _ = session.Serve(listener) }()
	_, err = run.Wait()
	require.NoError(t, err)
	return listener.first(t), token
}

// command gives the tier's invocation as the bot prints it, with the texts of a
// request in their places.
func (w *town) command(t *testing.T, a agent, tier string, header ask.RequestHeader, token string) sandbox.Command {
	t.Helper()
	got := w.Bot("runners", "--invocation", "--json", "--config", w.config)
	var all []struct{ Tier, Shell string }
	require.NoError(t, json.Unmarshal([]byte(got.Out), &all), got.Err)
	line := ""
	for _, i := range all {
		if i.Tier == tier {
			line = strings.TrimPrefix(i.Shell, "env -i ")
		}
	}
	require.NotEmpty(t, line)
	words, err := exec.Command("/bin/sh", "-c", `printf '%s\0' `+line).Output()
	require.NoError(t, err)
	fill := strings.NewReplacer("<policy text>", header.Policy, "<fenced question>", header.Fenced, "<token>", token)
	cmd := sandbox.Command{Name: a.runner, Env: []string{}}
	for _, word := range strings.Split(strings.TrimSuffix(string(words), "\x00"), "\x00") {
		name, value, _ := strings.Cut(word, "=")
		switch word = fill.Replace(word); {
		case cmd.Path != "":
			cmd.Args = append(cmd.Args, word)
		case strings.HasPrefix(word, "/"):
			cmd.Path = word
		default:
			cmd.Env = append(cmd.Env, word)
			if name == "CODEX_HOME" || name == "CLAUDE_CONFIG_DIR" {
				cmd.Folders = append(cmd.Folders, value)
			}
		}
	}
	return cmd
}

// recorder keeps what comes in on each connection of a listener.
type recorder struct {
	net.Listener
	mu    sync.Mutex
	conns []*bytes.Buffer
}

// Accept gives a connection whose reader is listened to.
func (r *recorder) Accept() (net.Conn, error) {
	conn, err := r.Listener.Accept()
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	kept := &bytes.Buffer{}
	r.conns = append(r.conns, kept)
	return recorded{conn, r, kept}, nil
}

type recorded struct {
	net.Conn
	in   *recorder
	kept *bytes.Buffer
}

func (c recorded) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.in.mu.Lock()
	defer c.in.mu.Unlock()
	c.kept.Write(p[:n])
	return n, err
}

// first gives the first model request of all connections.
func (r *recorder) first(t *testing.T) raw {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, kept := range r.conns {
		in := bufio.NewReader(bytes.NewReader(kept.Bytes()))
		for {
			req, err := http.ReadRequest(in)
			if err != nil {
				break
			}
			body, err := io.ReadAll(req.Body)
			require.NoError(t, err)
			if req.Method != http.MethodPost {
				continue
			}
			var header strings.Builder
			require.NoError(t, req.Header.Write(&header))
			return raw{header.String(), body}
		}
	}
	require.FailNow(t, "the CLI sent no model request")
	return raw{}
}
