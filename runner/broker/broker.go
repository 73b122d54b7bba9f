// Package broker is the one way from a sandbox to a model. It holds the key,
// which never enters the sandbox, and serves one run on the loopback listener
// that the sandbox handed out.
//
// It is not a proxy: nothing that the sandbox sent is passed on as it came, and
// nothing of the provider's answer either. A request is rebuilt from the fields,
// blocks and values that are known here and needed by the CLIs that were
// measured; whatever is unknown is refused and stands in the receipt. Model,
// tokens, storage and identity are the grant's, whatever is asked. An answer is
// read while it is relayed: text, tool calls and tokens are taken from it, and a
// tool call that the grant does not name ends the run. The package follows no
// redirect, reads no environment, logs nothing, and puts no key into an error.
package broker

import (
	"context"
	"crypto/rand"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"parlour/guardrail/secret"
	"parlour/runner/policy"
)

// Protocol is the language of a model's provider. The zero Protocol is none.
type Protocol string

// The protocols.
const (
	Anthropic Protocol = "anthropic" // Messages
	OpenAI    Protocol = "openai"    // Responses
)

// Upstream is the provider.
type Upstream struct {
	Protocol Protocol
	// BaseURL replaces the provider's own address, such as
	// https://gateway.example/llm. The protocol's path, which begins with /v1,
	// is put behind it; a /v1 at its end counts once. Without TLS only a loopback
	// address is taken.
	BaseURL string
	Key     secret.Value
	Roots   *x509.CertPool // nil: the system's
}

// Grant is what one run may do. The zero Grant permits nothing and Open refuses
// it.
type Grant struct {
	Model        string   // used whatever the CLI asks for
	Tools        []string // names on the wire; none: no tool is offered and every call ends the run
	Requests     int      // model requests of the run
	OutputTokens int      // of one answer
	RunTokens    int      // output tokens of all answers together; 0: Requests times OutputTokens
	Sent         int64    // bytes of all requests as the CLI sent them; 0: 64 MiB
	Received     int64    // bytes of all answers as the CLI gets them; 0: 64 MiB
	// Silence is the longest time without a byte from the provider; 0: none is
	// too long, and the caller watches by Hooks.Alive.
	Silence time.Duration
	Asker   string // keyed hash of who asks, for the provider; empty: none is named
	Cache   string // key of the provider's prompt cache, one for a tier; empty: none
}

const defaultBytes = 64 << 20

// For gives the grant that a policy allows. tools are the names that the CLI
// uses on the wire for the policy's tools, and only they.
func For(e policy.Effective, model string, tools []string) (Grant, error) {
	switch {
	case e.Network() != policy.ModelOnly:
		return Grant{}, errors.New("the policy allows no model")
	case len(e.Tools()) == 0 && len(tools) > 0:
		return Grant{}, errors.New("the policy allows no tools")
	}
	l := e.Limits()
	return Grant{
		Model: model, Tools: slices.Clone(tools), Requests: l.ModelRequests, OutputTokens: l.OutputTokens, Silence: l.Stall,
	}, nil
}

// Hooks tell the caller what happens during the run. Both may be nil and must
// not block.
type Hooks struct {
	Alive func() // a byte came from the provider
	// End says that the run can go on no more and must end: a *ViolationError, a
	// *LimitError or a *Failure. It is called at most once.
	End func(error)
}

// Session is the gateway of one run. It is safe for parallel use.
type Session struct {
	up     Upstream
	base   string
	grant  Grant
	hooks  Hooks
	speech dialect
	token  secret.Value
	client *http.Client
	ctx    context.Context // the run's
	cancel context.CancelFunc
	ledger *ledger

	mu     sync.Mutex
	server *http.Server
	closed bool
	once   sync.Once // for Hooks.End
}

// dialect is what differs between the protocols.
type dialect struct {
	base    string
	path    string
	routes  map[string]route
	rebuild func(s *shape, root *node, most int) (request any, stream bool)
	turn    func(Grant) turn
	models  func(model string) any
	counted func(tokens int) any
	fault   func(status int, text string) any
	broken  func(text string) []byte // the end of a stream that failed
}

// tokenBytes is the size of a run's token: 256 bits.
const tokenBytes = 32

// Open prepares the gateway of one run, which ends with ctx or Close.
func Open(ctx context.Context, up Upstream, g Grant, h Hooks) (*Session, error) {
	d, err := speech(up.Protocol)
	if err != nil {
		return nil, err
	}
	base, err := baseURL(up.BaseURL, d.base)
	if err != nil {
		return nil, err
	}
	if up.Key.Empty() || strings.ContainsAny(up.Key.Reveal(), "\r\n\x00") {
		return nil, errors.New("the model's key is missing or not one line")
	}
	if g, err = g.complete(); err != nil {
		return nil, err
	}
	random := make([]byte, tokenBytes)
	if _, err := rand.Read(random); err != nil {
		return nil, fmt.Errorf("make a token: %w", err)
	}
	s := &Session{
		up: up, base: base, grant: g, hooks: h, speech: d, token: secret.New(hex.EncodeToString(random)),
		client: client(up.Roots), ledger: newLedger(g, hostOf(base)),
	}
	s.ctx, s.cancel = context.WithCancel(ctx)
	return s, nil
}

func speech(p Protocol) (dialect, error) {
	switch p {
	case Anthropic:
		return anthropicSpeech(), nil
	case OpenAI:
		return openaiSpeech(), nil
	}
	return dialect{}, fmt.Errorf("no broker for the protocol %q", p)
}

// baseURL checks an address of the provider and gives it without a slash, and
// without the /v1 that the paths bring, at its end.
func baseURL(given, standard string) (string, error) {
	if given == "" {
		given = standard
	}
	u, err := url.Parse(given)
	switch {
	case err != nil || u.Host == "" || u.Opaque != "":
		return "", errors.New("the model's base URL is not an address")
	case u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || strings.Contains(given, "#"):
		return "", errors.New("the model's base URL may hold no user, query or fragment")
	case u.Scheme != "https" && (u.Scheme != "http" || !loopback(u.Hostname())):
		return "", errors.New("the model's base URL must be https, or http on this machine")
	}
	return strings.TrimSuffix(strings.TrimRight(u.String(), "/"), "/v1"), nil
}

func loopback(host string) bool {
	return host == "localhost" || host == "127.0.0.1" || host == "::1"
}

func hostOf(base string) string {
	u, err := url.Parse(base)
	if err != nil {
		return ""
	}
	return u.Host
}

var (
	modelName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:/@-]{0,127}$`)
	toolName  = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$`)
	hashLike  = regexp.MustCompile(`^[A-Za-z0-9_-]{0,64}$`)
)

// complete checks a grant and fills in what may be left out.
func (g Grant) complete() (Grant, error) {
	g.Tools = slices.Clone(g.Tools)
	switch {
	case !modelName.MatchString(g.Model):
		return g, errors.New("the grant names no model")
	case g.Requests < 1 || g.OutputTokens < 1 || g.RunTokens < 0 || g.Sent < 0 || g.Received < 0 || g.Silence < 0:
		return g, errors.New("the grant has no limits")
	case !hashLike.MatchString(g.Asker) || !hashLike.MatchString(g.Cache):
		return g, errors.New("the grant names the asker by something else than a hash")
	}
	for _, tool := range g.Tools {
		if !toolName.MatchString(tool) {
			return g, errors.New("the grant names a tool that cannot be one")
		}
	}
	if g.RunTokens == 0 {
		g.RunTokens = g.Requests * g.OutputTokens
	}
	if g.Sent == 0 {
		g.Sent = defaultBytes
	}
	if g.Received == 0 {
		g.Received = defaultBytes
	}
	return g, nil
}

// Token gives the secret by which the CLI shows that it belongs to this run. It
// works on this session's listener only, and until Close.
func (s *Session) Token() secret.Value { return s.token }

// end tells the caller once that the run must end.
func (s *Session) end(err error) {
	s.once.Do(func() {
		if s.hooks.End != nil {
			s.hooks.End(err)
		}
	})
}

// Close ends the session: connections are cut, the token is worth nothing. It
// may be called repeatedly.
func (s *Session) Close() error {
	s.mu.Lock()
	s.closed = true
	server := s.server
	s.mu.Unlock()
	s.cancel()
	var err error
	if server != nil {
		err = server.Close()
	}
	s.ledger.close()
	s.client.CloseIdleConnections()
	return err
}

// Result gives what the relayed bytes said. It is complete after Close.
func (s *Session) Result() Result { return s.ledger.result() }
