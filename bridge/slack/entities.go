package slack

import (
	"regexp"
	"slices"
	"strings"
)

// entity is what Slack puts between angle brackets. A person's own angle
// brackets come as &lt; and &gt;.
var entity = regexp.MustCompile(`<([^<>\n]*)>`)

// plainText turns Slack's markup of a post into what the person wrote. Mentions
// of the bot are left out.
func plainText(text string, bots []string) string {
	var b strings.Builder
	done := 0
	for _, m := range entity.FindAllStringSubmatchIndex(text, -1) {
		b.WriteString(unescape(text[done:m[0]]))
		b.WriteString(unescape(said(text[m[2]:m[3]], bots)))
		done = m[1]
	}
	b.WriteString(unescape(text[done:]))
	return strings.TrimSpace(b.String())
}

// unescape undoes Slack's escapes, once.
func unescape(s string) string {
	return strings.NewReplacer("&lt;", "<", "&gt;", ">", "&amp;", "&").Replace(s)
}

// said gives what an entity shows to a reader.
func said(inside string, bots []string) string {
	target, label, labelled := strings.Cut(inside, "|")
	if target == "" {
		return "<" + inside + ">"
	}
	switch target[0] {
	case '@':
		if slices.Contains(bots, target[1:]) {
			return ""
		}
		return mark("@", target[1:], label)
	case '#':
		return mark("#", target[1:], label)
	case '!':
		return command(target[1:], label)
	}
	return link(target, label, labelled)
}

func mark(sign, id, label string) string {
	if label != "" {
		return sign + strings.TrimPrefix(label, sign)
	}
	return sign + id
}

func command(target, label string) string {
	if label != "" {
		return label
	}
	name, _, _ := strings.Cut(target, "^")
	return "@" + name
}

// link shows the target of a link, so that a text cannot hide where it leads.
func link(target, label string, labelled bool) string {
	bare := strings.TrimPrefix(strings.TrimPrefix(strings.TrimPrefix(target, "mailto:"), "https://"), "http://")
	switch {
	case labelled && strings.HasPrefix(target, "mailto:") && label == bare:
		return label
	case !labelled || label == "" || label == target:
		return target
	case label == strings.TrimSuffix(bare, "/"):
		return target
	}
	return label + " (" + target + ")"
}

var mention = regexp.MustCompile(`<@([UW][A-Z0-9]+)(?:\|[^<>]*)?>`)

func mentions(text string, ids []string) bool {
	return slices.ContainsFunc(mention.FindAllStringSubmatch(text, -1), func(m []string) bool {
		return slices.Contains(ids, m[1])
	})
}

func mentionsAnyone(text string) bool { return mention.MatchString(text) }
