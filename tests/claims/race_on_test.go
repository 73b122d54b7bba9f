//go:build linux && race

package claims_test

// underRace says that the prober carries the race detector, which needs more
// memory than the limits that are measured.
const underRace = true
