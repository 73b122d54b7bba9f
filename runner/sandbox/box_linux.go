//go:build amd64 || arm64

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"syscall"

	"golang.org/x/sys/unix"

	"parlour/runner/policy"
)

// startBox runs the command in the full box.
func (e *Engine) startBox(ctx context.Context, eff policy.Effective, cmd Command) (*Run, error) {
	return e.enter(ctx, job{eff: eff, cmd: cmd})
}

// enter completes the job with what the host says, takes a user id and starts.
func (e *Engine) enter(ctx context.Context, j job) (*Run, error) {
	var err error
	if j.facts, err = e.facts(); err != nil {
		return nil, &StartError{"look at the host", err}
	}
	if err := j.look(); err != nil {
		return nil, err
	}
	free := func() {}
	j.uid = insideUID
	if j.root {
		if j.uid, free, err = j.ids.lease(); err != nil {
			return nil, &StartError{"take a user id", err}
		}
	}
	return e.launch(ctx, launch{steps: j.plan(), attr: namespaces(j.root), cmd: j.cmd, ended: free})
}

// namespaces gives the child its own of every kind. A bot that is not root needs
// a user namespace to be allowed the others; there the run keeps the bot's id in
// the kernel's eyes, and the child holds its capabilities over exec by the
// ambient set, because it is not root inside either.
func namespaces(root bool) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET |
		unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP, Setsid: true}
	if root {
		return attr
	}
	attr.Cloneflags |= unix.CLONE_NEWUSER
	attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: insideUID, HostID: os.Geteuid(), Size: 1}}
	attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: insideUID, HostID: os.Getegid(), Size: 1}}
	attr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_SYS_CHROOT, unix.CAP_NET_ADMIN, unix.CAP_SETPCAP}
	return attr
}

// look checks the program, the mounts and the writable folders against the
// host and the view.
func (j *job) look() error {
	j.program = source{host: j.cmd.Path, inside: j.cmd.inside()}
	if err := j.program.readable(j.root, true); err != nil {
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
	if err := checkMounts(mounts, roots, j.program.inside); err != nil {
		return &StartError{"check the mounts", err}
	}
	for _, m := range mounts {
		s := source{host: path.Clean(m.Host), inside: m.Inside}
		if err := s.readable(j.root, false); err != nil {
			return &StartError{"check the mounts", err}
		}
		j.mounts = append(j.mounts, s)
	}
	return nil
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
