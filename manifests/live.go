package manifests

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Texts are the tier files of a folder, by name.
type Texts map[string]string

// Hash tells one state of the tier files from another.
func (t Texts) Hash() string {
	sum := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(t)) {
		_, _ = fmt.Fprintf(sum, "%d %s %d %s\n", len(name), name, len(t[name]), t[name]) // never fails, by its contract
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// Texts gives the operator's own tier files as they were read.
func (s *Set) Texts() Texts {
	texts := Texts{}
	for _, src := range s.own.tiers {
		texts[src.name] = string(src.text)
	}
	return texts
}

// TiersIn gives the tier files of a folder as they lie there now, faulty ones too.
func TiersIn(dir string) Texts {
	own, _ := readTierFolder(dir)
	return (&Set{own: own}).Texts()
}

// RunnerFiles gives a hash of each of the operator's own runner files.
func (s *Set) RunnerFiles() map[string]string {
	files := map[string]string{}
	for _, src := range s.own.runners {
		files[src.name] = Texts{src.name: string(src.text)}.Hash()
	}
	return files
}

// RunnerTexts gives the operator's own runner files as they were read.
func (s *Set) RunnerTexts() Texts {
	texts := Texts{}
	for _, src := range s.own.runners {
		texts[src.name] = string(src.text)
	}
	return texts
}

// Earlier reads tier files that were kept, with the runners of this Set. A list
// may name runners that are gone by now.
func (s *Set) Earlier(t Texts, runners []string) (*Set, error) {
	if text, is := t[foldedName]; is {
		return unfold(text)
	}
	own := folder{runners: s.own.runners}
	for _, name := range slices.Sorted(maps.Keys(t)) {
		own.tiers = append(own.tiers, source{name: name, file: "accepted:" + tierFolder + "/" + name + extension, text: []byte(t[name])})
	}
	set, faults := own.load(s.dir, runners...)
	if len(faults) > 0 {
		return nil, faults.sorted()
	}
	return set, nil
}

// Live is the state of the tier files by which a bot goes that serves. A faulty
// state changes nothing. A loss of rights takes effect at once, a gain when the
// operator has consented to that state of the files. What is remembered meanwhile
// is bounded, whatever becomes of the files.
//
// Runner files are those of the start: what is executed never changes while the
// bot runs.
type Live struct {
	cfg   LiveConfig
	start *Set

	mu     sync.Mutex // one look at a time
	seen   string     // the last state of the files that was looked at
	now    *Set
	under  []*Set // what the next state is bounded by
	unkept bool   // under could not be stored

	force  atomic.Pointer[Force]
	status atomic.Pointer[Status]
}

// LiveConfig is what Live needs of the world. All functions are required.
type LiveConfig struct {
	// Allow refuses a Set that is right in itself, but not for this bot.
	Allow func(*Set) error
	// Consented says whether the operator has consented to the files with this hash.
	Consented func(hash string) bool
	// Turned is told of each look that found something new, after the change, one at a time.
	Turned func(Turn)
	// Unbounded says that nothing bounds the start: it is the first one ever, or the
	// operator has consented to all that the files give. Where it is false and
	// nothing is kept, they give nobody anything.
	Unbounded bool
	// Keep stores what later states are bounded by, the oldest first.
	Keep func(under []Texts) error
	Now  func() time.Time
}

// Turn is what a look at the files has led to.
type Turn struct {
	Force  Force
	Hash   string   // of the state of the files that was looked at
	Err    error    // the files are refused, and the last good ones stay in force
	Gains  []string // they wait for consent
	Losses []string // they are in force
	Kept   error    // what could not be stored
	Folded bool     // so many states wait that they bound what follows as one
}

// Status is what is known of the files.
type Status struct {
	Good    time.Time // when the state in force was read
	Refused error     // of the files as they are now
	Waiting []string  // gains that wait for consent
}

// NewLive begins with the manifests of the start and with what is kept of earlier
// ones.
// Guarded by tests/contract TestT13WithNothingKeptNobodyHasAnything.
func NewLive(cfg LiveConfig, start *Set, kept []*Set) (*Live, Turn) {
	if len(kept) == 0 && !cfg.Unbounded {
		kept = []*Set{Nothing()}
	}
	l := &Live{cfg: cfg, start: start, seen: mark(start.own), under: kept}
	t := l.turn(start)
	l.status.Store(&Status{Good: cfg.Now(), Waiting: t.Gains})
	return l, t
}

// Force gives what is in force.
func (l *Live) Force() Force { return *l.force.Load() }

// Status says how it stands with the files.
func (l *Live) Status() Status { return *l.status.Load() }

// mark is the hash of all that the files are, faults included.
func mark(f folder) string {
	texts, faults := Texts{}, f.faults
	for _, src := range f.tiers {
		texts[src.name], faults = string(src.text), append(faults, src.faults...)
	}
	var b strings.Builder
	for _, fault := range faults {
		_, _ = fmt.Fprintln(&b, fault)
	}
	return texts.Hash() + b.String()
}

// Look reads the files again. It is false where they change while they are read,
// and where something could not be stored; then it has to be called again.
// Guarded by tests/contract TestReloadStorm and TestReloadStormOfStatesThatAreConsentedTo.
func (l *Live) Look() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.start.dir == "" {
		return true // the shipped ones are part of the program
	}
	own, _ := readTierFolder(l.start.dir)
	at := mark(own)
	if at == l.seen {
		return l.unchanged()
	}
	if again, _ := readTierFolder(l.start.dir); mark(again) != at {
		return false
	}
	own.runners = l.start.own.runners
	set, faults := own.load(l.start.dir)
	var err error
	if len(faults) > 0 {
		err = faults.sorted()
	} else {
		err = l.cfg.Allow(set)
	}
	l.seen = at
	if err != nil {
		status := l.Status()
		status.Refused = err
		l.status.Store(&status)
		l.cfg.Turned(Turn{Force: l.Force(), Err: err})
		return true
	}
	l.tell(l.turn(set), nil)
	return !l.unkept
}

// unchanged looks whether the operator has consented meanwhile, and stores what
// could not be stored before.
func (l *Live) unchanged() bool {
	before := l.Status()
	if len(before.Waiting) > 0 && l.cfg.Consented(l.now.Texts().Hash()) {
		l.tell(l.turn(l.now), before.Refused)
	} else if l.unkept {
		l.keep()
	}
	return !l.unkept
}

// turn makes a Set the one of now. It bounds what follows by each state that took
// something away, until the operator consents or nothing more is asked for.
func (l *Live) turn(set *Set) Turn {
	t := Turn{Hash: set.Texts().Hash()}
	if l.now != nil {
		t.Losses = lost(l.now, set)
	}
	under := l.under
	if len(under) > 0 && !l.cfg.Consented(t.Hash) {
		t.Gains = Gained(under, set)
	}
	if len(t.Gains) == 0 {
		under = nil
	}
	t.Force = InForce(set, under...)
	if l.under = under; tightens(under, set) {
		l.under, t.Folded = remember(under, set)
	}
	l.now = set
	l.force.Store(&t.Force)
	t.Kept = l.keep()
	return t
}

// tell says what is in force now, and only then that it is.
func (l *Live) tell(t Turn, refused error) {
	l.cfg.Turned(t)
	l.status.Store(&Status{Good: l.cfg.Now(), Waiting: t.Gains, Refused: refused})
}

func (l *Live) keep() error {
	kept := []Texts{}
	for _, s := range l.under {
		kept = append(kept, s.Texts())
	}
	err := l.cfg.Keep(kept)
	l.unkept = err != nil
	return err
}
