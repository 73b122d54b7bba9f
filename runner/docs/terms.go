package docs

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxWord is the longest word in bytes; longer ones are cut.
const maxWord = 64

// Words that do not tell one passage from another, without apostrophes, as words
// gives them. Fillers say nothing at all. Asking words say nothing beside a word
// that does, but a question may be made of them alone, such as "who are you".
const (
	fillers = " a about actually after again all already also always am an and any anything as at because been before being but by " +
		"currently during each either else even ever every everything exactly exist exists for from good got had happen " +
		"happened happening happens has have havent having he hello her here hey hi him his if in inside instead into its " +
		"itself just kindly lets like lot many maybe me might more most much must myself never no not now of off often oh ok " +
		"okay on once one only or other our ours out over own please possible quite really right same since so some something " +
		"sometimes soon sort still such supposed sure than thank thanks that thats the their them then there theres these they " +
		"thing things those though through to too under until up upon us very was were while with within without would yes yet " +
		"youd youll your yours youve himself herself themselves gave two three four five six seven eight nine ten "
	asking = " anybody anyone are arent be become can cannot cant come could couldnt did didnt do does doesnt doing done dont find fit " +
		"get gets getting give go going gonna how however i is isnt it know let look made make makes may mean my need needs " +
		"say says see shall she should show somebody someone tell this use used uses using usually want wants way we well " +
		"what whats when where wheres whether which who whom whos whose why will wont work working works wouldnt you "
)

// terms gives the stems of the words of a text that say something, in the order
// of the text.
func terms(text string) []string {
	var found []string
	for _, w := range written(text) {
		flag, isFlag := strings.CutPrefix(w, flagMark)
		switch {
		case isFlag:
			found = append(found, same(stem(flag)))
		case in(fillers, w) || in(asking, w) || strings.HasPrefix(w, shortI) || len(w) == 1 && w > "9":
		default:
			found = append(found, same(stem(w)))
		}
	}
	return found
}

// written gives the words of a text with its short forms written out.
func written(text string) []string {
	short := strings.NewReplacer("'s ", " is ", "’s ", " is ", "'re ", " are ", "’re ", " are ")
	return words(short.Replace(strings.ToLower(text)))
}

// asked gives the different asking words of a text.
func asked(text string) []string {
	var found []string
	for _, w := range written(text) {
		if in(asking, w) && !slices.Contains(found, w) {
			found = append(found, w)
		}
	}
	return found
}

func in(list, word string) bool { return strings.Contains(list, " "+word+" ") }

// distinct gives at most limit different terms of a text, in the order in which
// they first occur.
func distinct(text string, limit int) []string {
	var found []string
	seen := map[string]bool{}
	for _, t := range terms(text) {
		if !seen[t] && len(found) < limit {
			seen[t] = true
			found = append(found, t)
		}
	}
	return found
}

// What words leaves in front of a word: a flag's dashes make a word of what would
// be a filler, as in --as, and an apostrophe tells I'd from id.
const (
	flagMark = "-"
	shortI   = "i'"
)

// words splits a text into lower-case words of letters and digits. Everything
// else separates, but for apostrophes and combining marks, which are dropped.
// A character of a script that is written without spaces is a word of its own.
func words(text string) []string {
	var found []string
	var b strings.Builder
	flush := func() {
		if b.Len() > 0 {
			found = append(found, b.String())
			b.Reset()
		}
	}
	dashes := 0 // directly before, and not after a word
	for _, r := range text {
		glued := b.Len() > 0
		switch {
		case (r == '\'' || r == '’') && b.String() == shortI[:1]:
			b.WriteString(shortI[1:])
		case r == '\'' || r == '’' || unicode.Is(unicode.M, r):
		case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana):
			flush()
			found = append(found, string(r))
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			flush()
		default:
			if b.Len() == 0 && dashes > 1 {
				b.WriteString(flagMark)
			}
			if lower := unicode.ToLower(r); b.Len()+utf8.RuneLen(lower) <= maxWord {
				b.WriteRune(lower)
			}
		}
		switch {
		case r != '-':
			dashes = 0
		case glued:
			dashes = -1
		default:
			dashes++
		}
	}
	flush()
	return found
}
