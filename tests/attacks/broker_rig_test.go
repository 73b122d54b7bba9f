package attacks_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"parlour/guardrail/secret"
	"parlour/runner/broker"
	"parlour/runner/probe/mock"
)

// operatorKey must never be seen by a sandbox, nor stand in any result.
const operatorKey = "sk-operator-KEY-55aa0c1d2e"

// gateway is one run's broker between a client that plays the sandbox and the
// mock model.
type gateway struct {
	t       *testing.T
	session *broker.Session
	model   *mock.Model
	address string
	ended   chan error // what Hooks.End said
	beats   chan struct{}
}

// grantOf is what the gateways of these tests may do, unless a test says else.
func grantOf() broker.Grant {
	return broker.Grant{
		Model: "granted-model", Tools: []string{"Read"}, Requests: 8, OutputTokens: 4096, Silence: 20 * time.Second,
		Asker: "hash-of-asker", Cache: "tier-guest",
	}
}

func newGateway(t *testing.T, p broker.Protocol, g broker.Grant, model *mock.Model) *gateway {
	t.Helper()
	provider := httptest.NewServer(model)
	t.Cleanup(provider.Close)
	gw := openGateway(t, broker.Upstream{Protocol: p, BaseURL: provider.URL, Key: secret.New(operatorKey)}, g)
	gw.model = model
	return gw
}

func openGateway(t *testing.T, up broker.Upstream, g broker.Grant) *gateway {
	t.Helper()
	gw := &gateway{t: t, ended: make(chan error, 1), beats: make(chan struct{}, 4096)}
	ctx, cancel := context.WithCancel(context.Background())
	session, err := broker.Open(ctx, up, g, broker.Hooks{
		Alive: func() {
			select {
			case gw.beats <- struct{}{}:
			default:
			}
		},
		End: func(err error) { gw.ended <- err },
	})
	require.NoError(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	gw.session, gw.address = session, listener.Addr().String()
	served := make(chan error, 1)
	go func() { served <- session.Serve(listener) }()
	t.Cleanup(func() {
		require.NoError(t, session.Close())
		require.NoError(t, <-served)
		cancel()
		gw.holdsNoKey(fmt.Sprintf("%+v %s", session.Result(), session.Result().Receipt))
	})
	return gw
}

// holdsNoKey fails where a text holds the operator's key or the run's token.
func (g *gateway) holdsNoKey(text string) {
	g.t.Helper()
	require.NotContains(g.t, text, operatorKey)
	require.NotContains(g.t, text, g.session.Token().Reveal())
}

// reply is an answer of the gateway, read to its end.
type reply struct {
	status int
	header http.Header
	body   string
}

// path is the model's path of the protocol.
func path(p broker.Protocol) string {
	if p == broker.OpenAI {
		return "/v1/responses"
	}
	return "/v1/messages?beta=true"
}

// post sends a body to the model's path with the run's token.
func (g *gateway) post(target, body string, edit ...func(*http.Request)) reply {
	g.t.Helper()
	req, err := http.NewRequest(http.MethodPost, "http://"+g.address+target, strings.NewReader(body))
	require.NoError(g.t, err)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Api-Key", g.session.Token().Reveal())
	for _, e := range edit {
		e(req)
	}
	return g.do(req)
}

func (g *gateway) do(req *http.Request) reply {
	g.t.Helper()
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
	require.NoError(g.t, err)
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		body = append(body, " (broken off)"...)
	}
	g.holdsNoKey(string(body) + fmt.Sprint(resp.Header))
	require.NotContains(g.t, string(body)+fmt.Sprint(resp.Header), mock.Leak)
	return reply{resp.StatusCode, resp.Header, string(body)}
}

// raw sends bytes as they are and gives what comes back until the end.
func (g *gateway) raw(text string) string {
	g.t.Helper()
	conn, err := net.Dial("tcp", g.address)
	require.NoError(g.t, err)
	defer func() { _ = conn.Close() }()
	require.NoError(g.t, conn.SetDeadline(time.Now().Add(10*time.Second)))
	_, _ = io.WriteString(conn, text)        // the other side may have hung up already
	if !strings.Contains(text, "\r\n\r\n") { // more of the head could come
		_ = conn.(*net.TCPConn).CloseWrite()
	}
	var all bytes.Buffer
	_, _ = io.Copy(&all, conn) // a reset is an answer, too
	g.holdsNoKey(all.String())
	return all.String()
}

// statusOf gives the status of a raw answer, 0 for none.
func statusOf(raw string) int {
	resp, err := http.ReadResponse(bufio.NewReader(strings.NewReader(raw)), nil)
	if err != nil {
		return 0
	}
	_ = resp.Body.Close()
	return resp.StatusCode
}

// end waits for what ended the run.
func (g *gateway) end() error {
	g.t.Helper()
	select {
	case err := <-g.ended:
		return err
	case <-time.After(10 * time.Second):
		require.FailNow(g.t, "the run was not ended")
		return nil
	}
}

// result closes the session and gives its result.
func (g *gateway) result() broker.Result {
	g.t.Helper()
	require.NoError(g.t, g.session.Close())
	return g.session.Result()
}

// upstream gives the bodies of the requests that reached the provider.
func (g *gateway) upstream() []string {
	var out []string
	for _, r := range g.model.Requests() {
		out = append(out, string(r.Body))
	}
	return out
}

// question is a plain request of each protocol, streamed.
func question(p broker.Protocol, extra string) string {
	if p == broker.OpenAI {
		return `{"model":"x","stream":true,"input":[{"role":"developer","content":"GUARDRAIL"},{"role":"user","content":"q"}]` + extra + `}`
	}
	return `{"model":"x","max_tokens":100000,"stream":true,"system":"GUARDRAIL","messages":[{"role":"user","content":"q"}]` + extra + `}`
}

func protocols() []broker.Protocol { return []broker.Protocol{broker.Anthropic, broker.OpenAI} }

// forBoth runs a test once for each protocol.
func forBoth(t *testing.T, test func(*testing.T, broker.Protocol)) {
	t.Helper()
	for _, p := range protocols() {
		t.Run(string(p), func(t *testing.T) {
			t.Parallel()
			test(t, p)
		})
	}
}
