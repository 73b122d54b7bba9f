//go:build amd64 || arm64

package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"parlour/runner/policy"
)

// group is the control groups of one run: in them memory and processes are
// counted for the run as a whole, which limits of a process cannot do.
type group struct {
	dirs  []string
	joins []*os.File // what the child writes itself into
	gone  func(bool)
	left  sync.Once
}

// open makes the run's groups below the bot's own, and sets the limits.
func (h hierarchies) open(p *presence, l policy.Limits) (*group, error) {
	name, gone, err := p.enter(h.places()...)
	if err != nil {
		return nil, err
	}
	g := &group{gone: gone}
	for _, place := range h.places() {
		dir := filepath.Join(place, name)
		if err := os.Mkdir(dir, 0o755); err != nil {
			g.leave()
			return nil, err
		}
		g.dirs = append(g.dirs, dir)
		if err := h.limit(place, dir, l); err != nil {
			g.leave()
			return nil, err
		}
		join, err := os.OpenFile(filepath.Join(dir, "cgroup.procs"), os.O_WRONLY, 0)
		if err != nil {
			g.leave()
			return nil, err
		}
		g.joins = append(g.joins, join)
	}
	return g, nil
}

// limit writes what the group may use. Swap would only make the limit slow, so
// there is none where the kernel counts it.
func (h hierarchies) limit(place, dir string, l policy.Limits) error {
	memory, processes := strconv.FormatInt(l.Memory, 10), strconv.Itoa(l.Processes)
	if place == h.unified {
		return errors.Join(
			set(dir, "memory.max", memory), ifThere(set(dir, "memory.swap.max", "0")), ifThere(set(dir, "memory.oom.group", "1")),
			set(dir, "pids.max", processes))
	}
	var errs []error
	if place == h.memory {
		errs = append(errs, set(dir, "memory.limit_in_bytes", memory), ifThere(set(dir, "memory.memsw.limit_in_bytes", memory)))
	}
	if place == h.pids {
		errs = append(errs, set(dir, "pids.max", processes))
	}
	return errors.Join(errs...)
}

func set(dir, file, value string) error {
	f, err := os.OpenFile(filepath.Join(dir, file), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	return errors.Join(err, f.Close())
}

// ifThere forgives what a kernel was built without.
func ifThere(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// leave gives the groups back, once. Nobody is left in them: the run is over.
// What cannot be removed now is swept by the next start of a bot.
func (g *group) leave() {
	if g == nil {
		return
	}
	g.left.Do(func() {
		gone := true
		for _, f := range g.joins {
			_ = f.Close() // closed already, where the child has begun
		}
		for _, dir := range g.dirs {
			gone = removeGroup(dir) == nil && gone
		}
		g.gone(gone)
	})
}

// removeGroup removes a group, whose last processes may still be leaving it.
func removeGroup(dir string) error {
	err := unix.Rmdir(dir)
	if errors.Is(err, unix.EBUSY) {
		err = emptyGroup(dir)
	}
	if err != nil && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("remove the group %s: %w", dir, err)
	}
	return nil
}

// emptyGroup ends who is left in a group, for a second at most.
func emptyGroup(dir string) error {
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	for range 200 {
		end(dir)
		<-again.C
		if err := unix.Rmdir(dir); !errors.Is(err, unix.EBUSY) {
			return err
		}
	}
	return unix.EBUSY
}

// end kills whoever is in a group of a run.
func end(dir string) {
	if set(dir, "cgroup.kill", "1") == nil {
		return
	}
	members, _ := os.ReadFile(filepath.Join(dir, "cgroup.procs")) // a group that is gone has none
	for _, line := range bytes.Fields(members) {
		if pid, err := strconv.Atoi(string(line)); err == nil && pid > 1 {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	}
}

// Sweep removes what bots of this user that are dead have left on the host: the
// folders and control groups of their runs. It touches nothing of a living one.
func (e *Engine) Sweep() error { return sweep(e.cfg.Temp, removeGroups) }

// removeGroups removes the groups that a dead bot has left in the places that it
// noted.
func removeGroups(places []string, id string) error {
	var errs []error
	for _, place := range places {
		entries, err := os.ReadDir(place)
		if errors.Is(err, os.ErrNotExist) {
			continue // gone, and what was in it too
		}
		errs = append(errs, err)
		for _, e := range entries {
			if e.IsDir() && strings.HasPrefix(e.Name(), runPrefix+id+"-") {
				errs = append(errs, removeGroup(filepath.Join(place, e.Name())))
			}
		}
	}
	return errors.Join(errs...)
}

// hierarchies are the folders of the bot's own groups in which it can make some
// for its runs. Empty: none, and limits hold for each process only.
type hierarchies struct {
	memory, pids string // version 1
	unified      string // version 2, with both controllers
}

// botGroup is where the bot itself goes in version 2: a group there cannot hold
// processes and hand its controllers on at the same time.
const botGroup = "parlour-bot"

// share makes the bot's own group of version 2 hand both controllers on, as a
// service that was delegated its group may. It leaves a group alone in which the
// bot is not the only one: it could not be emptied. Version 1 needs nothing.
func (h hierarchies) share(bot int) error {
	if h.unified == "" {
		return nil
	}
	shared, err := os.ReadFile(filepath.Join(h.unified, "cgroup.subtree_control"))
	if err != nil {
		return err
	}
	if has := strings.Fields(string(shared)); slices.Contains(has, "memory") && slices.Contains(has, "pids") {
		return nil
	}
	members, err := os.ReadFile(filepath.Join(h.unified, "cgroup.procs"))
	if err != nil {
		return err
	}
	if strings.TrimSpace(string(members)) != strconv.Itoa(bot) {
		return errors.New("the bot is not alone in its control group")
	}
	leaf := filepath.Join(h.unified, botGroup)
	if err := os.Mkdir(leaf, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	if err := set(leaf, "cgroup.procs", strconv.Itoa(bot)); err != nil {
		return err
	}
	if err := set(h.unified, "cgroup.subtree_control", "+memory +pids"); err != nil {
		return errors.Join(err, set(h.unified, "cgroup.procs", strconv.Itoa(bot)), os.Remove(leaf))
	}
	return nil
}

func (h hierarchies) places() []string {
	switch {
	case h.unified != "":
		return []string{h.unified}
	case h.memory == "":
		return nil
	case h.memory == h.pids:
		return []string{h.memory}
	}
	return []string{h.memory, h.pids}
}

// stepGroup is the step at which a host without control groups fails.
const stepGroup = "make the control group"

// ownGroups finds the bot's own groups. None is as good as one that cannot be
// used: the measurement tells.
func ownGroups() hierarchies {
	groups, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return hierarchies{}
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return hierarchies{}
	}
	return findHierarchies(string(groups), string(mounts))
}

// findHierarchies reads where the bot's own groups are. It is pure; guarded by
// cgroup_test.go. A group is used where both memory and processes are counted.
func findHierarchies(groups, mounts string) hierarchies {
	own := map[string]string{} // controller, or "" for version 2 -> path in its hierarchy
	for line := range strings.Lines(groups) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		for _, c := range strings.Split(parts[1], ",") {
			own[c] = parts[2]
		}
	}
	var h hierarchies
	for line := range strings.Lines(mounts) {
		m, ok := parseMount(line)
		if !ok {
			continue
		}
		switch m.kind {
		case "cgroup2":
			h.unified = m.folder(own[""])
		case "cgroup":
			for _, o := range m.options {
				if path, known := own[o]; known && o == "memory" {
					h.memory = m.folder(path)
				} else if known && o == "pids" {
					h.pids = m.folder(path)
				}
			}
		}
	}
	if h.memory != "" && h.pids != "" {
		h.unified = ""
		return h
	}
	return hierarchies{unified: h.unified}
}

// cgroupMount is one line of mountinfo.
type cgroupMount struct {
	root, at, kind string
	options        []string
}

func parseMount(line string) (cgroupMount, bool) {
	before, after, ok := strings.Cut(line, " - ")
	left, right := strings.Fields(before), strings.Fields(after)
	if !ok || len(left) < 6 || len(right) < 3 {
		return cgroupMount{}, false
	}
	return cgroupMount{root: left[3], at: left[4], kind: right[0], options: strings.Split(right[2], ",")}, true
}

// folder gives where a path of the hierarchy is seen, or nothing where the mount
// does not show it.
func (m cgroupMount) folder(path string) string {
	if path == "" || !within(path, m.root) {
		return ""
	}
	return filepath.Join(m.at, strings.TrimPrefix(path, strings.TrimSuffix(m.root, "/")))
}
