package probe

import (
	"time"

	"parlour/runner/policy"
)

// Rung is one way of building a sandbox, with the policies under which the
// battery tries it: one for each network that the rung gives.
type Rung struct {
	Rung     policy.Rung
	Why      string // why there is no policy
	Policies []policy.Effective
}

// limits bound the battery's own runs. They are small, so that reaching them is
// quick.
func limits() policy.Limits {
	return policy.Limits{
		Wall: 30 * time.Second, Memory: 512 << 20, Disk: 8 << 20, Files: 300, Processes: 64, OpenFiles: 128,
		Answer: 4 << 20, ModelRequests: 1, OutputTokens: 1,
	}
}

// Rungs gives every rung of the sandbox, the strongest first, as the host was
// measured: with its policies, or with the reason why there are none.
func Rungs(c policy.Capabilities) []Rung {
	here, why := map[policy.Rung]policy.Capabilities{}, map[policy.Rung]string{}
	for _, one := range append([]policy.Capabilities{c}, c.Lower...) {
		one.Lower = nil
		here[one.Rung] = one
	}
	for _, a := range c.Absent {
		why[a.Rung] = a.Why + "; cure: " + a.Cure
	}
	var all []Rung
	for _, rung := range policy.Rungs() {
		r := Rung{Rung: rung, Why: why[rung]}
		if one, ok := here[rung]; ok {
			r.Policies = policies(one)
		} else if r.Why == "" {
			r.Why = "it was not looked for"
		}
		all = append(all, r)
	}
	return all
}

// policies gives the policy of a run for each network that the rung can hold to
// anything, with every clause required that the rung enforces under it.
func policies(c policy.Capabilities) []policy.Effective {
	var all []policy.Effective
	for _, n := range []policy.Network{policy.ModelOnly, policy.NetworkNone} {
		wish := policy.Wish{Mode: policy.ReadOnly, Network: n, Limits: limits()}
		var enforced []policy.Clause
		for _, clause := range policy.Clauses() {
			wish.Require = []policy.Clause{clause}
			if _, err := policy.Narrow(wish, c); err == nil {
				enforced = append(enforced, clause)
			}
		}
		if wish.Require = enforced; len(enforced) == 0 {
			continue
		}
		if e, err := policy.Narrow(wish, c); err == nil {
			all = append(all, e)
		}
	}
	return all
}
