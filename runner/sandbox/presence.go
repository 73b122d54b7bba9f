//go:build unix

package sandbox

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// What runs leave on the host carries the name of the bot that made it, and the
// bot holds a lock by that name for as long as it lives. A later start finds the
// locks that nobody holds, and removes what hangs on them.
const (
	leasePrefix  = "parlour-lease-"
	makingPrefix = "parlour-making-" // of a lock that is not held yet
	runPrefix    = "parlour-run-"    // of folders and control groups
	idLength     = 26
)

// presence is this bot's lock. It is there while anything hangs on it.
type presence struct {
	temp string

	mu    sync.Mutex
	file  *os.File // nil: nothing hangs on it
	lease string   // its path
	id    string
	users int
	count int

	places map[string]bool // that the file names
}

// enter gives a name that nothing else of any bot has, for something in the folder
// or in other places, that leave says is gone. What could not be removed is left to
// the next start, of whichever bot.
func (p *presence) enter(places ...string) (name string, leave func(gone bool), err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.file == nil {
		if err := p.appear(); err != nil {
			return "", nil, err
		}
	}
	if err := p.note(places); err != nil {
		return "", nil, err
	}
	p.users++
	p.count++
	return fmt.Sprintf("%s%s-%d", runPrefix, p.id, p.count), p.leave, nil
}

// appear takes a fresh lock. It has its name only when it is locked: a sweep of
// another bot, which comes at any moment, would take it for that of a dead one.
// Guarded by tests/attacks TestASweepNeverTakesALockThatIsBeingMade.
func (p *presence) appear() error {
	id := strings.ToLower(rand.Text())
	file, err := os.OpenFile(filepath.Join(p.temp, makingPrefix+id), os.O_RDWR|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	lease := filepath.Join(p.temp, leasePrefix+id)
	err = unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		err = os.Rename(file.Name(), lease)
	}
	if err != nil {
		return errors.Join(err, file.Close(), os.Remove(file.Name()))
	}
	p.file, p.lease, p.id = file, lease, id
	return nil
}

// note writes places into the lock's file, each once.
func (p *presence) note(places []string) error {
	for _, place := range places {
		if p.places[place] {
			continue
		}
		if _, err := p.file.WriteString(place + "\n"); err != nil {
			return err
		}
		if p.places == nil {
			p.places = map[string]bool{}
		}
		p.places[place] = true
	}
	return nil
}

func (p *presence) leave(gone bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !gone {
		return // the lock stays, and its file names what is left
	}
	if p.users--; p.users == 0 {
		_ = os.Remove(p.lease) // first, so that nobody finds it unlocked
		_ = p.file.Close()
		p.file, p.places = nil, nil
	}
}

// sweep removes what bots that are dead have left: run folders, groups, and last
// their locks. It touches nothing of a living one, and nothing without a lock of
// this user. What cannot be removed stays for the next start. Names are compared
// and never looked for by pattern: others can make files here.
// Guarded by tests/attacks TestTheDeadAreSweptAndTheLivingNot.
func sweep(temp string, removeGroups func(places []string, id string) error) error {
	entries, err := os.ReadDir(temp)
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range entries {
		id, ok := strings.CutPrefix(e.Name(), leasePrefix)
		if !ok || !validID(id) {
			continue
		}
		path := filepath.Join(temp, e.Name())
		if file := abandoned(path); file != nil {
			err := errors.Join(removeFolders(temp, entries, id), removeGroups(noted(file), id))
			if err == nil {
				err = os.Remove(path)
			}
			errs = append(errs, err, file.Close())
		}
	}
	return errors.Join(errs...)
}

// validID says whether a name is one that appear gives.
func validID(id string) bool {
	return len(id) == idLength && strings.Trim(id, "abcdefghijklmnopqrstuvwxyz234567") == ""
}

// mostNoted bounds what is read of a lock's file.
const mostNoted = 16 << 10

// noted gives the places that the bot of the lock has used besides this folder.
func noted(file *os.File) []string {
	text, err := io.ReadAll(io.LimitReader(file, mostNoted))
	if err != nil {
		return nil
	}
	return strings.FieldsFunc(string(text), func(r rune) bool { return r == '\n' })
}

// abandoned opens a lock file of this user that nobody holds, or gives nil.
func abandoned(path string) *os.File {
	file, err := os.OpenFile(path, os.O_RDWR|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil
	}
	var st unix.Stat_t
	if err := unix.Fstat(int(file.Fd()), &st); err == nil && st.Mode&unix.S_IFMT == unix.S_IFREG && int(st.Uid) == os.Geteuid() &&
		unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
		return file
	}
	_ = file.Close()
	return nil
}

func removeFolders(temp string, entries []os.DirEntry, id string) (err error) {
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), runPrefix+id+"-") {
			err = errors.Join(err, os.RemoveAll(filepath.Join(temp, e.Name())))
		}
	}
	return err
}
