package runner

import (
	"strings"
	"sync"
	"time"
)

// life watches for silence: it calls die once when nothing was written for the
// limit. A limit of zero never does.
type life struct {
	limit time.Duration
	timer *time.Timer
}

func newLife(limit time.Duration, die func()) *life {
	l := &life{limit: limit}
	if limit > 0 {
		l.timer = time.AfterFunc(limit, die)
	}
	return l
}

// sign says that the run is alive.
func (l *life) sign() {
	if l.timer != nil && l.timer.Stop() {
		l.timer.Reset(l.limit)
	}
}

func (l *life) end() {
	if l.timer != nil {
		l.timer.Stop()
	}
}

// capped keeps what is written up to a limit of bytes, calls over once at the
// first byte beyond it and drops the rest, so that memory stays bounded however
// much a run prints. Guarded by TestCappedKeepsMemoryBounded and tests/attacks
// TestFloodIsStopped.
type capped struct {
	limit int64
	life  *life
	over  func()

	mu     sync.Mutex
	kept   strings.Builder
	passed bool
}

// Write never fails: a failing writer would show the run that it is watched.
func (c *capped) Write(p []byte) (int, error) {
	c.life.sign()
	c.mu.Lock()
	defer c.mu.Unlock()
	room := int(c.limit) - c.kept.Len()
	c.kept.Write(p[:min(room, len(p))])
	if len(p) > room && !c.passed {
		c.passed = true
		c.over()
	}
	return len(p), nil
}

// String gives what was kept.
func (c *capped) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.kept.String()
}
