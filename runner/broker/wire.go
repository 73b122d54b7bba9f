package broker

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"regexp"
	"strings"
	"sync"
)

// What a connection may hold, and how many there may be at a time.
const (
	maxHead        = 32 << 10
	maxConnections = 8
)

// gate lets in a few connections at a time and reads the head of each strictly,
// before anything lenient sees it.
type gate struct {
	net.Listener
	ctx     context.Context
	slots   chan struct{}
	refused func(what string)
}

func newGate(ctx context.Context, l net.Listener, refused func(string)) *gate {
	return &gate{Listener: l, ctx: ctx, slots: make(chan struct{}, maxConnections), refused: refused}
}

// Accept gives the next connection when there is room for it.
func (g *gate) Accept() (net.Conn, error) {
	select {
	case g.slots <- struct{}{}:
	case <-g.ctx.Done():
		return nil, net.ErrClosed
	}
	conn, err := g.Listener.Accept()
	if err != nil {
		<-g.slots
		return nil, err
	}
	return &visitor{Conn: conn, gate: g}, nil
}

// visitor is one connection. It carries one request: what follows on the same
// connection is never read as a second one.
type visitor struct {
	net.Conn
	gate    *gate
	leave   sync.Once
	checked bool
	head    []byte // checked and not yet handed on
}

// Close ends the connection and makes room.
func (v *visitor) Close() error {
	err := v.Conn.Close()
	v.leave.Do(func() { <-v.gate.slots })
	return err
}

// refusal answers what is not even a plain request. It names nothing of it.
const refusal = "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nContent-Length: 8\r\nConnection: close\r\n\r\nrefused\n"

// Read gives the bytes of a request whose head is plain; of another, none.
// Guarded by tests/attacks TestT5SmuggledRequestsAreRefused.
func (v *visitor) Read(p []byte) (int, error) {
	if !v.checked {
		v.checked = true
		if err := v.readHead(); err != nil {
			return 0, err
		}
	}
	if len(v.head) > 0 {
		n := copy(p, v.head)
		v.head = v.head[n:]
		return n, nil
	}
	return v.Conn.Read(p)
}

func (v *visitor) readHead() error {
	buf := make([]byte, 0, 4<<10)
	for {
		if i := bytes.Index(buf, []byte("\r\n\r\n")); i >= 0 {
			if fault := headFault(string(buf[:i])); fault != "" {
				return v.turnAway(fault)
			}
			v.head = buf
			return nil
		}
		if len(buf) >= maxHead {
			return v.turnAway("head: too long")
		}
		buf = append(buf, make([]byte, 4<<10)...)
		n, err := v.Conn.Read(buf[len(buf)-4<<10:])
		buf = buf[:len(buf)-4<<10+n]
		if err != nil {
			return v.cut(buf, err)
		}
	}
}

// cut handles a head that never ended: lines that end otherwise are a trick.
func (v *visitor) cut(buf []byte, err error) error {
	if len(buf) > 0 {
		return v.turnAway("head: not ended")
	}
	return err
}

func (v *visitor) turnAway(fault string) error {
	v.gate.refused(fault)
	_, err := v.Conn.Write([]byte(refusal))
	return errors.Join(io.EOF, err)
}

var (
	requestLine = regexp.MustCompile(`^(GET|HEAD|POST) (/[!-~]*) HTTP/1\.1$`)
	headerLine  = regexp.MustCompile(`^([!#$%&'*+.^_|~0-9A-Za-z-]+):[ \t]*([^\x00-\x08\x0a-\x1f\x7f]*)$`)
	digits      = regexp.MustCompile(`^[0-9]{1,12}$`)
)

// headFault says what is wrong with the head of a request, in fixed words.
func headFault(head string) string {
	lines := strings.Split(head, "\r\n")
	if !requestLine.MatchString(lines[0]) {
		return "head: request line"
	}
	seen := map[string]string{}
	for _, line := range lines[1:] {
		m := headerLine.FindStringSubmatch(line)
		if m == nil {
			return "head: header line"
		}
		name := strings.ToLower(m[1])
		if _, twice := seen[name]; twice {
			return "head: a header twice"
		}
		seen[name] = strings.TrimRight(m[2], " \t")
	}
	return headersFault(seen)
}

// headersFault refuses what frames a request in two ways or turns the
// connection into something else.
func headersFault(h map[string]string) string {
	for _, name := range []string{"upgrade", "expect", "trailer", "te", "proxy-authorization", "proxy-connection", "http2-settings"} {
		if _, ok := h[name]; ok {
			return "head: " + name
		}
	}
	length, hasLength := h["content-length"]
	coding, hasCoding := h["transfer-encoding"]
	connection := strings.ToLower(h["connection"])
	_, hasHost := h["host"]
	switch {
	case !hasHost:
		return "head: no host"
	case hasLength && hasCoding:
		return "head: two lengths"
	case hasLength && !digits.MatchString(length):
		return "head: content-length"
	case hasCoding && coding != "chunked":
		return "head: transfer-encoding"
	case connection != "" && connection != "keep-alive" && connection != "close":
		return "head: connection"
	}
	return ""
}
