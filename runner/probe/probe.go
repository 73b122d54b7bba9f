// Package probe measures on this host what a run in a sandbox cannot do.
//
// A battery of attempts is made by the bot's own program from inside a real
// sandbox, under a real policy.Effective of each rung. Targets for them stand
// outside: files with random content, listeners, a process, shared memory.
// Where the intruder could be wrong about its success, the target is asked.
//
// Other users of the host are neither let in nor believed: nobody enters the
// stage before it stands, and what a target saw counts only with a secret that
// the run alone was told. An escape counts when two measurements saw it.
//
// The battery never calls contained what was not tried: an attempt whose target
// could not be set up is "not measured", and one whose target this host does
// not have is "not applicable", each with the reason. It proves no agent program
// and no model, it changes nothing of the host but its own targets, and it
// leaves nothing of them behind.
package probe

import (
	"fmt"
	"slices"
	"time"

	"parlour/runner/policy"
)

// Subcommand is the hidden subcommand of the bot's own program that is the
// intruder inside the sandbox, and some of the targets outside.
const Subcommand = "__probe"

// Verdict is what came of an attempt. The zero Verdict proves nothing.
type Verdict int8

// The verdicts.
const (
	NotMeasured   Verdict = iota // it could not be set up, or nothing was heard of it
	Escaped                      // it succeeded
	Contained                    // it was refused
	NotApplicable                // this host has no such thing, or the policy does not promise it
)

var verdictNames = [...]string{"not measured", "escaped", "contained", "not applicable"}

// String gives the verdict in words.
func (v Verdict) String() string {
	if v < 0 || int(v) >= len(verdictNames) {
		return "unknown"
	}
	return verdictNames[v]
}

// worse says whether v outweighs o where one attempt was made twice.
func (v Verdict) worse(o Verdict) bool {
	order := [...]Verdict{NotApplicable, Contained, NotMeasured, Escaped}
	return slices.Index(order[:], v) > slices.Index(order[:], o)
}

// Attempt is one thing that a run must not be able to do.
type Attempt struct {
	Family string
	Name   string
	What   string          // one sentence
	Needs  []policy.Clause // the clauses that do not hold where it succeeds
}

// ID gives the attempt's unique name, its family first.
func (a Attempt) ID() string { return a.Family + "/" + a.Name }

// Finding is what came of one attempt in one run.
type Finding struct {
	Attempt
	Network policy.Network // of the run in which it was made
	Verdict Verdict
	Why     string // what was seen; empty where a refusal needs no words
	// Admitted says that the policy text of the run tells of it: it counts as
	// missed, and speaks against no clause.
	Admitted bool
}

// breaks says whether the finding speaks against what was promised.
func (f Finding) breaks() bool { return f.Verdict == Escaped && !f.Admitted }

// Report is what the battery found of one rung. The zero Report holds nothing.
type Report struct {
	Rung      policy.Rung
	Available bool
	Why       string // why the rung is not available, or why it could not be measured
	Findings  []Finding
	Took      time.Duration
}

// Merged gives one finding for each attempt, in the order of the table: the
// worst of all runs in which it was made.
func (r Report) Merged() []Finding {
	var out []Finding
	at := map[string]int{}
	for _, f := range r.Findings {
		i, seen := at[f.ID()]
		switch {
		case !seen:
			at[f.ID()] = len(out)
			out = append(out, f)
		case f.Verdict.worse(out[i].Verdict):
			out[i] = f
		}
	}
	return out
}

// Under gives the report of the runs with this network. An attempt that does
// not depend on the network, and was made under another one only, is kept.
func (r Report) Under(n policy.Network) Report {
	made := map[string]bool{}
	for _, f := range r.Findings {
		made[f.ID()] = made[f.ID()] || f.Network == n
	}
	under := r
	under.Findings = nil
	for _, f := range r.Findings {
		if f.Network == n || !made[f.ID()] {
			under.Findings = append(under.Findings, f)
		}
	}
	return under
}

// Count gives how many attempts ended so.
func (r Report) Count(v Verdict) int {
	n := 0
	for _, f := range r.Merged() {
		if f.Verdict == v {
			n++
		}
	}
	return n
}

// Total gives how many attempts count: all but those that are not applicable.
func (r Report) Total() int { return len(r.Merged()) - r.Count(NotApplicable) }

// AllContained says whether every attempt that counts was contained. A report
// without any is none.
func (r Report) AllContained() bool {
	return r.Available && r.Total() > 0 && r.Count(Contained) == r.Total()
}

// AsTold says whether every attempt that counts was contained, or is one of which
// the policy text of such a run tells. A report without any is none.
func (r Report) AsTold() bool {
	return r.Available && r.Total() > 0 && r.Count(Contained)+r.told() == r.Total()
}

// told counts the attempts that succeed as the policy text says.
func (r Report) told() int {
	n := 0
	for _, f := range r.Merged() {
		if f.Verdict == Escaped && f.Admitted {
			n++
		}
	}
	return n
}

// Holds says whether every attempt against the clause was contained. What was
// not measured does not hold. Guarded by tests/attacks TestAReportHoldsOnlyWhatWasContained.
func (r Report) Holds(c policy.Clause) bool {
	against := 0
	for _, f := range r.Merged() {
		if !slices.Contains(f.Needs, c) || f.Verdict == NotApplicable || f.Admitted {
			continue
		}
		if f.Verdict != Contained {
			return false
		}
		against++
	}
	return r.Available && against > 0
}

// Satisfies says whether the rung counts for a policy that requires these
// clauses, all of them where none is named, and which attempts speak against it.
func (r Report) Satisfies(require []policy.Clause) (bool, []Attempt) {
	if len(require) == 0 {
		require = policy.Clauses()
	}
	holds := true
	for _, c := range require {
		holds = holds && r.Holds(c)
	}
	missed := r.against(require, func(v Verdict) bool { return v == Escaped || v == NotMeasured })
	return holds, missed
}

// Broken gives those of the clauses against which an attempt succeeded, and
// these attempts. What was not measured breaks nothing.
func (r Report) Broken(require []policy.Clause) (broken []policy.Clause, escapes []Attempt) {
	if len(require) == 0 {
		require = policy.Clauses()
	}
	escapes = r.against(require, func(v Verdict) bool { return v == Escaped })
	for _, c := range require {
		if slices.ContainsFunc(escapes, func(a Attempt) bool { return slices.Contains(a.Needs, c) }) {
			broken = append(broken, c)
		}
	}
	return broken, escapes
}

func (r Report) against(require []policy.Clause, is func(Verdict) bool) (out []Attempt) {
	for _, f := range r.Merged() {
		touches := slices.ContainsFunc(f.Needs, func(c policy.Clause) bool { return slices.Contains(require, c) })
		if touches && is(f.Verdict) && !f.Admitted {
			out = append(out, f.Attempt)
		}
	}
	return out
}

// String gives the count in a few words, for logs and health.
func (r Report) String() string {
	if !r.Available {
		return "not available"
	}
	text := fmt.Sprintf("%d of %d escape attempts contained", r.Count(Contained), r.Total())
	if n := r.told(); n > 0 {
		text += fmt.Sprintf(", %d are told by the policy text", n)
	}
	if n := r.Count(NotMeasured); n > 0 {
		text += fmt.Sprintf(", %d not measured", n)
	}
	return text
}
