// Package cases names what went wrong in other bots, in public, and marks the
// tests that show how this one does better. A case has an id and the place where
// it can be read; the test that it stands in carries its input.
//
// The list here is of the areas A (who somebody is) and B (files that say so).
// Its test finds a case that no test names, and tests/tally one whose tests did
// not pass.
package cases

import (
	"slices"
	"strings"
	"testing"
)

// Attribute is the name under which a test's output says which case it is about.
const Attribute = "public-case"

// IDs gives the cases that must have a test.
func IDs() []string {
	return slices.Concat(
		strings.Fields("A01 A02 A04 A05 A07 A08 A10 A11 A13 A14 A16 A17 A19 A20 A22 A23 A25 A26"),
		strings.Fields("B01 B02 B04 B05 B07 B08 B10 B11 B13 B14 B16 B17 B19 B20 B22 B23 B25 B26 B28 B29 B31 B32 B34 B35 B37 B38 B40 B41"))
}

// Case is one fault of another bot.
type Case struct{ id, source string }

// Public names a case and the place where it can be read. Both are written out
// where it is called: the list is made from the source text.
func Public(id, source string) Case { return Case{id, source} }

// In says that the test is about the case.
func (c Case) In(t testing.TB) {
	t.Helper()
	t.Attr(Attribute, c.id)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("public case %s: %s", c.id, c.source)
		}
	})
}

// ID names the case.
func (c Case) ID() string { return c.id }
