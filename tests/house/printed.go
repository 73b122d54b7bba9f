package house

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"sync"
)

// Printed is what a bot that still runs has printed so far.
type Printed struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write keeps what was printed.
func (p *Printed) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.Write(b)
}

// String gives all of it.
func (p *Printed) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.String()
}

// Health gives the address that a serving bot has printed; empty: not yet.
func (p *Printed) Health() string {
	_, rest, found := strings.Cut(p.String(), "health on ")
	if !found {
		return ""
	}
	url, _, _ := strings.Cut(rest, "\n")
	return url
}

// Page gives what a serving bot answers on a path such as /metrics.
func (p *Printed) Page(path string) (string, error) {
	got, err := http.Get(p.Health() + path)
	if err != nil {
		return "", err
	}
	defer func() { _ = got.Body.Close() }()
	text, err := io.ReadAll(got.Body)
	return string(text), err
}

// Ready says whether a serving bot is connected to every platform.
func (p *Printed) Ready() bool {
	url := p.Health()
	if url == "" {
		return false
	}
	got, err := http.Get(url + "/readyz")
	if err != nil {
		return false
	}
	_ = got.Body.Close()
	return got.StatusCode == http.StatusOK
}
