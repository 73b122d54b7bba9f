package docs

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func TestSplit(t *testing.T) {
	type want struct{ heading, text string }
	cases := map[string]struct {
		text string
		want []want
	}{
		"title, sections and a path": {
			"# Title\n\nIntro.\n\n## One\nText 1.\n### Deep\nText 2.\n## Two ##\nText 3.",
			[]want{{"Title", "Intro."}, {"One", "Text 1."}, {"One › Deep", "Text 2."}, {"Two", "Text 3."}},
		},
		"no heading":              {"Just text.", []want{{"", "Just text."}}},
		"heading without text":    {"# T\n## Empty\n## Full\nx", []want{{"Full", "x"}}},
		"a second level 1":        {"# T\na\n# U\nb", []want{{"T", "a"}, {"U", "b"}}},
		"levels that skip":        {"# T\n### Deep\na\n## Less\nb", []want{{"Deep", "a"}, {"Less", "b"}}},
		"underlined":              {"T\n===\n\na\n\nSub\n---\nb", []want{{"T", "a"}, {"Sub", "b"}}},
		"rule is no heading":      {"# T\na\n\n---\n\nb", []want{{"T", "a\n\n---\n\nb"}}},
		"hash in code":            {"# T\n```sh\n# comment\n```\nb", []want{{"T", "```sh\n# comment\n```\n\nb"}}},
		"longer fence":            {"# T\n````\n```\n# x\n````", []want{{"T", "````\n```\n# x\n````"}}},
		"fence never closed":      {"# T\n```\n# x", []want{{"T", "```\n# x\n```"}}},
		"hash without space":      {"#tag\n####### seven", []want{{"", "#tag\n####### seven"}}},
		"indented hash":           {"    # code", []want{{"", "    # code"}}},
		"comment":                 {"# T\na <!-- ## hidden\n## more --> b", []want{{"T", "a\n b"}}},
		"comment in code":         {"```\n<!-- x -->\n```", []want{{"", "```\n<!-- x -->\n```"}}},
		"front matter":            {"---\nsecret: 1\n---\n# T\na", []want{{"T", "a"}}},
		"rule at the start":       {"---\nnot closed", []want{{"", "---\nnot closed"}}},
		"heading with odd signs":  {"## a\tb\u202e\x1b c\nx", []want{{"a b c", "x"}}},
		"blank":                   {" \n\n\t\n", nil},
		"table is not underlined": {"| a |\n---\n", []want{{"", "| a |\n---"}}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var got []want
			for _, s := range split(c.text) {
				got = append(got, want{s.heading(), s.text})
			}
			require.Equal(t, c.want, got)
		})
	}
}

func TestLongSectionsAreCut(t *testing.T) {
	cases := map[string]string{
		"paragraphs":      strings.Repeat("A sentence of a paragraph.\n\n", 400),
		"one paragraph":   strings.Repeat("A sentence. ", 1000),
		"one word":        strings.Repeat("ö", 5000),
		"code":            "```go\n" + strings.Repeat("x := 1\n", 1000) + "```",
		"a fence of ages": strings.Repeat("`", 5000) + "\ncode\n" + strings.Repeat("`", 5000),
	}
	for name, text := range cases {
		t.Run(name, func(t *testing.T) {
			sections := split("## H\n" + text)
			require.Greater(t, len(sections), 1)
			for _, s := range sections {
				require.LessOrEqual(t, len(s.text), maxPassage)
				require.True(t, utf8.ValidString(s.text))
				require.Equal(t, "H", s.heading())
				if name == "code" {
					require.Equal(t, 2, strings.Count(s.text, "```"))
				}
			}
		})
	}
}

func FuzzSplit(f *testing.F) {
	f.Add("# T\n\na\n```\n# b\n```\n<!-- c -->\nd\n===\n")
	f.Add("---\n---\n~~~\n\t# x")
	f.Add("\n=")
	f.Add("x" + strings.Repeat(" ", 5000) + "\x01")
	f.Fuzz(func(t *testing.T, text string) {
		text = cleanText(text)
		for _, s := range split(text) {
			if len(s.text) > maxPassage || strings.TrimSpace(s.text) == "" || !utf8.ValidString(s.text) {
				t.Fatalf("passage of %d bytes: %q", len(s.text), s.text)
			}
			if strings.ContainsAny(s.heading(), "\n\r\x00\x1b") || utf8.RuneCountInString(s.heading()) > len(text) {
				t.Fatalf("heading %q", s.heading())
			}
		}
	})
}
