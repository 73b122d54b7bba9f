//go:build amd64 || arm64

package probe

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

func namespaceTrials() []trial {
	own := func(name, what string, flag int) trial {
		return trial{Attempt: named(name, what), try: func(*intruder) said { return refused(unix.Unshare(flag)) }}
	}
	enter := func(name string) func(*intruder) said {
		return func(p *intruder) said {
			last := said{Why: "there is none"}
			for _, pid := range []int{p.t.Bot, p.t.Victim} {
				fd, err := unix.Open(fmt.Sprintf("/proc/%d/ns/%s", pid, name), unix.O_RDONLY|unix.O_CLOEXEC, 0)
				if err != nil {
					last = refused(err)
					continue
				}
				_ = unix.Close(fd)
				return did("the namespace of a process of the host could be opened")
			}
			return last
		}
	}
	return []trial{
		{Attempt: named("own-users", "Make a user namespace, in which it would have every capability."), try: func(*intruder) said {
			return reached(unix.Unshare(unix.CLONE_NEWUSER)) // a program of several threads may not, but is told so in another way
		}},
		own("own-mounts", "Make a mount namespace.", unix.CLONE_NEWNS),
		own("own-network", "Make a network namespace.", unix.CLONE_NEWNET),
		own("own-processes", "Make a process namespace.", unix.CLONE_NEWPID),
		own("own-ipc", "Make an IPC namespace.", unix.CLONE_NEWIPC),
		own("own-names", "Make a namespace for host names.", unix.CLONE_NEWUTS),
		own("own-cgroups", "Make a namespace for control groups.", unix.CLONE_NEWCGROUP),
		{Attempt: named("child-users", "Start a child in a user namespace."), try: func(p *intruder) said {
			return refused(p.child(&syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER}, partNone))
		}},
		{Attempt: named("clone3", "Use the newer call for it, whose flags no filter can see."), try: func(p *intruder) said {
			// CLONE_FS does not go with an own mount namespace, so nothing is started.
			args := unsafe.Slice((*byte)(unsafe.Pointer(&[8]uint64{unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_FS})), 64)
			_, err := call(unix.SYS_CLONE3, p.put(args), 64)
			return reached(err)
		}},
		{Attempt: named("enter-mounts", "Open the mount namespace of a process of the host."), target: "victim", try: enter("mnt")},
		{Attempt: named("enter-network", "Open the network namespace of a process of the host."), target: "victim", try: enter("net")},
		{Attempt: named("enter-any", "Use the call that enters a namespace."), try: func(*intruder) said {
			return reached(unix.Setns(-1, 0))
		}},
		{Attempt: named("host-name", "Learn the host's name."), target: "hostname", tells: true, try: func(*intruder) said {
			name, err := os.Hostname()
			if err != nil {
				return refused(err)
			}
			return got(name)
		}, judge: func(s *stage, a said) (bool, string) { return a.Got == s.hostName, "the host's name is visible" }},
	}
}

func mountTrials() []trial {
	return []trial{
		{Attempt: named("new", "Mount a file system of its own."), try: func(p *intruder) said { return mountNew(p, "tmpfs") }},
		{Attempt: named("proc", "Mount a fresh /proc, without what covers parts of this one."), try: func(p *intruder) said { return mountNew(p, "proc") }},
		{Attempt: named("bind", "Show a folder of the view in another place, where it could be written."), try: func(p *intruder) said { return mounted(p, "/", "", unix.MS_BIND) }},
		{Attempt: named("attributes", "Change the attributes of a mount, such as read-only."), try: func(*intruder) said {
			return reached(unix.MountSetattr(unix.AT_FDCWD, "/", 0, &unix.MountAttr{}))
		}},
		{Attempt: named("uncover", "Take away a mount, and so show what it covers."), try: func(p *intruder) said {
			return reached(unix.Unmount(p.folders()[0], unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW))
		}},
		{Attempt: named("clone", "Take a copy of a mount, with what is covered in it."), try: func(*intruder) said {
			fd, err := unix.OpenTree(unix.AT_FDCWD, "/", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
			return reached(closeIf(uintptr(fd), err))
		}},
		{Attempt: named("file-system", "Open a file system by the newer calls."), try: func(*intruder) said {
			fd, err := unix.Fsopen("tmpfs", unix.FSOPEN_CLOEXEC)
			return reached(closeIf(uintptr(fd), err))
		}},
		{Attempt: named("move", "Move a mount."), try: func(p *intruder) said {
			return reached(unix.MoveMount(-1, "none", -1, "none", 0))
		}},
		{Attempt: named("list", "List the mounts by the newer calls."), try: func(p *intruder) said {
			// struct mnt_id_req: size, spare, mount id, last id. The id is that of the root.
			req := unsafe.Slice((*byte)(unsafe.Pointer(&struct {
				size, spare uint32
				id, last    uint64
			}{24, 0, 1<<64 - 1, 0})), 24)
			_, err := call(unix.SYS_LISTMOUNT, p.put(req), p.blank(256), 32, 0)
			return reached(err)
		}},
		{Attempt: named("root", "Change the root folder by chroot."), try: func(p *intruder) said {
			// An own copy of what a thread knows of folders, so that a success changes no other.
			_ = unix.Unshare(unix.CLONE_FS)
			return refused(unix.Chroot("/"))
		}},
		{Attempt: named("pivot", "Change the root folder by pivot_root."), try: func(p *intruder) said { return reached(unix.PivotRoot("/none/such", "/none/such")) }},
	}
}

// mountNew mounts a file system on a scratch folder and takes it away again.
func mountNew(p *intruder, kind string) said { return mounted(p, kind, kind, 0) }

func mounted(p *intruder, source, kind string, flags uintptr) said {
	if unix.Unshare(unix.CLONE_NEWNS) == nil { // so that a success is seen by nobody else
		_ = unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
	}
	at := p.scratch("mount")
	if err := os.Mkdir(at, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return void("make a folder: %v", err)
	}
	defer func() { _ = os.Remove(at) }()
	err := unix.Mount(source, at, kind, flags, "")
	if err == nil {
		_ = unix.Unmount(at, unix.MNT_DETACH)
	}
	return refused(err)
}

// child starts the bot's program once more and waits for its end.
func (p *intruder) child(attr *syscall.SysProcAttr, part string) error {
	process, err := os.StartProcess("/proc/self/exe", p.args(part), &os.ProcAttr{Env: []string{childEnv}, Files: []*os.File{nil, nil, os.Stderr}, Sys: attr})
	if err != nil {
		return err
	}
	state, err := process.Wait()
	if err == nil && !state.Success() {
		err = errors.New(state.String())
	}
	return err
}

func (p *intruder) args(part string) []string { return []string{"bot", Subcommand, part, p.mark} }

// childEnv spares the children threads.
const childEnv = "GOMAXPROCS=1"
