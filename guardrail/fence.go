package guardrail

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// ErrMarker means that the marker is too weak or occurs in the text: draw
// another one.
var ErrMarker = errors.New("unusable fence marker")

var goodMarker = regexp.MustCompile(`^[0-9a-f]{32}$`)

// quote stands before every line of the question, so that no line of it can
// pass for a line of the policy, whatever it holds.
const quote = "| "

// Fence puts the text between two lines that carry the marker, 32 hex digits
// drawn anew for each run, and quotes every line of it. Unfence gives back
// exactly the text. Guarded by FuzzFence.
func Fence(marker, text string) (string, error) {
	if !goodMarker.MatchString(marker) {
		return "", fmt.Errorf("%w: want 32 hex digits", ErrMarker)
	}
	if strings.Contains(text, marker) {
		return "", fmt.Errorf("%w: it occurs in the text", ErrMarker)
	}
	return begin(marker) + "\n" + quote + eachLine(text, func(b string) string { return b + quote }) + "\n" + end(marker) + "\n", nil
}

// Unfence reads what Fence wrote with the same marker.
func Unfence(marker, fenced string) (string, error) {
	body, ok := strings.CutPrefix(fenced, begin(marker)+"\n"+quote)
	if !ok {
		return "", fmt.Errorf("no opening line with this marker")
	}
	body, ok = strings.CutSuffix(body, "\n"+end(marker)+"\n")
	if !ok {
		return "", fmt.Errorf("no closing line with this marker")
	}
	var b strings.Builder
	for body != "" {
		at := lineBreak.FindStringIndex(body)
		if at == nil {
			b.WriteString(body)
			break
		}
		b.WriteString(body[:at[1]])
		body, ok = strings.CutPrefix(body[at[1]:], quote)
		if !ok {
			return "", fmt.Errorf("a line is not quoted")
		}
	}
	return b.String(), nil
}

func begin(marker string) string { return "--- question " + marker + " begins ---" }

func end(marker string) string { return "--- question " + marker + " ends ---" }

// lineBreak is everything that a model or a terminal may show as a new line.
var lineBreak = regexp.MustCompile("[\n\r\v\f\u0085\u2028\u2029]")

func eachLine(text string, after func(string) string) string {
	return lineBreak.ReplaceAllStringFunc(text, after)
}
