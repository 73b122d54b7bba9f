package docs

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxWord is the longest word in bytes; longer ones are cut.
const maxWord = 64

// stopWords say nothing about what is asked. They are written without
// apostrophes, as words gives them.
const stopWords = " a about actually after again all already also always am an and any anybody anyone anything are arent as at be " +
	"because been before being but by can cannot cant come could couldnt currently did didnt do does doesnt doing " +
	"done dont during each either else even ever every everything exactly exist exists find fit for from get gets " +
	"getting give go going gonna good got had happen happened happening happens has have havent having he hello her " +
	"here hey hi him his how however hows i id if ill im in inside instead into is isnt it its itself ive just " +
	"kindly know let lets like look lot made make makes many may maybe me mean might more most much must my myself " +
	"need needs never no not now of off often oh ok okay on once one only or other our ours out over own please " +
	"possible quite really right same say says see shall she should show since so some somebody someone something " +
	"sometimes soon sort still such supposed sure tell than thank thanks that thats the their them then there theres " +
	"these they thing things this those though through to too under until up upon us use used uses using usually " +
	"very want wants was way we well were what whats when where wheres whether which while who whom whos whose why " +
	"will with within without wont work working works would wouldnt yes yet you your yours "

// terms gives the stems of the words of a text that say something, in the order
// of the text.
func terms(text string) []string {
	var found []string
	for _, w := range words(text) {
		if !strings.Contains(stopWords, " "+w+" ") {
			found = append(found, same(stem(w)))
		}
	}
	return found
}

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
	for _, r := range text {
		switch {
		case r == '\'' || r == '’' || unicode.Is(unicode.M, r):
		case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana):
			flush()
			found = append(found, string(r))
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			flush()
		default:
			if lower := unicode.ToLower(r); b.Len()+utf8.RuneLen(lower) <= maxWord {
				b.WriteRune(lower)
			}
		}
	}
	flush()
	return found
}
