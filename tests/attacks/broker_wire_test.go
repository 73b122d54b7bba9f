package attacks_test

import (
	"context"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"parlour/guardrail/secret"
	"parlour/runner/broker"
	"parlour/runner/probe/mock"
)

// TestT5PathAndTunnelTricks: a path that only resembles the model's, another
// form of target, or a way to turn the connection into something else never
// reaches the provider.
func TestT5PathAndTunnelTricks(t *testing.T) {
	forBoth(t, func(t *testing.T, p broker.Protocol) {
		gw := newGateway(t, p, grantOf(), mock.New())
		at, _, _ := strings.Cut(path(p), "?")
		head := "Host: " + gw.address + "\r\nX-Api-Key: " + gw.session.Token().Reveal() + "\r\nContent-Type: application/json\r\n"
		body := question(p, "")
		length := fmt.Sprintf("Content-Length: %d\r\n", len(body))
		lines := []string{
			"POST " + at + "/batches HTTP/1.1", "POST " + at + "%2f..%2ffiles HTTP/1.1", "POST " + at + "/../files HTTP/1.1",
			"POST " + at + "/ HTTP/1.1", "POST /" + at + " HTTP/1.1", "POST " + at + "? HTTP/1.1", "POST " + at + "?beta=false HTTP/1.1",
			"POST " + at + "?beta=true&x=1 HTTP/1.1", "POST " + at + "?beta=%74rue HTTP/1.1", "POST " + at + "#x HTTP/1.1", "POST " + at + ";x HTTP/1.1",
			"POST " + strings.ToUpper(at) + " HTTP/1.1", "POST " + strings.Replace(at, "v1", "%761", 1) + " HTTP/1.1", "POST /v1/./" + at[4:] + " HTTP/1.1",
			"POST " + at + "\\..\\files HTTP/1.1", "POST /v1/files HTTP/1.1", "POST /v1/organizations HTTP/1.1", "POST / HTTP/1.1", "POST * HTTP/1.1",
			"OPTIONS * HTTP/1.1", "POST " + at[1:] + " HTTP/1.1", "POST http://" + gw.address + at + " HTTP/1.1", "POST http://evil.example" + at + " HTTP/1.1",
			"POST //evil.example" + at + " HTTP/1.1", "CONNECT api.example:443 HTTP/1.1", "CONNECT " + gw.address + " HTTP/1.1",
			"GET " + at + " HTTP/1.1", "PUT " + at + " HTTP/1.1", "DELETE " + at + " HTTP/1.1", "PATCH " + at + " HTTP/1.1", "post " + at + " HTTP/1.1",
			"POST  " + at + " HTTP/1.1", "POST " + at + "  HTTP/1.1", "POST\t" + at + "\tHTTP/1.1", "POST " + at + " HTTP/1.0", "POST " + at + " HTTP/2.0",
			"POST " + at + " http/1.1", "POST " + at, "PRI * HTTP/2.0", " POST " + at + " HTTP/1.1", "POST " + at + "\x00 HTTP/1.1", "POST " + at + " HTTP/1.1 x",
		}
		for _, line := range lines {
			status := statusOf(gw.raw(line + "\r\n" + head + length + "\r\n" + body))
			require.NotEqual(t, http.StatusOK, status, "%q", line)
		}
		good := "POST " + path(p) + " HTTP/1.1\r\n"
		for _, extra := range []string{
			"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\n", "Upgrade: h2c\r\nHTTP2-Settings: x\r\n", "Connection: upgrade\r\n",
			"Expect: 100-continue\r\n", "Trailer: X-Api-Key\r\n", "TE: trailers\r\n", "Proxy-Authorization: Basic eDp4\r\n", "Proxy-Connection: keep-alive\r\n",
			"Connection: keep-alive, x-api-key\r\n",
		} {
			require.Equal(t, http.StatusBadRequest, statusOf(gw.raw(good+head+length+extra+"\r\n"+body)), extra)
		}
		require.Empty(t, gw.model.Requests(), "nothing of it reached the provider")
		require.Equal(t, http.StatusOK, statusOf(gw.raw(good+head+length+"\r\n"+body)), "the honest way still works")
		require.Len(t, gw.model.Requests(), 1)
		receipt := gw.result().Receipt
		require.NotEmpty(t, receipt.Refused)
		require.NotContains(t, receipt.String(), "evil.example")
	})
}

// TestT5SmuggledRequestsAreRefused: two lengths, two headers or two requests in
// one connection are never read in two ways.
func TestT5SmuggledRequestsAreRefused(t *testing.T) {
	gw := newGateway(t, broker.Anthropic, grantOf(), mock.New())
	token := "X-Api-Key: " + gw.session.Token().Reveal() + "\r\n"
	host := "Host: " + gw.address + "\r\n"
	start := "POST /v1/messages HTTP/1.1\r\n"
	plain := "Content-Type: application/json\r\n"
	body := question(broker.Anthropic, "")
	length := fmt.Sprintf("Content-Length: %d\r\n", len(body))
	chunked := fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(body), body)
	for name, text := range map[string]string{
		"both lengths":          start + host + token + plain + length + "Transfer-Encoding: chunked\r\n\r\n" + chunked,
		"both lengths turned":   start + host + token + plain + "Transfer-Encoding: chunked\r\n" + length + "\r\n" + chunked,
		"two content-lengths":   start + host + token + plain + length + "Content-Length: 5\r\n\r\n" + body,
		"the same length twice": start + host + token + plain + length + length + "\r\n" + body,
		"list of lengths":       start + host + token + plain + "Content-Length: 5, 5\r\n\r\n" + body,
		"signed length":         start + host + token + plain + "Content-Length: +5\r\n\r\n" + body,
		"two codings":           start + host + token + plain + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked,
		"identity, chunked":     start + host + token + plain + "Transfer-Encoding: identity, chunked\r\n\r\n" + chunked,
		"obscured coding":       start + host + token + plain + "Transfer-Encoding: xchunked\r\n\r\n" + chunked,
		"blank before colon":    start + host + token + plain + "Transfer-Encoding : chunked\r\n\r\n" + chunked,
		"folded header":         start + host + token + plain + length + "X-A: b\r\n c: d\r\n\r\n" + body,
		"bare line feeds":       strings.ReplaceAll(start+host+token+plain+length+"\r\n", "\r\n", "\n") + body,
		"line feed in a value":  start + host + token + plain + length + "X-A: b\nX-Api-Key: x\r\n\r\n" + body,
		"NUL in a value":        start + host + token + plain + length + "X-A: b\x00\r\n\r\n" + body,
		"two hosts":             start + host + host + token + plain + length + "\r\n" + body,
		"no host":               start + token + plain + length + "\r\n" + body,
		"another host":          start + "Host: api.anthropic.com\r\n" + token + plain + length + "\r\n" + body,
		"two tokens":            start + host + token + token + plain + length + "\r\n" + body,
		"two ways of tokens":    start + host + token + "Authorization: Bearer " + gw.session.Token().Reveal() + "\r\n" + plain + length + "\r\n" + body,
		"two content types":     start + host + token + plain + plain + length + "\r\n" + body,
		"an endless head":       start + host + token + "X-A: " + strings.Repeat("a", 64<<10),
		"a head of nothing":     "\r\n\r\n" + start + host + token + plain + length + "\r\n" + body,
	} {
		require.NotEqual(t, http.StatusOK, statusOf(gw.raw(text)), name)
	}
	require.Empty(t, gw.model.Requests())
	two := gw.raw(start + host + token + plain + length + "\r\n" + body + start + host + token + plain + length + "\r\n" + body)
	require.Equal(t, 1, strings.Count(two, "HTTP/1.1 200"), "one connection carries one request")
	require.Equal(t, http.StatusOK, statusOf(gw.raw(start+host+token+plain+"Transfer-Encoding: chunked\r\n\r\n"+chunked)), "chunked alone is fine")
	require.Len(t, gw.model.Requests(), 2)
	for _, r := range gw.model.Requests() {
		require.Equal(t, "/v1/messages", r.Target)
		require.Equal(t, []string{operatorKey}, r.Header["X-Api-Key"])
	}
}

// TestT5ATokenWorksOnItsOwnListenerOnly: another run's token, an old one, none.
func TestT5ATokenWorksOnItsOwnListenerOnly(t *testing.T) {
	forBoth(t, func(t *testing.T, p broker.Protocol) {
		model := mock.New()
		one, two := newGateway(t, p, grantOf(), model), newGateway(t, p, grantOf(), mock.New())
		require.GreaterOrEqual(t, len(one.session.Token().Reveal()), 32)
		require.NotEqual(t, one.session.Token(), two.session.Token())
		with := func(name, value string) func(*http.Request) {
			return func(r *http.Request) {
				r.Header.Del("X-Api-Key")
				if name != "" {
					r.Header.Set(name, value)
				}
			}
		}
		own, other := one.session.Token().Reveal(), two.session.Token().Reveal()
		for _, edit := range []func(*http.Request){
			with("", ""), with("X-Api-Key", ""), with("X-Api-Key", other), with("Authorization", "Bearer "+other), with("Authorization", own),
			with("Authorization", "bearer "+own), with("Authorization", "Basic "+own), with("X-Api-Key", "Bearer "+own), with("X-Api-Key", own[:len(own)-1]),
			with("X-Api-Key", own+"0"), with("X-Api-Key", strings.ToUpper(own)), with("X-Goog-Api-Key", own), with("Cookie", own), with("X-Api-Key", operatorKey),
		} {
			require.Equal(t, http.StatusUnauthorized, one.post(path(p), question(p, ""), edit).status)
			require.Equal(t, http.StatusUnauthorized, one.post("/v1/models", "", edit, func(r *http.Request) { r.Method = http.MethodGet }).status)
		}
		require.Empty(t, model.Requests())
		require.Equal(t, http.StatusOK, one.post(path(p), question(p, ""), with("Authorization", "Bearer "+own)).status)
		require.Equal(t, http.StatusOK, one.post(path(p), question(p, "")).status)
		require.NoError(t, one.session.Close())
		_, err := net.Dial("tcp", one.address)
		require.Error(t, err, "the token dies with the run, and so does the listener")
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		defer func() { _ = listener.Close() }()
		require.Error(t, one.session.Serve(listener), "a session serves once")
	})
}

// TestT5ARedirectIsNotFollowed: the provider sends the broker elsewhere, and the
// key stays at home.
func TestT5ARedirectIsNotFollowed(t *testing.T) {
	forBoth(t, func(t *testing.T, p broker.Protocol) {
		elsewhere := mock.New()
		thief := httptest.NewServer(elsewhere)
		defer thief.Close()
		gw := newGateway(t, p, grantOf(), mock.New(mock.Turn{Fault: mock.Redirect, To: thief.URL + "/v1/messages"}))
		got := gw.post(path(p), question(p, ""))
		require.Equal(t, http.StatusBadGateway, got.status)
		require.Empty(t, got.header.Get("Location"))
		require.Empty(t, elsewhere.Requests())
		require.Equal(t, broker.Redirected, gw.result().Failure.Kind)
	})
}

// TestT5WhatNeedsNoProviderIsAnsweredHere: liveness, models and token counts.
func TestT5WhatNeedsNoProviderIsAnsweredHere(t *testing.T) {
	forBoth(t, func(t *testing.T, p broker.Protocol) {
		gw := newGateway(t, p, grantOf(), mock.New())
		as := func(method string) func(*http.Request) { return func(r *http.Request) { r.Method = method } }
		require.Equal(t, http.StatusOK, gw.post("/", "", as(http.MethodHead), func(r *http.Request) { r.Header.Del("X-Api-Key") }).status)
		models := gw.post("/v1/models", "", as(http.MethodGet))
		require.Equal(t, http.StatusOK, models.status)
		require.Contains(t, models.body, "granted-model")
		count := map[broker.Protocol]string{
			broker.Anthropic: "/v1/messages/count_tokens?beta=true", broker.OpenAI: "/v1/responses/input_tokens",
		}[p]
		counted := gw.post(count, question(p, ""))
		require.Equal(t, http.StatusOK, counted.status)
		require.Contains(t, counted.body, `"input_tokens":`)
		require.Empty(t, gw.model.Requests())
		require.Zero(t, gw.result().Requests)
	})
}

// TestT5TheProvidersCertificateIsChecked: a certificate that nobody vouches for
// gets no key.
func TestT5TheProvidersCertificateIsChecked(t *testing.T) {
	model := mock.New()
	provider := httptest.NewUnstartedServer(model)
	provider.Config.ErrorLog = log.New(io.Discard, "", 0)
	provider.StartTLS()
	defer provider.Close()
	up := broker.Upstream{Protocol: broker.Anthropic, BaseURL: provider.URL, Key: secret.New(operatorKey)}
	gw := openGateway(t, up, grantOf())
	require.Equal(t, http.StatusBadGateway, gw.post("/v1/messages", question(broker.Anthropic, "")).status)
	require.Empty(t, model.Requests())
	require.Equal(t, broker.Untrusted, gw.result().Failure.Kind)
	require.Zero(t, gw.session.Result().Usage.Total(), "nothing was sent")

	up.Roots = x509.NewCertPool()
	up.Roots.AddCert(provider.Certificate())
	gw = openGateway(t, up, grantOf())
	require.Equal(t, http.StatusOK, gw.post("/v1/messages", question(broker.Anthropic, "")).status)
}

// TestT5BadAddressesAndGrantsOpenNothing: no session without a key, a model,
// limits, or with an address that would carry the key in the clear.
func TestT5BadAddressesAndGrantsOpenNothing(t *testing.T) {
	up := broker.Upstream{Protocol: broker.Anthropic, Key: secret.New(operatorKey)}
	try := func(up broker.Upstream, g broker.Grant) error {
		_, err := broker.Open(context.Background(), up, g, broker.Hooks{})
		if err != nil {
			require.NotContains(t, err.Error(), operatorKey)
		}
		return err
	}
	require.NoError(t, try(up, grantOf()))
	for _, base := range []string{
		"http://api.anthropic.com", "http://10.0.0.1", "http://127.0.0.1.evil.example", "ftp://x", "api.anthropic.com", "//x", "https://user:pw@x",
		"https://x?y=z", "https://x#y", "https://x?", "file:///etc/passwd", "https://", "http://[::2]", "unix:/x", "https:x", " https://x",
	} {
		bad := up
		bad.BaseURL = base
		require.Error(t, try(bad, grantOf()), base)
	}
	for name, edit := range map[string]func(*broker.Upstream, *broker.Grant){
		"no protocol":      func(u *broker.Upstream, _ *broker.Grant) { u.Protocol = "gemini" },
		"no key":           func(u *broker.Upstream, _ *broker.Grant) { u.Key = secret.Value{} },
		"two lines of key": func(u *broker.Upstream, _ *broker.Grant) { u.Key = secret.New("a\r\nX-Evil: b") },
		"no model":         func(_ *broker.Upstream, g *broker.Grant) { g.Model = "" },
		"odd model":        func(_ *broker.Upstream, g *broker.Grant) { g.Model = "a b" },
		"no requests":      func(_ *broker.Upstream, g *broker.Grant) { g.Requests = 0 },
		"no tokens":        func(_ *broker.Upstream, g *broker.Grant) { g.OutputTokens = 0 },
		"negative limit":   func(_ *broker.Upstream, g *broker.Grant) { g.RunTokens = -1 },
		"a person's name":  func(_ *broker.Upstream, g *broker.Grant) { g.Asker = "someone@example.org" },
		"an odd tool":      func(_ *broker.Upstream, g *broker.Grant) { g.Tools = []string{"Read\n"} },
		"nothing":          func(_ *broker.Upstream, g *broker.Grant) { *g = broker.Grant{} },
	} {
		u, g := up, grantOf()
		edit(&u, &g)
		require.Error(t, try(u, g), name)
	}
}
