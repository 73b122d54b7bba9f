//go:build amd64 || arm64

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"

	"golang.org/x/sys/unix"

	"parlour/runner/policy"
)

// startBox runs the command on the policy's rung.
func (e *Engine) startBox(ctx context.Context, eff policy.Effective, cmd Command) (*Run, error) {
	return e.pool.start(ctx, e, job{eff: eff, cmd: cmd})
}

// enter completes the job with what the host says and starts it.
func (e *Engine) enter(ctx context.Context, j job) (*Run, error) {
	l, err := e.ready(ctx, j)
	if err != nil {
		return nil, err
	}
	return l.start(ctx, e)
}

// ready checks the job against the host and takes what a run holds: a user id,
// and what its rung needs. On an error nothing is held.
func (e *Engine) ready(ctx context.Context, j job) (launch, error) {
	var err error
	if j.facts, err = e.facts(); err != nil {
		return launch{}, &StartError{"look at the host", err}
	}
	if err := j.look(); err != nil {
		return launch{}, err
	}
	free := func() {}
	j.uid = insideUID
	if j.root {
		if j.uid, free, err = j.ids.lease(); err != nil {
			return launch{}, &StartError{"take a user id", err}
		}
	}
	l, err := e.onRung(ctx, j)
	if err != nil {
		free()
		return launch{}, err
	}
	before := l.ended
	l.cmd, l.ended = j.cmd, func() { before(); free() }
	return l, nil
}

// onRung plans the run for its rung.
func (e *Engine) onRung(ctx context.Context, j job) (launch, error) {
	switch j.eff.Rung() {
	case policy.RungBwrap:
		return j.inBubble()
	case policy.RungLandlock:
		return e.inShelter(ctx, j)
	}
	l := launch{spaces: namespaces(j.root), ended: func() {}}
	if j.eff.MemoryLevel() == policy.Enforced {
		g, err := j.groups.open(e.alive, j.eff.Limits())
		if err != nil {
			return launch{}, &StartError{stepGroup, err}
		}
		// The view of groups begins at the run's own, so it is made there.
		l.group, l.ended, l.spaces = g, g.leave, l.spaces&^unix.CLONE_NEWCGROUP
	}
	l.steps = j.plan()
	return l, nil
}

// inBubble has bubblewrap make the namespaces and the view. It is never used by
// root: the run's user would own the host's settings in /proc/sys. Guarded by
// tests/attacks TestBwrapIsNeverUsedByRoot.
func (j job) inBubble() (launch, error) {
	if j.root || j.maker == "" {
		return launch{}, &StartError{stepMaker, errors.New(j.noMaker)}
	}
	b := j.bubble()
	return launch{
		steps: j.plan(), ties: byMaker, ended: func() {},
		by: maker{path: j.maker, argv: append([]string{j.maker}, b.argv...), data: b.data},
	}, nil
}

// inShelter lets the run be on the host's own file system and network, behind
// Landlock.
func (e *Engine) inShelter(ctx context.Context, j job) (launch, error) {
	if j.landlock == 0 {
		return launch{}, &StartError{stepLandlock, unix.ENOSYS}
	}
	hangUp := func() {}
	if j.eff.Network() == policy.ModelOnly {
		var err error
		if hangUp, err = leaseAddress(ctx); err != nil {
			return launch{}, &StartError{"wait for the address of the model", err}
		}
	}
	name, leave, err := e.alive.enter()
	if err != nil {
		hangUp()
		return launch{}, &StartError{"make the run's folder", err}
	}
	j.base = filepath.Join(e.cfg.Temp, name)
	return launch{steps: j.plan(), ties: byKeeper, ended: func() {
		leave(os.RemoveAll(j.base) == nil)
		hangUp()
	}}, nil
}

// namespaces gives the child its own of every kind. A bot that is not root needs
// a user namespace to be allowed the others; there the run keeps the bot's id in
// the kernel's eyes.
func namespaces(root bool) uintptr {
	const own = unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP
	if root {
		return own
	}
	return own | unix.CLONE_NEWUSER
}

// look checks the program, the mounts and the writable folders against the
// host and the view.
func (j *job) look() error {
	j.program = source{host: j.cmd.Path, inside: j.cmd.inside()}
	if !j.boxed() {
		j.program.inside = j.cmd.Path
	}
	if err := j.reach(&j.program, true); err != nil {
		return &StartError{"check the program", err}
	}
	roots := j.eff.Writable()
	if err := checkRoots(roots); err != nil {
		return &StartError{"check the policy", err}
	}
	var mounts []Mount
	for _, m := range j.cmd.Mounts {
		if !visible(m) {
			mounts = append(mounts, m)
		}
	}
	if err := checkMounts(mounts, roots, j.cmd.inside()); err != nil {
		return &StartError{"check the mounts", err}
	}
	for _, m := range mounts {
		s := source{host: path.Clean(m.Host), inside: m.Inside}
		if err := j.reach(&s, false); err != nil {
			return &StartError{"check the mounts", err}
		}
		j.mounts = append(j.mounts, s)
	}
	return nil
}

// reach checks that the run can use a source on this rung. Without a view it
// stays where it is, unless it is a single file, of which the run gets a copy.
func (j *job) reach(s *source, run bool) error {
	if err := s.readable(j.root, run); err != nil || j.boxed() {
		return err
	}
	if s.host != s.inside {
		if s.folder {
			return fmt.Errorf("the folder %s cannot be shown as %s without a view", s.host, s.inside)
		}
		return nil
	}
	if !j.root {
		return nil
	}
	real, err := filepath.EvalSymlinks(s.host)
	if err != nil {
		return err
	}
	return errors.Join(enterable(s.host), enterable(real))
}

// enterable says whether everybody may enter the folders above a path.
func enterable(p string) error {
	for at := path.Dir(p); ; at = path.Dir(at) {
		info, err := os.Stat(at)
		if err != nil {
			return err
		}
		if info.Mode()&0o1 == 0 {
			return fmt.Errorf("the run's own user cannot enter %s; cure: chmod a+x %s, or another place", at, at)
		}
		if at == "/" {
			return nil
		}
	}
}

// readable fills in whether the source is a folder, and refuses one that the
// run's user could not use: better here with a cure than as a bare refusal of
// the kernel. The folders above it do not matter, as it is mounted by itself.
func (s *source) readable(root, run bool) error {
	info, err := os.Stat(s.host)
	if err != nil {
		return err
	}
	s.folder = info.IsDir()
	if run && !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file", s.host)
	}
	if !s.folder && !info.Mode().IsRegular() {
		return fmt.Errorf("%s is neither a regular file nor a folder", s.host)
	}
	need, word := os.FileMode(0o4), "r"
	if run || s.folder {
		need, word = 0o5, "rx"
	}
	if root {
		if info.Mode()&need != need {
			return fmt.Errorf("%s has mode %#o, so the run's own user cannot use it; cure: chmod a+%s %s",
				s.host, info.Mode().Perm(), word, s.host)
		}
	} else if err := unix.Access(s.host, uint32(need)); err != nil {
		return fmt.Errorf("%s cannot be used by the bot's user: %w; cure: chmod a+%s %s", s.host, err, word, s.host)
	}
	if run {
		return s.executable()
	}
	return nil
}

// executable refuses a program on a file system that executes nothing.
func (s *source) executable() error {
	var fs unix.Statfs_t
	if err := unix.Statfs(s.host, &fs); err != nil {
		return err
	}
	if fs.Flags&unix.ST_NOEXEC != 0 {
		return errors.New(s.host + " lies on a file system that is mounted noexec; cure: install it elsewhere")
	}
	return nil
}
