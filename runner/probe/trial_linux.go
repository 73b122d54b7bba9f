//go:build amd64 || arm64

package probe

import (
	"parlour/runner/policy"
)

// trial is an attempt with what it takes to make it and to judge it.
type trial struct {
	Attempt
	target string // what must stand outside; empty: nothing
	try    func(*intruder) said
	// judge asks the target. Nil: the intruder cannot be wrong about it.
	judge  func(*stage, said) (escaped bool, why string)
	limit  string   // the name of the policy's limit that it breaks
	paths  []string // of the host, of which one at least must be there
	single bool     // the limit is that of one process or file, and so also holds where it is soft
	alone  bool     // made in a sandbox of its own, with the others of its kind
	tells  bool     // it learns what a run without a view of its own is said to learn
	// nr and args are the system call that the trial makes, where it is nothing else.
	nr       uintptr
	args     []uintptr
	optional bool // a kernel can be built without the call
}

// family is a row of attempts with the clauses that they break.
type family struct {
	name   string
	needs  []policy.Clause
	trials []trial
}

func families() []family {
	all := policy.Clauses()
	files, network, processes := all[:1], all[1:2], all[2:]
	return []family{
		{"files", files, fileTrials()},
		{"devices", files, deviceTrials()},
		{"proc", files, procTrials()},
		{"sys", files, sysTrials()},
		{"cgroups", processes, cgroupTrials()},
		{"namespaces", all, namespaceTrials()},
		{"mounts", files, mountTrials()},
		{"processes", processes, processTrials()},
		{"descriptors", files, descriptorTrials()},
		{"environment", files, environmentTrials()},
		{"network", network, networkTrials()},
		{"sockets", network, socketTrials()},
		{"ipc", processes, ipcTrials()},
		{"kernel", all, kernelTrials()},
		{"privileges", all, privilegeTrials()},
		{"terminal", processes, terminalTrials()},
		{"limits", processes, limitTrials()},
		{"survivors", processes, survivorTrials()},
	}
}

// table is every attempt in the order in which they are made. What changes the
// intruder itself comes late, so that it spoils nothing.
func table() []trial {
	var all []trial
	for _, f := range families() {
		for _, t := range f.trials {
			t.Family = f.name
			if t.Needs == nil {
				t.Needs = f.needs
			}
			all = append(all, t)
		}
	}
	return all
}

// Attempts gives every attempt of the battery.
func Attempts() []Attempt {
	var all []Attempt
	for _, t := range table() {
		all = append(all, t.Attempt)
	}
	return all
}

func named(name, what string) Attempt { return Attempt{Name: name, What: what} }
