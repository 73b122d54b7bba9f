//go:build linux && (amd64 || arm64)

package sandbox

import (
	"golang.org/x/sys/unix"

	"parlour/runner/policy"
	"parlour/runner/sandbox/entry"
)

// lastLandlock is the newest ABI whose rights this package knows. A newer
// kernel is used as if it had this one.
const lastLandlock = 10

// scopedLandlock is the first ABI that keeps signals to the run.
const scopedLandlock = 6

const (
	readFile = unix.LANDLOCK_ACCESS_FS_READ_FILE
	readDir  = unix.LANDLOCK_ACCESS_FS_READ_DIR
	runFile  = unix.LANDLOCK_ACCESS_FS_EXECUTE | readFile
	runTree  = runFile | readDir
	device   = readFile | unix.LANDLOCK_ACCESS_FS_WRITE_FILE
)

// ruleset is what a Landlock ABI can handle.
type ruleset struct {
	files, network, scoped int64
	size                   int64 // of the kernel's structure
}

// handled gives every right of the ABI: what no rule grants is refused.
func handled(abi int) ruleset {
	r := ruleset{files: unix.LANDLOCK_ACCESS_FS_MAKE_SYM<<1 - 1, size: 8}
	for _, more := range []struct {
		abi                          int
		files, network, scoped, size int64
	}{
		{abi: 2, files: unix.LANDLOCK_ACCESS_FS_REFER},
		{abi: 3, files: unix.LANDLOCK_ACCESS_FS_TRUNCATE},
		{abi: 4, network: unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP, size: 16},
		{abi: 5, files: unix.LANDLOCK_ACCESS_FS_IOCTL_DEV},
		{abi: 6, scoped: unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL, size: 24},
		{abi: 9, files: unix.LANDLOCK_ACCESS_FS_RESOLVE_UNIX},
		{abi: 10, network: unix.LANDLOCK_ACCESS_NET_BIND_UDP | unix.LANDLOCK_ACCESS_NET_CONNECT_SEND_UDP},
	} {
		if abi >= more.abi {
			r.files |= more.files
			r.network |= more.network
			r.scoped |= more.scoped
			r.size = max(r.size, more.size)
		}
	}
	return r
}

// scratchRights are all rights of a folder but devices and sockets.
func (r ruleset) scratchRights() int64 {
	return r.files &^ (unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK | unix.LANDLOCK_ACCESS_FS_MAKE_CHAR |
		unix.LANDLOCK_ACCESS_FS_MAKE_SOCK | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV | unix.LANDLOCK_ACCESS_FS_RESOLVE_UNIX)
}

// landlocked is the second wall: it repeats the view as an allow-list, and of
// /proc it leaves the program's own folder and a few files that programs need
// to start. On a kernel without Landlock nothing is added; Capabilities say so.
// Guarded by tests/attacks TestProcNamesNothingOfTheHost.
func (p rights) landlocked() {
	if p.landlock == 0 {
		return
	}
	r := handled(p.landlock)
	p.add(entry.Ruleset, []int64{r.files, r.network, r.scoped, r.size})
	if p.boxed() {
		p.repeatView()
	} else {
		p.allowCore()
	}
	for _, w := range p.eff.Writable() {
		p.allow(r.scratchRights(), p.at(w))
	}
	if r.network != 0 && p.eff.Network() == policy.ModelOnly {
		p.add(entry.PortRule, []int64{unix.LANDLOCK_ACCESS_NET_CONNECT_TCP, brokerPort})
	}
	p.add(entry.Restrict, nil)
}

// repeatView allows what the view shows.
func (p rights) repeatView() {
	p.allow(readDir, "/")
	p.allow(runTree, p.trees...)
	p.allow(readFile|readDir, "/etc", "/proc/self")
	p.allow(runTree, policy.AgentDir)
	p.allow(device, "/dev")
	for _, f := range p.procs {
		p.allow(readFile, "/proc/"+f)
	}
	for _, m := range p.mounts {
		if m.folder {
			p.allow(runTree, m.inside)
		} else {
			p.allow(runFile, m.inside)
		}
	}
}

// ownProcs are the files of a run's own /proc that programs need; the others
// name the host's mounts, groups or devices.
var ownProcs = [...]string{"cmdline", "maps", "stat", "statm", "status"}

// allowCore allows what a program needs to start where it has the host's file
// system before it: Landlock is the first wall here, and the only one.
func (p rights) allowCore() {
	p.allow(runTree, p.core...)
	p.allow(runFile, p.program.inside)
	for _, f := range ownProcs {
		p.allow(readFile, "/proc/self/"+f)
	}
	p.allow(readDir, "/proc/self/fd")
	for _, f := range p.procs {
		p.allow(readFile, "/proc/"+f)
	}
	for _, f := range p.settings {
		p.allow(readFile, "/etc/"+f)
	}
	p.allow(device, "/dev/null")
	for _, d := range []string{"full", "random", "urandom", "zero"} {
		p.allow(readFile, "/dev/"+d)
	}
	p.allow(readDir, p.at(policy.WorkDir))
	for _, m := range p.mounts {
		switch {
		case m.folder:
			p.allow(runTree, m.host)
		case m.host == m.inside:
			p.allow(runFile, m.host)
		default:
			p.allow(readFile, p.at(m.inside))
		}
	}
}

func (p rights) allow(rights int64, paths ...string) {
	for _, path := range paths {
		p.add(entry.PathRule, []int64{rights}, path)
	}
}
