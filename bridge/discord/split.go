package discord

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// limit is how much one message holds.
const limit = 2000

// fence is what begins and ends a block of code.
var fence = regexp.MustCompile("`{3,}")

// part is one message of a longer text: a piece of it, and what is added around
// it so that a block of code stays one.
type part struct{ before, body, after string }

func (p part) String() string { return p.before + p.body + p.after }

// blank says whether Discord would refuse the part as empty.
func (p part) blank() bool { return strings.TrimSpace(fence.ReplaceAllString(p.body, "")) == "" }

// split cuts a text into parts that each fit into a message. The bodies together
// are the text, byte for byte; a block of code that goes on is closed in one part
// and opened again in the next.
// Guarded by TestSplitKeepsTextFencesAndLimit.
func split(text string, limit int) []part {
	var parts []part
	before := ""
	for {
		room := limit - units(before)
		body, rest := cut(text, room)
		open, info := after(before, body)
		if units(body)+units(closer(open, body)) > room {
			body, rest = cut(text, room-units("\n```"))
			open, info = after(before, body)
		}
		parts = append(parts, part{before, body, closer(open, body)})
		if rest == "" {
			return parts
		}
		before = ""
		if open {
			before = "```" + info + "\n"
		}
		text = rest
	}
}

// closer closes a block of code that is open at the end of a body.
func closer(open bool, body string) string {
	switch {
	case !open:
		return ""
	case strings.HasSuffix(body, "\n"):
		return "```"
	}
	return "\n```"
}

var language = regexp.MustCompile(`^[A-Za-z0-9_+.#-]{1,20}$`)

// after says whether a block of code is open after a body, and its language. A
// language that is long or strange is dropped: repeated, it would eat the room
// of the text.
func after(before, body string) (open bool, info string) {
	open, info = before != "", strings.Trim(before, "`\n")
	for _, at := range fence.FindAllStringIndex(body, -1) {
		open, info = !open, ""
		line, _, ended := strings.Cut(body[at[1]:], "\n")
		if line = strings.TrimSpace(line); open && ended && language.MatchString(line) {
			info = line
		}
	}
	return open, info
}

// cut takes a beginning of at most room units off a text: up to the last empty
// line, line or word where one ends in its second half, never inside a fence or
// a character of several runes.
func cut(text string, room int) (head, rest string) {
	head, rest = cutTo(text, room)
	if rest == "" {
		return head, ""
	}
	at := len(head)
	for _, mark := range []string{"\n\n", "\n", " "} {
		if i := strings.LastIndex(head, mark); i >= len(head)/2 {
			at = i + len(mark)
			break
		}
	}
	if at == len(head) {
		at = whole(text, at)
	}
	if tidy := beforeFence(text, at); tidy > 0 {
		at = tidy
	}
	return text[:at], text[at:]
}

// whole moves a cut back to where no mark, joiner or selector is torn off.
func whole(text string, at int) int {
	for back := at; back > 0 && at-back < 64; {
		next, _ := utf8.DecodeRuneInString(text[back:])
		last, size := utf8.DecodeLastRuneInString(text[:back])
		if !unicode.In(next, unicode.M, unicode.Sk) && next != '\u200d' && last != '\u200d' {
			return back
		}
		back -= size
	}
	return at
}

// beforeFence moves a cut out of a fence, to its beginning.
func beforeFence(text string, at int) int {
	back := at
	for back > 0 && back < len(text) && text[back] == '`' && text[back-1] == '`' {
		back--
	}
	return back
}
