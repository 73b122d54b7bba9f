package house

import "regexp"

// Unhashed leaves out of a text with which hash what waits is consented to.
func Unhashed(text string) string {
	return regexp.MustCompile(`bot( --[a-z]+ \S+)* accept-gains [0-9a-f]{16}`).ReplaceAllString(text, "bot accept-gains")
}
