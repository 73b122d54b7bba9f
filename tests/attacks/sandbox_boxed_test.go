//go:build linux

package attacks_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"parlour/runner/policy"
)

// boxedName is the name under which this binary is the agent in a box.
const boxedName = "boxed-agent"

// boxedAgent holds what the agent in a box can be told to do.
type boxedAgent struct{}

// boxedMain does what its first argument says and reports as JSON.
func boxedMain(args []string) int {
	a := boxedAgent{}
	actions := map[string]func([]string) any{
		"env":         func([]string) any { return os.Environ() },
		"args":        func(rest []string) any { return rest },
		"list":        a.list,
		"read":        a.read,
		"stdin":       func([]string) any { text, _ := io.ReadAll(os.Stdin); return string(text) },
		"descriptors": func([]string) any { return a.descriptors() },
		"write":       a.writeAll,
		"change":      a.changeAll,
		"fill":        a.fill,
		"crowd":       a.crowd,
		"proc":        func(words []string) any { return a.procHolding(words) },
		"grandchild":  a.grandchild,
		"identity":    func([]string) any { return a.identity() },
		"calls":       func([]string) any { return a.forbiddenCalls() },
		"sockets":     func([]string) any { return a.sockets() },
		"strangers":   a.strangers,
		"dial":        a.dialAll,
		"get":         a.get,
		"limits":      func([]string) any { return a.limits() },
		"map":         a.mapMemory,
		"bomb":        a.bomb,
		"stay":        a.stay,
		"leave":       a.leave,
	}
	action, ok := actions[args[0]]
	if !ok {
		fmt.Fprintln(os.Stderr, "unknown action", args[0])
		return 2
	}
	if err := json.NewEncoder(os.Stdout).Encode(action(args[1:])); err != nil {
		return 1
	}
	return 0
}

func (boxedAgent) list(folders []string) any {
	all := map[string][]string{}
	for _, f := range folders {
		names := []string{}
		entries, err := os.ReadDir(f)
		for _, e := range entries {
			names = append(names, e.Name())
		}
		if err != nil {
			names = append(names, "error: "+err.Error())
		}
		all[f] = names
	}
	return all
}

// read gives the start of each file that can be read and holds anything.
func (boxedAgent) read(paths []string) any {
	got := map[string]string{}
	for _, p := range paths {
		if text := boxedRead(p); text != "" {
			got[p] = text
		}
	}
	return got
}

// descriptors gives what is open, but for the files by which the Go runtime
// follows its share of the processors.
func (boxedAgent) descriptors() []string {
	open := []string{}
	for fd := range 4096 {
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != nil {
			continue
		}
		target, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(fd))
		if err == nil && strings.HasPrefix(target, "/sys/fs/cgroup/") {
			continue
		}
		open = append(open, strconv.Itoa(fd))
	}
	return open
}

// writeAll tries to make a file at each path and says what came of it.
func (boxedAgent) writeAll(paths []string) any {
	got := map[string]string{}
	for _, p := range paths {
		got[p] = "ok"
		if err := os.WriteFile(p, []byte("x"), 0o600); err != nil {
			got[p] = err.Error()
		}
	}
	return got
}

// changeAll tries to change what exists, in ways that need no open file.
func (boxedAgent) changeAll(paths []string) any {
	done := []string{}
	note := func(what, p string, err error) {
		if err == nil {
			done = append(done, what+" "+p)
		}
	}
	for _, p := range paths {
		note("chmod", p, os.Chmod(p, 0o777))
		note("chtimes", p, os.Chtimes(p, time.Unix(1, 0), time.Unix(1, 0)))
		note("rename", p, os.Rename(p, p+"-moved"))
		note("remove", p, os.Remove(p))
		note("symlink", p, os.Symlink("/etc", p+"-link"))
		note("link", p, os.Link(p, filepath.Join(policy.TempDir, "link")))
		note("xattr", p, unix.Setxattr(p, "user.parlour", []byte("x"), 0))
		note("truncate", p, os.Truncate(p, 0))
		note("mkfifo", p, unix.Mkfifo(p+"-fifo", 0o600))
	}
	return done
}

// fill writes to each folder until it is refused and gives the sum of bytes.
func (boxedAgent) fill(folders []string) any {
	block, sum := make([]byte, 1<<16), 0
	for _, folder := range folders {
		f, err := os.Create(filepath.Join(folder, "fill"))
		for err == nil {
			var n int
			n, err = f.Write(block)
			sum += n
		}
	}
	return sum
}

// crowd makes empty files in each folder until it is refused and counts them.
func (boxedAgent) crowd(folders []string) any {
	made := 0
	for _, folder := range folders {
		for i := 0; ; i++ {
			if err := os.WriteFile(filepath.Join(folder, strconv.Itoa(i)), nil, 0o600); err != nil {
				break
			}
			made++
		}
	}
	return made
}

// grandchild does an action in a process that is not the first of the box.
func (boxedAgent) grandchild(args []string) any {
	c := exec.Command("/proc/self/exe", args...)
	c.Args[0], c.Stderr = boxedName, os.Stderr
	out, err := c.Output()
	if err != nil {
		return err.Error()
	}
	return json.RawMessage(out)
}

func (boxedAgent) get(args []string) any {
	client := http.Client{Timeout: boxPatience}
	response, err := client.Get(args[0])
	if err != nil {
		return "error: " + err.Error()
	}
	defer response.Body.Close()
	body, _ := io.ReadAll(response.Body)
	return string(body)
}

func (boxedAgent) mapMemory(args []string) any {
	size, _ := strconv.Atoi(args[0])
	_, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	return err == nil
}

// bomb starts copies of itself that leave the session and ignore what asks them
// to end, then stays or ends. Its arguments are a mark, a count and "stay" or "end".
func (a boxedAgent) bomb(args []string) any {
	count, _ := strconv.Atoi(args[1])
	for i := range count {
		c := exec.Command("/proc/self/exe", "stay", args[0])
		c.Args[0], c.Stdout, c.Stderr = boxedName, os.Stdout, os.Stderr
		c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := c.Start(); err != nil {
			fmt.Println("limit reached after", i, err)
			break
		}
	}
	fmt.Println("lit")
	if args[2] == "stay" {
		return a.stay(args)
	}
	return "ended"
}

// stay ignores every signal that can be ignored and never ends by itself.
func (boxedAgent) stay([]string) any {
	signal.Ignore(syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGPIPE)
	fmt.Println("staying as", os.Getuid())
	for {
		_ = unix.Pause()
	}
}

// leave starts one process that stays and ends. A second argument lets that
// process leave the session.
func (boxedAgent) leave(args []string) any {
	c := exec.Command("/proc/self/exe", "stay", args[0])
	c.Args[0], c.Stdout = boxedName, os.Stdout
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: len(args) > 1}
	if err := c.Start(); err != nil {
		return err.Error()
	}
	return "left"
}

// procHolding reads and follows everything below /proc that it can and gives the
// paths where one of the words shows.
func (boxedAgent) procHolding(words []string) []string {
	found := []string{}
	look := func(p, text string) {
		for _, w := range words {
			if strings.Contains(text, w) {
				found = append(found, p+" shows "+w)
			}
		}
	}
	var walk func(folder string, depth int)
	walk = func(folder string, depth int) {
		entries, _ := os.ReadDir(folder)
		for _, e := range entries {
			p := filepath.Join(folder, e.Name())
			if target, err := os.Readlink(p); err == nil {
				look(p, target)
				continue
			}
			if e.IsDir() {
				if depth < 6 {
					walk(p, depth+1)
				}
				continue
			}
			look(p, boxedRead(p))
		}
	}
	walk("/proc", 0)
	sort.Strings(found)
	return found
}

// firstBytes reads the start of a file without ever waiting for it.
func boxedRead(p string) string {
	fd, err := unix.Open(p, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return ""
	}
	defer unix.Close(fd)
	buf, text := make([]byte, 1<<16), ""
	for len(text) < 1<<18 {
		n, err := unix.Read(fd, buf)
		if err != nil || n <= 0 {
			break
		}
		text += string(buf[:n])
	}
	return text
}
