//go:build linux && (amd64 || arm64)

package entry

import "syscall"

// Frame is what the calls need to know of the process that makes them.
type Frame struct {
	Status int // the child's end of the status socket
	Parent int // a descriptor that can be read when the parent is gone
	// Hard are the hard limits of the process by resource; none is raised.
	Hard map[int64]uint64
}

// Compile turns steps into calls. Begin, where it is set, adds the calls that
// come before them. It reports false where a step does not have the shape of its
// kind, or needs more than calls.
func Compile(begin *Newborn, steps []Step, f Frame) (*Program, bool) {
	c := compiler{Program: &Program{}, frame: f}
	if begin != nil {
		c.newborn(*begin)
	}
	for _, s := range steps {
		if !c.step(s) {
			return nil, false
		}
	}
	return c.Program, true
}

// compiler is the state between steps: where the cloned mounts and the Landlock
// ruleset will be.
type compiler struct {
	*Program
	frame   Frame
	slots   [64]uintptr
	ruleset uintptr
}

func (c *compiler) step(s Step) bool {
	if !s.fits() {
		return false
	}
	c.steps = append(c.steps, s)
	return c.shows(s) || c.opens(s) || c.restrains(s) || c.judges(s)
}

// shows compiles the steps that build the view.
func (c *compiler) shows(s Step) bool {
	switch s.Op {
	case Umask:
		c.add(syscall.SYS_UMASK, uintptr(s.N[0]))
	case Hostname:
		name, size := c.bytes(s.S[0]), uintptr(len(s.S[0]))
		c.add(syscall.SYS_SETHOSTNAME, name, size)
		c.add(syscall.SYS_SETDOMAINNAME, name, size)
	case Tree:
		return c.tree(s)
	case Place:
		return c.place(s)
	case Mount:
		c.add(syscall.SYS_MOUNT, c.text(s.S[0]), c.text(s.S[1]), c.text(s.S[2]), uintptr(s.N[0]), c.text(s.S[3]))
	case Attributes:
		c.add(sysMountSetattr, atCWD, c.text(s.S[0]), 0, c.attributes(s.N[0]), attributesSize)
	case Mkdir:
		c.add(syscall.SYS_MKDIRAT, atCWD, c.text(s.S[0]), uintptr(s.N[0]))
		c.own(s.S[0], s.N[1], s.N[2])
	case Symlink:
		c.add(syscall.SYS_SYMLINKAT, c.text(s.S[0]), atCWD, c.text(s.S[1]))
	case File:
		c.file(s)
	case Device:
		c.add(syscall.SYS_MKNODAT, atCWD, c.text(s.S[0]), syscall.S_IFCHR|uintptr(s.N[0]), uintptr(s.N[1]<<8|s.N[2]))
	case Chdir:
		c.add(syscall.SYS_CHDIR, c.text(s.S[0]))
	case Pivot:
		c.pivot()
	default:
		return false
	}
	return true
}

// opens compiles the steps about what is open: input, network, the program.
func (c *compiler) opens(s Step) bool {
	switch s.Op {
	case Watch:
		c.watch()
	case Session:
		c.add(syscall.SYS_SETSID)
	case NullInput:
		null := c.cell()
		c.add(syscall.SYS_OPENAT, atCWD, c.text("/dev/null"), syscall.O_RDONLY|syscall.O_CLOEXEC).giving(null)
		c.add(syscall.SYS_DUP3, 0, 0, 0).on(null)
		c.add(syscall.SYS_CLOSE).on(null)
	case LoopbackUp:
		socket := c.cell()
		request := c.words('l'|'o'<<8, 0, syscall.IFF_UP|syscall.IFF_RUNNING, 0, 0)
		c.add(syscall.SYS_SOCKET, syscall.AF_INET, syscall.SOCK_DGRAM|syscall.SOCK_CLOEXEC).giving(socket)
		c.add(syscall.SYS_IOCTL, 0, syscall.SIOCSIFFLAGS, request).on(socket)
		c.add(syscall.SYS_CLOSE).on(socket)
	case Listen:
		c.listen(uint64(s.N[0]))
	case CloseOnExec:
		c.add(sysCloseRange, 3, lastDescriptor, closeRangeCloexec)
	case Await:
		c.say(Waiting)
		c.add(syscall.SYS_READ, uintptr(c.frame.Status), address(c.room(8)), 1).exactly(1)
	case Exec:
		c.say(Ready)
		c.exec = len(c.calls)
		c.add(syscall.SYS_EXECVE, c.text(s.S[0]))
		c.Become(s.S[1:1+s.N[0]], s.S[1+s.N[0]:])
	case Report:
		c.say(Ready)
		c.add(syscall.SYS_EXIT_GROUP, 0)
	default:
		return false
	}
	return true
}

// say sends one byte to the parent.
func (c *compiler) say(message byte) {
	c.add(syscall.SYS_WRITE, uintptr(c.frame.Status), c.bytes(string(rune(message))), 1).exactly(1)
}

// watch ties the child's life to the parent's. The parent may have died before
// the call, so it is looked for afterwards. A change of user clears the tie.
func (c *compiler) watch() {
	c.add(syscall.SYS_PRCTL, prSetPdeathsig, uintptr(syscall.SIGKILL))
	ask := c.words(uint64(uint32(c.frame.Parent)) | pollIn<<32)
	c.add(syscall.SYS_PPOLL, ask, 1, c.words(0, 0)).exactly(0)
}

// listen opens the box's only address and hands the socket out, so that the
// broker answers inside the box without a process or a file there.
func (c *compiler) listen(port uint64) {
	const one, localhost = 1, 127 | 1<<24
	// The last word of the control message is the socket's cell.
	control := c.words(16+4, syscall.SOL_SOCKET|syscall.SCM_RIGHTS<<32, 0)
	socket := control + 16
	where := c.words(syscall.AF_INET|port>>8<<16|port&0xff<<24|localhost<<32, 0)
	part := c.words(uint64(c.bytes(string(rune(Passing)))), one)
	message := c.words(0, 0, uint64(part), one, uint64(control), 3*8, 0)
	c.add(syscall.SYS_SOCKET, syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC).giving(socket)
	// On a host's own loopback the connections of the run before still count.
	c.add(syscall.SYS_SETSOCKOPT, 0, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, c.words(one), 4).on(socket)
	c.add(syscall.SYS_BIND, 0, where, 16).on(socket)
	c.add(syscall.SYS_LISTEN, 0, 128).on(socket)
	c.add(syscall.SYS_SENDMSG, uintptr(c.frame.Status), message, 0).exactly(one)
	c.add(syscall.SYS_CLOSE).on(socket)
}
