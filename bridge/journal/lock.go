package journal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

const (
	lockSuffix = ".lock"
	gateName   = "gate"
	gatePoll   = 5 * time.Millisecond
)

var errHeld = errors.New("the lock is held")

// lock is a locked file. Whoever holds an origin's lock is alive.
type lock struct {
	file *os.File
	path string
}

// release gives the lock back and keeps its file.
func (l *lock) release() { _ = unlock(l.file) }

// remove unlinks the file while it is still locked, so that nobody can lock it
// in between and believe that it still has a name.
func (l *lock) remove() error {
	err := os.Remove(l.path)
	return errors.Join(err, unlock(l.file))
}

// enter waits for the one gate of a state folder. Inside it a process opens the
// store, takes its origin's lock or buries the dead, so none of these can race.
func enter(ctx context.Context, dir string) (*lock, error) {
	path := filepath.Join(dir, locksName, gateName)
	poll := time.NewTicker(gatePoll)
	defer poll.Stop()
	for {
		gate, err := takeFile(path, os.O_CREATE)
		if err == nil || !errors.Is(err, errHeld) {
			return gate, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for %s: %w", path, ctx.Err())
		case <-poll.C:
		}
	}
}

// takeOrigin marks the origin as alive, or says who is.
// Guarded by tests/contract TestJournalSecondServeIsRefused.
func takeOrigin(dir, origin string) (*lock, error) {
	path := lockPath(dir, origin)
	own, err := takeFile(path, os.O_CREATE)
	if errors.Is(err, errHeld) {
		return nil, fmt.Errorf("state folder %s: %w%s", dir, ErrLocked, holder(path))
	}
	if err != nil {
		return nil, err
	}
	// The pid is for people only: the lock itself is what counts.
	pid := []byte(strconv.Itoa(os.Getpid()) + "\n")
	if err := errors.Join(own.file.Truncate(0), writeAtStart(own.file, pid)); err != nil {
		own.release()
		return nil, fmt.Errorf("mark %s: %w", path, err)
	}
	return own, nil
}

func writeAtStart(file *os.File, data []byte) error {
	_, err := file.WriteAt(data, 0)
	return err
}

func holder(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return ""
	}
	return fmt.Sprintf(" (pid %d)", pid)
}

func lockPath(dir, origin string) string {
	return filepath.Join(dir, locksName, strings.Replace(origin, ":", "-", 1)+lockSuffix)
}

// originOf reads an asking origin back from the name of its lock file.
func originOf(name string) (string, bool) {
	name, ok := strings.CutSuffix(name, lockSuffix)
	if !ok {
		return "", false
	}
	origin := strings.Replace(name, "-", ":", 1)
	return origin, origin != Serve && validOrigin(origin)
}
