package runner

import (
	"slices"
	"strings"

	"parlour/bridge/ask"
	"parlour/runner/policy"
	"parlour/runner/spec"
)

// Fact is what is known of one runner on this host.
type Fact struct {
	Spec       spec.Spec
	Path       string // absolute path of the program; empty: not usable
	Missing    string // why Path is empty
	Credential bool   // a key for its provider is configured
	Barrier    string // why this build cannot drive it; empty: it can
	Lacks      string // a required flag that the program does not offer; set by Checked
	Unasked    string // why Checked could not ask the program for its flags
}

// Demand is what a tier asks of its runner.
type Demand struct {
	Tier   ask.Tier
	Tools  []policy.Tool
	Models map[spec.Provider]string
	Order  []string
}

// Pick gives the first runner of the order that is safe for the tier, installed,
// has a credential and can be driven with the tier's tools, with the reason for
// each one before it and for none after it. It is pure, and the zero Fact is
// never picked.
func Pick(d Demand, facts map[string]Fact) ask.Choice {
	choice := ask.Choice{Skipped: []ask.Skip{}}
	for _, name := range d.Order {
		fact, known := facts[name]
		if reason := d.skip(fact, known); reason != "" {
			choice.Skipped = append(choice.Skipped, ask.Skip{Runner: name, Reason: reason})
			continue
		}
		choice.Runner, choice.Path = name, fact.Path
		// The built-in reader is the bot itself and needs no proof. Nothing
		// else has passed a battery yet.
		choice.Proven, choice.BuiltIn = fact.Spec.BuiltIn, fact.Spec.BuiltIn
		break
	}
	return choice
}

func (d Demand) skip(f Fact, known bool) string {
	verdict := f.Spec.Safe.For(d.Tier.String())
	switch {
	case !known:
		return "no manifest describes it, or the manifest is faulty"
	case !verdict.OK:
		return "not safe for " + d.Tier.String() + ": " + verdict.Reason
	case f.Path == "":
		return f.Missing
	case f.Spec.NeedsModel() && !f.Credential:
		return "installed, but no credential: " + also("no key for "+string(f.Spec.Provider)+" is configured", f.Barrier)
	case f.Barrier != "":
		return "installed, but " + f.Barrier
	case !f.Spec.Offers(d.Tools):
		return "it cannot be limited to the tools " + spec.ToolKey(d.Tools)
	case f.Spec.NeedsModel() && d.Models[f.Spec.Provider] == "":
		return "the tier's manifest names no model of " + string(f.Spec.Provider)
	}
	return ""
}

// also names a second obstacle, so that nobody clears the first in vain.
func also(first, second string) string {
	if second == "" {
		return first
	}
	return first + ", and " + second
}

// Facts looks every described runner up.
func (r *Runner) Facts() map[string]Fact {
	facts := make(map[string]Fact, len(r.specs))
	for name, s := range r.specs {
		f := Fact{Spec: s, Credential: !r.cfg.Models[s.Provider].Key.Empty(), Barrier: barrier(s)}
		if why := r.cfg.Shut[s.Provider]; why != "" && f.Barrier == "" {
			f.Barrier = why
		}
		if s.BuiltIn {
			f.Path = r.cfg.Self
		} else {
			f.Path, f.Missing = r.cfg.Finder.Find(s.Binaries)
		}
		facts[name] = f
	}
	return facts
}

// barrier names what this build lacks for a runner.
func barrier(s spec.Spec) string {
	switch {
	case s.NeedsModel() && protocols()[s.Provider] == "":
		return "this build has no model gateway for " + string(s.Provider) + " yet"
	case s.Answer == spec.GeminiJSON:
		return "its answer format " + string(s.Answer) + " is not decoded by this build"
	}
	return ""
}

// Preference is the operator's order of runners. It can only reorder and
// shorten a tier's own list, which is the ceiling.
type Preference struct {
	Environment []string // PARLOUR_RUNNERS, already split; wins over Config
	Config      []string // runners.order
}

// The origins of an order, as receipts print them.
const (
	fromEnvironment = "environment"
	fromConfig      = "config"
	fromManifest    = "manifest"
)

// order gives the names to try and where they came from. A preference without
// any name of the list falls back to the list, never to nothing.
func (p Preference) order(list []string) ([]string, string) {
	for _, from := range []struct {
		names  []string
		origin string
	}{{p.Environment, fromEnvironment}, {p.Config, fromConfig}} {
		kept := []string{}
		for _, name := range from.names {
			if slices.Contains(list, name) && !slices.Contains(kept, name) {
				kept = append(kept, name)
			}
		}
		if len(kept) > 0 {
			return kept, from.origin
		}
	}
	return list, fromManifest
}

// SplitNames reads a list as the environment holds it, split at commas and
// blanks, and separates the names that are known from those that are not.
func SplitNames(value string, known func(string) bool) (names, unknown []string) {
	for _, name := range strings.FieldsFunc(value, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' }) {
		if known(name) {
			names = append(names, name)
		} else {
			unknown = append(unknown, name)
		}
	}
	return names, unknown
}
