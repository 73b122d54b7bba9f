// Package docs answers a question without a model: full-text search over a set
// of Markdown documents, with a citation for everything it prints.
//
// Build and Ensure run outside the sandbox and write an index that is never
// changed afterwards; Ensure builds a damaged one again and deletes outdated
// ones. Search and Main run inside, where the index is mounted
// read-only, and need no writable folder. A question is text and never search
// syntax, so no question is an error. What does not cover a question well
// enough is not shown: the package says that it found nothing and never guesses.
//
// It refuses everything but regular *.md files within its limits, follows no
// symbolic links, starts no process, reads no environment and uses no network.
// A passage is the document's own text and stays untrusted: whoever shows it
// has to screen it.
package docs

import "time"

// The limits of one set of documents. Build refuses what exceeds them.
const (
	MaxFile  = 1 << 20  // bytes of one document
	MaxFiles = 10_000   // documents of a set
	MaxTotal = 64 << 20 // bytes of all documents together
)

// The limits of one search.
const (
	MaxTerms = 32              // distinct words of a question that are looked up
	Deadline = 2 * time.Second // longest time that a search may take
)

// Passage is one part of a document that answers a question.
type Passage struct {
	File    string  // slash-separated, relative to the document set
	Heading string  // path of headings inside the file, joined by " › "; may be empty
	Text    string  // Markdown of the document, untrusted
	Score   float64 // from floor to 1; higher is better
}

// headingJoin stands between the headings of a path, and between file and
// heading in a citation.
const headingJoin = " › "
