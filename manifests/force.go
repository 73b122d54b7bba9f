package manifests

import (
	"reflect"
	"slices"
	"time"

	"parlour/runner/policy"
	"parlour/runner/spec"
	"parlour/tiers"
)

// Force is what is in force: what the manifests of now say, and nothing that
// goes beyond any of the states underneath. The zero Force gives nobody anything.
type Force struct {
	now   *Set
	under []*Set
}

// InForce bounds a Set by earlier ones.
func InForce(now *Set, under ...*Set) Force { return Force{now, slices.Clone(under)} }

// Rules gives who is in which tier, and the rules underneath: nobody has more
// than the least of all these gives.
func (f Force) Rules() (now tiers.Rules, under []tiers.Rules) {
	if f.now == nil {
		return tiers.Rules{}, nil
	}
	for _, s := range f.under {
		under = append(under, s.rules)
	}
	return f.now.rules, under
}

// Tier gives what a tier may do: the least of all states.
// Guarded by tests/contract TestT13WhatATierMayDoGrowsByNothing.
func (f Force) Tier(t tiers.Tier) (Tier, bool) {
	if f.now == nil {
		return Tier{}, false
	}
	tier, ok := f.now.Tier(t)
	for _, s := range slices.Backward(f.under) {
		before, known := s.Tier(t)
		tier, ok = lesser(before, tier), ok && known
	}
	return tier, ok
}

// lesser gives what both allow. Where they differ without one being less, as in
// the name of a model, the earlier one holds; the order of runners is the later
// one's.
// Guarded by TestLesserKnowsEveryField.
func lesser(before, now Tier) Tier {
	t := now.clone()
	t.Wish = lesserWish(before.Wish, now.Wish)
	t.Runners = both(now.Runners, before.Runners)
	t.Models = map[spec.Provider]string{}
	for provider := range now.Models {
		if name, ok := before.Models[provider]; ok {
			t.Models[provider] = name
		}
	}
	a, b := before.Asking, now.Asking
	t.Asking = Asking{
		PerMinute: min(a.PerMinute, b.PerMinute), Running: min(a.Running, b.Running), Waiting: min(a.Waiting, b.Waiting),
		TokensPerDayUser: min(a.TokensPerDayUser, b.TokensPerDayUser), TokensPerDayTier: min(a.TokensPerDayTier, b.TokensPerDayTier),
	}
	t.Reply = Reply{Where: before.Reply.Where, Mentions: before.Reply.Mentions, Unfurl: before.Reply.Unfurl && now.Reply.Unfurl}
	return t
}

func lesserWish(a, b policy.Wish) policy.Wish {
	w := policy.Wish{
		Mode: min(a.Mode, b.Mode), Armed: a.Armed && b.Armed, Network: min(a.Network, b.Network),
		Tools: both(b.Tools, a.Tools), Documents: both(b.Documents, a.Documents), Scratch: both(b.Scratch, a.Scratch),
		Limits: lesserLimits(a.Limits, b.Limits),
	}
	if len(a.Require) > 0 && len(b.Require) > 0 { // none named: all are required
		w.Require = slices.Concat(a.Require, b.Require)
		slices.Sort(w.Require)
		w.Require = slices.Compact(w.Require)
	}
	return w
}

func lesserLimits(a, b policy.Limits) policy.Limits {
	return policy.Limits{
		Wall: min(a.Wall, b.Wall), Stall: lesserStall(a.Stall, b.Stall), Memory: min(a.Memory, b.Memory), Disk: min(a.Disk, b.Disk),
		Files: min(a.Files, b.Files), Processes: min(a.Processes, b.Processes), OpenFiles: min(a.OpenFiles, b.OpenFiles),
		Answer: min(a.Answer, b.Answer), ModelRequests: min(a.ModelRequests, b.ModelRequests), OutputTokens: min(a.OutputTokens, b.OutputTokens),
	}
}

// lesserStall knows that 0 is no limit.
func lesserStall(a, b time.Duration) time.Duration {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// both keeps of a list what the other holds too.
func both[T comparable](list, other []T) []T {
	return slices.DeleteFunc(slices.Clone(list), func(x T) bool { return !slices.Contains(other, x) })
}

// Narrows says whether a run of the tier may do less now than before. How much may
// be asked, and how an answer is posted, is not about a run.
func Narrows(before, now Tier) bool {
	before.Asking, before.Reply = now.Asking, now.Reply
	return !reflect.DeepEqual(normal(lesser(before, now)), normal(before))
}
