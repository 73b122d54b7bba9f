package discord

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"sync"
	"time"

	"github.com/bwmarrin/discordgo"
)

// link is one session of the library. The library may hang with its lock held,
// so nothing here waits for it without a limit, and its socket can be closed
// behind its back.
type link struct {
	session *discordgo.Session
	ended   chan struct{} // the library gave the connection up
	onFrame func(time.Time)
	timeout time.Duration

	mu     sync.Mutex
	wire   net.Conn // the socket of the current connection
	killed bool     // no further connection may be made
}

// newLink makes a session with everything off that the library does by itself:
// state, reconnecting, retries, its log, and the proxy of the environment.
func newLink(a *Adapter) (*link, error) {
	s, err := discordgo.New("Bot " + a.cfg.Token.Reveal())
	if err != nil {
		return nil, errors.New("discord: the library refuses the token")
	}
	l := &link{session: s, ended: make(chan struct{}, 1), onFrame: a.state.frame, timeout: a.cfg.Timing.Hello}
	s.SyncEvents, s.StateEnabled = true, false
	s.ShouldReconnectOnError, s.ShouldReconnectVoiceOnSessionError = false, false
	s.ShouldRetryOnRateLimit, s.MaxRestRetries = false, 0
	s.LogLevel, s.Compress = -1, false
	s.Identify.Intents = discordgo.IntentGuilds | discordgo.IntentGuildMessages | discordgo.IntentDirectMessages
	s.UserAgent = userAgent
	s.Client = &http.Client{
		Timeout: a.cfg.Timing.Request, Transport: &elsewhere{a.rest.origin, a.rest.http.Transport},
		CheckRedirect: a.rest.http.CheckRedirect,
	}
	dialer := *s.Dialer // a copy: the library hands out one for the whole process
	dialer.Proxy, dialer.NetDialContext, dialer.HandshakeTimeout = nil, l.dial, a.cfg.Timing.Hello
	s.Dialer = &dialer
	s.AddHandler(func(_ *discordgo.Session, e *discordgo.Event) { a.hear(e) })
	s.AddHandler(func(_ *discordgo.Session, _ *discordgo.Disconnect) {
		select {
		case l.ended <- struct{}{}:
		default:
		}
	})
	return l, nil
}

// elsewhere sends the library's requests to another origin, for this session
// only. The library's own way are variables of the whole process.
type elsewhere struct {
	origin *url.URL
	next   http.RoundTripper
}

// RoundTrip rewrites scheme, host and path of a copy of the request.
func (t *elsewhere) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.URL.Scheme, r.URL.Host, r.Host = t.origin.Scheme, t.origin.Host, ""
	r.URL.Path = t.origin.Path + r.URL.Path
	r.URL.RawPath = ""
	return t.next.RoundTrip(r)
}

// dial opens the socket of the gateway and keeps it.
func (l *link) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{Timeout: l.timeout}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.killed {
		_ = conn.Close()
		return nil, net.ErrClosed
	}
	l.wire = &heard{conn, l.onFrame}
	return l.wire, nil
}

// heard is a socket that notes when something came.
type heard struct {
	net.Conn
	note func(time.Time)
}

// Read notes the time of what it reads.
func (h *heard) Read(p []byte) (int, error) {
	n, err := h.Conn.Read(p)
	if n > 0 {
		h.note(time.Now())
	}
	return n, err
}

// kill closes the socket for good. Whatever the library waits for, it comes back
// with an error.
func (l *link) kill() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.killed = true
	if l.wire != nil {
		_ = l.wire.Close()
	}
}

// The faults of a connection.
var (
	errNoHello = errors.New("the gateway did not say hello in time")
	errNoReady = errors.New("the gateway did not become ready in time")
	errSilent  = errors.New("the gateway fell silent")
	errEnded   = errors.New("the connection ended")
	errStuck   = errors.New("the library hangs and was left behind")
)

// open connects: with a new session the first time, by resuming afterwards. The
// library's own call has no limit, so its socket is closed when time is over.
// Guarded by tests/contract TestDiscordSilentGatewayIsLeft.
func (l *link) open(ctx context.Context) error {
	select {
	case <-l.ended: // of the connection before
	default:
	}
	opened := make(chan error, 1)
	go func() { opened <- l.session.Open() }()
	timer := time.NewTimer(l.timeout)
	defer timer.Stop()
	why := errNoHello
	select {
	case err := <-opened:
		return closing(err)
	case <-ctx.Done():
		why = ctx.Err()
	case <-timer.C:
	}
	l.kill()
	grace := time.NewTimer(mostGrace)
	defer grace.Stop()
	select {
	case <-opened:
		return why
	case <-grace.C:
		return fmt.Errorf("%w: %w", errStuck, why)
	}
}

// mostGrace is how long the library may take to notice that its socket is gone.
const mostGrace = 3 * time.Second

var closeCode = regexp.MustCompile(`^websocket: close (\d{4})\b`)

// closing turns an error of the library into ours. The close code is read from
// its text, since its type belongs to a module that only the library imports.
// What else the library says may hold an address or a header and is not kept.
func closing(err error) error {
	if err == nil {
		return nil
	}
	if m := closeCode.FindStringSubmatch(err.Error()); m != nil {
		code, _ := strconv.Atoi(m[1])
		if fatal(code) {
			return &FatalError{Code: code}
		}
		return fmt.Errorf("the gateway closed the connection with %d", code)
	}
	var refused *discordgo.RESTError
	if errors.As(err, &refused) && refused.Response != nil {
		if refused.Response.StatusCode == http.StatusUnauthorized {
			return &FatalError{Code: 4004}
		}
		return fmt.Errorf("the gateway's address: discord answered with %d", refused.Response.StatusCode)
	}
	var network net.Error
	if errors.As(err, &network) {
		return fmt.Errorf("connect: %w", bare(err))
	}
	return errors.New("the gateway did not speak as expected")
}

// close ends the session in order, but not for long: the library waits a second
// in it, and longer where the socket is dead.
func (l *link) close(wait time.Duration) {
	done := make(chan struct{})
	go func() {
		_ = l.session.Close()
		close(done)
	}()
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	}
	l.kill()
}
