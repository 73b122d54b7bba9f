package manifests

import (
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	"parlour/runner/policy"
	"parlour/runner/spec"
	"parlour/tiers"
)

// Effect is what a change does to rights.
type Effect string

// The effects. Neutral changes nobody's rights, such as an order of runners.
const (
	Gain    Effect = "gain"
	Loss    Effect = "loss"
	Neutral Effect = "neutral"
)

// Change is one difference between two Sets.
type Change struct {
	Effect Effect     `json:"effect"`
	Kind   string     `json:"kind"` // user, role, group, anyone, place, audience, block, policy, limits, asking, reply, runner
	Tier   tiers.Tier `json:"tier,omitempty"`
	What   string     `json:"what"`
	At     string     `json:"at,omitempty"` // where it stands: in the new manifests, for what is gone in the old ones
}

// Changes are all differences between two Sets.
type Changes []Change

// Gains gives the changes by which anybody may do more.
func (c Changes) Gains() Changes { return c.with(Gain) }

// Losses gives the changes by which anybody may do less.
func (c Changes) Losses() Changes { return c.with(Loss) }

func (c Changes) with(e Effect) Changes {
	out := Changes{}
	for _, change := range c {
		if change.Effect == e {
			out = append(out, change)
		}
	}
	return out
}

// Diff says who gains and who loses what from old to new: people, roles, places,
// and what each tier and runner may do. Where it cannot tell it says gain.
// Where the files lie makes no difference. What is no part of a Set, such as the
// base address of a provider, it does not see.
// Guarded by tests/contract TestEveryWideningIsAGain.
func Diff(old, new *Set) Changes {
	out := slices.Concat(
		grants(old.rules, new.rules, Gain), grants(new.rules, old.rules, Loss),
		denials(new.rules, old.rules, Gain), denials(old.rules, new.rules, Loss),
	)
	for _, t := range slices.Backward(tiers.All()) {
		before, after := old.tiers[t], new.tiers[t]
		out = append(out, tierChanges(t, before, after)...)
	}
	names := map[string]bool{}
	for _, set := range []*Set{old, new} {
		for name := range set.runners {
			names[name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		before, was := old.runners[name]
		after, is := new.runners[name]
		out = append(out, runnerChanges(name, before, after, was, is)...)
	}
	return out
}

// tierChanges compares what a tier may do.
func tierChanges(t tiers.Tier, old, new Tier) (out Changes) {
	say := func(e Effect, kind, format string, args ...any) {
		out = append(out, Change{e, kind, t, fmt.Sprintf(format, args...), new.Origin})
	}
	number := func(kind, name string, a, b int64, show func(int64) string) {
		if a != b {
			e := Gain
			if b < a {
				e = Loss
			}
			say(e, kind, "%s: %s, was %s", name, show(b), show(a))
		}
	}
	number("policy", "mode", int64(old.Wish.Mode), int64(new.Wish.Mode), func(n int64) string { return policy.Mode(n).String() })
	number("policy", "network", int64(old.Wish.Network), int64(new.Wish.Network), func(n int64) string { return policy.Network(n).String() })
	lists := []struct {
		kind, name string
		old, new   []string
		more       Effect // of an entry that is added
	}{
		{"policy", "tools", text(old.Wish.Tools), text(new.Wish.Tools), Gain},
		{"policy", "documents", old.Wish.Documents, new.Wish.Documents, Gain},
		{"policy", "require", texts(old.Wish.Require), texts(new.Wish.Require), Loss},
		{"policy", "runners", old.Runners, new.Runners, Gain},
	}
	for _, l := range lists {
		for _, e := range listChanges(l.old, l.new) {
			if e.added == (l.more == Gain) {
				say(Gain, l.kind, "%s: %s", l.name, e)
			} else {
				say(Loss, l.kind, "%s: %s", l.name, e)
			}
		}
	}
	if !slices.Equal(old.Runners, new.Runners) && slices.Equal(slices.Sorted(slices.Values(old.Runners)), slices.Sorted(slices.Values(new.Runners))) {
		say(Neutral, "policy", "runners: the order is %s, was %s", strings.Join(new.Runners, ", "), strings.Join(old.Runners, ", "))
	}
	for _, p := range modelProviders() {
		was, is := old.Models[p], new.Models[p]
		switch {
		case was == is:
		case is == "":
			say(Loss, "policy", "model: no name for %s, was %s", p, was)
		default:
			say(Gain, "policy", "model: %s for %s, was %s", is, p, orNothing(was))
		}
	}
	before, after := amounts(old), amounts(new)
	for i := range after {
		number(after[i].kind, after[i].name, before[i].n, after[i].n, after[i].show)
	}
	if old.Reply != new.Reply {
		e := Neutral
		if new.Reply.Unfurl && !old.Reply.Unfurl {
			e = Gain
		}
		say(e, "reply", "reply: %+v, was %+v", new.Reply, old.Reply)
	}
	return out
}

func modelProviders() []spec.Provider {
	return []spec.Provider{spec.Anthropic, spec.OpenAI, spec.Gemini}
}

func orNothing(s string) string {
	if s == "" {
		return "nothing"
	}
	return s
}

func text[T ~string](list []T) []string {
	out := make([]string, len(list))
	for i, v := range list {
		out[i] = string(v)
	}
	return out
}

func texts[T fmt.Stringer](list []T) []string {
	out := make([]string, len(list))
	for i, v := range list {
		out[i] = v.String()
	}
	return out
}

// entry is one entry of a list that came or went.
type entry struct {
	what  string
	added bool
}

func (e entry) String() string {
	if e.added {
		return e.what + " added"
	}
	return e.what + " taken away"
}

func listChanges(old, new []string) (out []entry) {
	for _, s := range new {
		if !slices.Contains(old, s) {
			out = append(out, entry{s, true})
		}
	}
	for _, s := range old {
		if !slices.Contains(new, s) {
			out = append(out, entry{s, false})
		}
	}
	return out
}

// amount is a number of which more is more right.
type amount struct {
	kind, name string
	n          int64
	show       func(int64) string
}

func amounts(t Tier) []amount {
	plain := func(n int64) string { return fmt.Sprint(n) }
	l, a := t.Wish.Limits, t.Asking
	return []amount{
		{"limits", "wall", l.Wall.Milliseconds(), func(n int64) string { return fmt.Sprintf("%d ms", n) }},
		{"limits", "stall", stallAmount(l.Stall), func(n int64) string { return time.Duration(n).String() }},
		{"limits", "memory", l.Memory, func(n int64) string { return fmt.Sprintf("%d bytes", n) }},
		{"limits", "disk", l.Disk, func(n int64) string { return fmt.Sprintf("%d bytes", n) }},
		{"limits", "files", int64(l.Files), plain},
		{"limits", "processes", int64(l.Processes), plain},
		{"limits", "open_files", int64(l.OpenFiles), plain},
		{"limits", "answer", l.Answer, func(n int64) string { return fmt.Sprintf("%d bytes", n) }},
		{"limits", "model_requests", int64(l.ModelRequests), plain},
		{"policy", "model.output_tokens", int64(l.OutputTokens), plain},
		{"asking", "per_minute", int64(a.PerMinute), plain},
		{"asking", "running", int64(a.Running), plain},
		{"asking", "waiting", int64(a.Waiting), plain},
		{"asking", "tokens_per_day.user", int64(a.TokensPerDayUser), plain},
		{"asking", "tokens_per_day.tier", int64(a.TokensPerDayTier), plain},
	}
}

// stallAmount knows that 0 is no limit, which is the most.
func stallAmount(d time.Duration) int64 {
	if d == 0 {
		return math.MaxInt64
	}
	return int64(d)
}

// runnerChanges compares how a runner is driven. What is not clearly less is a
// gain: another program or argument can do anything.
func runnerChanges(name string, old, new spec.Spec, was, is bool) (out Changes) {
	say := func(e Effect, format string, args ...any) {
		at := new.Origin
		if !is {
			at = old.Origin
		}
		out = append(out, Change{Effect: e, Kind: "runner", What: name + ": " + fmt.Sprintf(format, args...), At: at})
	}
	switch {
	case !was:
		say(Gain, "a new runner")
		return out
	case !is:
		say(Loss, "the runner is gone, faulty or disabled")
		return out
	}
	for _, t := range slices.Backward(tiers.All()) {
		before, after := old.Safe.For(t.String()), new.Safe.For(t.String())
		switch {
		case after.OK && !before.OK:
			say(Gain, "safe for %s", t)
		case before.OK && !after.OK:
			say(Loss, "not safe for %s any more", t)
		}
	}
	sets(say, old, new)
	for _, f := range []struct {
		name     string
		old, new any
	}{
		{"binaries", old.Binaries, new.Binaries}, {"arguments", old.Args, new.Args}, {"tool_args", old.ToolArgs, new.ToolArgs},
		{"wire_tools", old.WireTools, new.WireTools}, {"flags that are needed", old.NeedsFlags, new.NeedsFlags},
		{"help arguments", old.HelpArgs, new.HelpArgs}, {"provider", old.Provider, new.Provider}, {"prompt", old.Prompt, new.Prompt},
		{"prompt_flag", old.PromptFlag, new.PromptFlag}, {"stdin argument", old.StdinArg, new.StdinArg}, {"answer", old.Answer, new.Answer},
		{"stall", old.Stall, new.Stall}, {"built in", old.BuiltIn, new.BuiltIn},
	} {
		if !reflect.DeepEqual(f.old, f.new) {
			say(Gain, "%s changed", f.name)
		}
	}
	return out
}

// sets compares the fields of which a part can be taken away.
func sets(say func(Effect, string, ...any), old, new spec.Spec) {
	for _, f := range []struct {
		name     string
		old, new []string
	}{
		{"environment", pairs(old.Env), pairs(new.Env)}, {"environment that is handed on", old.EnvAllow, new.EnvAllow},
		{"configuration folders", pairs(old.ConfigEnv), pairs(new.ConfigEnv)}, {"files", pairs(old.Files), pairs(new.Files)},
		{"read_only paths", old.ReadOnly, new.ReadOnly},
	} {
		for _, e := range listChanges(f.old, f.new) {
			effect := Loss
			if e.added {
				effect = Gain
			}
			// A value may be long or private; its name says enough.
			e.what, _, _ = strings.Cut(e.what, "=")
			say(effect, "%s: %s", f.name, e)
		}
	}
}

func pairs(m map[string]string) []string {
	out := []string{}
	for _, name := range slices.Sorted(maps.Keys(m)) {
		out = append(out, name+"="+m[name])
	}
	return out
}
