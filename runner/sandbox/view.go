//go:build linux && (amd64 || arm64)

package sandbox

import (
	"maps"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"parlour/runner/policy"
	"parlour/runner/sandbox/entry"
)

// view plans the file system of the box, from the old root to the pivot.
type view struct {
	job
	*steps
	made  map[string]bool // folders that exist in the new root
	fixed []placing       // cloned host mounts that wait for their place
}

type placing struct {
	slot int64
	source
}

func (p *view) show() {
	p.begin()
	p.stage()
	p.system()
	p.scratch()
	p.proc()
	p.finish()
}

// begin opens everything of the host that the view shows, before the new root
// hides it. Nothing that is mounted here reaches the host's own view.
func (p *view) begin() {
	p.add(entry.Watch, nil)
	p.add(entry.Umask, []int64{0})
	p.add(entry.Hostname, nil, "sandbox")
	p.add(entry.Mount, []int64{unix.MS_REC | unix.MS_PRIVATE}, "", "/", "", "")
	for _, t := range p.trees {
		p.take(source{host: t, inside: t, folder: true}, unix.MOUNT_ATTR_RDONLY|unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV)
	}
	if !p.nodes {
		for _, d := range devices {
			at := "/dev/" + d.name
			p.take(source{host: at, inside: at}, unix.MOUNT_ATTR_RDONLY|unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NOEXEC)
		}
	}
	for _, m := range append([]source{p.program}, p.mounts...) {
		p.take(m, unix.MOUNT_ATTR_RDONLY|unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV)
	}
	// The root is mounted on /proc because every host has that folder.
	p.add(entry.Mount, []int64{unix.MS_NOSUID}, "tmpfs", "/proc", "tmpfs", "mode=755,size=1m,nr_inodes=4096")
	p.add(entry.Chdir, nil, "/proc")
}

// devices are the memory devices that programs need, with their minor numbers.
var devices = [...]struct {
	name  string
	minor int64
}{{"full", 7}, {"null", 3}, {"random", 8}, {"urandom", 9}, {"zero", 5}}

func (p *view) take(s source, attributes int64) {
	p.fixed = append(p.fixed, placing{p.slots, s})
	p.clone(s.host, attributes, s.folder)
}

// system lays out the read-only part of the view.
func (p *view) system() {
	for _, l := range p.links {
		p.add(entry.Symlink, nil, l[1], rel(l[0]))
	}
	p.etc()
	for _, d := range []string{"/dev", policy.WorkDir} {
		p.folders(d, -1)
	}
	for _, l := range [][2]string{{"fd", ""}, {"stdin", "/0"}, {"stdout", "/1"}, {"stderr", "/2"}} {
		p.add(entry.Symlink, nil, "/proc/self/fd"+l[1], "dev/"+l[0])
	}
	if p.nodes {
		for _, d := range devices {
			p.add(entry.Device, []int64{0o666, 1, d.minor}, "dev/"+d.name)
		}
	}
	var late []placing // what lies in a masked folder comes after the mask
	for _, f := range p.fixed {
		if p.masked(f.inside) {
			late = append(late, f)
			continue
		}
		p.settle(f)
	}
	for _, mask := range p.masks {
		p.mask(mask, late)
	}
}

// settle makes the mount point and attaches the clone.
func (p *view) settle(f placing) {
	if f.folder {
		p.folders(f.inside, -1)
	} else {
		p.folders(path.Dir(f.inside), -1)
		p.add(entry.File, []int64{0o444, -1, -1}, rel(f.inside), "")
	}
	p.add(entry.Place, []int64{f.slot}, rel(f.inside))
}

// mask empties a folder that belongs to the operator. Guarded by tests/attacks
// TestViewIsExactlyThePlannedOne.
func (p *view) mask(mask string, late []placing) {
	p.made[rel(mask)] = true
	if !slices.ContainsFunc(late, func(f placing) bool { return within(f.inside, mask) }) {
		p.empty(rel(mask))
		return
	}
	p.tmpfs(rel(mask), "mode=755,size=64k,nr_inodes=1024", 0)
	for _, f := range late {
		if within(f.inside, mask) {
			p.settle(f)
		}
	}
	p.add(entry.Attributes, []int64{unix.MOUNT_ATTR_RDONLY}, rel(mask))
}

// empty covers a folder with an empty one that cannot be written: a clone of one
// folder of the staging mount is cheaper than a file system of its own.
func (p *view) empty(path string) {
	p.add(entry.Place, []int64{p.clone("proc/empty", unix.MOUNT_ATTR_RDONLY, false)}, path)
}

func (p *view) masked(inside string) bool {
	return slices.ContainsFunc(p.masks, func(m string) bool { return within(inside, m) })
}

// folders makes a folder and its parents where they are missing. owner -1
// leaves them to the maker, and nobody else may write them.
func (p *view) folders(abs string, owner int) {
	if p.made[rel(abs)] {
		return
	}
	p.folders(path.Dir(abs), owner)
	p.made[rel(abs)] = true
	mode := int64(0o755)
	if owner >= 0 {
		mode = 0o700
	}
	p.add(entry.Mkdir, []int64{mode, int64(owner), int64(owner)}, rel(abs))
}

// stage mounts what the writable folders are cut from. They share one tmpfs, so
// that the limits on bytes and files hold for all of them together. It lies
// where the box's /proc will cover it: to unmount it would cost a millisecond.
// Guarded by tests/attacks TestScratchIsBounded.
func (p *view) stage() {
	roots, limits := p.eff.Writable(), p.eff.Limits()
	p.folders("/proc", -1)
	p.tmpfs("proc", "mode=755,size="+itoa(limits.Disk)+",nr_inodes="+itoa(int64(limits.Files+len(roots)+2)), 0)
	p.add(entry.Mkdir, []int64{0o555, -1, -1}, "proc/empty")
	for i := range roots {
		p.add(entry.Mkdir, []int64{0o700, p.owner(), p.owner()}, "proc/"+itoa(int64(i)))
	}
}

// scratch attaches the writable folders and writes the command's files.
func (p *view) scratch() {
	for i, root := range p.eff.Writable() {
		p.folders(root, -1)
		p.add(entry.Place, []int64{p.clone("proc/"+itoa(int64(i)), 0, false)}, rel(root))
	}
	for _, d := range []string{policy.HomeDir, policy.TempDir} {
		p.folders(d, int(p.owner()))
	}
	for _, d := range p.cmd.Folders {
		p.folders(d, int(p.owner()))
	}
	for _, f := range slices.Sorted(maps.Keys(p.cmd.Files)) {
		p.folders(path.Dir(f), int(p.owner()))
		p.add(entry.File, []int64{0o600, p.owner(), p.owner()}, rel(f), p.cmd.Files[f])
	}
}

// owner is the run's user where files must be given to it. In a user namespace
// the run's user makes them itself.
func (p *view) owner() int64 { return int64(p.uid) }

// proc mounts the box's own /proc, read-only as a whole, and hides what names
// the host: the kernel's command line and the sources of the mounts. Guarded by
// tests/attacks TestProcNamesNothingOfTheHost.
func (p *view) proc() {
	task := p.clone("proc/empty", unix.MOUNT_ATTR_RDONLY, false)
	p.add(entry.Mount, []int64{unix.MS_RDONLY | unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC}, "proc", "proc", "proc", "")
	for _, s := range append([]string{"1/mountinfo", "1/mounts", "1/mountstats"}, p.secrets...) {
		p.add(entry.Place, []int64{p.clone("dev/null", 0, false)}, "proc/"+s)
	}
	p.add(entry.Place, []int64{task}, "proc/1/task")
}

func (p *view) finish() {
	p.add(entry.Attributes, []int64{unix.MOUNT_ATTR_RDONLY}, ".")
	p.add(entry.Pivot, nil)
	if len(p.cmd.Stdin) == 0 {
		// The host's own /dev/null would be a file of the host in the run's hands.
		p.add(entry.NullInput, nil)
	}
}

// rel turns a path of the box into one relative to the new root.
func rel(abs string) string {
	if abs == "/" {
		return "."
	}
	return strings.TrimPrefix(abs, "/")
}
