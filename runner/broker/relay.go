package broker

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"time"
)

// order is one request as it goes to the provider.
type order struct {
	payload []byte
	header  http.Header
	stream  bool
	tokens  int // reserved
}

// forward sends an order, relays its answer and settles the bill, whatever
// happens on the way.
func (s *Session) forward(w http.ResponseWriter, r *http.Request, o order) {
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	b := bill{reserved: o.tokens, bytes: len(o.payload)}
	defer func() { s.finish(b) }()

	p := pulse(s.grant.Silence, func() { cancel(errSilent) }, s.hooks.Alive)
	defer p.stop()
	out := &outlet{w: w, session: s}
	resp, failure, err := s.ask(ctx, o)
	if err != nil {
		b.err, b.failure = err, failure
		b.free = failure != nil && (failure.Status > 0 || failure.Kind == Unreachable || failure.Kind == Untrusted)
		out.fail(failure)
		return
	}
	defer func() { _ = resp.Body.Close() }()
	p.beat()
	answer := s.speech.turn(s.grant)
	b.err = errBroken
	if plainAnswer(resp, o.stream) {
		b.err = s.relay(out, p.watch(resp.Body), answer, o.stream)
	}
	b.account = answer.account()
	b.failure = s.judge(ctx, b.err, requestID(resp.Header))
	if b.err != nil {
		out.fail(b.failure)
	}
}

// finish settles a bill, and where it is one of a failure it ends the run: a CLI
// that went on by itself would continue an answer of which a part is lost.
func (s *Session) finish(b bill) {
	s.ledger.settle(b)
	if b.failure != nil {
		s.end(b.failure)
	}
}

// judge says what the end of a relay means: a failure of the provider, or a
// reason for which the run must end.
func (s *Session) judge(ctx context.Context, err error, id string) *Failure {
	var call *ViolationError
	var limit *LimitError
	var said *errUpstream
	switch {
	case err == nil:
		return nil
	case errors.As(err, &call):
		s.ledger.violate(call)
		s.end(call)
		return nil
	case errors.As(err, &limit):
		s.end(limit)
		return nil
	case errors.As(err, &said):
		return &Failure{Kind: saidKind(said.kind), Reason: said.kind, RequestID: id}
	case errors.Is(context.Cause(ctx), errSilent):
		return &Failure{Kind: Silent, RequestID: id}
	case errors.Is(err, errGone) || ctx.Err() != nil:
		return nil
	}
	return &Failure{Kind: BrokenStream, RequestID: id}
}

// saidKind is the kind of an error that came inside a stream.
func saidKind(reason string) FailureKind {
	switch reason {
	case "overloaded_error", "server_is_overloaded":
		return Overloaded
	case "rate_limit_error", "rate_limit_exceeded", "insufficient_quota":
		return RateLimited
	case "authentication_error", "permission_error", "invalid_api_key":
		return Unauthorized
	case "invalid_request_error", "invalid_prompt", "context_length_exceeded", "request_too_large", "not_found_error", "model_not_found":
		return Rejected
	}
	return ServerError
}

func (s *Session) relay(out *outlet, in io.Reader, answer turn, stream bool) error {
	if !stream {
		return relayWhole(out, in, answer)
	}
	events := newEvents(in)
	for !answer.account().done {
		data, err := events.next()
		switch {
		case errors.Is(err, io.EOF):
			return errBroken
		case err != nil:
			return err
		case data == nil:
			err = out.event([]byte(":\n\n"))
		case !bytes.Equal(data, []byte("[DONE]")):
			var piece []byte
			if piece, err = answer.event(data); err == nil && piece != nil {
				err = out.event(piece)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func relayWhole(out *outlet, in io.Reader, answer turn) error {
	data, err := io.ReadAll(io.LimitReader(in, maxWhole+1))
	if err != nil {
		return err
	}
	if len(data) > maxWhole {
		return errBroken
	}
	piece, err := answer.whole(data)
	if err != nil {
		return err
	}
	return out.write("application/json", piece)
}

// outlet writes an answer to the CLI. Its headers are ours; none of the
// provider's is passed on. Guarded by tests/attacks TestT20NothingOfTheProviderButTheAnswer.
type outlet struct {
	w       http.ResponseWriter
	session *Session
	begun   bool
}

func (o *outlet) event(data []byte) error { return o.write("text/event-stream", data) }

func (o *outlet) write(media string, data []byte) error {
	if limit := o.session.ledger.receive(len(data)); limit != nil {
		return limit
	}
	if !o.begun {
		o.begun = true
		o.w.Header().Set("Content-Type", media)
		o.w.Header().Set("Cache-Control", "no-store")
		o.w.WriteHeader(http.StatusOK)
	}
	c := http.NewResponseController(o.w)
	if err := c.SetWriteDeadline(time.Now().Add(writeTime)); err != nil {
		return errGone
	}
	if _, err := o.w.Write(data); err != nil {
		return errGone
	}
	if err := c.Flush(); err != nil {
		return errGone
	}
	return nil
}

// fail ends an answer with a fixed text: as a status where nothing was relayed
// yet, else as the protocol's own error.
func (o *outlet) fail(f *Failure) {
	status, text := failText(f)
	if !o.begun {
		o.session.reply(o.w, status, o.session.speech.fault(status, text))
		return
	}
	_, _ = o.w.Write(o.session.speech.broken(text))
	_ = http.NewResponseController(o.w).Flush()
}

// failText is what the CLI is told. It names no address and no detail.
func failText(f *Failure) (int, string) {
	if f == nil {
		return http.StatusForbidden, "the run was ended"
	}
	switch f.Kind {
	case Unauthorized:
		return http.StatusForbidden, "the model refused the operator's key"
	case RateLimited:
		return http.StatusTooManyRequests, "the model takes no more requests now"
	case Overloaded:
		return statusOverloaded, "the model is overloaded"
	case ServerError:
		return http.StatusInternalServerError, "the model failed"
	case Rejected:
		return http.StatusBadRequest, "the model did not take the request"
	case Silent:
		return http.StatusGatewayTimeout, "the model fell silent"
	case BrokenStream:
		return http.StatusBadGateway, "the model's answer broke off"
	}
	return http.StatusBadGateway, "the model cannot be reached"
}

// heart tells the caller of every sign of life and stops the wait for one.
type heart struct {
	limit time.Duration
	timer *time.Timer
	alive func()
}

func pulse(limit time.Duration, die, alive func()) *heart {
	h := &heart{limit: limit, alive: alive}
	if limit > 0 {
		h.timer = time.AfterFunc(limit, die)
	}
	return h
}

func (h *heart) beat() {
	if h.alive != nil {
		h.alive()
	}
	if h.timer != nil && h.timer.Stop() {
		h.timer.Reset(h.limit)
	}
}

func (h *heart) stop() {
	if h.timer != nil {
		h.timer.Stop()
	}
}

// watch gives a reader whose every byte is a sign of life.
func (h *heart) watch(r io.Reader) io.Reader { return &watched{r, h} }

type watched struct {
	in io.Reader
	h  *heart
}

// Read reads, and beats where something came.
func (w *watched) Read(p []byte) (int, error) {
	n, err := w.in.Read(p)
	if n > 0 {
		w.h.beat()
	}
	return n, err
}
