//go:build amd64 || arm64

package probe

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// The modes of the stage's folders. Nobody but the bot lists them.
const (
	modeEnter   = 0o711
	modeDrop    = 0o733 // everybody may make files there
	modePrivate = 0o700
	modeListed  = 0o755
)

// files makes the folder of targets. It stays the bot's alone until everything
// in it is made: reveal opens it. Everything is made by descriptors and never
// over what is there. Guarded by tests/attacks TestNoOtherUserEntersAStageThatIsBuilt.
func files(s *stage, temp string) error {
	s.Temp = temp
	s.Folder = filepath.Join(temp, s.Mark)
	fd, err := claim(s, s.Folder)
	if err != nil {
		return err
	}
	s.root = fd
	s.Open = "open-" + random()
	for _, d := range []struct {
		name  string
		mode  uint32
		files map[string]uint32
	}{
		{filepath.Dir(filePrivate), modePrivate, map[string]uint32{filepath.Base(filePrivate): filePrivateMode}},
		{filepath.Dir(fileHome), modeEnter, map[string]uint32{filepath.Base(fileHome): 0o644}},
		{filepath.Dir(fileState), modeEnter, map[string]uint32{filepath.Base(fileState): 0o644}},
		{folderNames, modeListed, map[string]uint32{s.secret: 0o644}},
		{s.Open, modeDrop, s.changes()},
	} {
		if err := s.folder(d.name, d.mode, d.files); err != nil {
			return err
		}
	}
	if err := makeFile(fd, fileSeed, s.seed, filePrivateMode); err != nil {
		return err
	}
	s.Shm, s.VarTmp = filepath.Join("/dev/shm", s.hidden("shm")), filepath.Join("/var/tmp", s.hidden("vartmp"))
	for target, path := range map[string]string{"shm": s.Shm, "vartmp": s.VarTmp} {
		err := makeFile(unix.AT_FDCWD, path, s.secret, 0o644)
		s.note(target, err)
		if err == nil { // otherwise it is somebody else's
			s.later(func() { _ = os.Remove(path) })
		}
	}
	return nil
}

// fileSeed holds what the names of this stage outside of its folder come from,
// for the bot that sweeps after this one was killed.
const fileSeed = "seed"

// hidden gives the name of a thing of the stage that stands where everybody
// may look. Nobody knows it before it stands there.
func (s *stage) hidden(what string) string { return hiddenName(s.seed, what) }

func hiddenName(seed, what string) string { return prefix + tag(seed, what) }

// changes names a file for each attempt that changes one. Only the run is told
// the names.
func (s *stage) changes() map[string]uint32 {
	s.Changes = map[string]string{}
	modes := map[string]uint32{}
	for _, t := range changeTrials() {
		name := t.Name + "-" + random()
		s.Changes[t.Name] = filepath.Join(s.Folder, s.Open, name)
		modes[name] = everybody
	}
	return modes
}

// folder makes one folder of the stage with its files. It gets its mode last,
// and while the stage is still the bot's alone.
func (s *stage) folder(name string, mode uint32, files map[string]uint32) error {
	fd, err := makeFolder(s.root, name)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	for file, mode := range files {
		if err := makeFile(fd, file, s.secret, mode); err != nil {
			return err
		}
	}
	return unix.Fchmod(fd, mode)
}

// sockets makes the folder of the local sockets. The descriptor names it where
// the path could be too long, or somebody else's.
func (s *stage) sockets() (in string, seal func() error, err error) {
	fd, err := makeFolder(s.root, folderSockets)
	if err != nil {
		return "", nil, err
	}
	s.later(func() { _ = unix.Close(fd) })
	seal = func() error {
		for _, name := range []string{socketStream, socketGram} {
			// The folder is the bot's alone, so that no link can lead away.
			if err := unix.Fchmodat(fd, name, 0o777, 0); err != nil {
				return err
			}
		}
		return unix.Fchmod(fd, modeEnter)
	}
	return "/proc/self/fd/" + strconv.Itoa(fd), seal, nil
}

// reveal lets others into the stage, when everything in it stands.
func (s *stage) reveal() error { return unix.Fchmod(s.root, modeEnter) }

// makeFolder makes a folder for this user alone and opens it.
func makeFolder(at int, name string) (int, error) {
	if err := unix.Mkdirat(at, name, modePrivate); err != nil {
		return -1, fmt.Errorf("make %s: %w", name, err)
	}
	return openOwn(at, name)
}

// openOwn opens a folder of this user. What another user has put in its place
// is refused.
func openOwn(at int, name string) (int, error) {
	fd, err := unix.Openat(at, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("open %s: %w", name, err)
	}
	var st unix.Stat_t
	if err = unix.Fstat(fd, &st); err == nil && int(st.Uid) != os.Geteuid() {
		err = unix.EPERM
	}
	if err != nil {
		_ = unix.Close(fd)
		return -1, fmt.Errorf("open %s: %w", name, err)
	}
	return fd, nil
}

// makeFile makes a file that was not there. Its mode is set apart from making,
// since the bot's umask could narrow it, and on the descriptor, since the name
// may be another file's by then. Guarded by TestMakeFile.
func makeFile(at int, name, content string, mode uint32) error {
	fd, err := unix.Openat(at, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, filePrivateMode)
	if err != nil {
		return fmt.Errorf("make %s: %w", name, err)
	}
	f := os.NewFile(uintptr(fd), name)
	_, err = f.WriteString(content)
	if err == nil {
		err = unix.Fchmod(fd, mode)
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		_ = unix.Unlinkat(at, name, 0)
	}
	return err
}
