package slack

import (
	"regexp"
	"strconv"
	"strings"
	"unicode"
)

// mrkdwn turns an answer in Markdown into Slack's own markup. Code stays as it
// is. The result holds no angle bracket, so no text of a model can become a
// mention, a command or a masked link; guarded by TestNothingBecomesAMention.
func mrkdwn(text string) string {
	c := converter{}
	lines := strings.Split(visible(text), "\n")
	for i := 0; i < len(lines); i++ {
		if n := rows(lines[i:]); c.fence == "" && n > 0 {
			c.table(lines[i : i+n])
			i += n - 1
			continue
		}
		c.line(lines[i])
	}
	if c.fence != "" {
		c.out = append(c.out, fence)
	}
	return strings.Join(c.out, "\n")
}

// fence opens and closes a block of code in Slack; it stands alone on its line.
const fence = "```"

var ticks = regexp.MustCompile("`{3,}")

// noFence makes backticks that would be a fence look like one and be none.
func noFence(s string) string {
	return ticks.ReplaceAllStringFunc(s, func(m string) string { return strings.Join(strings.Split(m, ""), "\u200c") })
}

// visible drops what moves a cursor, hides text or changes its direction.
func visible(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	text = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\u2028", "\n", "\u2029", "\n", "\u0085", "\n").Replace(text)
	return strings.Map(func(r rune) rune {
		joins := r == '\u200c' || r == '\u200d' // scripts and emoji need them
		if r != '\n' && r != '\t' && !joins && unicode.In(r, unicode.Cc, unicode.Cf) {
			return -1
		}
		return r
	}, text)
}

// escape makes the three characters literal that Slack reads as markup.
func escape(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(s)
}

// converter goes through an answer line by line.
type converter struct {
	out   []string
	fence string // what opened the block of code that we are in
}

var (
	fenceLine = regexp.MustCompile("^ {0,3}(`{3,}|~{3,})([^`]*)$")
	heading   = regexp.MustCompile(`^ {0,3}#{1,6}[ \t]+(.*?)[ \t]*#*$`)
	bullet    = regexp.MustCompile(`^([ \t]*)[-*+][ \t]+(.*)$`)
	quote     = regexp.MustCompile(`^ {0,3}>[ \t]?(.*)$`)
)

func (c *converter) line(s string) {
	m := fenceLine.FindStringSubmatch(s)
	switch {
	case c.fence != "" && m != nil && strings.HasPrefix(m[1], c.fence) && strings.TrimSpace(m[2]) == "":
		c.fence = ""
		c.out = append(c.out, fence)
	case c.fence != "":
		c.out = append(c.out, code(s))
	case m != nil:
		c.fence = m[1]
		c.out = append(c.out, fence)
	default:
		c.out = append(c.out, prose(s))
	}
}

// table shows the rows of a table as code, since Slack has no other way that
// keeps its columns apart.
func (c *converter) table(lines []string) {
	c.out = append(c.out, fence)
	for _, row := range lines {
		c.out = append(c.out, code(row))
	}
	c.out = append(c.out, fence)
}

// code is a line inside a block. Three backticks would end the block.
func code(s string) string {
	return escape(noFence(s))
}

var rule = regexp.MustCompile(`^[ \t]*\|?[ \t]*:?-+:?[ \t]*(\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$`)

// rows says how many lines a table at the beginning of lines has.
func rows(lines []string) int {
	if len(lines) < 2 || !strings.Contains(lines[0], "|") || !strings.Contains(lines[1], "|") || !rule.MatchString(lines[1]) {
		return 0
	}
	n := 2
	for n < len(lines) && strings.Contains(lines[n], "|") && strings.TrimSpace(lines[n]) != "" {
		n++
	}
	return n
}

// prose is a line outside code.
func prose(s string) string {
	line := inline(s)
	if m := heading.FindStringSubmatch(s); m != nil && m[1] != "" {
		line = "*" + inline(strings.ReplaceAll(m[1], "**", "")) + "*"
	} else if m := quote.FindStringSubmatch(s); m != nil {
		line = "&gt; " + inline(m[1])
	} else if m := bullet.FindStringSubmatch(s); m != nil {
		line = m[1] + "• " + inline(m[2])
	}
	return noFence(line)
}

var (
	kept = regexp.MustCompile("```([^`]+)```|``([^`]+)``|`([^`]+)`" + // code
		`|!?\[([^\[\]]*)\]\([ \t]*<?([^()\s<>]*(?:\([^()\s<>]*\)[^()\s<>]*)*)>?(?:[ \t]+(?:"[^"]*"|'[^']*'))?[ \t]*\)` + // links
		`|<([A-Za-z][A-Za-z0-9+.-]*:[^\s<>|]+)>` + // addresses in angle brackets
		"|([A-Za-z][A-Za-z0-9+.-]*://[^\\s*`\"'<>()\\[\\]|]+)") // bare ones
	both   = regexp.MustCompile(`\*\*\*([^\s*](?:[^*]*[^\s*])?)\*\*\*`)
	strong = regexp.MustCompile(`\*\*([^\s*](?:[^*]*[^\s*])?)\*\*`)
	light  = regexp.MustCompile(`(^|[\s(\x01])\*([^\s*](?:[^*]*[^\s*])?)\*([\s).,;:!?\x02]|$)`)
	struck = regexp.MustCompile(`~~([^\s~](?:[^~]*[^\s~])?)~~`)
	slot   = regexp.MustCompile(`\x00([0-9]+)\x00`)
)

// inline converts emphasis and links. Code and addresses are put aside first, so
// that nothing inside them is taken for emphasis. The marks \x00 to \x02 cannot
// be in the text: visible has dropped them.
func inline(s string) string {
	var aside shelf
	s = escape(aside.put(s))
	s = both.ReplaceAllString(s, "\x01_${1}_\x02")
	s = strong.ReplaceAllString(s, "\x01${1}\x02")
	s = light.ReplaceAllString(s, "${1}_${2}_${3}")
	s = struck.ReplaceAllString(s, "~${1}~")
	s = strings.NewReplacer("\x01", "*", "\x02", "*").Replace(s)
	return slot.ReplaceAllStringFunc(s, func(m string) string {
		n, err := strconv.Atoi(strings.Trim(m, "\x00"))
		if err != nil || n >= len(aside) {
			return ""
		}
		return aside[n]
	})
}

// shelf keeps what is ready and must not be changed again.
type shelf []string

func (s *shelf) hold(ready string) string {
	*s = append(*s, ready)
	return "\x00" + strconv.Itoa(len(*s)-1) + "\x00"
}

// put replaces code and addresses in a line by their places on the shelf.
func (s *shelf) put(line string) string {
	return kept.ReplaceAllStringFunc(line, func(m string) string {
		g := kept.FindStringSubmatch(m)
		switch {
		case g == nil:
			return m
		case g[1] != "" || g[2] != "" || g[3] != "":
			return s.hold("`" + escape(g[1]+g[2]+g[3]) + "`")
		case g[6] != "" || g[7] != "":
			return s.hold(shown(g[6] + g[7]))
		case g[5] == "":
			return s.put(g[4])
		case g[4] == "" || g[4] == g[5]:
			return s.hold(shown(g[5]))
		}
		return s.put(g[4]) + " (" + s.hold(shown(g[5])) + ")"
	})
}

var scheme = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*:`)

// shown is the target of a link as a reader sees it. What is not of the web is
// made code, which no client turns into something to press.
func shown(target string) string {
	found := strings.ToLower(scheme.FindString(target))
	if found == "" || found == "https:" || found == "http:" {
		return escape(target)
	}
	return "`" + escape(strings.ReplaceAll(target, "`", "'")) + "`"
}
