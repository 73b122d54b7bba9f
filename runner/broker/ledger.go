package broker

import "sync"

// ledger keeps the account of a run: what was used, what is reserved, what was
// refused. Guarded by tests/attacks TestT26TheWorstCaseIsReserved.
type ledger struct {
	grant Grant

	mu       sync.Mutex
	idle     sync.Cond // broadcast when a request ends
	inFlight int
	shut     bool
	attempts int
	requests int
	sent     int64
	received int64
	reserved int // output tokens of requests in flight
	usage    Usage

	answer    string
	stop      string
	begun     string // an answer that ran out of tokens, which the CLI may have continued
	failure   *Failure
	violation *ViolationError
	limit     *LimitError

	receipt EgressReceipt
	paths   tally
	removed tally
	dropped tally
	refused tally
}

func newLedger(g Grant, host string) *ledger {
	l := &ledger{grant: g, receipt: EgressReceipt{Host: host, Model: g.Model}}
	l.idle.L = &l.mu
	return l
}

// leastTokens is the least number of tokens for which asking makes sense.
const leastTokens = 16

// attempts that a run may make in all, answered here or refused included.
func mostAttempts(g Grant) int { return 64 + 8*g.Requests }

// come counts a request of the CLI, whatever becomes of it.
func (l *ledger) come() *LimitError {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.attempts++; l.attempts > mostAttempts(l.grant) {
		return l.reach("connections")
	}
	return l.over()
}

// over gives the reason for which nothing more is forwarded, if there is one.
func (l *ledger) over() *LimitError {
	switch {
	case l.violation != nil:
		return &LimitError{"tool calls outside of its set"}
	case l.failure != nil:
		return &LimitError{"failures of the model"}
	}
	return l.limit
}

func (l *ledger) reach(what string) *LimitError {
	if l.limit == nil {
		l.limit = &LimitError{what}
	}
	return l.limit
}

// reserve takes a request and the output tokens of its worst case, at most what
// one answer may have and what is left for the run.
func (l *ledger) reserve() (tokens int, limit *LimitError) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if over := l.over(); over != nil {
		return 0, over
	}
	if l.shut {
		return 0, &LimitError{"time"}
	}
	if l.requests >= l.grant.Requests {
		return 0, l.reach("model requests")
	}
	left := l.grant.RunTokens - l.usage.Output - l.reserved
	tokens = min(l.grant.OutputTokens, left)
	if tokens < min(leastTokens, l.grant.OutputTokens) {
		return 0, l.reach("output tokens")
	}
	l.requests++
	l.reserved += tokens
	l.inFlight++
	return tokens, nil
}

// release gives back the reservation of a request that was never sent.
func (l *ledger) release(tokens int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.requests--
	l.reserved -= tokens
	l.inFlight--
	l.idle.Broadcast()
}

// bill is the end of one model request.
type bill struct {
	reserved int
	bytes    int // of the request as it was sent
	free     bool
	account  *account // nil: no answer began
	failure  *Failure
	err      error
}

// settle replaces a reservation by what was used. Where the answer did not say
// so, the reservation is charged.
func (l *ledger) settle(b bill) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reserved -= b.reserved
	l.inFlight--
	l.idle.Broadcast()
	l.usage = l.usage.plus(b.usage())
	if l.failure == nil {
		l.failure = b.failure
	}
	l.conclude(b)
}

// conclude keeps the text of an answer that is an end. Where the tokens ran out
// claude asks for the rest and prints only that; the answer is both.
// Guarded by tests/attacks TestT17AContinuedAnswerIsWhole.
func (l *ledger) conclude(b bill) {
	begun := l.begun
	l.answer, l.stop, l.begun = "", "", ""
	if b.account == nil {
		return
	}
	for _, name := range b.account.dropped {
		l.dropped.add("event " + name)
	}
	if !b.account.done || b.err != nil || b.account.calls > 0 {
		return
	}
	l.answer, l.stop = begun+b.account.text, b.account.stop
	if l.stop == "max_tokens" {
		l.begun = l.answer
	}
}

// usage gives the tokens to charge for.
func (b bill) usage() Usage {
	if b.free {
		return Usage{}
	}
	u := Usage{Input: b.bytes, Output: b.reserved, Guessed: true}
	if b.account == nil {
		return u
	}
	if used := b.account.usage; used.Total() > used.Output {
		u.Input, u.CacheRead, u.CacheWrite = used.Input, used.CacheRead, used.CacheWrite
	}
	if b.account.measured {
		u.Output, u.Guessed = b.account.usage.Output, false
	}
	return u
}

// send counts bytes from the CLI.
func (l *ledger) send(n int64) *LimitError {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.sent += n; l.sent > l.grant.Sent {
		return l.reach("bytes sent")
	}
	return nil
}

// receive counts bytes for the CLI before they are written.
func (l *ledger) receive(n int) *LimitError {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.received+int64(n) > l.grant.Received {
		return l.reach("bytes received")
	}
	l.received += int64(n)
	return nil
}

// violate remembers the first violation.
func (l *ledger) violate(v *ViolationError) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.violation == nil {
		l.violation = v
	}
	l.refused.add("tool call " + v.Tool)
}

// note takes over what was found in a request.
func (l *ledger) note(s *shape) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, name := range s.removed {
		l.removed.add(name)
	}
	for _, name := range s.dropped {
		l.dropped.add(name)
	}
	for _, fault := range s.faults {
		l.refused.add(fault)
	}
}

func (l *ledger) refuse(what string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.refused.add(what)
}

func (l *ledger) served(path string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.paths.add(path)
}

// close lets no request begin and returns when none is in flight.
func (l *ledger) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.shut = true
	for l.inFlight > 0 {
		l.idle.Wait()
	}
}

func (l *ledger) result() Result {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := Result{
		Answer: l.answer, Stop: l.stop, Usage: l.usage, Requests: l.requests,
		Failure: l.failure, Violation: l.violation, Limit: l.limit, Receipt: l.receipt,
	}
	e := &r.Receipt
	e.Paths, e.Removed, e.Dropped, e.Refused = l.paths.list(), l.removed.list(), l.dropped.list(), l.refused.list()
	e.Requests, e.Sent, e.Received, e.Usage = l.requests, l.sent, l.received, l.usage
	switch {
	case l.violation != nil:
		e.Ended = l.violation.Error()
	case l.limit != nil:
		e.Ended = l.limit.Error()
	}
	if l.failure != nil {
		e.Failure = l.failure.Error()
	}
	return r
}
