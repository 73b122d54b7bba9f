package docs

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Ranking. The numbers are about words in general; none belongs to a question
// or a document.
const (
	candidates = 48     // passages that the index hands over for a closer look
	maxRows    = 50_000 // entries of the index that one search may walk
	floor      = 0.40   // least score of a passage that is shown at all
	hint       = 0.30   // least score of a passage whose heading is named where none is shown

	inTitle, inHeading, inText, inCode = 0.5, 2.0, 1.0, 0.1 // weight of a word by where it stands

	half         = 0.35  // weight at which a word counts half
	usualHeading = 3     // words that say something in a heading
	askedWords   = 3     // least number of asking words that make a question of their own
	likeness     = 0.5   // how far a heading that is put like the question brings a score to 1
	halfAlike    = 0.5   // likeness that a heading needs where the question's words stand in most passages
	few, common  = 4, 16 // a word is common that more than few passages hold, and more than one of so many
)

// query is a question as the index sees it.
type query struct {
	terms  []string
	weight map[string]float64 // of each term: the rarer, the heavier
	total  float64            // of all weights
	enough float64            // weight that a passage must cover where its heading covers none
	vague  bool               // its words stand in most passages
	words  map[string]bool    // all words of the question
	match  string             // FTS5 expression: quoted terms and OR
	asked  []string           // its asking words, where it has no terms
}

// Search gives the passages that answer the question, best first. It gives
// nothing where no passage covers the question well enough, and an error only
// where the index cannot be read or the deadline passes: no question is one.
func Search(ctx context.Context, index, question string) ([]Passage, error) {
	r, err := search(ctx, index, question)
	return r.found, err
}

// result is what Main needs of a search.
type result struct {
	sets  string // names of the document sets, as a list
	query query
	found []Passage // best first
	near  []Passage // where nothing was found: passages that come close
}

func search(ctx context.Context, index, question string) (result, error) {
	ctx, cancel := context.WithTimeout(ctx, Deadline)
	defer cancel()
	// Immutable: no lock, no journal and no shared memory are looked for, so
	// a read-only mount without any writable folder is enough.
	db, err := open(index, "mode=ro&immutable=1&_pragma=temp_store(memory)")
	if err != nil {
		return result{}, fmt.Errorf("open index: %w", err)
	}
	defer db.Close()
	var r result
	var passages, length int
	if err := db.QueryRowContext(ctx, "SELECT documents, passages, terms FROM meta").Scan(&r.sets, &passages, &length); err != nil {
		return result{}, fmt.Errorf("read index: %w", err)
	}
	if r.query, err = newQuery(ctx, db, question, passages); err != nil {
		return result{}, fmt.Errorf("look up words: %w", err)
	}
	ranked, err := rank(ctx, db, r.query, float64(length)/float64(max(passages, 1)))
	if err != nil {
		return result{}, fmt.Errorf("search: %w", err)
	}
	if len(ranked) > 0 && ranked[0].Score < floor {
		r.near = ranked
		return r, nil
	}
	below := slices.IndexFunc(ranked, func(p Passage) bool { return p.Score < floor })
	if below < 0 {
		below = len(ranked)
	}
	r.found = ranked[:below]
	return r, nil
}

// newQuery weighs the terms and writes the FTS5 expression. The expression
// takes the rarest terms first and stops before the index would walk more than
// maxRows entries; what is left out still counts when candidates are ranked.
// A word that no document knows weighs a little more than the rarest of others.
func newQuery(ctx context.Context, db *sql.DB, question string, passages int) (query, error) {
	terms := distinct(question, MaxTerms)
	q := query{terms: terms, weight: map[string]float64{}, words: set(written(question)), enough: weigh(max(few, passages/common), passages)}
	if len(terms) == 0 {
		q.ask(question)
		return q, nil
	}
	count := map[string]int{}
	for _, t := range terms {
		n := 0
		err := db.QueryRowContext(ctx, "SELECT passages FROM word WHERE term = ?", t).Scan(&n)
		if err != nil && err != sql.ErrNoRows {
			return query{}, err
		}
		count[t] = n
		q.weight[t] = weigh(n, passages)
		q.total += q.weight[t]
	}
	q.vague = passages >= common && q.total < weigh(passages/2, passages)
	q.match = expression(terms, count)
	return q, nil
}

// ask takes a question that is made of asking words alone, such as "who are
// you?". Only a heading that holds all of them was made for it.
func (q *query) ask(question string) {
	if q.asked = asked(question); len(q.asked) >= askedWords {
		q.match = `asked : ("` + strings.Join(q.asked, `" AND "`) + `")`
	}
}

// weigh gives the inverse document frequency of a term that n of all passages
// hold. It is never zero, so a question of known words has a total.
func weigh(n, all int) float64 {
	hold := max(float64(n), 0.5)
	return math.Log(1 + (max(float64(all)-hold, 0)+0.5)/(hold+0.5))
}

// expression joins the terms with OR, each quoted. Terms hold letters and
// digits only, so a quoted term is one word and no syntax.
func expression(terms []string, count map[string]int) string {
	known := slices.DeleteFunc(slices.Clone(terms), func(t string) bool { return count[t] == 0 })
	slices.SortStableFunc(known, func(a, b string) int { return cmp.Compare(count[a], count[b]) })
	var quoted []string
	rows := 0
	for _, t := range known {
		if rows += count[t]; rows > maxRows && len(quoted) > 0 {
			break
		}
		quoted = append(quoted, `"`+t+`"`)
	}
	return strings.Join(quoted, " OR ")
}

// rank takes the candidates that FTS5's bm25 likes best, scores them, and
// leaves out those that are not even near.
func rank(ctx context.Context, db *sql.DB, q query, average float64) ([]Passage, error) {
	if q.match == "" {
		return nil, nil
	}
	rows, err := db.QueryContext(ctx, `SELECT p.file, p.heading, p.title, p.text
		FROM (SELECT rowid, bm25(search, ?, ?, ?, ?) AS score FROM search WHERE search MATCH ? ORDER BY score, rowid LIMIT ?) AS s
		JOIN passage AS p ON p.id = s.rowid ORDER BY s.score, s.rowid`, inTitle, inHeading, inText, 1, q.match, candidates)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var found []Passage
	for rows.Next() {
		var p Passage
		var title string
		if err := rows.Scan(&p.File, &p.Heading, &title, &p.Text); err != nil {
			return nil, err
		}
		if p.Score = q.score(p, title, average); p.Score >= hint {
			found = append(found, p)
		}
	}
	slices.SortStableFunc(found, func(a, b Passage) int { return cmp.Compare(b.Score, a.Score) })
	return found, rows.Err()
}

// score gives the share of the question, by weight, that a passage covers, and a
// little for a heading that is put like the question. It is at most 1.
func (q query) score(p Passage, title string, average float64) float64 {
	alike := q.alike(p.Heading)
	if len(q.terms) == 0 { // the heading holds the whole question
		return shortness(len(asked(p.Heading)), float64(len(q.asked)))
	}
	occurs := q.occurs(p, title, average)
	sum, known := 0.0, 0.0
	for _, t := range q.terms {
		sum += q.weight[t] * occurs[t] / (occurs[t] + half)
		if occurs[t] > 0 {
			known += q.weight[t]
		}
	}
	// A common word in passing is not what a passage is about, and a word that
	// is everywhere does not make a heading the answer.
	if known < q.enough && q.covers(p.Heading) == 0 || q.vague && alike < halfAlike {
		return 0
	}
	score := sum / q.total
	if score >= floor { // only then: it ranks answers and makes none
		score += likeness * alike * (1 - score)
	}
	return score
}

// occurs gives the terms of a passage. A word counts more the more often it
// occurs and the shorter the passage is, most in a heading and least in code.
func (q query) occurs(p Passage, title string, average float64) map[string]float64 {
	prose, code := proseAndCode(p.Text)
	text, heading := terms(prose), terms(p.Heading)
	occurs := map[string]float64{}
	for _, t := range text {
		occurs[t] += inText * shortness(len(text), average)
	}
	for t := range set(terms(code)) {
		occurs[t] += inCode
	}
	for t := range set(heading) {
		occurs[t] += inHeading * shortness(len(heading), usualHeading)
	}
	for t := range set(terms(title)) {
		occurs[t] += inTitle
	}
	return occurs
}

// alike gives the share of the question's words, little ones too, that stand in
// a heading. Of headings that say the same it tells the one that asks the same.
func (q query) alike(heading string) float64 {
	in := set(written(heading))
	n := 0
	for w := range q.words {
		if in[w] {
			n++
		}
	}
	return float64(n) / float64(max(len(q.words), 1))
}

// proseAndCode takes a passage's code blocks apart from the rest: who asks a
// question wants sentences, and an example holds many words of many questions.
func proseAndCode(text string) (prose, code string) {
	var parts [2][]string
	for _, b := range blocks(text) {
		kind := 0
		if fenceMarker(firstLine(b)) != "" {
			kind = 1
		}
		parts[kind] = append(parts[kind], b)
	}
	return strings.Join(parts[0], "\n\n"), strings.Join(parts[1], "\n\n")
}

// shortness is 1 up to the usual number of words and falls to a half for very
// long texts.
func shortness(words int, usual float64) float64 {
	return 0.5 + 0.5*min(1, usual/float64(max(words, 1)))
}
