//go:build !linux || (!amd64 && !arm64)

package probe

import (
	"context"
	"fmt"
	"io"
)

// Attempts gives every attempt of the battery: none on this system, which has
// no sandbox that they could be made from.
func Attempts() []Attempt { return nil }

// Main plays one part of the battery. This system has none.
func Main(_ context.Context, _, _ []string, _ io.Reader, _, stderr io.Writer) int {
	_, _ = fmt.Fprintln(stderr, "probe: there is no battery for this system")
	return 2
}

// measure finds nothing.
func (b *Battery) measure(context.Context, Rung, *Report) error {
	return fmt.Errorf("there is no battery for this system")
}
