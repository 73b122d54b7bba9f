// Package tiers decides who may do what: a pure function from the ids of a
// person and a place to a tier.
//
// It knows ids, never names: a nickname, a display name or an e-mail address
// cannot reach it. It does no I/O, keeps no state, and everything it does not
// know is None. It refuses to match an empty id.
package tiers

import "fmt"

// Tier is how much the house trusts somebody. The zero Tier may do nothing.
type Tier int8

// The tiers, in rising order.
const (
	None Tier = iota
	Guest
	Team
	Owner
)

var tierNames = [...]string{"none", "guest", "team", "owner"}

// All lists the tiers that a manifest can describe, in rising order.
func All() []Tier { return []Tier{Guest, Team, Owner} }

// String gives the manifest's word for the tier.
func (t Tier) String() string {
	if t < None || t > Owner {
		return "none"
	}
	return tierNames[t]
}

// Parse reads guest, team or owner. Everything else, none included, is an
// error and None.
func Parse(s string) (Tier, error) {
	for _, t := range All() {
		if t.String() == s {
			return t, nil
		}
	}
	return None, fmt.Errorf("unknown tier %q (known: guest, team, owner)", s)
}

// MarshalText writes the manifest's word.
func (t Tier) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText reads what MarshalText wrote, none included.
func (t *Tier) UnmarshalText(text []byte) error {
	if string(text) == None.String() {
		*t = None
		return nil
	}
	parsed, err := Parse(string(text))
	*t = parsed
	return err
}
