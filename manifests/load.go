package manifests

import (
	"maps"
	"slices"

	"parlour/runner/spec"
	"parlour/tiers"
)

// Load reads the manifests of a folder over the shipped ones, or the shipped
// ones alone where dir is empty. A file in the folder takes the whole place of
// the shipped file of the same name. It fails with Faults for every fault of a
// tier file or of the folders; a faulty or disabled runner file costs its
// runner only, and its faults are the Set's Warnings.
// Guarded by tests/config TestEveryBadFolderHasExactlyItsFaults.
func Load(dir string) (*Set, error) {
	set, faults := load(dir)
	if len(faults) > 0 {
		return nil, faults.sorted()
	}
	return set, nil
}

// Check reads like Load, and takes the faults of runner files for faults too.
func Check(dir string) (*Set, error) {
	set, faults := load(dir)
	if all := append(faults, set.Warnings...); len(all) > 0 {
		return nil, all.sorted()
	}
	return set, nil
}

func load(dir string) (*Set, Faults) {
	own := folder{}
	if dir != "" {
		own = readFolder(dir)
	}
	return own.load(dir)
}

// load makes a Set of the folder's files over the shipped ones. A tier may list
// the runners in also as well, although they have no file any more.
func (own folder) load(dir string, also ...string) (*Set, Faults) {
	files := readShipped()
	set := &Set{dir: dir, own: own, tiers: map[tiers.Tier]Tier{}, runners: map[string]spec.Spec{}, broken: map[string]Fault{}}
	known := append(set.readRunners(over(files.runners, own.runners), thisHost(dir)), also...)
	floor, faults := floorOf(files.tiers, known)
	faults = append(faults, own.faults...)
	faults = append(faults, set.readTiers(over(files.tiers, own.tiers), floor, known)...)
	set.Warnings = set.Warnings.sorted()
	return set, faults
}

// over gives the operator's files and those shipped ones that none of them
// replaces, by name.
func over(base, own []source) []source {
	byName := map[string]source{}
	for _, s := range append(slices.Clone(base), own...) {
		byName[s.name] = s
	}
	out := []source{}
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		out = append(out, byName[name])
	}
	return out
}

// readRunners fills in the runners and gives the names of all runner files,
// also of those that are faulty: a tier may still list them.
func (s *Set) readRunners(files []source, h host) (known []string) {
	for _, src := range files {
		known = append(known, src.name)
		var r spec.Spec
		faults := src.faults
		if len(faults) == 0 {
			r, faults = readRunner(src, h)
		}
		if len(faults) == 0 {
			s.runners[src.name] = r
			continue
		}
		s.broken[src.name] = faults.sorted()[0]
		s.Warnings = append(s.Warnings, faults...)
	}
	return known
}

// floorOf reads the shipped guest: what holds where a file says nothing.
func floorOf(shipped []source, known []string) (Tier, Faults) {
	for _, src := range shipped {
		if src.name == tiers.Guest.String() && len(src.faults) == 0 {
			f, faults := readTier(src, tiers.Guest, Tier{}, known)
			return f.Tier, faults
		}
	}
	return Tier{}, Faults{{File: "shipped:" + tierFolder, What: "guest.yaml is missing", Right: "a whole program"}}
}

func (s *Set) readTiers(files []source, floor Tier, known []string) (faults Faults) {
	var rules []tiers.Rule
	var caps []tiers.Cap
	var uses []use
	var expects []expectation
	var blocks []tiers.Block
	for _, tier := range slices.Backward(tiers.All()) {
		i := slices.IndexFunc(files, func(f source) bool { return f.name == tier.String() })
		if i < 0 || len(files[i].faults) > 0 {
			if i >= 0 {
				faults = append(faults, files[i].faults...)
			}
			continue
		}
		f, found := readTier(files[i], tier, floor, known)
		faults = append(faults, found...)
		s.Warnings = append(s.Warnings, f.undrivable(s.runners)...)
		s.tiers[tier] = f.Tier
		rules, caps = append(rules, f.rules...), append(caps, f.caps...)
		blocks = append(blocks, f.blocks...)
		uses, expects = append(uses, f.uses...), append(expects, f.expects...)
	}
	faults = append(faults, doubled(uses)...)
	s.rules = tiers.NewRules(rules, caps, blocks...)
	if len(faults) > 0 {
		return faults // rules with holes in them would fail cases that are right
	}
	for _, x := range expects {
		if f, bad := x.failed(s.rules); bad {
			faults = append(faults, f)
		}
	}
	return faults
}
