package slack

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestMarkdownBecomesMrkdwn(t *testing.T) {
	for in, want := range map[string]string{
		"**[#1 — T](https://x.example/a_b)**":            "*#1 — T (https://x.example/a_b)*",
		"### H":                                          "*H*",
		"## **bold** heading ##":                         "*bold heading*",
		"- a\n  - b\n* c\n+ d\n1. e":                     "• a\n  • b\n• c\n• d\n1. e",
		"| a | b |\n|--|--|\n| 1 | 2 |\nend":             "```\n| a | b |\n|--|--|\n| 1 | 2 |\n```\nend",
		"a | b\nc":                                       "a | b\nc",
		"```py\nx = '**not bold**'\n```":                 "```\nx = '**not bold**'\n```",
		"~~~\na < b\n~~~":                                "```\na &lt; b\n```",
		"````\n```\ninner\n```\n````":                    "```\n" + noFence(fence) + "\ninner\n" + noFence(fence) + "\n```",
		"```\nnever closed":                              "```\nnever closed\n```",
		"`a*b*c` and ``x`` and ```y```":                  "`a*b*c` and `x` and `y`",
		"a stray ``` here":                               "a stray " + noFence(fence) + " here",
		"~~s~~":                                          "~s~",
		"2 * 3 * 4":                                      "2 * 3 * 4",
		"2*3*4 and snake_case_name and __init__.py":      "2*3*4 and snake_case_name and __init__.py",
		"*light* **strong** ***both***":                  "_light_ *strong* *_both_*",
		"(*light*), **a *b* c**":                         "(_light_), **a _b_ c**",
		"if a < b && c > d":                              "if a &lt; b &amp;&amp; c &gt; d",
		"<https://evil.example|bank.example>":            "&lt;https://evil.example|bank.example&gt;",
		"already &lt;":                                   "already &amp;lt;",
		"<https://x.example/?a=1&b=2>":                   "https://x.example/?a=1&amp;b=2",
		"[https://bank.example](https://evil.example)":   "https://bank.example (https://evil.example)",
		"[https://x.example](https://x.example)":         "https://x.example",
		"[w](https://en.example/A_(b)_c \"title\")":      "w (https://en.example/A_(b)_c)",
		"[a](docs/x.md) [b](<docs/y.md>) [](z.md) [c]()": "a (docs/x.md) b (docs/y.md) z.md c",
		"![alt](https://x.example/p.png)":                "alt (https://x.example/p.png)",
		"[go](slack://open?x=`1`) tel:1 slack://x":       "go (`slack://open?x='1'`) tel:1 `slack://x`",
		"<mailto:a@b.example> <tel:1>":                   "`mailto:a@b.example` `tel:1`",
		"[`code`](https://x.example)":                    "`code` (https://x.example)",
		"https://x.example/a_b_c*d* **x**":               "https://x.example/a_b_c*d* *x*",
		"> said <!channel>":                              "&gt; said &lt;!channel&gt;",
		"a\x1b[31mb\u202ec\u200bd\x00e\r\nf":             "a[31mbcde\nf",
		"<img src=\"https://x.example/p.png\">":          "&lt;img src=\"https://x.example/p.png\"&gt;",
		"":                                               "",
	} {
		require.Equal(t, want, mrkdwn(in), "%q", in)
	}
}

// pieces are what makes converters and splitters go wrong.
func pieces() *rapid.Generator[string] {
	return rapid.SampledFrom([]string{
		"```", "```go", "~~~", "````", "`", "``", "\n", "\n\n", "**", "*", "~~", "<", ">", "&", "<!channel>", "<@U0OWNER01>", "&lt;", "[a](",
		"https://x.example/", ")", "[", "]", "|", "|--|", "# ", "- ", "> ", "\x00", "\x01", "\x000\x00", "\u200b", "é", "🙂", "slack://x", " ", "word",
		"a long line of words that has no end ", strings.Repeat("x", 70),
	})
}

func markdown(t *rapid.T) string {
	return strings.Join(rapid.SliceOfN(pieces(), 0, 120).Draw(t, "pieces"), "")
}

func TestNothingBecomesAMention(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		got := mrkdwn(markdown(t))
		require.NotContains(t, got, "<")
		require.NotContains(t, got, ">")
		require.NotContains(t, got, "\x00")
		inside := false
		for _, line := range strings.Split(got, "\n") {
			if line == fence {
				inside = !inside
			} else {
				require.NotContains(t, line, fence, "a fence stands alone")
			}
		}
		require.False(t, inside, "every block of code is closed")
		bare := strings.NewReplacer("&amp;", "", "&lt;", "", "&gt;", "").Replace(got)
		require.NotContains(t, bare, "&", "every ampersand is escaped, and no escape is cut")
	})
}

func TestSplitKeepsEveryByteAndEveryFence(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := mrkdwn(markdown(t))
		limit := rapid.IntRange(least, 400).Draw(t, "limit")
		var whole strings.Builder
		for _, p := range split(text, limit) {
			shown := p.String()
			require.LessOrEqual(t, units(shown), limit, "%q", shown)
			require.Zero(t, strings.Count(shown, fence)%2, "%q", shown)
			// A person may write what an escape ends with, so only its beginning tells.
			require.NotContains(t, strings.NewReplacer("&amp;", "", "&lt;", "", "&gt;", "").Replace(p.body), "&", "an escape was cut: %q", p.body)
			whole.WriteString(p.body)
		}
		require.Equal(t, text, whole.String())
	})
}

func TestSplitOpensAndClosesBlocks(t *testing.T) {
	text := mrkdwn("**a**\n```go\n" + strings.Repeat("x", 4100) + "\n```\n**b**")
	parts := split(text, textLimit)
	require.Len(t, parts, 2)
	require.True(t, strings.HasPrefix(parts[0].String(), "*a*\n```\nxxx"))
	require.True(t, strings.HasSuffix(parts[0].String(), "xxx\n```"))
	require.True(t, strings.HasPrefix(parts[1].String(), "```\nxxx"))
	require.True(t, strings.HasSuffix(parts[1].String(), "xxx\n```\n*b*"))
	require.Empty(t, split("", textLimit))
}
