//go:build linux && (amd64 || arm64)

package sandbox

import (
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
	groups   hierarchies // where the runs' control groups can be made

	core     []string // folders with what a program needs to start, for a run without a view
	settings []string // files of /etc that libraries cannot do without, relative to it
	maker    string   // bubblewrap, where it may be used
	noMaker  string   // why maker is empty

	offline, online string // seccomp programs without and with TCP sockets
	// The same for a run that has devices of the host in its view.
	stillOffline, stillOnline string
	// The same for a run that has the host's files and processes in reach.
	sharedOffline, sharedOnline string
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
	base    string // folder of the host below which the run's places lie; empty in a view
	report  bool   // try harder to undo, and report instead of exec
	wait    bool   // wait for a word before the program starts
}

// plan gives the steps of one run in their order. It does nothing and reads
// nothing, so equal jobs give equal steps. Guarded by plan_test.go.
func (j job) plan() []entry.Step {
	list := &steps{}
	switch j.eff.Rung() {
	case policy.RungFull:
		(&view{job: j, steps: list, made: map[string]bool{".": true}}).show()
	case policy.RungBwrap:
		inner{job: j, steps: list}.settle()
	case policy.RungLandlock:
		shelter{job: j, steps: list}.build()
	}
	rights{job: j, steps: list}.shed()
	return list.list
}

// boxed says whether the run has namespaces and a view of its own.
func (j job) boxed() bool { return j.eff.Rung() != policy.RungLandlock }

// mayDrop says whether the child holds the capability to lower what it may ever
// hold. Without it the child has no capability at all, and none to lower.
func (j job) mayDrop() bool {
	return j.root || j.eff.Rung() == policy.RungFull
}

// at gives the run's place on the file system that its program sees.
func (j job) at(place string) string { return j.base + place }

// steps collects the list. Paths are relative to the new root until the pivot.
type steps struct {
	list  []entry.Step
	slots int64 // mounts that are cloned so far
}

func (p *steps) add(op entry.Op, n []int64, s ...string) {
	p.list = append(p.list, entry.Step{Op: op, N: n, S: s})
}

// clone takes a copy of a mount and gives the slot that it waits in.
func (p *steps) clone(host string, attributes int64, recursive bool) int64 {
	deep := int64(0)
	if recursive {
		deep = 1
	}
	p.add(entry.Tree, []int64{p.slots, attributes, deep}, host)
	p.slots++
	return p.slots - 1
}

func (p *steps) tmpfs(target, options string, flags int64) {
	p.add(entry.Mount, []int64{unix.MS_NOSUID | unix.MS_NODEV | flags}, "tmpfs", target, "tmpfs", options)
}

// denied adds a call that must be refused; the string replaces argument at.
func (p *steps) denied(label string, nr int64, str string, at int64, args ...int64) {
	n := make([]int64, 8)
	n[0], n[1] = nr, at
	copy(n[2:], args)
	p.add(entry.Denied, n, label, str)
}
