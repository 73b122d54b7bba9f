package broker

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"io"
	"log"
	"mime"
	"net"
	"net/http"
	"regexp"
	"strings"
	"time"
)

// What one request may take to arrive, and to be taken away.
const (
	headTime  = 15 * time.Second
	bodyTime  = 60 * time.Second
	writeTime = 60 * time.Second
	maxBody   = 16 << 20
)

// bytesPerToken is a guess on the low side, for CLIs that ask how long a text is.
const bytesPerToken = 3

// Serve answers on the run's listener until Close, the end of the session's
// context, or the end of the listener. A session serves one listener once.
func (s *Session) Serve(l net.Listener) error {
	server := &http.Server{
		Handler:                      s.handler(l.Addr().String()),
		ReadHeaderTimeout:            headTime,
		ReadTimeout:                  bodyTime,
		MaxHeaderBytes:               maxHead,
		ErrorLog:                     log.New(io.Discard, "", 0),
		BaseContext:                  func(net.Listener) context.Context { return s.ctx },
		DisableGeneralOptionsHandler: true,
		Protocols:                    &http.Protocols{},
	}
	server.Protocols.SetHTTP1(true)
	server.SetKeepAlivesEnabled(false)
	s.mu.Lock()
	switch {
	case s.server != nil:
		s.mu.Unlock()
		return errors.New("the session serves a listener already")
	case s.closed:
		s.mu.Unlock()
		return errors.New("the session is closed")
	}
	s.server = server
	s.mu.Unlock()
	stop := context.AfterFunc(s.ctx, func() { _ = server.Close() })
	defer stop()
	err := server.Serve(newGate(s.ctx, l, s.turnAway))
	if errors.Is(err, http.ErrServerClosed) || errors.Is(err, net.ErrClosed) || s.ctx.Err() != nil {
		return nil
	}
	return err
}

// turnAway counts a connection that held no plain request.
func (s *Session) turnAway(fault string) {
	s.ledger.refuse(fault)
	if limit := s.ledger.come(); limit != nil {
		s.end(limit)
	}
}

// handler finds the route by the exact method and target as they were written.
// Guarded by tests/attacks TestT5PathAndTunnelTricks.
func (s *Session) handler(address string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if limit := s.ledger.come(); limit != nil {
			s.refuseLimit(w, limit)
			return
		}
		at := s.speech.routes[r.Method+" "+r.RequestURI]
		switch {
		case at == noRoute:
			s.refuse(w, http.StatusNotFound, "path: "+printable(r.Method, r.RequestURI))
		case r.Host != address:
			s.refuse(w, http.StatusMisdirectedRequest, "host: another address")
		case at == aliveRoute:
			s.ledger.served(r.Method + " " + r.RequestURI)
			w.WriteHeader(http.StatusOK)
		case !s.knows(r.Header):
			s.refuse(w, http.StatusUnauthorized, "token: not this run's")
		default:
			s.ledger.served(r.Method + " " + r.RequestURI)
			s.serve(w, r, at)
		}
	})
}

var plainTarget = regexp.MustCompile(`^(/[A-Za-z0-9_.-]+)*/?(\?[A-Za-z0-9_.=&-]*)?$`)

// longestTarget is how long a target may be to be named in the receipt.
const longestTarget = 80

// printable gives a target of a request for the receipt, if it is harmless.
func printable(method, target string) string {
	if len(target) > longestTarget || !plainTarget.MatchString(target) {
		target = "(odd target)"
	}
	return word(method) + " " + target
}

// knows says whether a request carries this run's token, once and in one place.
// Guarded by tests/attacks TestT5ATokenWorksOnItsOwnListenerOnly.
func (s *Session) knows(h http.Header) bool {
	s.mu.Lock()
	closed := s.closed
	s.mu.Unlock()
	given := append(append([]string{}, h.Values("X-Api-Key")...), h.Values("Authorization")...)
	if closed || len(given) != 1 {
		return false
	}
	token, bearer := strings.CutPrefix(given[0], "Bearer ")
	if bearer != (h.Get("Authorization") != "") {
		return false
	}
	got, want := sha256.Sum256([]byte(token)), sha256.Sum256([]byte(s.token.Reveal()))
	return subtle.ConstantTimeCompare(got[:], want[:]) == 1
}

func (s *Session) serve(w http.ResponseWriter, r *http.Request, at route) {
	if at == modelsRoute {
		s.reply(w, http.StatusOK, s.speech.models(s.grant.Model))
		return
	}
	body, ok := s.body(w, r)
	if !ok {
		return
	}
	if at == countRoute {
		s.reply(w, http.StatusOK, s.speech.counted(len(body)/bytesPerToken+1))
		return
	}
	root, err := parseJSON(body)
	if err != nil {
		s.refuse(w, http.StatusBadRequest, "body: "+err.Error())
		return
	}
	tokens, limit := s.ledger.reserve()
	if limit != nil {
		s.refuseLimit(w, limit)
		return
	}
	form := &shape{grant: s.grant}
	request, stream := s.speech.rebuild(form, root, tokens)
	header := s.header(form, r.Header, stream)
	s.ledger.note(form)
	payload, err := encode(request)
	if err != nil || len(form.faults) > 0 {
		s.ledger.release(tokens)
		s.reply(w, http.StatusBadRequest, s.speech.fault(http.StatusBadRequest, "refused: "+strings.Join(form.faults, "; ")))
		return
	}
	s.forward(w, r, order{payload: payload, header: header, stream: stream, tokens: tokens})
}

// body reads the body of a request, which must be plain JSON.
func (s *Session) body(w http.ResponseWriter, r *http.Request) ([]byte, bool) {
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch {
	case r.Header.Get("Content-Encoding") != "":
		s.refuse(w, http.StatusUnsupportedMediaType, "body: compressed")
		return nil, false
	case err != nil || media != "application/json":
		s.refuse(w, http.StatusUnsupportedMediaType, "body: not application/json")
		return nil, false
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	var long *http.MaxBytesError
	switch limit := s.ledger.send(int64(len(body))); {
	case limit != nil:
		s.refuseLimit(w, limit)
		return nil, false
	case errors.As(err, &long):
		s.refuse(w, http.StatusRequestEntityTooLarge, "body: too long")
		return nil, false
	case err != nil:
		s.refuse(w, http.StatusBadRequest, "body: not complete")
		return nil, false
	}
	return body, true
}

// refuse answers with a fixed text and leaves a line in the receipt.
func (s *Session) refuse(w http.ResponseWriter, status int, what string) {
	s.ledger.refuse(what)
	s.reply(w, status, s.speech.fault(status, "refused: "+what))
}

// refuseLimit answers that the run is over, and says so to the caller.
func (s *Session) refuseLimit(w http.ResponseWriter, limit *LimitError) {
	s.reply(w, http.StatusForbidden, s.speech.fault(http.StatusForbidden, limit.Error()))
	s.end(limit)
}

// reply writes JSON of our own. Failures are not to be tried again by the CLI:
// whether to try again is the runner's decision.
func (s *Session) reply(w http.ResponseWriter, status int, v any) {
	data, err := encode(v)
	if err != nil {
		status, data = http.StatusInternalServerError, []byte("{}")
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	if status != http.StatusOK {
		h.Set("X-Should-Retry", "false")
	}
	w.WriteHeader(status)
	_, _ = w.Write(data)
}
