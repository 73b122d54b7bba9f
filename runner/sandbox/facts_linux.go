//go:build amd64 || arm64

package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

// insideUID is the run's user id in the box of a bot that is not root. The
// kernel knows the run under the bot's own id, which is all that it may map.
const insideUID = 1000

// gather looks at the host once. It changes nothing.
func gather() (facts, error) {
	f := facts{
		root:     os.Geteuid() == 0,
		landlock: landlockABI(),
		offline:  string(filter(strictness{})),
		online:   string(filter(strictness{sockets: true})),
	}
	f.stillOffline = string(filter(strictness{still: true}))
	f.stillOnline = string(filter(strictness{still: true, sockets: true}))
	// Nothing but the user id or Landlock's scopes keeps a signal off the bot.
	mute := !f.root && f.landlock < scopedLandlock
	f.sharedOffline = string(filter(strictness{shared: true, mute: mute}))
	f.sharedOnline = string(filter(strictness{shared: true, mute: mute, sockets: true}))
	// The child finds out what it is by this file; without it it would be the bot.
	if _, err := os.ReadFile("/proc/self/cmdline"); err != nil {
		return facts{}, fmt.Errorf("look for /proc: %w", err)
	}
	f.groups = ownGroups()
	f.trees, f.links = systemFolders()
	f.masks = maskedFolders()
	f.core = coreFolders(f.trees)
	f.maker, f.noMaker = findMaker(makers[:], ownerOf)
	if f.root { // it would leave the host's root in the run's reach
		f.maker, f.noMaker = "", "it is never used by root"
	}
	f.procs = present("/proc", "cpuinfo", "meminfo", "stat")
	f.settings = present("/etc", "ssl/openssl.cnf") // without it programs that have OpenSSL do not start
	f.secrets = []string{"cmdline"}
	if f.landlock == 0 { // nothing else keeps these from being read
		f.secrets = append(f.secrets, present("/proc", "config.gz", "diskstats", "keys", "locks", "modules", "partitions", "swaps", "timer_list")...)
	}
	if !f.root {
		return f, nil
	}
	uids, err := os.ReadFile("/proc/self/uid_map")
	if err != nil {
		return facts{}, fmt.Errorf("look at the user ids: %w", err)
	}
	f.nodes = slices.Equal(mappedIDs(string(uids)), []idRange{{0, 1<<32 - 1}})
	f.ids, err = freeIDs(string(uids))
	return f, err
}

// landlockABI asks the kernel, as versions say nothing about how it was built.
func landlockABI() int {
	abi, _, errno := unix.RawSyscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return min(int(abi), lastLandlock)
}

// systemFolders says which folders of the root hold the system's programs, and
// which are links into another one.
func systemFolders() (trees []string, links [][2]string) {
	for _, name := range []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"} {
		info, err := os.Lstat(name)
		if err != nil {
			continue // the host has none, so the box has none
		}
		if info.Mode()&os.ModeSymlink == 0 {
			trees = append(trees, name)
			continue
		}
		if target, err := os.Readlink(name); err == nil {
			links = append(links, [2]string{name, target})
		}
	}
	return trees, links
}

// coreFolders says which folders hold what a program needs to start: of /usr only
// those with programs and libraries. They are real paths.
func coreFolders(trees []string) []string {
	var core []string
	for _, t := range trees {
		if t != "/usr" {
			core = append(core, t)
			continue
		}
		for _, name := range []string{"bin", "lib", "lib32", "lib64", "libexec", "libx32", "sbin"} {
			at := filepath.Join(t, name)
			if info, err := os.Lstat(at); err == nil && info.IsDir() {
				core = append(core, at)
			}
		}
	}
	return core
}

// maskedFolders gives the operator's parts of /usr, under their real paths.
func maskedFolders() []string {
	var masks []string
	for _, m := range maskable {
		real, err := filepath.EvalSymlinks(m)
		if info, serr := os.Stat(m); err == nil && serr == nil && info.IsDir() && within(real, "/usr") {
			masks = append(masks, real)
		}
	}
	return masks
}

func present(root string, names ...string) []string {
	found := []string{}
	for _, n := range names {
		if _, err := os.Stat(filepath.Join(root, n)); err == nil {
			found = append(found, n)
		}
	}
	return found
}

// freeIDs reads who has which ids. A missing list holds nobody; one that cannot
// be read could hold anybody.
func freeIDs(uids string) (idRange, error) {
	var taken []idRange
	for _, l := range []struct {
		path string
		read func(string) []idRange
	}{
		{"/etc/passwd", accountIDs}, {"/etc/group", accountIDs},
		{"/etc/subuid", delegatedIDs}, {"/etc/subgid", delegatedIDs},
	} {
		text, err := os.ReadFile(l.path)
		if err != nil && !os.IsNotExist(err) {
			return idRange{}, fmt.Errorf("find free user ids: %w", err)
		}
		taken = append(taken, l.read(string(text))...)
	}
	gids, err := os.ReadFile("/proc/self/gid_map")
	if err != nil {
		return idRange{}, fmt.Errorf("find free user ids: %w", err)
	}
	return chooseRange(taken, mappedIDs(uids), mappedIDs(string(gids)))
}
