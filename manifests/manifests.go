// Package manifests reads who may do what, and how agent CLIs are driven: the
// YAML files that operators edit, and the shipped ones that hold where there is
// no file of the operator's.
//
// It is strict and tells all faults of all files at once, each with its place
// and with what would be right. A faulty tier file gives no Set at all. A
// faulty or disabled runner file takes away its runner and leaves a warning.
// What a file leaves out is never more than the shipped guest has; who somebody
// is, is never taken from anywhere but the file itself, and an empty list
// matches nobody.
//
// It refuses what a reviewer could misread: unknown and doubled keys, second
// documents, aliases, tags, invisible characters, ids with escapes, names in
// the place of ids, numbers without units. It does not read the environment,
// fill in variables, start anything, or keep state.
package manifests

import (
	"maps"
	"slices"

	"parlour/runner/policy"
	"parlour/runner/spec"
	"parlour/tiers"
)

// Tier is what one tier may do.
type Tier struct {
	Tier    tiers.Tier
	Wish    policy.Wish // never armed
	Runners []string    // order and ceiling
	Models  map[spec.Provider]string
	Asking  Asking
	Reply   Reply
	Origin  string // the file
}

// Asking bounds how much may be asked.
type Asking struct {
	PerMinute        int // questions of one person
	Running          int // of one person, at the same time
	Waiting          int // of one person
	TokensPerDayUser int
	TokensPerDayTier int
}

// Reply says how an answer is posted.
type Reply struct {
	Where    string // thread
	Mentions string // none
	Unfurl   bool
}

// Set is everything that the manifests say. It is never changed, and what its
// methods give may be.
type Set struct {
	// Warnings are faults that cost a runner: of files whose runners are
	// therefore not in the Set, and of lists with runners that cannot be
	// started with the tier's tools.
	Warnings Faults

	dir     string
	own     folder // the operator's files, as they were read
	tiers   map[tiers.Tier]Tier
	runners map[string]spec.Spec
	broken  map[string]Fault
	rules   tiers.Rules
}

// Tier gives what a tier may do. None and unknown tiers have nothing.
func (s *Set) Tier(t tiers.Tier) (Tier, bool) {
	tier, ok := s.tiers[t]
	return tier.clone(), ok
}

// Runner gives how a runner is driven. A runner whose file is faulty or
// disabled is not there.
func (s *Set) Runner(name string) (spec.Spec, bool) {
	r, ok := s.runners[name]
	return cloneSpec(r), ok
}

// SetOf gives a Set of runners that were made otherwise than from files.
func SetOf(runners ...spec.Spec) *Set {
	s := &Set{tiers: map[tiers.Tier]Tier{}, runners: map[string]spec.Spec{}, broken: map[string]Fault{}}
	for _, r := range runners {
		s.runners[r.Name] = cloneSpec(r)
	}
	return s
}

// Runners gives all usable runners, by name.
func (s *Set) Runners() []spec.Spec {
	out := make([]spec.Spec, 0, len(s.runners))
	for _, name := range slices.Sorted(maps.Keys(s.runners)) {
		out = append(out, cloneSpec(s.runners[name]))
	}
	return out
}

// Broken says why a runner that has a file is not in the Set.
func (s *Set) Broken(name string) (Fault, bool) {
	f, ok := s.broken[name]
	return f, ok
}

// Rules gives who is in which tier, and which places lower everybody.
func (s *Set) Rules() tiers.Rules { return s.rules }

func (t Tier) clone() Tier {
	t.Wish.Tools = slices.Clone(t.Wish.Tools)
	t.Wish.Documents = slices.Clone(t.Wish.Documents)
	t.Wish.Require = slices.Clone(t.Wish.Require)
	t.Runners = slices.Clone(t.Runners)
	t.Models = maps.Clone(t.Models)
	return t
}

func cloneSpec(s spec.Spec) spec.Spec {
	for _, list := range []*[]string{&s.Binaries, &s.NeedsFlags, &s.HelpArgs, &s.Args, &s.EnvAllow, &s.ReadOnly} {
		*list = slices.Clone(*list)
	}
	for _, m := range []*map[string]string{&s.Env, &s.ConfigEnv, &s.Files} {
		*m = maps.Clone(*m)
	}
	s.WireTools = maps.Clone(s.WireTools)
	for tool, names := range s.WireTools {
		s.WireTools[tool] = slices.Clone(names)
	}
	s.ToolArgs = maps.Clone(s.ToolArgs)
	for key, args := range s.ToolArgs {
		s.ToolArgs[key] = slices.Clone(args)
	}
	if s.Stall != nil {
		stall := *s.Stall
		s.Stall = &stall
	}
	return s
}
