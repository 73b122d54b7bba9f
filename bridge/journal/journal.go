// Package journal is the bot's memory: the queue of accepted messages, how each
// ended, the grants that the operator made, and the log of events from which
// everything can be retold.
//
// A message is accepted once. Its job goes from queued to running to ended, and
// an ended job is delivered. Each move and its event are one transaction on the
// disk before the call returns, so a crash at any step loses no acknowledged
// message, ends none twice and leaves no move without its event.
//
// Every job belongs to the origin that accepted it: the one serving bot, or one
// terminal that asks. A journal changes jobs of its own origin only. The one
// exception: jobs of an asking process that is dead are ended, because nobody
// would run them and they would count against their person for ever. An
// entrusted job belongs to nobody until a process adopts it by its id; one that
// nobody comes for is ended too.
//
// It refuses a folder that others can write, a second serving bot, a store made
// by a newer bot, the finish of a worker whose attempt is over, events that
// would contradict a job's state, and any further use of files that are not those
// at their paths any more. It decides no tier, renders no text beyond
// the fixed sentences of package ask, starts no process, and never retries on
// its own. The folder must be on a local disk.
package journal

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"
)

// Serve is the origin of the one bot that serves chat platforms.
const Serve = "serve"

const (
	entrusted       = "entrusted" // the origin of jobs that nobody has adopted yet
	askPrefix       = "ask:"
	defaultAttempts = 3
)

// Errors that callers tell apart.
var (
	// ErrLocked says that another bot serves from this state folder.
	ErrLocked = errors.New("another bot serves from this state folder")
	// ErrStale says that the job is no longer in the hands of this worker: it
	// was stopped, ended, or given to a later attempt.
	ErrStale = errors.New("the job is no longer this worker's")
	// ErrEnded says that the job has already ended.
	ErrEnded = errors.New("the job has already ended")
	// ErrTaken says that another process has adopted the job and works on it.
	ErrTaken = errors.New("another process works on this question")
	// ErrMoved says that the files at the journal's paths are not those that were
	// opened: what others read and write there is another journal.
	ErrMoved = errors.New("the journal's files are others than those that were opened")
	// ErrUnknown says that this journal has no such job of its own origin.
	ErrUnknown = errors.New("no such job here")
)

// Config says where the journal is and for whom it is opened.
type Config struct {
	Dir         string           // made with mode 0700 if it is missing
	Origin      string           // Serve, or what AskOrigin gives
	Now         func() time.Time // nil: the system's clock
	MaxAttempts int              // runs of one job that may die with the bot; 0: 3
}

// Journal is an open store. It is safe for many goroutines.
type Journal struct {
	cfg    Config
	writer *sql.DB // one connection: writers queue here and not in SQLite
	reader *sql.DB
	ids    io.Reader // used only inside a write, so by one goroutine at a time
	wake   chan struct{}
	close  func() error
	opened files
}

// AskOrigin gives a fresh origin for one asking process.
func AskOrigin(now time.Time) (string, error) {
	id, err := ulid.New(ulid.Timestamp(now), rand.Reader)
	if err != nil {
		return "", fmt.Errorf("make an origin: %w", err)
	}
	return askPrefix + id.String(), nil
}

// Open prepares the folder, takes the origin's lock, brings the store up to
// date and repairs what a crash has left: own jobs that were running are queued
// again or given up, and jobs of dead askers are ended.
func Open(ctx context.Context, cfg Config) (*Journal, error) {
	cfg, err := cfg.complete()
	if err != nil {
		return nil, fmt.Errorf("open the journal: %w", err)
	}
	if err := prepare(cfg.Dir); err != nil {
		return nil, fmt.Errorf("open the journal: %w", err)
	}
	gate, err := enter(ctx, cfg.Dir)
	if err != nil {
		return nil, fmt.Errorf("open the journal: %w", err)
	}
	defer gate.release()
	j, err := start(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("open the journal: %w", err)
	}
	return j, nil
}

// start opens the journal inside the gate.
func start(ctx context.Context, cfg Config) (*Journal, error) {
	own, err := takeOrigin(cfg.Dir, cfg.Origin)
	if err != nil {
		return nil, err
	}
	writer, reader, err := connect(ctx, cfg.Dir)
	if err != nil {
		own.release() // its file stays, and is taken again or buried
		return nil, err
	}
	j := &Journal{cfg: cfg, writer: writer, reader: reader, ids: ulid.Monotonic(rand.Reader, 0), wake: make(chan struct{}, 1)}
	j.close = sync.OnceValue(func() error {
		j.opened.closed.Store(true)
		return shut(own, cfg.Origin, reader, writer)
	})
	if err := j.opened.find(cfg.Dir); err != nil {
		return nil, errors.Join(err, j.Close())
	}
	if err := j.write(ctx, func(c change) error { return c.requeue(ctx) }); err != nil {
		return nil, errors.Join(err, j.Close())
	}
	if err := reap(ctx, j); err != nil {
		return nil, errors.Join(err, j.Close())
	}
	j.signal()
	return j, nil
}

// Origin says whose journal this is.
func (j *Journal) Origin() string { return j.cfg.Origin }

// Close gives the store and the origin's lock back. Jobs that an asking process
// leaves unended are ended by the next Open or Recover of anybody. Closing
// twice is harmless.
func (j *Journal) Close() error { return j.close() }

// shut gives the lock back last: while the store is open, it is ours.
func shut(own *lock, origin string, pools ...*sql.DB) error {
	var errs []error
	for _, db := range pools {
		errs = append(errs, db.Close())
	}
	if origin == Serve {
		own.release()
	} else {
		errs = append(errs, own.remove())
	}
	return errors.Join(errs...)
}

// Wake has a value when a job of this origin may have become claimable through
// this process. It keeps one signal, so after each the caller claims until
// there is nothing. Jobs freed by other processes do not signal: poll as well.
func (j *Journal) Wake() <-chan struct{} { return j.wake }

func (j *Journal) signal() {
	select {
	case j.wake <- struct{}{}:
	default:
	}
}

func (c Config) complete() (Config, error) {
	if c.Dir == "" {
		return c, errors.New("no state folder is named")
	}
	dir, err := filepath.Abs(c.Dir)
	if err != nil {
		return c, fmt.Errorf("state folder %s: %w", c.Dir, err)
	}
	c.Dir = dir
	if !validOrigin(c.Origin) {
		return c, fmt.Errorf("origin %q is neither %q nor %q with a ULID", c.Origin, Serve, askPrefix)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.MaxAttempts <= 0 {
		c.MaxAttempts = defaultAttempts
	}
	return c, nil
}

// validOrigin keeps origins to a form that is also a safe file name.
func validOrigin(origin string) bool {
	name, isAsk := strings.CutPrefix(origin, askPrefix)
	if !isAsk {
		return origin == Serve
	}
	id, err := ulid.ParseStrict(name)
	return err == nil && id.String() == name
}
