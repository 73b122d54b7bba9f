//go:build linux && !race

package claims_test

// underRace says that the prober carries the race detector; it does not.
const underRace = false
