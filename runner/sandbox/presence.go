//go:build unix

package sandbox

import (
	"crypto/rand"
	"errors"
	"fmt"
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
	leasePrefix = "parlour-lease-"
	runPrefix   = "parlour-run-" // of folders and control groups
)

// presence is this bot's lock. It is there while anything hangs on it.
type presence struct {
	temp string

	mu    sync.Mutex
	file  *os.File // nil: nothing hangs on it
	id    string
	users int
	count int
}

// enter gives a name that nothing else of any bot has, for something that leave
// says is gone. What could not be removed is left to the next start.
func (p *presence) enter() (name string, leave func(gone bool), err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.file == nil {
		if err := p.appear(); err != nil {
			return "", nil, err
		}
	}
	p.users++
	p.count++
	return fmt.Sprintf("%s%s-%d", runPrefix, p.id, p.count), p.leave, nil
}

// appear takes a fresh lock.
func (p *presence) appear() error {
	id := strings.ToLower(rand.Text())
	file, err := os.OpenFile(filepath.Join(p.temp, leasePrefix+id), os.O_RDWR|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return errors.Join(err, file.Close(), os.Remove(file.Name()))
	}
	p.file, p.id = file, id
	return nil
}

func (p *presence) leave(gone bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !gone {
		return // the lock stays, and its file names what is left
	}
	if p.users--; p.users == 0 {
		_ = os.Remove(p.file.Name()) // first, so that nobody finds it unlocked
		_ = p.file.Close()
		p.file = nil
	}
}

// sweep removes what bots that are dead have left: run folders, groups, and last
// their locks. It touches nothing of a living one, and nothing without a lock of
// this user. What cannot be removed stays for the next start.
// Guarded by tests/attacks TestTheDeadAreSweptAndTheLivingNot.
func sweep(temp string, removeGroups func(id string) error) error {
	locks, err := filepath.Glob(filepath.Join(temp, leasePrefix+"*"))
	if err != nil {
		return err
	}
	var errs []error
	for _, path := range locks {
		if file := abandoned(path); file != nil {
			id := strings.TrimPrefix(filepath.Base(path), leasePrefix)
			err := errors.Join(removeFolders(temp, id), removeGroups(id))
			if err == nil {
				err = os.Remove(path)
			}
			errs = append(errs, err, file.Close())
		}
	}
	return errors.Join(errs...)
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

func removeFolders(temp, id string) error {
	left, err := filepath.Glob(filepath.Join(temp, runPrefix+id+"-*"))
	for _, folder := range left {
		err = errors.Join(err, os.RemoveAll(folder))
	}
	return err
}
