//go:build linux

package attacks_test

import (
	"bufio"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// sentinel is the form of everything that must not be found.
var sentinel = regexp.MustCompile(`SENTINEL-[0-9a-f]{16}`)

// hunt is a program that looks for sentinels everywhere an agent could: where
// its arguments point, and in what every process has. It prints what it found,
// one to a line, and always one line at least. Arguments after "--" are the
// bot's and are ignored.
func hunt(args []string) int {
	h := hunter{found: map[string]bool{}}
	h.everywhere()
	for _, arg := range args {
		if arg == "--" {
			break
		}
		kind, target, _ := strings.Cut(arg, "=")
		switch kind {
		case "file":
			h.file(target)
		case "tree":
			h.tree(target)
		case "tcp", "udp", "unix":
			h.dial(kind, target)
		}
	}
	lines := []string{}
	for s := range h.found {
		lines = append(lines, s)
	}
	slices.Sort(lines)
	fmt.Println("hunted")
	for _, l := range lines {
		fmt.Println(l)
	}
	return 0
}

type hunter struct{ found map[string]bool }

func (h *hunter) look(text string) {
	for _, s := range sentinel.FindAllString(text, -1) {
		h.found[s] = true
	}
}

// everywhere looks at what needs no hint: environment, descriptors, processes,
// and the names under which the program itself is known.
func (h *hunter) everywhere() {
	h.look(strings.Join(os.Environ(), "\n"))
	h.look(strings.Join(os.Args[:1], "\n"))
	for fd := 3; fd < 256; fd++ {
		if unix.SetNonblock(fd, true) == nil {
			text, _ := io.ReadAll(io.LimitReader(descriptor(fd), 1<<16))
			h.look(string(text))
		}
	}
	own, _ := os.Readlink("/proc/self/exe")
	h.look(own)
	name, _ := os.Hostname()
	h.look(name)
	for _, pattern := range []string{
		"/proc/cmdline", "/proc/version", "/proc/mounts", "/proc/[0-9]*/environ", "/proc/[0-9]*/cmdline", "/proc/[0-9]*/mountinfo",
		"/proc/[0-9]*/maps", "/proc/[0-9]*/task/[0-9]*/mountinfo", "/proc/[0-9]*/cgroup", "/proc/net/unix",
	} {
		files, _ := filepath.Glob(pattern)
		for _, f := range files {
			h.file(f)
		}
	}
	links, _ := filepath.Glob("/proc/[0-9]*/[cer][wxo][deo]*")
	for _, l := range links {
		target, _ := os.Readlink(l)
		h.look(target)
	}
}

// descriptor reads by number, so that nothing else of the runtime is involved.
type descriptor int

func (d descriptor) Read(p []byte) (int, error) {
	n, err := unix.Read(int(d), p)
	if n <= 0 || err != nil {
		return 0, io.EOF
	}
	return n, nil
}

func (h *hunter) file(path string) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return
	}
	defer func() { _ = f.Close() }()
	text, _ := io.ReadAll(io.LimitReader(f, 4<<20))
	h.look(string(text))
}

func (h *hunter) tree(root string) {
	_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		h.look(path)
		if d.Type().IsRegular() {
			h.file(path)
		}
		return nil
	})
}

func (h *hunter) dial(network, address string) {
	conn, err := net.DialTimeout(network, address, time.Second)
	if err != nil {
		return
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(time.Second))
	_, _ = conn.Write([]byte("hello\n"))
	line, _ := bufio.NewReader(conn).ReadString('\n')
	h.look(line)
}
