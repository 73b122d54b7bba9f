package manifests

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"parlour/runner/policy"
	"parlour/tiers"
)

// Gained lists in a line each what a Set gives beyond any of the earlier ones.
// Runners are not among it: their files are not read while a bot runs.
func Gained(under []*Set, set *Set) (gains []string) {
	for _, before := range under {
		for _, gain := range more(before, set) {
			if !slices.Contains(gains, gain) {
				gains = append(gains, gain)
			}
		}
	}
	return gains
}

// Nothing gives a Set that gives nobody anything.
func Nothing() *Set { return folded{}.set(nil) }

// RunnerChanges says what in the file of a runner is more than an earlier text of
// it says. Where one of them gives no runner it says nothing.
func (s *Set) RunnerChanges(name, earlier string) (what []string) {
	now, ok := s.Runner(name)
	before, faults := readRunner(source{name: name, text: []byte(earlier)}, thisHost(s.dir))
	if !ok || len(faults) > 0 {
		return nil
	}
	for _, c := range runnerChanges(name, before, now, true, true).Gains() {
		what = append(what, strings.TrimPrefix(c.What, name+": "))
	}
	return what
}

// more lists what the later Set gives and the earlier does not. What the list of
// changes does not know, the comparison that takes effect does.
func more(before, now *Set) []string {
	found := lines(Diff(before, now).Gains())
	for _, t := range tiers.All() {
		a, known := before.Tier(t)
		b, ok := now.Tier(t)
		if len(found) == 0 && ok && (!known || !reflect.DeepEqual(normal(lesser(a, b)), normal(b))) {
			found = append(found, fmt.Sprintf("tier %s: its policy, limits, models or runners (%s)", t, b.Origin))
		}
	}
	return found
}

// lost lists what the later Set takes away.
func lost(before, now *Set) []string { return lines(Diff(before, now).Losses()) }

// tightens says whether a Set takes away what each of those underneath gives, so
// that it has to be remembered.
func tightens(under []*Set, set *Set) bool {
	return !slices.ContainsFunc(under, func(before *Set) bool { return len(more(set, before)) == 0 })
}

func lines(all Changes) (out []string) {
	for _, c := range all {
		switch {
		case c.Kind == "runner":
		case c.At == "":
			out = append(out, fmt.Sprintf("%s, %s: %s", c.Tier, c.Kind, c.What))
		default:
			out = append(out, fmt.Sprintf("%s, %s: %s (%s)", c.Tier, c.Kind, c.What, c.At))
		}
	}
	return out
}

// normal writes what means the same in the same way.
func normal(t Tier) Tier {
	t = t.clone()
	t.Origin = ""
	if len(t.Wish.Require) == 0 {
		t.Wish.Require = policy.Clauses()
	}
	slices.Sort(t.Wish.Require)
	t.Wish.Tools, t.Wish.Documents = append([]policy.Tool{}, t.Wish.Tools...), append([]string{}, t.Wish.Documents...)
	t.Wish.Scratch, t.Runners = append([]string{}, t.Wish.Scratch...), append([]string{}, t.Runners...)
	if len(t.Models) == 0 {
		t.Models = nil
	}
	return t
}
