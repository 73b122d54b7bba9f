package discord

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"parlour/guardrail/secret"
)

// APIError is a request that Discord refused. It holds no header of the request
// and nothing of its body.
type APIError struct {
	Status  int
	Code    int    // Discord's own, 0 where it gave none
	Message string // Discord's own words, cut short
	Route   string
}

// Error gives status, code and words.
func (e *APIError) Error() string {
	return fmt.Sprintf("discord answered %s with %d (code %d: %s)", e.Route, e.Status, e.Code, e.Message)
}

// Permanent says whether an outcome that is refused so will never be taken. A
// token that Discord does not know is the operator's to change, and then it may.
func (e *APIError) Permanent() bool { return e.lasting() && e.Status != http.StatusUnauthorized }

// lasting says whether the same request will be refused again.
func (e *APIError) lasting() bool {
	return e.Status >= 300 && e.Status < 500 && e.Status != http.StatusTooManyRequests && e.Status != http.StatusRequestTimeout
}

// The codes of Discord that are told apart.
const (
	codeUnknownMember  = 10007
	codeUnknownMessage = 10008
	codeUnknownUser    = 10013
	codeHasThread      = 160004
)

// client makes requests. It follows no redirect, takes no proxy from the
// environment, waits where Discord says so, and tries again a bounded number of
// times.
type client struct {
	origin *url.URL
	token  secret.Value
	http   *http.Client
	hasty  bool // one attempt, and none where Discord asks to wait
	*limits
}

// limits are the pauses that Discord has asked for.
type limits struct {
	mu    sync.Mutex
	until map[string]time.Time // by what is done where; "" is for all of it
}

// inHaste gives a client of the same account for what is not worth waiting.
func (c *client) inHaste() *client {
	hasty := *c
	hasty.hasty = true
	return &hasty
}

const (
	mostFaults  = 6  // attempts that met a fault
	mostLimited = 20 // attempts that met a limit
	firstPause  = 500 * time.Millisecond
	mostPause   = 20 * time.Second
	mostBody    = 16 << 20 // more than a hundred of the longest messages, so that nobody can make them unreadable
	restVersion = "/api/v10"
	userAgent   = "DiscordBot (https://discord.com, 1) Parlour"
)

func newClient(origin *url.URL, token secret.Value, timeout time.Duration) *client {
	transport := &http.Transport{
		DialContext:         (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
		TLSHandshakeTimeout: 10 * time.Second,
		ForceAttemptHTTP2:   true,
		MaxIdleConns:        8, MaxIdleConnsPerHost: 8, IdleConnTimeout: 30 * time.Second,
	}
	return &client{
		origin: origin, token: token, limits: &limits{until: map[string]time.Time{}},
		http: &http.Client{
			Transport: transport, Timeout: timeout,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

// do makes a request under ctx, with retries, and decodes the answer into out.
func (c *client) do(ctx context.Context, method, route string, body, out any) error {
	encoded, err := encode(body)
	if err != nil {
		return err
	}
	pause, faults, limited := firstPause, 0, 0
	for {
		if err := c.waitFor(ctx, method, route); err != nil {
			return err
		}
		again, err := c.once(ctx, method, route, encoded, out)
		if err == nil || !again || c.hasty || ctx.Err() != nil {
			return err
		}
		var refused *APIError
		if errors.As(err, &refused) && refused.Status == http.StatusTooManyRequests {
			if limited++; limited == mostLimited {
				return err
			}
			continue // how long to wait is known by now
		}
		if faults++; faults == mostFaults {
			return err
		}
		if err := sleep(ctx, pause); err != nil {
			return fmt.Errorf("%s: %w", route, err)
		}
		pause = min(2*pause, mostPause)
	}
}

func encode(body any) ([]byte, error) {
	if body == nil {
		return nil, nil
	}
	encoded, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("encode a request: %w", err)
	}
	return encoded, nil
}

// once makes one request and says whether trying again may help.
func (c *client) once(ctx context.Context, method, route string, body []byte, out any) (again bool, err error) {
	req, err := http.NewRequestWithContext(ctx, method, c.origin.String()+restVersion+route, bytes.NewReader(body))
	if err != nil {
		return false, fmt.Errorf("%s: the address is not valid", route)
	}
	req.Header.Set("Authorization", "Bot "+c.token.Reveal())
	req.Header.Set("User-Agent", userAgent)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return true, fmt.Errorf("%s: %w", route, bare(err))
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, mostBody))
	if err != nil {
		return true, fmt.Errorf("%s: read the answer: %w", route, err)
	}
	c.note(bucket(method, route), resp.Header)
	if resp.StatusCode >= 200 && resp.StatusCode < 300 {
		return false, decodeInto(route, answer, out)
	}
	refused := &APIError{Status: resp.StatusCode, Route: route}
	refused.explain(answer)
	if resp.StatusCode == http.StatusTooManyRequests {
		c.limited(bucket(method, route), resp.Header, answer)
	}
	return !refused.lasting(), refused
}

// bare takes the address out of an error of the http package: it says nothing
// new and could be a proxy of the operator.
func bare(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

func decodeInto(route string, answer []byte, out any) error {
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(answer, out); err != nil {
		return fmt.Errorf("%s: the answer is not readable: %w", route, err)
	}
	return nil
}

func (e *APIError) explain(answer []byte) {
	var said struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	}
	if json.Unmarshal(answer, &said) == nil {
		e.Code = said.Code
		e.Message, _ = cutTo(plain(said.Message), 200)
	}
}

// note keeps how long a bucket has to rest.
func (l *limits) note(key string, h http.Header) {
	if h.Get("X-RateLimit-Remaining") == "0" {
		l.rest(key, seconds(h.Get("X-RateLimit-Reset-After"), 0))
	}
}

// limited keeps what a 429 says. One without JSON comes from in front of
// Discord and is about everything that this machine sends.
func (l *limits) limited(key string, h http.Header, answer []byte) {
	var said struct {
		After  float64 `json:"retry_after"`
		Global bool    `json:"global"`
	}
	wait := seconds(h.Get("Retry-After"), 5*time.Second)
	if json.Unmarshal(answer, &said) != nil {
		said.Global = true
	} else if said.After > 0 {
		wait = duration(said.After)
	}
	if said.Global || h.Get("X-RateLimit-Global") != "" {
		key = ""
	}
	l.rest(key, wait)
}

func (l *limits) rest(key string, wait time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	for k, until := range l.until {
		if until.Before(now) {
			delete(l.until, k)
		}
	}
	if until := now.Add(wait); until.After(l.until[key]) {
		l.until[key] = until
	}
}

// free says when a bucket may be used again.
func (l *limits) free(key string) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	until := l.until[key]
	if all := l.until[""]; all.After(until) {
		return all
	}
	return until
}

// waitFor waits until a route may be used. It does not wait where ctx would end
// before, nor in haste.
func (c *client) waitFor(ctx context.Context, method, route string) error {
	for {
		until := c.free(bucket(method, route))
		wait := time.Until(until)
		if wait <= 0 {
			return nil
		}
		if end, ends := ctx.Deadline(); c.hasty || ends && end.Before(until) {
			return fmt.Errorf("%s: discord asks to wait %s: %w", route, wait.Round(time.Millisecond), context.DeadlineExceeded)
		}
		if err := sleep(ctx, wait); err != nil {
			return fmt.Errorf("%s: %w", route, err)
		}
	}
}

// bucket names the limit that a request shares with others: the channel and what
// is done there. Edits and deletions have limits of their own, so that they hold
// up no answer.
func bucket(method, route string) string {
	part := strings.Split(strings.Trim(route, "/"), "/")
	if i := strings.IndexByte(part[len(part)-1], '?'); i >= 0 {
		part[len(part)-1] = part[len(part)-1][:i]
	}
	if len(part) > 4 {
		return strings.Join(part[:3], "/") + "/" + part[4]
	}
	key := strings.Join(part[:min(len(part), 3)], "/")
	if method == http.MethodPatch || method == http.MethodDelete {
		key = method + " " + key
	}
	return key
}

func seconds(s string, otherwise time.Duration) time.Duration {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || f < 0 || math.IsNaN(f) || math.IsInf(f, 0) {
		return otherwise
	}
	return duration(f)
}

// duration bounds what a server may ask for, so that no value overflows.
func duration(f float64) time.Duration {
	return time.Duration(min(max(f, 0), 24*3600) * float64(time.Second))
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
