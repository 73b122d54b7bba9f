package manifests

import (
	"strings"
)

// mostGuessed is the longest word that is compared with the known ones.
const mostGuessed = 40

// suggest gives `"word"` for the known word that was probably meant, or nothing.
func suggest(got string, known []string) string {
	if len(got) > mostGuessed {
		return ""
	}
	plain := strings.ToLower(strings.TrimSpace(got))
	best, least := "", 3
	for _, k := range known {
		if d := distance(plain, k); d < least && d*2 < max(len(k), 2) {
			best, least = k, d
		}
	}
	return best
}

// distance counts the single-letter edits, swaps of neighbours included,
// between two short words.
func distance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}

// oneOf says what would be right where one of a few words belongs.
func oneOf(got string, known []string) string {
	all := "one of " + strings.Join(known, ", ")
	if len(known) == 1 {
		all = known[0]
	}
	if guess := suggest(got, known); guess != "" && len(known) > 1 {
		return guess + "? (" + all + ")"
	}
	return all
}
