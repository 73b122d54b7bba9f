package discord

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// fits checks what every split must keep.
func fits(t require.TestingT, text string, most int) []part {
	parts := split(text, most)
	joined := ""
	for _, p := range parts {
		joined += p.body
		require.LessOrEqual(t, units(p.String()), most)
		require.Zero(t, len(fence.FindAllString(p.String(), -1))%2, "%q", p.String())
		require.True(t, utf8.ValidString(p.String()))
	}
	require.Equal(t, text, joined)
	return parts
}

func TestSplitKeepsTextFencesAndLimit(t *testing.T) {
	piece := rapid.SampledFrom([]string{
		"```", "````", "```py\n", "```\n", "`", "\n", "\n\n", " ", "word", strings.Repeat("x", 70), "é", "\U0001F600", "👩\u200d👩\u200d👧", "e\u0301",
		"~~~", "> ```\n", "\\```", "```" + strings.Repeat("q", 50) + "\n", strings.Repeat("`", 40), "\t",
	})
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(piece, 0, 60).Draw(t, "pieces"), "")
		fits(t, text, rapid.IntRange(60, 300).Draw(t, "limit"))
	})
}

func FuzzSplit(f *testing.F) {
	f.Add("```py\n" + strings.Repeat("print(1)\n", 300) + "```\nend")
	f.Add("````\n```\ninside\n```\n````" + strings.Repeat("z", 3000))
	f.Fuzz(func(t *testing.T, text string) {
		fits(t, defuse(plain(text)), limit)
	})
}

func TestSplitKnownTraps(t *testing.T) {
	code := "Intro\n```py\n" + strings.Repeat(strings.Repeat("c", 29)+"\n", 300) + "```\noutro"
	parts := fits(t, code, limit)
	for _, p := range parts[1 : len(parts)-1] {
		require.True(t, strings.HasPrefix(p.String(), "```py\n"), "the language is repeated")
	}
	long := "```" + strings.Repeat("x", 2500) + "\nbody " + strings.Repeat("y ", 2000) + "\n```"
	for _, p := range fits(t, long, limit)[1:] {
		require.NotContains(t, p.before, "x", "a long language is not")
	}
	for _, text := range []string{
		"", "a", strings.Repeat("`", 5000), strings.Repeat("\n", 3000), strings.Repeat("\U0001F600", 2500), "> ```\n" + strings.Repeat("w ", 3000),
	} {
		fits(t, text, limit)
	}
	require.Equal(t, "👩\u200d👩\u200d👧", fits(t, strings.Repeat("a", 1998)+"👩\u200d👩\u200d👧", limit)[1].body, "a family stays together")
}

func TestDefuseIsDoneOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOf(rapid.SampledFrom([]string{
			"<@1>", "<@!1>", "<#1>", "<", "@", "everyone", "](", "](https://x", "[a", "discord.gg/", "```", "<t:1", "</a:1", ">", " ", "<https://x>",
		})).Draw(t, "pieces"), "")
		once := defuse(plain(text))
		require.Equal(t, once, defuse(once))
		require.NotContains(t, once, "<@1")
		require.NotContains(t, once, "@everyone")
		require.NotContains(t, once, "](https:")
		require.NotContains(t, once, "discord.gg")
		require.NotContains(t, once, "</a:1")
	})
}

func TestThreadNames(t *testing.T) {
	require.Equal(t, "why is it so?", threadName(" why\nis it\tso? "))
	require.Equal(t, 80, units(threadName(strings.Repeat("w", 200))))
	require.Equal(t, "Answer", threadName("\u200b\n"))
}
