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

// facts are what the plan needs to know of the host. They do not change while
// the bot runs.
type facts struct {
	root     bool        // the bot is root: no user namespace, an own uid for each run
	nodes    bool        // device nodes can be made; elsewhere the host's are bound
	landlock int         // ABI, 0 for none
	trees    []string    // root folders of the system that are shown, such as /usr
	links    [][2]string // symlinks of the root folder: name, target
	masks    []string    // folders below a tree that are shown empty
	procs    []string    // files of /proc that programs need, relative to it
	secrets  []string    // files of /proc that are shown empty, relative to it
	ids      idRange     // uids of the runs of a root bot

	offline, online string // seccomp programs without and with TCP sockets
}

// source is a host file or folder and its place in the box.
type source struct {
	host, inside string
	folder       bool
}

// job is everything that one plan is made of.
type job struct {
	facts
	eff     policy.Effective
	cmd     Command
	uid     int // of the run, as the box sees it
	program source
	mounts  []source
	report  bool // try harder to undo, and report instead of exec
}

// planner collects steps. Paths are relative to the new root until pivot.
type planner struct {
	job
	steps []entry.Step
	slots int64           // cloned mounts so far
	made  map[string]bool // folders that exist in the new root
	fixed []placing       // cloned host mounts that wait for their place
}

type placing struct {
	slot int64
	source
}

// plan gives the steps of one box in their order. It does nothing and reads
// nothing, so equal jobs give equal steps. Guarded by plan_test.go.
func (j job) plan() []entry.Step {
	p := &planner{job: j, made: map[string]bool{".": true}}
	p.begin()
	p.stage()
	p.system()
	p.scratch()
	p.proc()
	p.finish()
	p.network()
	p.limits()
	p.surrender()
	p.undo()
	p.landlocked()
	p.filtered()
	p.end()
	return p.steps
}

func (p *planner) add(op entry.Op, n []int64, s ...string) {
	p.steps = append(p.steps, entry.Step{Op: op, N: n, S: s})
}

// begin opens everything of the host that the view shows, before the new root
// hides it. Nothing that is mounted here reaches the host's own view.
func (p *planner) begin() {
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
			p.take(source{host: at, inside: at}, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NOEXEC)
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

func (p *planner) take(s source, attributes int64) {
	p.fixed = append(p.fixed, placing{p.slots, s})
	p.clone(s.host, attributes, s.folder)
}

func (p *planner) clone(host string, attributes int64, recursive bool) int64 {
	deep := int64(0)
	if recursive {
		deep = 1
	}
	p.add(entry.Tree, []int64{p.slots, attributes, deep}, host)
	p.slots++
	return p.slots - 1
}

func (p *planner) tmpfs(target, options string, flags int64) {
	p.add(entry.Mount, []int64{unix.MS_NOSUID | unix.MS_NODEV | flags}, "tmpfs", target, "tmpfs", options)
}

// system lays out the read-only part of the view.
func (p *planner) system() {
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
func (p *planner) settle(f placing) {
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
func (p *planner) mask(mask string, late []placing) {
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
func (p *planner) empty(path string) {
	p.add(entry.Place, []int64{p.clone("proc/empty", unix.MOUNT_ATTR_RDONLY, false)}, path)
}

func (p *planner) masked(inside string) bool {
	return slices.ContainsFunc(p.masks, func(m string) bool { return within(inside, m) })
}

// folders makes a folder and its parents where they are missing. owner -1
// leaves them to the maker, and nobody else may write them.
func (p *planner) folders(abs string, owner int) {
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
func (p *planner) stage() {
	roots, limits := p.eff.Writable(), p.eff.Limits()
	p.folders("/proc", -1)
	p.tmpfs("proc", "mode=755,size="+itoa(limits.Disk)+",nr_inodes="+itoa(int64(limits.Files+len(roots)+2)), 0)
	p.add(entry.Mkdir, []int64{0o555, -1, -1}, "proc/empty")
	for i := range roots {
		p.add(entry.Mkdir, []int64{0o700, p.owner(), p.owner()}, "proc/"+itoa(int64(i)))
	}
}

// scratch attaches the writable folders and writes the command's files.
func (p *planner) scratch() {
	for i, root := range p.eff.Writable() {
		p.folders(root, -1)
		p.add(entry.Place, []int64{p.clone("proc/"+itoa(int64(i)), 0, false)}, rel(root))
	}
	for _, d := range []string{policy.HomeDir, policy.TempDir} {
		p.folders(d, int(p.owner()))
	}
	for _, f := range slices.Sorted(maps.Keys(p.cmd.Files)) {
		p.folders(path.Dir(f), int(p.owner()))
		p.add(entry.File, []int64{0o600, p.owner(), p.owner()}, rel(f), p.cmd.Files[f])
	}
}

// owner is the run's user where files must be given to it. In a user namespace
// the run's user makes them itself.
func (p *planner) owner() int64 { return int64(p.uid) }

// proc mounts the box's own /proc, read-only as a whole, and hides what names
// the host: the kernel's command line and the sources of the mounts. Guarded by
// tests/attacks TestProcNamesNothingOfTheHost.
func (p *planner) proc() {
	task := p.clone("proc/empty", unix.MOUNT_ATTR_RDONLY, false)
	p.add(entry.Mount, []int64{unix.MS_RDONLY | unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC}, "proc", "proc", "proc", "")
	for _, s := range append([]string{"1/mountinfo", "1/mounts", "1/mountstats"}, p.secrets...) {
		p.add(entry.Place, []int64{p.clone("dev/null", 0, false)}, "proc/"+s)
	}
	p.add(entry.Place, []int64{task}, "proc/1/task")
}

func (p *planner) finish() {
	p.add(entry.Attributes, []int64{unix.MOUNT_ATTR_RDONLY}, ".")
	p.add(entry.Pivot, nil)
}

// network opens the one address that answers, or leaves lo down.
func (p *planner) network() {
	if p.eff.Network() != policy.ModelOnly {
		return
	}
	p.add(entry.LoopbackUp, nil)
	p.add(entry.Listen, []int64{brokerPort})
}

func (p *planner) end() {
	p.add(entry.Umask, []int64{0o022})
	p.add(entry.CloseOnExec, nil)
	if p.report {
		p.add(entry.Report, nil)
		return
	}
	argv := append([]string{p.cmd.Name}, p.cmd.Args...)
	p.add(entry.Exec, []int64{int64(len(argv))}, slices.Concat([]string{p.program.inside}, argv, p.cmd.Env)...)
}

// rel turns a path of the box into one relative to the new root.
func rel(abs string) string {
	if abs == "/" {
		return "."
	}
	return strings.TrimPrefix(abs, "/")
}
