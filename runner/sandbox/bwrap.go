//go:build linux && (amd64 || arm64)

package sandbox

import (
	"maps"
	"os"
	"path"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"parlour/runner/policy"
	"parlour/runner/sandbox/entry"
)

// makers are the places where bubblewrap is looked for. PATH names no program
// that builds a sandbox.
var makers = [...]string{"/usr/bin/bwrap", "/usr/local/bin/bwrap"}

// findMaker gives the first bubblewrap that only root can have put there, or why
// there is none. Guarded by bwrap_test.go.
func findMaker(places []string, stat func(string) (owned, error)) (found, why string) {
	why = "bubblewrap is not installed"
	for _, p := range places {
		at := p
		for {
			o, err := stat(at)
			if err != nil {
				if at != p {
					why = at + ": " + err.Error()
				}
				break
			}
			if o.uid != 0 || o.mode&0o022 != 0 || at == p && !o.mode.IsRegular() {
				why = at + " can be changed by others than root"
				break
			}
			if at == "/" {
				return p, ""
			}
			at = path.Dir(at)
		}
	}
	return "", why
}

// owned is whose a file is and what others may do to it.
type owned struct {
	uid  uint32
	mode os.FileMode
}

func ownerOf(p string) (owned, error) {
	info, err := os.Stat(p)
	if err != nil {
		return owned{}, err
	}
	var st unix.Stat_t
	if err := unix.Stat(p, &st); err != nil {
		return owned{}, err
	}
	return owned{st.Uid, info.Mode()}, nil
}

// firstData is the descriptor of the first file that bubblewrap writes.
const firstData = entry.SelfFD + 1

// bubble is what bubblewrap is told: its arguments, and the contents of the
// files that it finds from descriptor firstData on.
type bubble struct {
	job
	argv []string
	data []string
}

// bubble plans the box's namespaces and view for bubblewrap. It shows what the
// full rung's view shows. The command is the bot's own program by its open file,
// so that it is in no view. It makes no session: until the child is tied to it,
// the child must be in its group, where the bot's signal finds both.
// Guarded by plan_test.go.
func (j job) bubble() bubble {
	b := bubble{job: j}
	b.say("--unshare-user", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup")
	b.say("--uid", strconv.Itoa(j.uid), "--gid", strconv.Itoa(j.uid), "--hostname", "sandbox")
	b.say("--die-with-parent", "--as-pid-1", "--cap-drop", "ALL")
	b.system()
	b.places()
	b.proc()
	b.say("--remount-ro", "/", "--chdir", "/", "--", entry.SelfPath, entry.Name)
	return b
}

func (b *bubble) say(words ...string) { b.argv = append(b.argv, words...) }

func (b *bubble) system() {
	for _, t := range b.trees {
		b.say("--ro-bind", t, t)
	}
	for _, m := range b.masks {
		b.say("--size", "65536", "--tmpfs", m)
	}
	for _, l := range b.links {
		b.say("--symlink", l[1], l[0])
	}
	for i, text := range etcTexts(b.uid) {
		b.say("--perms", "0444", "--ro-bind-data", strconv.Itoa(firstData+len(b.data)), generated[i])
		b.data = append(b.data, text)
	}
	for _, d := range devices {
		b.say("--dev-bind", "/dev/"+d.name, "/dev/"+d.name) // it cannot be read-only and a device; see strictness.still
	}
	for _, l := range [][2]string{{"fd", ""}, {"stdin", "/0"}, {"stdout", "/1"}, {"stderr", "/2"}} {
		b.say("--symlink", "/proc/self/fd"+l[1], "/dev/"+l[0])
	}
	for _, m := range append([]source{b.program}, b.mounts...) {
		b.say("--ro-bind", m.host, m.inside)
	}
	for _, m := range b.masks {
		b.say("--remount-ro", m)
	}
}

// largestPage is that of every kernel: a file system's size is rounded up to pages.
const largestPage = 64 << 10

// places gives each writable folder an equal part of the disk limit, because
// bubblewrap cannot cut several from one file system.
func (b *bubble) places() {
	roots := b.eff.Writable()
	part := b.eff.Limits().Disk / int64(len(roots))
	share := strconv.FormatInt(max(part-part%largestPage, largestPage), 10)
	b.say("--perms", "0755", "--dir", policy.WorkDir)
	for _, r := range roots {
		b.say("--perms", "0700", "--size", share, "--tmpfs", r)
	}
}

// proc hides what names the host, as the full rung does.
func (b *bubble) proc() {
	b.say("--proc", "/proc")
	for _, s := range append([]string{"1/mountinfo", "1/mounts", "1/mountstats"}, b.secrets...) {
		b.say("--ro-bind", "/dev/null", "/proc/"+s)
	}
	b.say("--size", "4096", "--tmpfs", "/proc/1/task", "--remount-ro", "/proc/1/task", "--remount-ro", "/proc")
}

// inner plans what the child does first in the view that bubblewrap made.
type inner struct {
	job
	*steps
}

func (p inner) settle() {
	p.add(entry.Watch, nil)
	p.add(entry.Session, nil) // from here on the tie holds, and the group is not needed
	p.add(entry.Umask, []int64{0})
	made := map[string]bool{policy.HomeDir: true}
	for _, d := range p.cmd.Folders {
		p.folder(d, made)
	}
	for _, f := range slices.Sorted(maps.Keys(p.cmd.Files)) {
		p.folder(path.Dir(f), made)
		p.add(entry.File, []int64{0o600, -1, -1}, f, p.cmd.Files[f])
	}
	if len(p.cmd.Stdin) == 0 {
		p.add(entry.NullInput, nil)
	}
}

// folder makes a folder in the run's home and its parents.
func (p inner) folder(at string, made map[string]bool) {
	if made[at] {
		return
	}
	p.folder(path.Dir(at), made)
	made[at] = true
	p.add(entry.Mkdir, []int64{0o700, -1, -1}, at)
}
