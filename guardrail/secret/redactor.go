package secret

import (
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// shortest is the least length of a value that is looked for: shorter ones
// would blank ordinary words.
const shortest = 6

// Redactor takes secrets out of text. It is immutable and safe for parallel use.
// The zero Redactor knows the shapes only.
type Redactor struct {
	needles []string // lower case, without blanks, longest first
}

// NewRedactor makes a Redactor for exact values. Values shorter than six bytes
// are an error, since they cannot be told from ordinary text.
func NewRedactor(values ...Value) (Redactor, error) {
	seen := map[string]bool{}
	for i, v := range values {
		if v.Empty() {
			continue
		}
		if len(v.content) < shortest {
			return Redactor{}, fmt.Errorf("secret %d is shorter than %d bytes", i+1, shortest)
		}
		for _, encoded := range encodings(v.content) {
			if needle, _ := squeeze(encoded); len(needle) >= shortest {
				seen[needle] = true
			}
		}
	}
	r := Redactor{}
	for needle := range seen {
		r.needles = append(r.needles, needle)
	}
	slices.SortFunc(r.needles, func(a, b string) int {
		if d := len(b) - len(a); d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	return r, nil
}

// encodings lists the forms in which a value is looked for. Case and blanks do
// not matter, since text and needle are squeezed before they are compared.
func encodings(s string) []string {
	forms := []string{
		s,
		reverse(s),
		rot13(s),
		hex.EncodeToString([]byte(s)),
		percent(s),
		url.QueryEscape(s),
		url.PathEscape(s),
		strings.Trim(fmt.Sprintf("%+q", s), `"`),
		strings.TrimRight(base32.StdEncoding.EncodeToString([]byte(s)), "="),
	}
	// A value inside a longer text starts at any of three base64 alignments.
	// Only the characters that depend on nothing but the value are compared.
	for shift := range 3 {
		padded := append(make([]byte, shift), s...)
		for _, enc := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			text := enc.EncodeToString(padded)
			first := (shift*8 + 5) / 6
			last := len(padded) * 8 / 6
			forms = append(forms, text[first:last])
		}
	}
	return forms
}

func reverse(s string) string {
	b := []byte(s)
	slices.Reverse(b)
	return string(b)
}

func rot13(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z':
			return 'a' + (r-'a'+13)%26
		case r >= 'A' && r <= 'Z':
			return 'A' + (r-'A'+13)%26
		}
		return r
	}, s)
}

func percent(s string) string {
	var b strings.Builder
	for i := range len(s) {
		fmt.Fprintf(&b, "%%%02x", s[i])
	}
	return b.String()
}

// squeeze drops what can be put between the letters of a secret without hiding
// it from a reader, lowers the case, and says where each kept byte came from.
func squeeze(s string) (string, []int) {
	var b strings.Builder
	at := make([]int, 0, len(s)+1)
	for i, r := range s {
		if unicode.IsSpace(r) || unicode.In(r, unicode.Cf, unicode.Mn, unicode.Cc) || r == utf8.RuneError {
			continue
		}
		low := string(unicode.ToLower(r))
		b.WriteString(low)
		for range len(low) {
			at = append(at, i)
		}
	}
	return b.String(), append(at, len(s))
}

// Redact replaces every known value and known shape by <secret> and says how
// many places it replaced.
func (r Redactor) Redact(text string) (string, int) {
	cuts := shapes(text)
	small, at := squeeze(text)
	for _, needle := range r.needles {
		for from := 0; ; {
			i := strings.Index(small[from:], needle)
			if i < 0 {
				break
			}
			start, end := from+i, from+i+len(needle)
			cuts = append(cuts, cut{at[start], at[end-1] + runeLen(text, at[end-1])})
			from = end
		}
	}
	return splice(text, cuts)
}

type cut struct{ from, to int }

func runeLen(text string, at int) int {
	_, n := utf8.DecodeRuneInString(text[at:])
	return n
}

func splice(text string, cuts []cut) (string, int) {
	if len(cuts) == 0 {
		return text, 0
	}
	slices.SortFunc(cuts, func(a, b cut) int { return a.from - b.from })
	var b strings.Builder
	done, n := 0, 0
	for _, c := range cuts {
		if c.to <= done {
			continue
		}
		if c.from >= done {
			b.WriteString(text[done:c.from])
			b.WriteString(mask)
			n++
		}
		done = c.to
	}
	b.WriteString(text[done:])
	return b.String(), n
}

// shape matches the well-known forms of credentials: Slack and Discord tokens,
// keys of model and code hosts, private keys, and passwords inside addresses.
// Plain ids, hashes and UUIDs do not match; guarded by TestShapes.
var shape = regexp.MustCompile(`\bxox[a-z](?:\.xox[a-z])?-[0-9A-Za-z-]{10,}` +
	`|\bxapp-[0-9A-Za-z-]{10,}` +
	`|\b[MNO][A-Za-z0-9_-]{22,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,}` +
	`|\bsk-[A-Za-z0-9_-]{16,}` +
	`|\bgh[pousr]_[A-Za-z0-9]{20,}|\bgithub_pat_[A-Za-z0-9_]{20,}` +
	`|\bAIza[0-9A-Za-z_-]{30,}|\bAKIA[0-9A-Z]{16}\b` +
	`|(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\z)` +
	`|\b[a-z][a-z0-9+.-]*://[^\s/:@]*:[^\s/@]+@`)

func shapes(text string) []cut {
	var cuts []cut
	for _, m := range shape.FindAllStringIndex(text, -1) {
		cuts = append(cuts, cut{m[0], m[1]})
	}
	return cuts
}
