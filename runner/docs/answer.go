package docs

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	shown   = 3   // passages of an answer
	near    = 0.9 // of the best score: what a further passage must reach
	excerpt = 900 // characters of a passage
)

// The exit codes of Main.
const (
	exitFine = iota
	exitFailed
	exitUsage
)

// Main is the runner's program: it answers one question and gives an exit code.
// Its arguments are exactly
//
//	--index PATH -- QUESTION
//
// It prints up to three passages, each followed by its citation, or one honest
// sentence where nothing was found. Where it fails it prints no answer at all.
func Main(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if len(args) != 4 || args[0] != "--index" || args[1] == "" || args[2] != "--" {
		fmt.Fprintln(stderr, "usage: --index PATH -- QUESTION")
		return exitUsage
	}
	r, err := search(ctx, args[1], args[3])
	if err != nil {
		fmt.Fprintf(stderr, "docs: %v\n", err)
		return exitFailed
	}
	if _, err := io.WriteString(stdout, answer(r)); err != nil {
		fmt.Fprintf(stderr, "docs: %v\n", err)
		return exitFailed
	}
	return exitFine
}

// answer prints the best passage and those that are nearly as good.
func answer(r result) string {
	var b strings.Builder
	cited := map[string]bool{}
	for _, p := range r.found {
		citation := cite(p)
		if cited[citation] {
			continue
		}
		if len(cited) == shown || p.Score < near*r.found[0].Score {
			break
		}
		cited[citation] = true
		fmt.Fprintf(&b, "%s\n\n— %s\n\n", shorten(p.Text, r.query), citation)
	}
	if b.Len() == 0 {
		return nothing(r)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// cite names where a passage stands.
func cite(p Passage) string {
	if p.Heading == "" {
		return p.File
	}
	return p.File + headingJoin + p.Heading
}

// nothing says that nothing was found, and where it was looked for. Headings
// that come close are named, but not quoted as if they answered.
func nothing(r result) string {
	if r.sets == "" {
		return "I found nothing: there are no documents to search here.\n"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "I found nothing about this in the documents that I may search here (%s). "+
		"I look words up and do not guess; other words may help.\n", r.sets)
	var named []string
	for _, p := range r.near {
		if c := cite(p); len(named) < shown && !slices.Contains(named, c) {
			named = append(named, c)
		}
	}
	if len(named) > 0 {
		fmt.Fprintf(&b, "\nThe nearest headings, which may be about something else:\n\n- %s\n", strings.Join(named, "\n- "))
	}
	return b.String()
}

// unit is a part of a passage that is shown or left out as a whole.
type unit struct {
	text   string
	block  int
	joint  string // what stands between it and the unit before it in its block
	weight float64
	keep   bool
}

// shorten gives the parts of a passage that say most about the question, in
// their own order, in at most excerpt characters. Gaps are marked.
func shorten(text string, q query) string {
	if utf8.RuneCountInString(text) <= excerpt {
		return text
	}
	units := unitsOf(text, q)
	byWeight := make([]int, len(units))
	for i := range byWeight {
		byWeight[i] = i
	}
	slices.SortStableFunc(byWeight, func(a, b int) int {
		return int(1000*units[b].weight) - int(1000*units[a].weight)
	})
	const gap = len("\n\n…\n\n")
	room := excerpt
	for _, i := range byWeight {
		if size := utf8.RuneCountInString(units[i].text) + gap; size <= room {
			units[i].keep = true
			room -= size
		}
	}
	return join(units)
}

// unitsOf cuts a passage into paragraphs, lines of lists and tables, and
// sentences of long paragraphs. A code block that fits is one unit.
func unitsOf(text string, q query) []unit {
	var units []unit
	for n, block := range blocks(text) {
		pieces, joint := piecesOf(block)
		for _, whole := range pieces {
			for _, p := range cut(whole, excerpt/2) {
				units = append(units, unit{text: p, block: n, joint: joint, weight: q.covers(p)})
			}
		}
	}
	return units
}

// piecesOf gives what a block can be cut into, and what joins the pieces again.
func piecesOf(block string) (pieces []string, joint string) {
	switch {
	case fenceMarker(firstLine(block)) != "":
		return []string{block}, "\n"
	case strings.ContainsAny(block[:1], "-*+|>0123456789"):
		return strings.Split(block, "\n"), "\n"
	case utf8.RuneCountInString(block) > excerpt/3:
		return sentences(strings.ReplaceAll(block, "\n", " ")), " "
	}
	return []string{block}, "\n\n"
}

// covers gives the weight of the question's terms in a text.
func (q query) covers(text string) float64 {
	sum := 0.0
	for t := range set(terms(text)) {
		sum += q.weight[t]
	}
	return sum
}

func join(units []unit) string {
	var b strings.Builder
	last := -1
	for i, u := range units {
		if !u.keep {
			continue
		}
		switch {
		case last < 0 && i > 0:
			b.WriteString("…\n\n")
		case last < 0:
		case last != i-1:
			b.WriteString("\n\n…\n\n")
		case units[last].block == u.block:
			b.WriteString(u.joint)
		default:
			b.WriteString("\n\n")
		}
		b.WriteString(u.text)
		last = i
	}
	return b.String()
}
