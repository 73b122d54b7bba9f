package docs

import "strings"

// maxPassage is the size in bytes to which long sections are cut, so that a
// file without headings is not one passage that covers every question.
const maxPassage = 2000

// section is the text under one heading.
type section struct {
	title   string   // the file's first heading of level 1
	path    []string // headings below the title
	text    string
	isTitle bool // the text stands directly under the title
}

// heading gives the path as citations print it.
func (s section) heading() string {
	if len(s.path) == 0 {
		return s.title
	}
	return strings.Join(s.path, headingJoin)
}

// split cuts a Markdown document into its sections, long ones into several.
// Front matter and HTML comments are left out: readers of the document do not
// see them.
func split(text string) []section {
	s := splitter{}
	lines := strings.Split(dropFrontMatter(text), "\n")
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		if s.fence == "" {
			line = s.dropComment(line)
		}
		switch level, heading := s.headingAt(line, lines[i+1:]); {
		case level == 0:
			s.add(line)
		default:
			s.open(level, heading)
			if !strings.HasPrefix(strings.TrimSpace(line), "#") {
				i++ // the line under a heading that is underlined
			}
		}
	}
	s.close()
	return s.done
}

// splitter walks the lines of one document.
type splitter struct {
	done    []section
	title   string
	levels  []int    // of path
	path    []string // headings that are open, without the title
	text    []string
	fence   string // marker of the open code block; empty outside one
	comment bool   // inside an HTML comment
}

func (s *splitter) open(level int, heading string) {
	s.close()
	for len(s.levels) > 0 && s.levels[len(s.levels)-1] >= level {
		s.levels = s.levels[:len(s.levels)-1]
		s.path = s.path[:len(s.path)-1]
	}
	if level == 1 && s.title == "" && len(s.done) == 0 {
		s.title = heading
		return
	}
	s.levels = append(s.levels, level)
	s.path = append(s.path, heading)
}

// close ends the section that is open. One without text leaves no passage: its
// heading lives on in the paths of those below it.
func (s *splitter) close() {
	text := strings.Join(s.text, "\n")
	s.text = nil
	if strings.TrimSpace(text) == "" {
		return
	}
	for _, part := range parts(text) {
		path := append([]string{}, s.path...)
		s.done = append(s.done, section{title: s.title, path: path, text: part, isTitle: len(path) == 0})
	}
}

func (s *splitter) add(line string) {
	marker := fenceMarker(line)
	switch {
	case s.fence == "" && marker != "":
		s.fence = marker
	case s.fence != "" && closes(line, s.fence):
		s.fence = ""
	}
	s.text = append(s.text, strings.TrimRight(line, " \t"))
}

// dropComment removes what of a line is inside an HTML comment. A comment that
// is never closed hides the rest of the document, as it does for its readers.
func (s *splitter) dropComment(line string) string {
	var kept strings.Builder
	for line != "" {
		end := "<!--"
		if s.comment {
			end = "-->"
		}
		before, after, found := strings.Cut(line, end)
		if !s.comment {
			kept.WriteString(before)
		}
		if !found {
			break
		}
		s.comment, line = !s.comment, after
	}
	return kept.String()
}

// headingAt gives level and text of a heading, or level 0. It knows both of
// Markdown's forms: # marks, and a line that is underlined.
func (s *splitter) headingAt(line string, rest []string) (int, string) {
	trimmed := strings.TrimSpace(line)
	if s.fence != "" || s.comment || trimmed == "" || indented(line) {
		return 0, ""
	}
	level := len(trimmed) - len(strings.TrimLeft(trimmed, "#"))
	if level > 0 {
		text := trimmed[level:]
		if level > 6 || (text != "" && !strings.HasPrefix(text, " ") && !strings.HasPrefix(text, "\t")) {
			return 0, ""
		}
		return level, plainHeading(strings.TrimRight(strings.TrimSpace(text), "#"))
	}
	if len(rest) == 0 || !s.startsParagraph(trimmed) {
		return 0, ""
	}
	switch underline := strings.TrimRight(rest[0], " \t"); {
	case underline == "":
	case strings.Trim(underline, "=") == "":
		return 1, plainHeading(trimmed)
	case len(underline) > 1 && strings.Trim(underline, "-") == "":
		return 2, plainHeading(trimmed)
	}
	return 0, ""
}

// startsParagraph says whether a line can be a heading that the next line
// underlines: it is plain text after a blank line.
func (s *splitter) startsParagraph(trimmed string) bool {
	blank := len(s.text) == 0 || s.text[len(s.text)-1] == ""
	return blank && !strings.ContainsAny(trimmed[:1], "-*+>|=`~<") && fenceMarker(trimmed) == ""
}

func indented(line string) bool {
	return strings.HasPrefix(line, "    ") || strings.HasPrefix(line, "\t")
}

// plainHeading gives a heading on one line without control characters, short
// enough for a citation.
func plainHeading(s string) string {
	const longest = 120
	plain := []rune(strings.Join(strings.FieldsFunc(s, breaksHeading), " "))
	if len(plain) > longest {
		return string(plain[:longest-1]) + "…"
	}
	return string(plain)
}

func dropFrontMatter(text string) string {
	rest, ok := strings.CutPrefix(text, "---\n")
	if !ok {
		return text
	}
	if _, after, ok := strings.Cut("\n"+rest, "\n---\n"); ok {
		return after
	}
	return text
}
