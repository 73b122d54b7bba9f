package broker

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// How long the parts of a connection may take that no hook watches.
const (
	dialTime      = 15 * time.Second
	maxAnswerHead = 64 << 10
	maxErrorBody  = 64 << 10
	maxWhole      = maxEvent
	longestRetry  = 24 * time.Hour
)

// client talks to the provider: no proxy, no redirect, no compression, verified
// certificates. Guarded by tests/attacks TestT5ARedirectIsNotFollowed.
func client(roots *x509.CertPool) *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			DialContext:            (&net.Dialer{Timeout: dialTime}).DialContext,
			TLSClientConfig:        &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
			TLSHandshakeTimeout:    dialTime,
			DisableCompression:     true,
			MaxResponseHeaderBytes: maxAnswerHead,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// header gives all headers that go to the provider. Of the CLI's own none is
// passed on but known names of beta features.
func (s *Session) header(form *shape, from http.Header, stream bool) http.Header {
	h := http.Header{}
	h.Set("Content-Type", "application/json")
	h.Set("Accept", "application/json")
	if stream {
		h.Set("Accept", "text/event-stream")
	}
	h.Set("Accept-Encoding", "identity")
	h.Set("User-Agent", "parlour")
	if s.up.Protocol == OpenAI {
		h.Set("Authorization", "Bearer "+s.up.Key.Reveal())
		return h
	}
	h.Set("X-Api-Key", s.up.Key.Reveal())
	h.Set("Anthropic-Version", "2023-06-01")
	var kept []string
	for _, name := range strings.Split(from.Get("Anthropic-Beta"), ",") {
		switch name = strings.TrimSpace(name); {
		case slices.Contains(betas(), name) && !slices.Contains(kept, name):
			kept = append(kept, name)
		case name != "":
			form.drop("beta " + word(name))
		}
	}
	if len(kept) > 0 {
		h.Set("Anthropic-Beta", strings.Join(kept, ","))
	}
	return h
}

// ask sends a request and gives the answer, or how the provider failed.
func (s *Session) ask(ctx context.Context, o order) (*http.Response, *Failure, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.base+s.speech.path, bytes.NewReader(o.payload))
	if err != nil {
		return nil, nil, errors.New("the model's address cannot be used")
	}
	req.Header = o.header
	resp, err := s.client.Do(req)
	if err != nil {
		return nil, noAnswer(ctx, err), errNoAnswer
	}
	if resp.StatusCode != http.StatusOK {
		defer func() { _ = resp.Body.Close() }()
		return nil, badAnswer(resp), errNoAnswer
	}
	return resp, nil, nil
}

var (
	errNoAnswer = errors.New("no answer from the model")
	errSilent   = errors.New("no byte from the model for too long")
	errGone     = errors.New("the CLI hung up or the run ended")
)

// noAnswer names a failure before any answer. Where the run ended or the CLI
// hung up it is none of the provider's: nil.
func noAnswer(ctx context.Context, err error) *Failure {
	var op *net.OpError
	var name *net.DNSError
	var cert *tls.CertificateVerificationError
	switch {
	case errors.Is(context.Cause(ctx), errSilent):
		return &Failure{Kind: Silent}
	case ctx.Err() != nil:
		return nil
	case errors.As(err, &cert):
		return &Failure{Kind: Untrusted}
	case errors.As(err, &name), errors.As(err, &op) && op.Op == "dial":
		return &Failure{Kind: Unreachable}
	}
	return &Failure{Kind: Reset}
}

// badAnswer names a failure by its status. The body is read for a known code
// only and goes nowhere.
func badAnswer(resp *http.Response) *Failure {
	f := &Failure{Kind: kindOf(resp.StatusCode), Status: resp.StatusCode, RequestID: requestID(resp.Header), Reason: bodyReason(resp.Body)}
	if resp.StatusCode == http.StatusTooManyRequests || f.Kind == Overloaded {
		f.RetryAfter = retryAfter(resp.Header.Get("Retry-After"))
	}
	return f
}

func kindOf(status int) FailureKind {
	switch {
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return Unauthorized
	case status == http.StatusTooManyRequests:
		return RateLimited
	case status == http.StatusServiceUnavailable || status == statusOverloaded:
		return Overloaded
	case status >= 500:
		return ServerError
	case status >= 400:
		return Rejected
	case status >= 300:
		return Redirected
	}
	return BrokenStream
}

// requestID gives the provider's name for a request, for its support.
func requestID(h http.Header) string {
	for _, name := range []string{"Request-Id", "X-Request-Id"} {
		if id := h.Get(name); strings.HasPrefix(id, "req_") && len(id) <= 64 && plainID.MatchString(id) {
			return id
		}
	}
	return ""
}

func bodyReason(body io.Reader) string {
	data, err := io.ReadAll(io.LimitReader(body, maxErrorBody))
	var said struct {
		Error struct{ Type, Code string }
	}
	if err != nil || json.Unmarshal(data, &said) != nil {
		return ""
	}
	if code := knownReason(said.Error.Code); code != "" {
		return code
	}
	return knownReason(said.Error.Type)
}

func retryAfter(text string) time.Duration {
	if seconds, err := strconv.Atoi(text); err == nil && seconds > 0 {
		return min(time.Duration(min(seconds, int(longestRetry/time.Second)))*time.Second, longestRetry)
	}
	if at, err := http.ParseTime(text); err == nil {
		return min(max(time.Until(at).Round(time.Second), 0), longestRetry)
	}
	return 0
}

// plainAnswer says whether an answer is uncompressed and of the expected type.
func plainAnswer(resp *http.Response, stream bool) bool {
	want := "application/json"
	if stream {
		want = "text/event-stream"
	}
	media, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	coding := resp.Header.Get("Content-Encoding")
	return err == nil && media == want && (coding == "" || coding == "identity")
}
