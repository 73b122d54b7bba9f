package manifests

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// parse reads the one YAML document of a file. It gives nil where there is none
// to read on with; the faults are then in the reader.
func parse(file string, text []byte) (*reader, *yaml.Node) {
	r := &reader{file: file}
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	if !legible(r, text) {
		return r, nil
	}
	r.lines = strings.Split(string(text), "\n")
	if at, deep := tooDeep(r.lines); deep {
		r.report(at, "brackets stand more than 100 deep in each other", "a manifest, which needs five")
		return r, nil
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var doc, second yaml.Node
	err := decoder.Decode(&doc)
	if errors.Is(err, io.EOF) || (err == nil && isNull(root(&doc))) {
		r.report(spot{}, "the file is empty", "a whole manifest, or no file: the shipped one is then used")
		return r, nil
	}
	if err != nil {
		syntax(r, err)
		return r, nil
	}
	if err := decoder.Decode(&second); !errors.Is(err, io.EOF) {
		r.report(secondDocument(r, &second, err), "a second document begins here, and only the first would be read",
			"one document in each file")
	}
	structure(r, root(&doc))
	return r, root(&doc)
}

func root(doc *yaml.Node) *yaml.Node {
	if doc.Kind == yaml.DocumentNode && len(doc.Content) == 1 {
		return doc.Content[0]
	}
	return doc
}

// legible refuses text in which a person and the parser could see different
// things: other encodings, control characters, unusual line ends, and
// characters that turn the direction of writing around.
// Guarded by tests/config, cases text-*.
func legible(r *reader, text []byte) bool {
	if bytes.HasPrefix(text, []byte{0xff, 0xfe}) || bytes.HasPrefix(text, []byte{0xfe, 0xff}) {
		r.report(spot{}, "the file is UTF-16", "UTF-8")
		return false
	}
	line, column := 1, 0
	clean := true
	for rest := text; len(rest) > 0; {
		c, size := utf8.DecodeRune(rest)
		column++
		if c == utf8.RuneError && size == 1 {
			r.report(spot{line, column}, fmt.Sprintf("byte 0x%02X is not UTF-8", rest[0]), "the file saved as UTF-8")
			return false
		}
		if c == '\r' && bytes.HasPrefix(rest, []byte("\r\n")) {
			rest = rest[1:]
			continue
		}
		if forbidden(c) {
			r.report(spot{line, column}, fmt.Sprintf("the character U+%04X cannot be seen or breaks lines", c), "the file without it")
			clean = false
		}
		if c == '\n' {
			line, column = line+1, 0
		}
		rest = rest[size:]
	}
	return clean
}

// tooDeep finds the bracket that nests too deeply. The parser looks at every open
// bracket again for every word, so that a file of them would keep it busy for
// minutes. Brackets in text and comments count too.
// Guarded by tests/config TestTextThatIsNotAManifestEndsInFaults.
func tooDeep(lines []string) (at spot, deep bool) {
	depth := 0
	for i, line := range lines {
		for j, c := range []byte(line) {
			switch c {
			case '[', '{':
				depth++
			case ']', '}':
				depth = max(0, depth-1)
			}
			if depth > 100 {
				return spot{i + 1, utf8.RuneCountInString(line[:j+1])}, true
			}
		}
	}
	return spot{}, false
}

func forbidden(c rune) bool {
	switch {
	case c == '\n' || c == '\t':
		return false
	case c < ' ', c >= 0x7f && c <= 0x9f: // control characters; U+0085 is a line end for YAML
		return true
	case c == 0x2028 || c == 0x2029: // line ends for YAML, not for editors
		return true
	case c >= 0x202a && c <= 0x202e, c >= 0x2066 && c <= 0x2069: // direction of writing
		return true
	}
	return c == 0xfeff || c == 0xfffe || c == 0xffff
}

// syntax reports what the YAML parser said, in the words of the file's author.
func syntax(r *reader, err error) {
	at, said := parserSpot(r.lines, strings.TrimPrefix(err.Error(), "yaml: "))
	for near := max(1, at.line-1); near <= min(at.line+1, len(r.lines)); near++ {
		if column, what := oddBlank(r.lines[near-1]); column > 0 {
			r.report(spot{near, column}, what, "spaces")
			return
		}
	}
	what, right := "not YAML: "+said, "two spaces for each level, and quotes around text that holds : or #"
	for c, words := range map[string]string{"@": "cannot start any token", "`": "cannot start any token", "*": "expected alphabetic"} {
		column := tokenAt(r.lines[at.line-1], c)
		if strings.Contains(said, words) && column > 0 && (at.column == 0 || column < at.column) { // it stumbled over the first
			at.column = column
			what, right = "not YAML: "+c+" cannot start a value", "the value in quotes"
		}
	}
	r.report(at, what, right)
}

// tokenAt gives the column of the first word outside of quotes that begins so.
func tokenAt(line, with string) (column int) {
	quote, before := ' ', ' '
	for i, c := range []rune(line) {
		begins := strings.ContainsRune(" \t[{,", before)
		switch {
		case quote != ' ':
			if c == quote {
				quote = ' '
			}
		case begins && (c == '"' || c == '\''):
			quote = c
		case begins && string(c) == with:
			return i + 1
		}
		before = c
	}
	return 0
}

// parserSpot parts "line 3: what" from the parser, which names no column, and no
// line for the first one and for an alias that has no anchor. What it expected and
// did not find it places one line too high.
// Guarded by tests/config TestFaultsStandWhereAnEditorPutsItsCursor.
func parserSpot(lines []string, said string) (at spot, what string) {
	line := 1
	if after, ok := strings.CutPrefix(said, "line "); ok {
		number, message, _ := strings.Cut(after, ": ")
		if n, err := strconv.Atoi(number); err == nil && n > 0 {
			line, said = n, message
			for _, late := range []string{"key", "node content", "',' or", "'-' indicator", "<document start>"} {
				if strings.HasPrefix(said, "did not find expected "+late) {
					line = n + 1
				}
			}
		}
	}
	line = min(line, len(lines))
	for line > 1 && strings.TrimSpace(lines[line-1]) == "" { // what the file ends with is no line to an editor
		line--
	}
	if after, ok := strings.CutPrefix(said, "unknown anchor '"); ok {
		name, _, _ := strings.Cut(after, "'")
		for i, text := range lines {
			if j := strings.Index(text, "*"+name); j >= 0 {
				return spot{i + 1, utf8.RuneCountInString(text[:j]) + 1}, "the alias " + show("*"+name) + " has no anchor"
			}
		}
		return spot{line: 1}, "an alias has no anchor"
	}
	return spot{line: line}, said
}

// oddBlank finds a tab that indents, or a blank that only looks like a space.
func oddBlank(text string) (column int, what string) {
	indent := text[:len(text)-len(strings.TrimLeft(text, " \t"))]
	if i := strings.IndexByte(indent, '\t'); i >= 0 {
		return i + 1, "a tab indents this line"
	}
	for i, c := range []rune(text) {
		if c > '~' && unicode.IsSpace(c) {
			return i + 1, fmt.Sprintf("the character U+%04X looks like a space and is none", c)
		}
	}
	return 0, ""
}

// secondDocument gives the place where the second document begins. Where the
// parser cannot read it, its marker is looked for.
func secondDocument(r *reader, second *yaml.Node, err error) spot {
	if err == nil {
		return spotOf(second)
	}
	begun, ended := false, false
	for i, line := range r.lines {
		line = strings.TrimRight(line, "\r")
		marker := line == "---" || strings.HasPrefix(line, "--- ") || strings.HasPrefix(line, "---\t")
		content := marker || strings.TrimSpace(line) != "" && !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, "%")
		switch {
		case begun && line == "...":
			ended = true
		case begun && (marker || ended && content):
			return spot{i + 1, 1}
		case content:
			begun = true
		}
	}
	at, _ := parserSpot(r.lines, strings.TrimPrefix(err.Error(), "yaml: "))
	return at
}

// structure reports what a manifest may not be built with: aliases and what
// serves them, tags, keys that are not words, and keys that stand twice. It
// follows no alias, so a bomb of them costs what its text costs.
// Guarded by tests/config TestAliasBombsAreRefusedUnexpanded.
func structure(r *reader, n *yaml.Node) {
	if n.Kind == yaml.AliasNode || n.Anchor != "" {
		r.fault(n, "anchors and aliases (& and *) are not read", "the text written out where it belongs")
	}
	if n.Style&yaml.TaggedStyle != 0 {
		r.fault(n, "the tag "+show(n.Tag)+" is not read", "the value without a tag")
	}
	if n.Kind == yaml.MappingNode {
		keys(r, n)
	}
	for _, child := range n.Content {
		structure(r, child)
	}
}

func keys(r *reader, n *yaml.Node) {
	first := map[string]*yaml.Node{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		switch {
		case key.Kind == yaml.AliasNode: // reported as an alias
		case key.Kind != yaml.ScalarNode:
			r.fault(key, "a key that is not a word", "a plain word before the colon")
		case key.Value == "<<" && key.Tag == "!!merge":
			r.fault(key, "the merge key << is not read", "the keys written out where they belong")
		case first[key.Value] != nil:
			r.fault(key, fmt.Sprintf("the key %s stands here and at %s", show(key.Value), spotOf(first[key.Value])), "the key once")
		default:
			first[key.Value] = key
		}
	}
}

func isNull(n *yaml.Node) bool {
	return n.Kind == 0 || (n.Kind == yaml.ScalarNode && n.Tag == "!!null")
}

// mostFaults is how many faults of one file are told.
const mostFaults = 100

func (r *reader) fault(n *yaml.Node, what, right string) { r.report(spotOf(n), what, right) }

func (r *reader) report(at spot, what, right string) {
	if len(r.faults) == mostFaults {
		what, right = "more faults follow", "the ones above first"
	}
	if len(r.faults) <= mostFaults {
		r.faults = append(r.faults, Fault{r.file, at.line, at.column, what, right})
	}
}

// literal says whether a value stands in the file exactly as it was read, so
// that escapes cannot hide an id from the person who reviews the file.
// Guarded by FuzzLoadTier.
func (r *reader) literal(n *yaml.Node) bool {
	if n.Line < 1 || n.Line > len(r.lines) || n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
		return false
	}
	if r.wideAt != n.Line {
		r.wideAt, r.wide = n.Line, []rune(r.lines[n.Line-1])
	}
	line := r.wide
	if n.Column < 1 || n.Column > len(line) {
		return false
	}
	at := string(line[n.Column-1 : min(len(line), n.Column+len(n.Value))])
	if n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0 {
		at = at[1:]
	}
	return strings.HasPrefix(at, n.Value)
}

func contains(list []string, s string) bool { return slices.Contains(list, s) }
