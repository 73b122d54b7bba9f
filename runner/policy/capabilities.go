package policy

import "slices"

// Capabilities are what the host was measured to enforce: its strongest rung,
// and in Lower the weaker ones. The zero value enforces nothing.
type Capabilities struct {
	Rung       Rung
	Filesystem Level
	Network    Level // where the model is allowed
	Offline    Level // the same where nothing is; it is never less than Network
	Processes  Level

	Memory       Level
	Disk         Level
	ProcessCount Level
	OpenFiles    Level

	Landlock int    // ABI version; 0: the kernel has none
	Why      string // why the rung is not better, in one sentence
	Cure     string // what the operator can do about it

	Absent []Absence      // the rungs that this host does not have, the strongest first
	Lower  []Capabilities // weaker rungs that hold too, the strongest first
}

// Absence says why the host does not have a rung.
type Absence struct {
	Rung      Rung
	Why, Cure string
}

// level says how well a clause is enforced for a run with this network. A run
// that may reach nothing needs no socket, and a rung that cannot tell addresses
// apart can still refuse every socket.
func (c Capabilities) level(clause Clause, n Network) Level {
	switch clause {
	case Filesystem:
		return c.Filesystem
	case NetworkReach:
		if n == NetworkNone {
			return max(c.Network, c.Offline)
		}
		return c.Network
	case Processes:
		return c.Processes
	}
	return None
}

// processor says how well processor time is limited: for each process, wherever
// a limit can be set at all.
func (c Capabilities) processor() Level { return min(c.OpenFiles, Soft) }

// ladder gives the rungs that a run can have, the strongest first.
func (c Capabilities) ladder() []Capabilities {
	all := append([]Capabilities{c.alone()}, c.Lower...)
	all = slices.DeleteFunc(all, func(r Capabilities) bool { return r.Rung < RungLandlock || r.Rung > RungFull })
	slices.SortStableFunc(all, func(a, b Capabilities) int { return int(b.Rung) - int(a.Rung) })
	return all
}

// alone gives the rung without what is known of others.
func (c Capabilities) alone() Capabilities {
	c.Absent, c.Lower = nil, nil
	return c
}
