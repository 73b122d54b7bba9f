//go:build amd64 || arm64

package probe

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// everybody is the mode of what no owner keeps away.
const everybody = 0o666

// memory sets up what processes share by numbers and names.
func memory(s *stage) {
	s.note("shared", shared(s))
	s.note("semaphores", semaphores(s))
	s.note("messages", messages(s))
	s.note("queue", queue(s))
	s.note("key", key(s))
}

// shared makes a segment and marks it at once as to be removed: it lives as long
// as this process holds it, and can be attached by its number.
func shared(s *stage) error {
	id, err := unix.SysvShmGet(unix.IPC_PRIVATE, 4096, unix.IPC_CREAT|everybody)
	if err != nil {
		return err
	}
	s.later(func() { _, _ = unix.SysvShmCtl(id, unix.IPC_RMID, nil) })
	memory, err := unix.SysvShmAttach(id, 0, 0)
	if err != nil {
		return err
	}
	s.later(func() { _ = unix.SysvShmDetach(memory) })
	copy(memory, s.secret)
	s.Shared = id
	_, err = unix.SysvShmCtl(id, unix.IPC_RMID, nil)
	return err
}

func semaphores(s *stage) error {
	id, err := call(unix.SYS_SEMGET, keyOf(s.seed), 1, unix.IPC_CREAT|unix.IPC_EXCL|everybody)
	if err != nil {
		return err
	}
	s.Semaphores = int(id)
	s.later(func() { _, _ = call(unix.SYS_SEMCTL, id, 0, unix.IPC_RMID, 0) })
	return nil
}

// copies is how often the battery may take a message.
const copies = 4

func messages(s *stage) error {
	id, err := call(unix.SYS_MSGGET, keyOf(s.seed), unix.IPC_CREAT|unix.IPC_EXCL|everybody)
	if err != nil {
		return err
	}
	s.Messages = int(id)
	s.later(func() { _, _ = call(unix.SYS_MSGCTL, id, unix.IPC_RMID, 0) })
	message := append([]byte{1, 0, 0, 0, 0, 0, 0, 0}, s.secret...) // its kind comes first
	for range copies {
		if _, err := call(unix.SYS_MSGSND, id, address0(message), uintptr(len(s.secret)), unix.IPC_NOWAIT); err != nil {
			return err
		}
	}
	runtime.KeepAlive(message)
	return nil
}

func address0(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }

func queue(s *stage) error {
	s.Queue = s.hidden("queue")
	name, text := append([]byte(s.Queue), 0), []byte(s.secret)
	defer runtime.KeepAlive(name)
	// Small, because all queues of a user share one limit: flags, messages, bytes of each.
	attributes := [8]int64{0, copies, 128}
	defer runtime.KeepAlive(&attributes)
	fd, err := call(unix.SYS_MQ_OPEN, address0(name), unix.O_CREAT|unix.O_EXCL|unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, everybody,
		uintptr(unsafe.Pointer(&attributes)))
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(int(fd)) }()
	s.later(func() { _ = unlinkQueue(s.Queue) })
	_ = unix.Fchmod(int(fd), everybody)
	for range copies {
		if _, err := call(unix.SYS_MQ_TIMEDSEND, fd, address0(text), uintptr(len(text)), 0, 0); err != nil {
			return err
		}
	}
	runtime.KeepAlive(text)
	return nil
}

func unlinkQueue(queue string) error {
	name := append([]byte(queue), 0)
	_, err := call(unix.SYS_MQ_UNLINK, address0(name))
	runtime.KeepAlive(name)
	return err
}

// keyLife is when a key goes by itself, in seconds.
const keyLife = 120

func key(s *stage) error {
	s.KeyName = s.hidden("keyname")
	id, err := unix.AddKey("user", s.KeyName, []byte(s.secret), unix.KEY_SPEC_USER_KEYRING)
	if err != nil {
		return err
	}
	s.Key = id
	s.later(func() { _, _ = unix.KeyctlInt(unix.KEYCTL_UNLINK, id, unix.KEY_SPEC_USER_KEYRING, 0, 0) })
	_, _ = unix.KeyctlInt(unix.KEYCTL_SET_TIMEOUT, id, keyLife, 0, 0)
	return unix.KeyctlSetperm(id, 0x3f3f3f3f) // everybody may do everything with it
}

// quietTime bounds how long the output of the ended target may be held open.
const quietTime = 2 * time.Second

// victim starts the target process, with the secret in its environment.
func victim(s *stage, ctx context.Context) error {
	in, err := s.pipeIn()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, s.self, Subcommand, partVictim, s.Mark)
	cmd.Env = []string{childEnv, "PARLOUR_PROBE=" + s.secret}
	cmd.Stdin = in
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	lines, quiet := bufio.NewReader(out), make(chan struct{})
	s.later(func() {
		_ = cmd.Process.Kill()
		late := time.AfterFunc(quietTime, func() { _ = out.Close() })
		<-quiet // what it said is read before the pipe is closed
		late.Stop()
		_ = cmd.Wait()
	})
	if line, err := lines.ReadString('\n'); err != nil || line != "ready\n" {
		close(quiet)
		return errors.New("the target process did not start")
	}
	s.Victim = cmd.Process.Pid
	go func() {
		defer close(quiet)
		for {
			if _, err := lines.ReadString('\n'); err != nil {
				return
			}
			s.mu.Lock()
			s.signalled = true
			s.mu.Unlock()
		}
	}()
	return nil
}

// pipeIn gives the reading end of a pipe whose other end closes with the bot, so
// that the target ends with it.
func (s *stage) pipeIn() (*os.File, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	s.later(func() { _, _ = r.Close(), w.Close() })
	return r, nil
}

// descriptor opens a file and a folder that every program which the bot starts would inherit.
func descriptor(s *stage) error {
	fd, err := unix.Open(filepath.Join(s.Folder, fileHome), unix.O_RDONLY, 0)
	if err != nil {
		return err
	}
	s.Descriptor = fd
	s.later(func() { _ = unix.Close(fd) })
	folder, err := unix.Open(s.Folder, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	s.later(func() { _ = unix.Close(folder) })
	return nil
}

func pty(s *stage) error {
	master, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	s.later(func() { _ = unix.Close(master) })
	if err := unix.IoctlSetPointerInt(master, unix.TIOCSPTLCK, 0); err != nil {
		return err
	}
	n, err := unix.IoctlGetInt(master, unix.TIOCGPTN)
	if err != nil {
		return err
	}
	path := "/dev/pts/" + strconv.Itoa(n)
	if _, err := os.Stat(path); err != nil {
		return err
	}
	_ = os.Chmod(path, everybody)
	s.Pty = path
	return nil
}

// namesTheHost says whether something of what was read stands in a file of the
// host and nowhere in the view.
func namesTheHost(s *stage, a said) (bool, string) {
	for _, path := range s.Hosts {
		text, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(text)) {
			if line = strings.TrimSpace(line); len(line) > 3 && strings.Contains(a.Got, line) {
				return true, path + " is visible"
			}
		}
	}
	return false, ""
}

func showsAddresses(s *stage, a said) (bool, string) {
	for line := range strings.Lines(a.Got) {
		if f := strings.Fields(line); len(f) > 1 && strings.Trim(f[0], "0") != "" {
			return true, "addresses of the kernel are visible"
		}
	}
	return false, ""
}

// showsSources looks for where on the host the run's program lies.
func showsSources(s *stage, a said) (bool, string) {
	for _, path := range []string{s.self, s.Folder, filepath.Dir(s.self) + " "} {
		if strings.Contains(a.Got, path) {
			return true, "a path of the host is visible"
		}
	}
	if host, err := os.ReadFile("/proc/self/mountinfo"); err == nil && strings.Contains(a.Got, rootSource(string(host))) {
		return true, "the host's disk is named"
	}
	return false, ""
}

// rootSource gives what the host's root folder is mounted from.
func rootSource(table string) string {
	for line := range strings.Lines(table) {
		f := strings.Fields(line)
		if len(f) > 9 && f[4] == "/" && strings.HasPrefix(f[len(f)-2], "/dev/") {
			return " " + f[len(f)-2] + " "
		}
	}
	return "\x00" // in no text
}

func showsInterfaces(s *stage, a said) (bool, string) {
	for name := range strings.Lines(a.Got) {
		for _, n := range s.network {
			if strings.TrimSpace(name) == n {
				return true, "interface " + n + " is visible"
			}
		}
	}
	return false, ""
}

func showsEnvironment(s *stage, a said) (bool, string) {
	pairs := strings.FieldsFunc(a.Got, func(r rune) bool { return r == '\n' || r == 0 })
	for _, pair := range pairs {
		name, value, _ := strings.Cut(pair, "=")
		if strings.Contains(value, s.planted) {
			return true, "the planted variable is there"
		}
		for _, own := range s.others {
			if own == pair && !given(name) {
				return true, "the bot's variable " + name + " is there"
			}
		}
	}
	return false, ""
}

// given says whether the battery gives the run a variable of this name.
func given(name string) bool {
	return name == "HOME" || name == "TMPDIR" || name == "PATH" || name == "LANG"
}

func keepsGroups(s *stage, a said) (bool, string) {
	for word := range strings.Lines(a.Got) {
		for _, g := range foreignGroups(s) {
			if strings.TrimSpace(word) == strconv.Itoa(g) {
				return true, fmt.Sprintf("it is in group %d", g)
			}
		}
	}
	return false, ""
}

// wasSignalled asks the target process.
func (s *stage) wasSignalled() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.signalled
}
