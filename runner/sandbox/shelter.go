//go:build linux && (amd64 || arm64)

package sandbox

import (
	"maps"
	"path"
	"slices"

	"parlour/runner/policy"
	"parlour/runner/sandbox/entry"
)

// maxCopy is the largest file that is copied for a run, in bytes.
const maxCopy = 64 << 20

// shelter plans the Landlock rung's folder on the host: the places that a box
// would have, below one new folder that belongs to the run's user, and what the
// command brings. Everything else is left to Landlock, which shows nothing of
// the host but what a program needs to start.
type shelter struct {
	job
	*steps
}

func (p shelter) build() {
	p.add(entry.Watch, nil) // nothing is made for a bot that is gone
	p.add(entry.Umask, []int64{0})
	made := map[string]bool{}
	p.folder(p.base, made)
	for _, place := range append([]string{policy.WorkDir, policy.HomeDir, policy.TempDir}, p.eff.Writable()...) {
		p.folder(p.at(place), made)
	}
	for _, d := range p.cmd.Folders {
		p.folder(p.at(d), made)
	}
	for _, f := range slices.Sorted(maps.Keys(p.cmd.Files)) {
		p.folder(p.at(path.Dir(f)), made)
		p.add(entry.File, []int64{0o600, p.owner(), p.owner()}, p.at(f), p.cmd.Files[f])
	}
	for _, m := range p.mounts {
		if m.host != m.inside {
			p.folder(p.at(path.Dir(m.inside)), made)
			p.add(entry.Copy, []int64{0o400, p.owner(), p.owner(), maxCopy}, m.host, p.at(m.inside))
		}
	}
	p.add(entry.Keep, nil)
	p.add(entry.Watch, nil)
}

// folder makes a folder of the run and its parents below the base. The base
// itself must be new.
func (p shelter) folder(at string, made map[string]bool) {
	if made[at] {
		return
	}
	if at != p.base {
		p.folder(path.Dir(at), made)
	}
	made[at] = true
	p.add(entry.Mkdir, []int64{0o700, p.owner(), p.owner()}, at)
}

// owner is the run's own user; a bot that is not root makes what is its own.
func (p shelter) owner() int64 {
	if p.root {
		return int64(p.uid)
	}
	return -1
}
