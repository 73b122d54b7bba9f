package entry

// Op is the kind of a step.
type Op uint8

// The kinds. Paths are relative to the new root until Pivot has run.
const (
	OpInvalid   Op = iota
	Watch          // die with the parent; fail if it is dead already
	Umask          // N: mode bits that new files lack
	Hostname       // S: name
	Tree           // N: slot, attributes, recursive; S: path. Clone a mount and give it attributes
	Place          // N: slot; S: path. Attach a cloned mount
	Mount          // N: flags; S: source, target, type, options
	Attributes     // N: attributes; S: path. Add attributes to a mount
	Mkdir          // N: mode, uid, gid; S: path
	Symlink        // S: target, path
	File           // N: mode, uid, gid; S: path, content. The file must be new
	Copy           // N: mode, uid, gid, most bytes; S: source, path. The file must be new
	Device         // N: mode, major, minor; S: path. A character device
	Chdir          // S: path
	Pivot          // make the working directory the root and drop the old one
	Keep           // this process stays as the run's keeper, and a new one goes on
	Session        // lead a session of its own
	NullInput      // standard input becomes the box's own /dev/null
	LoopbackUp     // bring lo up
	Listen         // N: port. Listen on 127.0.0.1 and pass the socket out
	Rlimit         // N: resource, value. Never raises
	Bounding       // empty the capability bounding set
	Securebits     // N: bits
	Identity       // N: uid, gid. No supplementary groups
	Capless        // empty every capability set
	NoNewPrivs     // exec can add no rights
	Ruleset        // N: file rights, network rights, scopes, size. Begin a Landlock ruleset
	PathRule       // N: file rights; S: path
	PortRule       // N: network rights, port
	Restrict       // enter the Landlock ruleset
	Seccomp        // S: filter
	Denied         // N: number, index of the string or -1, six arguments; S: label, string. Must be refused
	Blank          // S: path. Must be unreadable or empty
	CloseOnExec    // every descriptor above 2
	Await          // say that all is ready, and go on at the parent's word
	Exec           // N: count of arguments; S: path, arguments, environment
	Report         // exit 0 instead of exec
	opCount
)

// shape is how many numbers and strings a kind takes; more allows further strings.
type shape struct {
	name          string
	numbers, strs int
	more          bool
}

var shapes = [opCount]shape{
	Watch:       {name: "watch the parent"},
	Umask:       {name: "set the umask", numbers: 1},
	Hostname:    {name: "set the host name", strs: 1},
	Tree:        {name: "clone mount", numbers: 3, strs: 1},
	Place:       {name: "place", numbers: 1, strs: 1},
	Mount:       {name: "mount", numbers: 1, strs: 4},
	Attributes:  {name: "set mount attributes", numbers: 1, strs: 1},
	Mkdir:       {name: "make folder", numbers: 3, strs: 1},
	Symlink:     {name: "make symlink", strs: 2},
	File:        {name: "write file", numbers: 3, strs: 2},
	Copy:        {name: "copy file", numbers: 4, strs: 2},
	Device:      {name: "make device", numbers: 3, strs: 1},
	Chdir:       {name: "enter folder", strs: 1},
	Pivot:       {name: "pivot"},
	Keep:        {name: "leave a keeper"},
	Session:     {name: "leave the session"},
	NullInput:   {name: "close standard input"},
	LoopbackUp:  {name: "bring lo up"},
	Listen:      {name: "listen", numbers: 1},
	Rlimit:      {name: "set limit", numbers: 2},
	Bounding:    {name: "empty the bounding set"},
	Securebits:  {name: "lock securebits", numbers: 1},
	Identity:    {name: "change user", numbers: 2},
	Capless:     {name: "drop capabilities"},
	NoNewPrivs:  {name: "set no_new_privs"},
	Ruleset:     {name: "landlock ruleset", numbers: 4},
	PathRule:    {name: "landlock path", numbers: 1, strs: 1},
	PortRule:    {name: "landlock port", numbers: 2},
	Restrict:    {name: "landlock restrict"},
	Seccomp:     {name: "seccomp", strs: 1},
	Denied:      {name: "try to undo", numbers: 8, strs: 2},
	Blank:       {name: "try to read", strs: 1},
	CloseOnExec: {name: "close descriptors"},
	Await:       {name: "wait for the word"},
	Exec:        {name: "exec", numbers: 1, strs: 1, more: true},
	Report:      {name: "report"},
}

// String gives the kind in words.
func (o Op) String() string {
	if o == OpInvalid || o >= opCount {
		return "unknown step"
	}
	return shapes[o].name
}

// Step is one thing that the child does. Op says what N and S mean.
type Step struct {
	Op Op
	N  []int64
	S  []string
}

// String names the step and what it is about, without contents.
func (s Step) String() string {
	name := s.Op.String()
	switch s.Op {
	case Mount, Symlink:
		return name + " " + s.S[1]
	case Rlimit:
		return name + " " + decimal(s.N[0])
	case Seccomp:
		return name
	}
	if len(s.S) > 0 {
		return name + " " + s.S[0]
	}
	return name
}

func (s Step) fits() bool {
	if s.Op == OpInvalid || s.Op >= opCount {
		return false
	}
	sh := shapes[s.Op]
	if len(s.N) != sh.numbers || len(s.S) < sh.strs || len(s.S) > sh.strs && !sh.more {
		return false
	}
	if s.Op == Exec {
		return s.N[0] >= 1 && s.N[0] < int64(len(s.S))
	}
	return true
}

func decimal(n int64) string {
	if n < 0 {
		return "-" + decimal(-n)
	}
	if n < 10 {
		return string(rune('0' + n))
	}
	return decimal(n/10) + string(rune('0'+n%10))
}
