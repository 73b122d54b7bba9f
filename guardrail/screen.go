package guardrail

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"parlour/guardrail/secret"
	"parlour/runner/policy"
)

// Redactor is secret.Redactor, for packages that screen and hold no secret.
type Redactor = secret.Redactor

// Screening says how an answer is screened.
type Screening struct {
	Limit  int64    // bytes; 0 lets nothing through
	Secret Redactor // what must not be in it
	Marker string   // the run's fence marker; empty: none was used
}

// Screened is an answer that may be shown.
type Screened struct {
	Text     string // empty: nothing was left
	Redacted int    // places where a secret was taken out
	Cut      bool   // it was longer than the limit
}

// Screen makes an answer fit for chat and terminal: valid UTF-8, no escape
// sequences, no control or direction characters, no secrets, no fence marker,
// and no longer than the limit. Secrets are looked for in the whole text before
// it is cut, so a secret across the edge cannot slip through in halves.
func Screen(answer string, s Screening) Screened {
	text := Plain(answer)
	// The marker goes first, and until none is left: taken out later it could
	// join the halves of a secret, or of another marker.
	for s.Marker != "" && strings.Contains(text, s.Marker) {
		text = strings.ReplaceAll(text, s.Marker, "")
	}
	text, n := s.Secret.Redact(text)
	out := Screened{Text: strings.TrimSpace(text), Redacted: n}
	if int64(len(out.Text)) > s.Limit {
		out.Text, out.Cut = cut(out.Text, s.Limit), true
	}
	return out
}

func cut(text string, limit int64) string {
	note := fmt.Sprintf("\n[cut: the answer was longer than %s]", policy.Size(limit))
	keep := limit - int64(len(note))
	if keep <= 0 {
		return ""
	}
	for keep > 0 && !utf8.RuneStart(text[keep]) {
		keep--
	}
	return text[:keep] + note
}

// escape matches terminal escape sequences: CSI, OSC and other strings with
// their terminators, and short ones. A string that is not terminated ends at its
// line, so that one stray byte cannot swallow an answer.
var escape = regexp.MustCompile("(?:\x1b\\[|\u009b)[0-?]*[ -/]*[@-~]?" +
	"|(?:\x1b[\\]PX^_]|[\u009d\u0090\u0098\u009e\u009f])[^\x07\x1b\u009c\n]*(?:\x07|\x1b\\\\|\u009c)?" +
	"|\x1b[ -/]*[0-~]?")

// Plain gives text without anything that moves a cursor, hides text or changes
// the reading direction. Line breaks and tabs stay.
func Plain(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	text = escape.ReplaceAllString(text, "")
	text = strings.ReplaceAll(text, "\r\n", "\n")
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r == '\r' || r == '\u2028' || r == '\u2029' || r == '\u0085':
			return '\n'
		case r == '\u200c' || r == '\u200d': // joiners: scripts and emoji need them
			return r
		case unicode.In(r, unicode.Cc, unicode.Cf):
			return -1
		}
		return r
	}, text)
}
