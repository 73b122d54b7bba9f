package slack

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/gorilla/websocket"
	slackgo "github.com/slack-go/slack"
	"github.com/slack-go/slack/socketmode"
)

const (
	readLimit  = 8 << 20         // bytes of one frame
	drainGrace = 5 * time.Second // for posts in hand when Run is told to end
	quietHint  = time.Hour       // connected and no event at all: the hint
)

// Run connects and stays connected until ctx ends. What Slack refuses for good is
// tried again slowly, and Ready says why. At the end it takes no new posts,
// stores and acknowledges those in hand, and closes the socket.
func (a *Adapter) Run(ctx context.Context) error {
	if !a.started.CompareAndSwap(false, true) {
		return errors.New("slack: the adapter runs once")
	}
	in, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	a.door.open(in)
	a.supervise(ctx)
	a.drain()
	cancel()
	a.door.workers.Wait()
	a.door.errands.Wait()
	a.door.roster.close()
	a.stopped.Store(true)
	a.web.http.CloseIdleConnections()
	a.health.set(false, "stopped")
	return nil
}

// drain lets the posts in hand be stored. Only Run's goroutine puts posts into
// the queues, so nothing comes after.
func (a *Adapter) drain() {
	select {
	case <-a.stopping:
		return
	default:
	}
	close(a.stopping)
	a.door.close()
	done := make(chan struct{})
	go func() {
		a.door.workers.Wait()
		close(done)
	}()
	timer := time.NewTimer(drainGrace)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
		a.log.Warn("slack posts were still in hand; Slack will send them again")
	}
}

// supervise keeps one session at a time alive.
func (a *Adapter) supervise(ctx context.Context) {
	failures := 0
	for ctx.Err() == nil {
		a.health.set(false, "connecting")
		helloed, err := a.session(ctx)
		if ctx.Err() != nil {
			return
		}
		if helloed {
			failures = 0
		}
		pause := a.afterwards(err, failures)
		failures++
		a.pause(ctx, pause)
	}
}

// afterwards says how long to wait after a session that ended.
func (a *Adapter) afterwards(err error, failures int) time.Duration {
	if permanent, ok := errors.AsType[*PermanentError](err); ok {
		a.health.set(false, permanent.Error())
		a.log.Error("slack refuses the connection; it is tried again slowly", "err", err, "pause", a.cfg.Patience)
		return a.cfg.Patience
	}
	pause := backoff(failures, a.cfg.Patience)
	if limited, ok := errors.AsType[*limitedError](err); ok {
		pause = limited.wait
	}
	a.health.set(false, "reconnecting: "+err.Error())
	a.log.Warn("slack connection lost", "err", err, "pause", pause)
	return pause
}

// errSilent says that a socket was open and nothing came.
var errSilent = errors.New("slack said nothing for too long")

// session runs one client of the library until it fails, falls silent or ctx
// ends. The library reconnects by itself where Slack asks for it. A whole client
// is thrown away at a time, with its queue of acknowledgements.
func (a *Adapter) session(ctx context.Context) (helloed bool, err error) {
	if _, err := a.web.whoami(ctx); err != nil {
		return false, err
	}
	own, cancel := context.WithCancel(context.WithoutCancel(ctx))
	client := socketmode.New(a.web.api, socketmode.OptionDialer(dialer()), socketmode.OptionReadLimit(readLimit),
		socketmode.OptionPingInterval(a.cfg.Patience), socketmode.OptionLog(silent{}))
	ended := make(chan error, 1)
	go func() { ended <- client.RunContext(own) }()
	w := watch{adapter: a, client: client, since: time.Now()}
	err = w.until(ctx, ended)
	if ctx.Err() != nil {
		a.drain()
	}
	cancel()
	if err != errEnded {
		<-ended
	}
	return w.helloed, w.why(err)
}

// dialer takes no proxy from the environment. The buffer holds every
// acknowledgement, since Slack does not put frames together again.
func dialer() *websocket.Dialer {
	return &websocket.Dialer{HandshakeTimeout: callTimeout, WriteBufferSize: 32 << 10}
}

var errEnded = errors.New("the library gave up")

// watch follows one session.
type watch struct {
	adapter *Adapter
	client  *socketmode.Client
	open    bool // Slack has said hello on this socket
	helloed bool // it has on one of this session
	since   time.Time
	hinted  bool
	fault   error
}

// until always reads the library's events, since the library stops without a
// reader.
func (w *watch) until(ctx context.Context, ended <-chan error) error {
	ticker := time.NewTicker(w.adapter.cfg.Patience / 4)
	defer ticker.Stop()
	for {
		select {
		case event := <-w.client.Events:
			if err := w.on(ctx, event); err != nil {
				return err
			}
		case err := <-ended:
			w.fault = err
			return errEnded
		case <-ticker.C:
			if err := w.tick(); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (w *watch) why(err error) error {
	if err == errEnded {
		return w.adapter.web.fault("apps.connections.open", w.fault)
	}
	return err
}

func (w *watch) tick() error {
	if !w.open && time.Since(w.since) > w.adapter.cfg.Patience {
		return errSilent
	}
	if w.open && !w.hinted && w.adapter.health.quiet(quietHint) {
		w.hinted = true
		w.adapter.log.Info("slack is connected and has sent no event for a long time; " +
			"if people did write, look at the event subscriptions of the app")
	}
	return nil
}

func (w *watch) on(ctx context.Context, event socketmode.Event) error {
	a := w.adapter
	switch event.Type {
	case socketmode.EventTypeConnecting:
		w.open, w.since = false, time.Now()
		a.health.set(false, "connecting")
	case socketmode.EventTypeHello:
		w.open, w.helloed = true, true
		a.health.set(true, "connected")
		a.hello(event.Request.NumConnections)
	case socketmode.EventTypeConnectionError:
		if failed, ok := event.Data.(*slackgo.ConnectionErrorEvent); ok {
			return a.web.fault("apps.connections.open", failed.ErrorObj)
		}
	case socketmode.EventTypeErrorBadMessage:
		w.odd(ctx, event)
	case socketmode.EventTypeEventsAPI:
		a.health.event()
		a.door.arrive(ctx, w.client, event.Request)
	case socketmode.EventTypeSlashCommand, socketmode.EventTypeInteractive:
		a.log.Debug("slack envelope ignored", "why", "commands and buttons are not used")
		return w.ack(ctx, event.Request.EnvelopeID)
	default:
		a.log.Debug("slack socket", "what", string(event.Type))
	}
	return nil
}

// odd takes a frame that the library could not read: what it does not know may
// still be a post, and unacknowledged it would come again and again.
func (w *watch) odd(ctx context.Context, event socketmode.Event) {
	bad, ok := event.Data.(*socketmode.ErrorBadMessage)
	var req socketmode.Request
	if !ok || json.Unmarshal(bad.Message, &req) != nil || req.EnvelopeID == "" {
		w.adapter.log.Debug("slack frame ignored", "why", "it does not read as an envelope")
		return
	}
	w.adapter.health.event()
	w.adapter.door.arrive(ctx, w.client, &req)
}

func (w *watch) ack(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, ackTimeout)
	defer cancel()
	return w.client.AckCtx(ctx, id, nil)
}

// hello looks at how many sockets the app has. This bot opens one, so another
// one is another bot of the operator, or somebody with the app token: Slack
// gives each event to only one of them.
func (a *Adapter) hello(connections int) {
	if connections > 1 {
		a.log.Warn("more sockets are open for this app than this bot has opened: another bot runs with its app token, "+
			"or an old socket has not ended yet", "connections", connections)
	}
	a.log.Info("slack is connected", "connections", connections)
}
