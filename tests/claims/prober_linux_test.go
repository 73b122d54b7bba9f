package claims_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"parlour/tests/house"
)

// TestMain makes the test binary play the prober where it is started under that
// name, also with an empty environment.
func TestMain(m *testing.M) {
	name := filepath.Base(os.Args[0])
	house.Become(name, os.Args[1:])
	if name == proberName {
		os.Exit(probe(os.Args[1]))
	}
	os.Exit(m.Run())
}

const proberName = "prober"

// findings is what the prober saw from inside.
type findings struct {
	Writable  []string // folders of the view in which a file could be made
	Leftover  []string // what lay in the scratch folders at the start
	Reached   []string // addresses that answered
	Sockets   []string // kinds of socket that could be made
	Others    int      // processes that are not its own
	Scratch   int64    // bytes that could be written in all scratch folders together
	Processes int      // that could be started at once
	OpenFiles int      // that could be open at once
	Processor uint64   // seconds that a process may compute
	Memory    int64    // bytes that one process could get
	Around    []string // what of the host around it could be read, listed or changed
	OneFile   int64    // bytes that one file could hold
}

// probe tries one boundary after the other and prints what it found.
func probe(what string) int {
	f := findings{}
	switch what {
	case "view":
		f.view()
	case "network":
		f.network()
	case "processes":
		f.processes()
	case "limits":
		f.limits()
	case "around":
		f.around(os.Args[2], os.Args[3])
	case "wait":
		_, _ = os.Stdout.WriteString("waiting\n")
		select {}
	}
	if err := json.NewEncoder(os.Stdout).Encode(f); err != nil {
		return 1
	}
	return 0
}

func scratch() []string { return []string{"/home/agent", "/tmp"} }

func (f *findings) view() {
	for _, dir := range scratch() {
		entries, _ := os.ReadDir(dir)
		for _, e := range entries {
			f.Leftover = append(f.Leftover, filepath.Join(dir, e.Name()))
		}
	}
	_ = filepath.WalkDir("/", func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return nil
		}
		if strings.Count(path, "/") > 3 || strings.HasPrefix(path, "/proc/") {
			return filepath.SkipDir
		}
		if os.WriteFile(filepath.Join(path, "written"), []byte("x"), 0o600) == nil {
			f.Writable = append(f.Writable, path)
		}
		return nil
	})
}

func (f *findings) network() {
	for _, address := range []string{
		"127.0.0.1:8080", "127.0.0.1:80", "127.0.0.1:22", "10.0.0.1:80", "192.168.0.1:53", "1.1.1.1:53", "169.254.169.254:80", "[::1]:8080", "localhost:8080",
	} {
		if conn, err := net.DialTimeout("tcp", address, 300*time.Millisecond); err == nil {
			f.Reached = append(f.Reached, address)
			_ = conn.Close()
		}
	}
	if names, err := net.LookupHost("example.org"); err == nil {
		f.Reached = append(f.Reached, names...)
	}
	for name, domain := range map[string]int{"unix": unix.AF_UNIX, "inet": unix.AF_INET, "inet6": unix.AF_INET6, "netlink": unix.AF_NETLINK, "packet": unix.AF_PACKET, "vsock": unix.AF_VSOCK} {
		for kind, typ := range map[string]int{"stream": unix.SOCK_STREAM, "dgram": unix.SOCK_DGRAM, "raw": unix.SOCK_RAW} {
			if fd, err := unix.Socket(domain, typ, 0); err == nil {
				f.Sockets = append(f.Sockets, name+" "+kind)
				_ = unix.Close(fd)
			}
		}
	}
}

func (f *findings) processes() {
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err == nil && pid != os.Getpid() {
			f.Others++
		}
	}
	reached := 0
	for pid := 1; pid < 1<<16; pid++ {
		if !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			reached++
		}
	}
	f.Others += max(0, reached-threads("self")) // each thread of its own answers too
}

func (f *findings) limits() {
	f.Processor = processor()
	f.Memory = allocate()
	f.OpenFiles = openFiles()
	f.Scratch = fill()
	f.Processes = fork()
}

// allocate maps private memory until the kernel says no.
func allocate() (n int64) {
	const step = 16 << 20
	for n < 64<<30 {
		if _, err := unix.Mmap(-1, 0, step, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON); err != nil {
			return n
		}
		n += step
	}
	return n
}

// processor is how many seconds a process may compute.
func processor() uint64 {
	var l unix.Rlimit
	_ = unix.Getrlimit(unix.RLIMIT_CPU, &l)
	return l.Max
}

func openFiles() int {
	n := 3 // standard input, output and error
	for ; n < 1<<20; n++ {
		if _, err := unix.Open("/dev/null", unix.O_RDONLY, 0); err != nil {
			break
		}
	}
	for fd := 3; fd < n+16; fd++ {
		_ = unix.Close(fd)
	}
	return n
}

func fill() (n int64) {
	block := make([]byte, 64<<10)
	for _, dir := range scratch() {
		for i := range 1 << 20 {
			file, err := os.Create(filepath.Join(dir, fmt.Sprint("fill", i)))
			if err != nil {
				break
			}
			wrote, err := file.Write(block)
			n += int64(wrote)
			_ = file.Close()
			if err != nil {
				break
			}
		}
	}
	return n
}

// fork starts copies of this program until the kernel refuses, counting itself
// and its own threads, which the kernel counts too.
func fork() int {
	runtime.GC()
	n := threads("self")
	children := []*os.Process{}
	for range 4096 {
		p, err := os.StartProcess("/proc/self/exe", []string{proberName, "wait"}, &os.ProcAttr{Files: []*os.File{nil, os.Stderr, nil}})
		if err != nil {
			break
		}
		children = append(children, p)
	}
	for _, p := range children {
		n += max(1, threads(strconv.Itoa(p.Pid)))
		_ = p.Kill()
	}
	return n
}

func threads(pid string) int {
	status, _ := os.ReadFile("/proc/" + pid + "/status")
	for _, line := range strings.Split(string(status), "\n") {
		if value, ok := strings.CutPrefix(line, "Threads:"); ok {
			n, _ := strconv.Atoi(strings.TrimSpace(value))
			return n
		}
	}
	return 0
}
