//go:build amd64 || arm64

package sandbox

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"parlour/runner/policy"
)

// A spare box is not kept for longer than this: what the host had when it was
// made may be another since.
const spareLife = 10 * time.Minute

// refillAfter is how long after the start of a run its successor's box is made.
const refillAfter = 100 * time.Millisecond

// mostKinds bounds how many kinds of runs have spare boxes.
const mostKinds = 8

// pool keeps boxes that are ready but for the program's arguments. Each is used
// once, for a run of exactly its kind.
type pool struct {
	mu      sync.Mutex
	size    int                 // of each kind; 0: none are made
	waiting map[string][]*spare // by kind
	kinds   []string            // of waiting, the latest last
	planned map[string]bool     // kinds that will be refilled
	quit    chan struct{}       // closed when boxes are kept no more
	making  sync.WaitGroup
}

// spare is one box whose child waits for its word.
type spare struct {
	*child
	old *time.Timer
}

// Reserve keeps n boxes ready for each kind of run that was started lately, so
// that the next one starts at once. 0 keeps none, and ends those that wait.
func (e *Engine) Reserve(n int) {
	e.pool.mu.Lock()
	if e.pool.size > 0 {
		close(e.pool.quit)
	}
	e.pool.size, e.pool.quit = n, make(chan struct{})
	e.pool.mu.Unlock()
	if n == 0 {
		e.Flush()
		e.pool.making.Wait()
		e.Flush()
	}
}

// Flush ends every box that waits. A kind holds all that a policy says, so a
// changed policy never gets a box of the old one; Flush only frees them sooner.
// Guarded by tests/attacks TestT23ASpareBoxServesItsOwnKindOnly.
func (e *Engine) Flush() {
	e.pool.mu.Lock()
	old := e.pool.waiting
	e.pool.waiting, e.pool.kinds = nil, nil
	e.pool.mu.Unlock()
	for _, spares := range old {
		for _, s := range spares {
			s.discard()
		}
	}
}

// Warm makes a box for a run of this kind and keeps it, where boxes are kept.
func (e *Engine) Warm(ctx context.Context, eff policy.Effective, cmd Command) error {
	if err := cmd.check(); err != nil {
		return &StartError{"check the command", err}
	}
	j := job{eff: eff, cmd: cmd}
	kind := j.kind()
	if kind == "" || !e.pool.lacks(kind) {
		return nil
	}
	s, err := e.prepare(ctx, j)
	if err == nil {
		e.pool.put(kind, s)
	}
	return err
}

// Spare says how many boxes wait.
func (e *Engine) Spare() int {
	e.pool.mu.Lock()
	defer e.pool.mu.Unlock()
	n := 0
	for _, spares := range e.pool.waiting {
		n += len(spares)
	}
	return n
}

// kind names what a box is made for: the policy, and every file that it shows,
// as it is now. It is empty where no box can be made in advance.
func (j job) kind() string {
	if j.eff.Rung() != policy.RungFull || len(j.cmd.Stdin) > 0 || j.report {
		return ""
	}
	words := []string{j.eff.Hash(), fmt.Sprintf("%q %q", j.cmd.Files, j.cmd.Folders)}
	for _, m := range append([]Mount{{Host: j.cmd.Path}}, j.cmd.Mounts...) {
		var st unix.Stat_t
		if err := unix.Stat(m.Host, &st); err != nil {
			return ""
		}
		words = append(words, fmt.Sprintf("%q %d %d %o %d %d %d %d", m, st.Dev, st.Ino, st.Mode, st.Uid, st.Size, st.Mtim, st.Ctim))
	}
	return strings.Join(words, "\n")
}

// start takes a box that is ready, or makes one, and sees to the next. A box that
// has died meanwhile costs its place only.
func (p *pool) start(ctx context.Context, e *Engine, j job) (*Run, error) {
	kind := j.kind()
	if s := p.take(kind); s != nil {
		if run, err := s.become(ctx, j.cmd); err == nil || ctx.Err() != nil {
			p.refill(ctx, e, kind, j)
			return run, err
		}
	}
	run, err := e.enter(ctx, j)
	if err == nil {
		p.refill(ctx, e, kind, j)
	}
	return run, err
}

func (p *pool) take(kind string) *spare {
	p.mu.Lock()
	defer p.mu.Unlock()
	spares := p.waiting[kind]
	if len(spares) == 0 {
		return nil
	}
	p.waiting[kind] = spares[1:]
	return spares[0]
}

// refill makes what is missing of a kind, a little later: the run that has just
// begun should have the machine to itself.
func (p *pool) refill(ctx context.Context, e *Engine, kind string, j job) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if kind == "" || p.size == 0 || p.planned[kind] {
		return
	}
	if p.planned == nil {
		p.planned = map[string]bool{}
	}
	p.planned[kind] = true
	ctx, quit := context.WithoutCancel(ctx), p.quit
	p.making.Go(func() {
		select {
		case <-time.After(refillAfter):
		case <-quit:
		}
		p.unplan(kind)
		for p.lacks(kind) {
			s, err := e.prepare(ctx, j)
			if err != nil || !p.put(kind, s) {
				return // the next run says why, if it must make its own
			}
		}
	})
}

func (p *pool) unplan(kind string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.planned, kind)
}

func (p *pool) lacks(kind string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.waiting[kind]) < p.size
}

// put adds a spare box, and forgets the kind that was used longest ago.
func (p *pool) put(kind string, s *spare) bool {
	p.mu.Lock()
	if len(p.waiting[kind]) >= p.size {
		p.mu.Unlock()
		s.discard()
		return false
	}
	if p.waiting == nil {
		p.waiting = map[string][]*spare{}
	}
	s.old = time.AfterFunc(spareLife, func() { p.expire(kind, s) })
	p.waiting[kind] = append(p.waiting[kind], s)
	p.kinds = append(slices.DeleteFunc(p.kinds, func(k string) bool { return k == kind }), kind)
	var gone []*spare
	if len(p.kinds) > mostKinds {
		gone = p.waiting[p.kinds[0]]
		delete(p.waiting, p.kinds[0])
		p.kinds = p.kinds[1:]
	}
	p.mu.Unlock()
	for _, old := range gone {
		old.discard()
	}
	return true
}

func (p *pool) expire(kind string, s *spare) {
	p.mu.Lock()
	at := slices.Index(p.waiting[kind], s)
	if at >= 0 {
		p.waiting[kind] = slices.Delete(slices.Clone(p.waiting[kind]), at, at+1)
	}
	p.mu.Unlock()
	if at >= 0 {
		s.discard()
	}
}

// prepare makes a box up to its last steps.
func (e *Engine) prepare(ctx context.Context, j job) (*spare, error) {
	j.wait = true
	l, err := e.ready(ctx, j)
	if err != nil {
		return nil, err
	}
	c, err := l.begin(e)
	if err != nil {
		return nil, err
	}
	s := &spare{child: c}
	if err := c.await(); err != nil {
		s.discard()
		return nil, err
	}
	return s, nil
}

// become gives the box its program's arguments and the word to start it. What
// differs between two runs of a kind is given here and nowhere earlier.
func (s *spare) become(ctx context.Context, cmd Command) (*Run, error) {
	if s.old != nil {
		s.old.Stop()
	}
	s.program.Become(append([]string{cmd.Name}, cmd.Args...), cmd.Env)
	if _, err := s.status.Write([]byte{0}); err != nil {
		s.discard()
		return nil, &StartError{"give the word", err}
	}
	return s.complete(ctx, cmd)
}

// discard ends a box that nobody needs.
func (s *spare) discard() {
	if s.old != nil {
		s.old.Stop()
	}
	s.life.run.Kill()
	s.life.inside = s.talk.who
	close(s.life.ready)
	<-s.life.run.done
	s.talk.drop()
	s.close()
}
