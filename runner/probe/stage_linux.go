//go:build amd64 || arm64

package probe

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// stage is everything that stands outside: the targets, what they hold, and
// what they saw.
type stage struct {
	targets
	secret  string            // what the targets hold; the intruder is never told
	seed    string            // what the hidden names come from; nobody is told
	root    int               // descriptor of the folder of targets
	missing map[string]string // target to why it could not be set up
	absent  map[string]string // target to why this host has none
	undo    []func()

	self, bootLine, hostName, localName, groupPath string

	mu        sync.Mutex
	hits      map[string]bool // attempts that a listener heard
	planted   string          // in the bot's environment
	others    []string        // further pairs of it
	network   []string        // interfaces of the host
	drains    []func()        // collect what datagram sockets hold
	signalled bool

	outlived, heldOutput, survived bool
}

// prefix begins the name of everything that the battery makes on the host.
const prefix = "parlour-probe-"

// setUp makes every target. One that cannot be made is noted, and its attempts
// with it; the stage itself fails only where it has no folder.
func (b *Battery) setUp(ctx context.Context) (*stage, error) {
	s := &stage{missing: map[string]string{}, absent: map[string]string{}, hits: map[string]bool{}, self: b.cfg.Self, planted: b.cfg.Planted, others: b.cfg.Environ}
	s.secret = "canary-" + random()
	s.seed = random()
	s.Mark = prefix + random()[:markDigits]
	s.Left = s.hidden("left")
	b.sweep()
	if err := files(s, b.cfg.Temp); err != nil {
		s.tearDown()
		return nil, fmt.Errorf("make the targets' folder: %w", err)
	}
	s.note("environment", environment(s))
	s.note("handle", handle(s))
	hosts(s)
	devices(s)
	calls(s)
	s.note("cgroup", cgroup(s))
	listeners(s, ctx)
	memory(s)
	s.note("victim", victim(s, ctx))
	s.note("descriptor", descriptor(s))
	s.note("pty", pty(s))
	if err := s.reveal(); err != nil {
		s.tearDown()
		return nil, fmt.Errorf("open the targets' folder: %w", err)
	}
	return s, nil
}

// errAbsent marks what this host does not have.
var errAbsent = errors.New("this host has none")

// note keeps why a target is not there. What the kernel refuses to the bot
// itself, or does not know, is nothing that a run could reach.
func (s *stage) note(target string, err error) {
	if err == nil {
		return
	}
	for _, none := range []error{errAbsent, unix.ENOSYS, unix.EPERM, unix.EACCES, unix.ENOENT, unix.EROFS, unix.EAFNOSUPPORT, unix.EADDRNOTAVAIL, unix.EOPNOTSUPP, unix.ENODEV, unix.ENXIO} {
		if errors.Is(err, none) {
			s.absent[target] = err.Error()
			return
		}
	}
	s.missing[target] = err.Error()
}

func (s *stage) later(undo func()) { s.undo = append(s.undo, undo) }

// tearDown takes everything away again, the newest first.
func (s *stage) tearDown() {
	for i := len(s.undo) - 1; i >= 0; i-- {
		s.undo[i]()
	}
	s.undo = nil
}

func links(info fs.FileInfo) uint64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(st.Nlink)
	}
	return 1
}

func handle(s *stage) error {
	h, _, err := unix.NameToHandleAt(unix.AT_FDCWD, filepath.Join(s.Folder, fileHome), 0)
	if err != nil {
		return err
	}
	s.Handle, s.Kind = h.Bytes(), h.Type()
	return nil
}

// hosts finds what names the host. Only what is there can be shown.
func hosts(s *stage) {
	for _, path := range []string{"/etc/machine-id", "/etc/hostname", "/etc/resolv.conf", "/etc/shadow", "/var/lib/dbus/machine-id"} {
		if _, err := os.Stat(path); err == nil {
			s.Hosts = append(s.Hosts, path)
		}
	}
	s.note("hosts", present(len(s.Hosts) > 0))
	s.hostName, _ = os.Hostname()
	s.note("hostname", present(s.hostName != "" && s.hostName != "sandbox" && s.hostName != "localhost"))
	line, _ := os.ReadFile("/proc/cmdline")
	s.bootLine = strings.TrimSpace(string(line))
	s.note("bootline", present(s.bootLine != ""))
	entries, _ := os.ReadDir("/usr/local/bin")
	for _, e := range entries {
		s.localName = e.Name()
	}
	s.note("usrlocal", present(s.localName != ""))
	group, _ := os.ReadFile("/proc/self/cgroup")
	for line := range strings.Lines(string(group)) {
		if _, path, ok := strings.Cut(strings.TrimSpace(line), ":/"); ok && path != "" {
			s.groupPath = "/" + path
		}
	}
	s.note("cgrouppath", present(s.groupPath != ""))
	s.Groups, _ = os.Getgroups()
	s.note("groups", present(len(foreignGroups(s)) > 0))
	s.note("root", present(os.Geteuid() == 0))
	s.Bot = os.Getpid()
	tty, err := unix.Open("/dev/tty", unix.O_RDONLY|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	s.note("tty", closeIf(uintptr(tty), err))
	s.Session, err = unix.Getsid(0)
	s.note("session", err)
}

func present(is bool) error {
	if is {
		return nil
	}
	return errAbsent
}

// foreignGroups are the bot's groups beside its own.
func foreignGroups(s *stage) []int {
	var out []int
	for _, g := range s.Groups {
		if g != os.Getegid() && g != overflowID {
			out = append(out, g)
		}
	}
	return out
}

// overflowID is the id that the kernel shows for one that is not mapped.
const overflowID = 65534

func environment(s *stage) error {
	if s.planted == "" {
		return errors.New("the bot planted no variable")
	}
	return nil
}

// calls finds the system calls that this kernel was built without. It makes them
// as the intruder does, with arguments that are nonsense wherever they are let
// through.
func calls(s *stage) {
	for _, t := range kernelTrials() {
		if !t.optional {
			continue
		}
		if _, err := call(t.nr, t.args...); errors.Is(err, unix.ENOSYS) {
			s.note(t.target, err)
		}
	}
}

func devices(s *stage) {
	s.Devices = map[string]string{}
	for kind, paths := range map[string][]string{
		"disk": {"/dev/vda", "/dev/sda", "/dev/nvme0n1", "/dev/xvda", "/dev/dm-0", "/dev/mmcblk0", "/dev/loop0"}, "memory": {"/dev/mem", "/dev/kmem", "/dev/port"},
		"log": {"/dev/kmsg"}, "fuse": {"/dev/fuse"}, "kvm": {"/dev/kvm"}, "tunnel": {"/dev/net/tun"}, "loop": {"/dev/loop-control"},
		"vsock": {"/dev/vsock"}, "faults": {"/dev/userfaultfd"}, "latency": {"/dev/cpu_dma_latency"}, "screen": {"/dev/vcs", "/dev/vcsa", "/dev/fb0"},
	} {
		for _, path := range paths {
			if _, err := os.Stat(path); err == nil {
				s.Devices[kind] = path
				break
			}
		}
		s.note("device "+kind, present(s.Devices[kind] != ""))
	}
}

// cgroup makes a control group that everybody may enter, or takes the top one
// where this user may make none.
func cgroup(s *stage) error {
	roots := cgroupRoots()
	for _, root := range roots {
		path := filepath.Join(root, s.Mark)
		if _, err := os.Stat(filepath.Join(root, "cgroup.procs")); err != nil || os.Mkdir(path, 0o777) != nil {
			continue
		}
		s.later(func() { _ = os.Remove(path) })
		for _, f := range []string{"cgroup.procs", "tasks"} {
			_ = os.Chmod(filepath.Join(path, f), 0o666)
		}
		_ = os.Chmod(path, 0o777)
		s.Cgroup = path
		return nil
	}
	for _, root := range roots {
		if _, err := os.Stat(filepath.Join(root, "cgroup.procs")); err == nil {
			s.Cgroup = root
			return nil
		}
	}
	return errAbsent
}
