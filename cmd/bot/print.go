package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
)

// print writes a line for a person to standard output. What could move the
// cursor, hide text or turn the direction of writing is shown as its code point,
// so nothing that came from outside can change what else is on the screen.
// Guarded by tests/journeys TestNothingPrintedReachesTheTerminalRaw.
func (p *process) print(format string, args ...any) {
	_, _ = fmt.Fprintln(p.stdout, visible(fmt.Sprintf(format, args...)))
}

// note writes a line for a person to standard error, likewise.
func (p *process) note(format string, args ...any) {
	_, _ = fmt.Fprintln(p.stderr, visible(fmt.Sprintf(format, args...)))
}

// json prints one value for programs, in one line.
func (p *process) json(v any) error {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err
	}
	// Such characters stand inside JSON strings only, where this is their escape.
	_, err := fmt.Fprintln(p.stdout, visible(strings.TrimSuffix(out.String(), "\n")))
	return err
}

// visible shows control and format characters as \uXXXX. Line breaks, tabs and
// the joiners that scripts and emoji need stay.
func visible(text string) string {
	if !strings.ContainsFunc(text, hidden) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		switch {
		case !hidden(r):
			b.WriteRune(r)
		case r > 0xffff:
			fmt.Fprintf(&b, `\u%04x\u%04x`, 0xd800+(r-0x10000)>>10, 0xdc00+(r-0x10000)&0x3ff)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

func hidden(r rune) bool {
	if r == '\n' || r == '\t' || r == '\u200c' || r == '\u200d' {
		return false
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp)
}
