package docs

import "strings"

// stem cuts an English word to its stem with Porter's algorithm (1980), so
// that "answers", "answered" and "answering" are one term. The stem is a key
// and need not be a word. Words with other than lower-case ASCII letters, and
// words of fewer than three, are left as they are.
func stem(word string) string {
	if len(word) < 3 || strings.ContainsFunc(word, func(r rune) bool { return r < 'a' || r > 'z' }) {
		return word
	}
	w := plural(word)
	w = pastAndGerund(w)
	if base, ok := strings.CutSuffix(w, "y"); ok && hasVowel(base) {
		w = base + "i"
	}
	w = replace(w, 0, doubleSuffixes)
	w = replace(w, 0, longSuffixes)
	if base, ok := strings.CutSuffix(w, "ion"); ok && (strings.HasSuffix(base, "s") || strings.HasSuffix(base, "t")) {
		if measure(base) > 1 {
			w = base
		}
		return tidy(w)
	}
	return tidy(replace(w, 1, lastSuffixes))
}

// The tables hold "suffix replacement" pairs, longer suffixes first where one
// ends in another.
const (
	doubleSuffixes = "ational ate,tional tion,enci ence,anci ance,izer ize,abli able,alli al,entli ent,eli e,ousli ous," +
		"ization ize,ation ate,ator ate,alism al,iveness ive,fulness ful,ousness ous,aliti al,iviti ive,biliti ble"
	longSuffixes = "icate ic,ative ,alize al,iciti ic,ical ic,ful ,ness "
	lastSuffixes = "al ,ance ,ence ,er ,ic ,able ,ible ,ant ,ement ,ment ,ent ,ou ,ism ,ate ,iti ,ous ,ive ,ize "
)

// replace applies the first suffix of the table that fits, if what is left
// measures more than m.
func replace(w string, m int, table string) string {
	for rule := range strings.SplitSeq(table, ",") {
		suffix, by, _ := strings.Cut(rule, " ")
		base, ok := strings.CutSuffix(w, suffix)
		if !ok {
			continue
		}
		if measure(base) > m {
			return base + by
		}
		return w
	}
	return w
}

func plural(w string) string {
	switch {
	case strings.HasSuffix(w, "sses"), strings.HasSuffix(w, "ies"):
		return w[:len(w)-2]
	case strings.HasSuffix(w, "s") && !strings.HasSuffix(w, "ss"):
		return w[:len(w)-1]
	}
	return w
}

func pastAndGerund(w string) string {
	if base, ok := strings.CutSuffix(w, "eed"); ok {
		if measure(base) > 0 {
			return base + "ee"
		}
		return w
	}
	base, ok := strings.CutSuffix(w, "ed")
	if !ok {
		base, ok = strings.CutSuffix(w, "ing")
	}
	if !ok || !hasVowel(base) {
		return w
	}
	switch {
	case strings.HasSuffix(base, "at"), strings.HasSuffix(base, "bl"), strings.HasSuffix(base, "iz"):
		return base + "e"
	case endsDouble(base) && !strings.ContainsAny(base[len(base)-1:], "lsz"):
		return base[:len(base)-1]
	case measure(base) == 1 && endsShort(base):
		return base + "e"
	}
	return base
}

// tidy drops a final e and halves a final ll.
func tidy(w string) string {
	if base, ok := strings.CutSuffix(w, "e"); ok {
		if m := measure(base); m > 1 || m == 1 && !endsShort(base) {
			w = base
		}
	}
	if strings.HasSuffix(w, "ll") && measure(w[:len(w)-1]) > 1 {
		w = w[:len(w)-1]
	}
	return w
}

// vowel says whether the letter at i is a vowel; y is one after a consonant.
func vowel(w string, i int) bool {
	switch w[i] {
	case 'a', 'e', 'i', 'o', 'u':
		return true
	case 'y':
		return i > 0 && !vowel(w, i-1)
	}
	return false
}

// measure counts the times that a vowel is followed by a consonant.
func measure(w string) int {
	m := 0
	for i := 1; i < len(w); i++ {
		if vowel(w, i-1) && !vowel(w, i) {
			m++
		}
	}
	return m
}

func hasVowel(w string) bool {
	return strings.ContainsAny(w, "aeiou") || strings.LastIndexByte(w, 'y') > 0
}

func endsDouble(w string) bool {
	n := len(w)
	return n > 1 && w[n-1] == w[n-2] && !vowel(w, n-1)
}

// endsShort says whether the word ends consonant, vowel, consonant, and the
// last is not w, x or y.
func endsShort(w string) bool {
	n := len(w)
	return n > 2 && !vowel(w, n-3) && vowel(w, n-2) && !vowel(w, n-1) && !strings.ContainsAny(w[n-1:], "wxy")
}
