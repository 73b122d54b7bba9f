package discord

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// plain drops what moves a cursor, hides text or turns its direction. Line
// breaks and tabs stay, and the joiners that scripts and emoji need.
func plain(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	text = strings.ReplaceAll(text, "\r\n", "\n")
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || r == '\u200c' || r == '\u200d':
			return r
		case r == '\r' || r == '\u2028' || r == '\u2029' || r == '\u0085':
			return '\n'
		case unicode.In(r, unicode.Cc, unicode.Cf):
			return -1
		}
		return r
	}, text)
}

// gap is invisible and parts what Discord would read as one.
const gap = "\u200b"

var (
	// live is what Discord turns into a mention, a command, a time, an emoji of a
	// server, or a link of a scheme that is not the web's.
	live = regexp.MustCompile(`<(?i:[@#]|:\w+:\d|a:\w+:\d|t:-?\d|id:\w|sound:\d|/[^>\n:]*:\d|(?:mailto|tel|sms|xmpp):|[a-z][a-z0-9+.-]*:/)`)
	web  = regexp.MustCompile(`^<(?i:https?):/`)
	all  = regexp.MustCompile(`(?i)@(everyone|here)`)
	// masked is the joint of a link whose text is not its target.
	masked = regexp.MustCompile(`\](\([\s<]*[A-Za-z][A-Za-z0-9+.-]*:)`)
	invite = regexp.MustCompile(`(?i)(discord(?:app)?)\.((?:com/(?:invite|gifts|template)|gg|gift|new|me|io|li)\b)`)
)

// defuse makes a text harmless in Discord: nobody is mentioned, a link shows its
// target, an invite is no invite. It works on the whole text and does not depend
// on where code begins and ends, so that no trick with fences can undo it; in
// code the only change that can be seen is that of an invite.
// Guarded by tests/contract TestDiscordAnswersMentionNobodyAndFetchNothing.
func defuse(text string) string {
	text = live.ReplaceAllStringFunc(text, func(found string) string {
		if web.MatchString(found) {
			return found
		}
		return "<" + gap + found[1:]
	})
	text = all.ReplaceAllString(text, "@"+gap+"$1")
	text = invite.ReplaceAllString(text, "$1[.]$2")
	return unmask(text)
}

// unmask parts the text of a link from its target: by a blank, or in code, where
// a blank would change what is copied, by something that is not seen.
func unmask(text string) string {
	var b strings.Builder
	inCode, from := false, 0
	for _, at := range append(fence.FindAllStringIndex(text, -1), []int{len(text), len(text)}) {
		joint := "] $1"
		if inCode {
			joint = "]" + gap + "$1"
		}
		b.WriteString(masked.ReplaceAllString(text[from:at[0]], joint))
		b.WriteString(text[at[0]:at[1]])
		from, inCode = at[1], !inCode
	}
	return b.String()
}

// units counts as Discord's clients do: UTF-16. Its server counts characters,
// which are never more.
func units(s string) int {
	n := 0
	for _, r := range s {
		n += max(utf16.RuneLen(r), 1)
	}
	return n
}

// cutTo gives the longest beginning of at most limit units, and the rest.
func cutTo(s string, limit int) (head, rest string) {
	n := 0
	for i, r := range s {
		if n += max(utf16.RuneLen(r), 1); n > limit {
			return s[:i], s[i:]
		}
	}
	return s, ""
}

// threadName makes a name of a question: its first words, in one line.
func threadName(question string) string {
	name := strings.Join(strings.Fields(defuse(plain(question))), " ")
	const most = 80
	if units(name) > most {
		name, _ = cutTo(name, most-1)
		name += "…"
	}
	if utf8.RuneCountInString(name) == 0 {
		return "Answer"
	}
	return name
}
