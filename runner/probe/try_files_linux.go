//go:build amd64 || arm64

package probe

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"parlour/runner/policy"
)

// The files of the stage, below targets.Folder. Each attempt that changes one
// has its own.
const (
	fileHome    = "home/notes"
	fileState   = "state/journal"
	folderNames = "names" // holds a file whose name is the secret
	filePrivate = "private/key"

	folderSockets = "sockets"
	socketStream  = "stream"
	socketGram    = "gram"

	filePrivateMode = 0o600
)

func fileTrials() []trial {
	return append(readTrials(), changeTrials()...)
}

func readTrials() []trial {
	at := func(name string) func(*intruder) said {
		return func(p *intruder) said { return p.read(filepath.Join(p.t.Folder, name)) }
	}
	return []trial{
		{Attempt: named("read-home", "Read a file in the operator's home that everybody on the host may read."), target: "files", try: at(fileHome)},
		{Attempt: named("read-state", "Read a file in the bot's state folder."), target: "files", try: at(fileState)},
		{Attempt: named("read-shared-memory", "Read a file in the host's /dev/shm."), target: "shm", try: func(p *intruder) said { return p.read(p.t.Shm) }},
		{Attempt: named("read-var-tmp", "Read a file in the host's /var/tmp."), target: "vartmp", try: func(p *intruder) said { return p.read(p.t.VarTmp) }},
		{Attempt: named("read-by-proc-root", "Read a host file through the root folder of a process in /proc."), target: "files", try: func(p *intruder) said {
			return p.readAny(p.through(p.t.Bot, fileHome), p.through(1, fileHome), p.through(p.t.Victim, fileHome))
		}},
		{Attempt: named("read-by-proc-cwd", "Read a host file through the working folder of a process in /proc."), target: "files", try: func(p *intruder) said {
			up := strings.Repeat("../", 12)
			return p.readAny(fmt.Sprintf("/proc/%d/cwd/%s%s", p.t.Bot, up, filepath.Join(p.t.Folder, fileHome)),
				fmt.Sprintf("/proc/%d/cwd/%s%s", p.t.Victim, up, filepath.Join(p.t.Folder, fileHome)))
		}},
		{Attempt: named("read-by-symlink", "Read a host file through a symlink that the run makes."), target: "files", try: func(p *intruder) said {
			link := p.scratch("link")
			if err := os.Symlink(filepath.Join(p.t.Folder, fileHome), link); err != nil {
				return void("make a symlink: %v", err)
			}
			defer func() { _ = os.Remove(link) }()
			return p.read(link)
		}},
		{Attempt: named("read-by-dots", "Read a host file by climbing out of the working folder."), target: "files", try: func(p *intruder) said {
			return p.read(strings.Repeat("../", 24) + filepath.Join(p.t.Folder, fileHome))
		}},
		{Attempt: named("read-by-handle", "Open a host file by a file handle instead of its path."), target: "handle", try: openHandle},
		{Attempt: named("read-host-identity", "Read what names the host: its machine id, name, name servers and accounts."), target: "hosts", try: func(p *intruder) said {
			return p.readAny(p.t.Hosts...)
		}, judge: namesTheHost},
		{Attempt: named("list-home", "List a folder in the operator's home."), target: "files", try: func(p *intruder) said {
			return p.list(filepath.Join(p.t.Folder, folderNames))
		}},
		{Attempt: named("list-tmp", "List the names in the host's temporary folder."), target: "files", try: func(p *intruder) said { return p.list(p.t.Temp) },
			judge: func(s *stage, a said) (bool, string) {
				return strings.Contains(a.Got, filepath.Base(s.Folder)), "the names in " + s.Temp + " are visible"
			}},
		{Attempt: named("list-usr-local", "List the operator's own programs in /usr/local."), target: "usrlocal", try: func(p *intruder) said {
			return p.list("/usr/local/bin")
		}, judge: func(s *stage, a said) (bool, string) {
			return strings.Contains(a.Got, s.localName), "a name of the host is visible"
		}},
		{Attempt: named("stat-private", "Learn size and time of the operator's private file."), target: "files", tells: true, try: func(p *intruder) said {
			_, err := os.Lstat(p.private())
			return refused(err)
		}},
		{Attempt: named("watch", "Watch which programs the host starts, by a watch on its folders."), try: watchFolders},
		{Attempt: named("leftover", "Find what an earlier run left in a scratch folder."), target: "second", try: func(p *intruder) said {
			var all []string
			for _, f := range p.folders() {
				all = append(all, p.list(f).Got)
			}
			for _, f := range p.folders() {
				_ = os.WriteFile(filepath.Join(f, p.t.Left), nil, 0o600)
			}
			return got(strings.Join(all, "\n"))
		}, judge: func(s *stage, a said) (bool, string) {
			return strings.Contains(a.Got, s.Left), "a file of the run before"
		}},
	}
}

func changeTrials() []trial {
	list := []trial{}
	add := func(name, what string, try func(p *intruder, path string) error) {
		list = append(list, trial{Attempt: named(name, what), target: "files", judge: changedOutside(name),
			try: func(p *intruder) said { return refused(try(p, p.t.Changes[name])) }})
	}
	add("overwrite", "Overwrite a host file that everybody may write.", func(_ *intruder, path string) error { return rewrite(path, unix.O_WRONLY) })
	add("append", "Append to a host file that everybody may write.", func(_ *intruder, path string) error { return rewrite(path, unix.O_WRONLY|unix.O_APPEND) })
	add("truncate", "Empty a host file without opening it.", func(_ *intruder, path string) error { return os.Truncate(path, 0) })
	add("remove", "Remove a host file.", func(_ *intruder, path string) error { return os.Remove(path) })
	add("rename", "Rename a host file.", func(_ *intruder, path string) error { return os.Rename(path, path+"-moved") })
	add("create", "Make a file in a host folder that everybody may write.", func(_ *intruder, path string) error {
		return os.WriteFile(path+"-new", []byte("x"), 0o600)
	})
	add("make-folder", "Make a folder in such a folder.", func(_ *intruder, path string) error { return os.Mkdir(path+"-new", 0o700) })
	add("make-pipe", "Make a named pipe in such a folder.", func(_ *intruder, path string) error { return unix.Mkfifo(path+"-new", 0o600) })
	add("hard-link", "Give a host file a second name in the scratch folder or beside it.", func(p *intruder, path string) error {
		if err := os.Link(path, p.scratch("hard")); err == nil {
			return nil // it stays, so that the file itself shows it
		}
		return os.Link(path, path+"-new")
	})
	private := func(name, what string, try func(path string) error) {
		list = append(list, trial{Attempt: named(name, what), target: "files", judge: touchedPrivate,
			try: func(p *intruder) said { return refused(try(p.private())) }})
	}
	private("change-mode", "Change the mode of the operator's private file.", func(path string) error { return os.Chmod(path, 0o400) })
	private("change-time", "Change the time of the operator's private file.", func(path string) error { return os.Chtimes(path, time.Unix(1, 0), time.Unix(1, 0)) })
	private("change-attribute", "Give the operator's private file an extended attribute.", func(path string) error {
		return unix.Setxattr(path, "user.parlour", []byte("x"), 0)
	})
	return append(list, writeTrials()...)
}

// writeTrials are about the run's own view, which is not the host's but holds
// parts of it.
func writeTrials() []trial {
	create := func(folders ...string) func(*intruder) said {
		return func(p *intruder) said {
			for _, f := range folders {
				if err := p.create(f); err == nil {
					return did("a file could be made in %s", f)
				}
			}
			return said{Why: "no file can be made there"}
		}
	}
	return []trial{
		{Attempt: named("write-root", "Make a file in the root folder."), try: create("/")},
		{Attempt: named("write-system", "Make a file among the system's programs and libraries."), try: create("/usr", "/usr/bin", "/usr/lib", "/bin", "/lib", "/lib64", "/sbin", "/usr/local")},
		{Attempt: named("write-settings", "Make a file in /etc."), try: create("/etc")},
		{Attempt: named("write-work", "Make a file in the working folder of a read-only run."), target: "work", try: create(".", policy.WorkDir)},
		{Attempt: named("write-fixed", "Make a file in the other fixed folders of the view."), try: create(policy.AgentDir, policy.DocsDir, "/dev", "/proc", "/sys", "/run", "/var", "/opt", "/srv", "/mnt", "/home")},
		{Attempt: named("write-program", "Open the run's own program, which is the bot's, for writing."), try: func(p *intruder) said {
			fd, err := unix.Open("/proc/self/exe", unix.O_WRONLY|unix.O_CLOEXEC, 0)
			if err == unix.ETXTBSY {
				return did("only its running keeps it from being written")
			}
			return refused(closeIf(uintptr(fd), err))
		}},
	}
}

func (p *intruder) private() string { return filepath.Join(p.t.Folder, filePrivate) }

// scratch gives a path that the run may write.
func (p *intruder) scratch(name string) string { return filepath.Join(p.folders()[0], p.mark+"-"+name) }

// folders gives the scratch folders, wherever this rung has them.
func (p *intruder) folders() []string {
	var all []string
	for _, pair := range p.env {
		name, path, _ := strings.Cut(pair, "=")
		if info, err := os.Stat(path); (name == "HOME" || name == "TMPDIR") && err == nil && info.IsDir() && !slices.Contains(all, path) {
			all = append(all, path)
		}
	}
	if len(all) == 0 {
		return []string{policy.TempDir}
	}
	return all
}

func (p *intruder) through(pid int, name string) string {
	return fmt.Sprintf("/proc/%d/root%s", pid, filepath.Join(p.t.Folder, name))
}

// create makes a file and takes it away again.
func (p *intruder) create(folder string) error {
	path := filepath.Join(folder, p.mark)
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_ = f.Close()
	return os.Remove(path)
}

func rewrite(path string, flags int) error {
	fd, err := unix.Open(path, flags|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	_, err = unix.Write(fd, []byte("changed"))
	return err
}

// openHandle needs no path at all, so no view and no path rule can stop it.
func openHandle(p *intruder) said {
	at, err := unix.Open("/", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return refused(err)
	}
	defer func() { _ = unix.Close(at) }()
	fd, err := unix.OpenByHandleAt(at, unix.NewFileHandle(p.t.Kind, p.t.Handle), unix.O_RDONLY)
	if err != nil {
		return refused(err)
	}
	defer func() { _ = unix.Close(fd) }()
	return got(drain(fd))
}

// dnAccess is DN_ACCESS of fcntl.
const dnAccess = 1

// watchFolders asks to be told of every look into the host's program folders.
func watchFolders(p *intruder) said {
	if fd, err := unix.InotifyInit1(unix.IN_CLOEXEC); err == nil {
		_, err := unix.InotifyAddWatch(fd, "/usr/bin", unix.IN_OPEN|unix.IN_ACCESS)
		_ = unix.Close(fd)
		if err == nil {
			return did("inotify watches /usr/bin")
		}
	}
	if fd, err := unix.FanotifyInit(unix.FAN_CLASS_NOTIF|unix.FAN_CLOEXEC, 0); err == nil {
		_ = unix.Close(fd)
		return did("fanotify is open")
	}
	fd, err := unix.Open("/usr/bin", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return refused(err)
	}
	defer func() { _ = unix.Close(fd) }()
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_NOTIFY, dnAccess); err == nil {
		return did("dnotify watches /usr/bin")
	}
	return said{Why: "no kind of watch can be set"}
}

// changedOutside looks at the file that an attempt was made on. Its own word
// says nothing: it may have changed a file of its own under the same path.
func changedOutside(name string) func(*stage, said) (bool, string) {
	return func(s *stage, _ said) (bool, string) {
		path := s.Changes[name]
		content, err := os.ReadFile(path)
		if err != nil || !bytes.Equal(content, []byte(s.secret)) {
			return true, "the host's file was changed"
		}
		for _, more := range []string{path + "-new", path + "-moved"} {
			if _, err := os.Lstat(more); err == nil {
				return true, "the host has a new file"
			}
		}
		if info, err := os.Stat(path); err == nil && links(info) > 1 {
			return true, "the host's file has a second name"
		}
		return false, ""
	}
}

// touchedPrivate looks at mode, time and attributes of the operator's private
// file. A call may have answered success and done nothing.
func touchedPrivate(s *stage, _ said) (bool, string) {
	path := filepath.Join(s.Folder, filePrivate)
	info, err := os.Stat(path)
	if err != nil || info.Mode() != filePrivateMode || info.ModTime().Year() < 2000 {
		return true, "the private file has another mode or time"
	}
	if n, err := unix.Getxattr(path, "user.parlour", nil); err == nil && n > 0 {
		return true, "the private file has an attribute"
	}
	return false, ""
}
