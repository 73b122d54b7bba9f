package docs

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// blocks cuts Markdown at its blank lines. A fenced code block is one block,
// whatever it holds.
func blocks(text string) []string {
	var found, open []string
	fence := ""
	flush := func() {
		if len(open) > 0 {
			found = append(found, strings.Join(open, "\n"))
			open = nil
		}
	}
	for line := range strings.SplitSeq(text, "\n") {
		marker := fenceMarker(line)
		switch {
		case fence == "" && marker != "":
			flush()
			fence, open = marker, append(open, line)
		case fence != "":
			open = append(open, line)
			if closes(line, fence) {
				fence = ""
				flush()
			}
		case strings.TrimSpace(line) == "":
			flush()
		default:
			open = append(open, line)
		}
	}
	if fence != "" {
		open = append(open, fence)
	}
	flush()
	return found
}

// parts joins the blocks of a text into passages of at most maxPassage bytes.
func parts(text string) []string {
	var found []string
	size := 0
	for _, block := range blocks(text) {
		for _, b := range cut(block, maxPassage) {
			if strings.TrimSpace(b) == "" {
				continue
			}
			if size > 0 && size+2+len(b) <= maxPassage {
				found[len(found)-1] += "\n\n" + b
				size += 2 + len(b)
				continue
			}
			found = append(found, b)
			size = len(b)
		}
	}
	return found
}

// cut cuts one block into pieces of at most size bytes: at lines where there
// are any, else at sentences, else anywhere between two characters. Pieces of a
// code block are code blocks themselves.
func cut(block string, size int) []string {
	fence := fenceMarker(firstLine(block))
	if len(block) <= size {
		return []string{block}
	}
	if fence != "" {
		first := firstLine(block)
		body := strings.TrimSuffix(strings.TrimPrefix(block, first+"\n"), "\n"+fence)
		room := size - 2*len(fence) - 2
		if room < size/2 { // a fence as long as a text is no fence
			return pack(pieces(block, size), "\n", size)
		}
		found := pack(pieces(body, room), "\n", room)
		for i := range found {
			found[i] = fence + "\n" + found[i] + "\n" + fence
		}
		return found
	}
	return pack(pieces(block, size), " ", size)
}

// pieces gives lines, and sentences of lines that are too long, of at most size
// bytes each.
func pieces(text string, size int) []string {
	var found []string
	for line := range strings.SplitSeq(text, "\n") {
		if len(line) <= size {
			found = append(found, line)
			continue
		}
		for _, s := range sentences(line) {
			for len(s) > size {
				at := size
				for !utf8.RuneStart(s[at]) {
					at--
				}
				found, s = append(found, s[:at]), s[at:]
			}
			found = append(found, s)
		}
	}
	return found
}

// pack joins pieces as long as they stay within size.
func pack(pieces []string, joint string, size int) []string {
	var found []string
	for _, p := range pieces {
		last := len(found) - 1
		if last >= 0 && len(found[last])+len(joint)+len(p) <= size {
			found[last] += joint + p
			continue
		}
		found = append(found, p)
	}
	return found
}

// sentences cuts prose after a full stop, question mark or exclamation mark
// that a space follows.
func sentences(text string) []string {
	var found []string
	start := 0
	for i := 0; i+1 < len(text); i++ {
		if strings.IndexByte(".?!", text[i]) >= 0 && text[i+1] == ' ' {
			found = append(found, text[start:i+1])
			start = i + 2
		}
	}
	if start < len(text) {
		found = append(found, text[start:])
	}
	return found
}

// fenceMarker gives the marker that a line opens a code block with, or nothing.
func fenceMarker(line string) string {
	if indented(line) {
		return ""
	}
	t := strings.TrimLeft(line, " ")
	for _, c := range []string{"`", "~"} {
		marker := t[:len(t)-len(strings.TrimLeft(t, c))]
		if len(marker) >= 3 && !(c == "`" && strings.Contains(t[len(marker):], "`")) {
			return marker
		}
	}
	return ""
}

// closes says whether a line ends the code block that fence began.
func closes(line, fence string) bool {
	t := strings.TrimSpace(line)
	return strings.HasPrefix(t, fence) && strings.Trim(t, fence[:1]) == ""
}

func firstLine(s string) string {
	first, _, _ := strings.Cut(s, "\n")
	return first
}

func breaksHeading(r rune) bool {
	return unicode.IsSpace(r) || unicode.IsControl(r) || unicode.Is(unicode.Cf, r)
}
