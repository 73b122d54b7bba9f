package docs

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func run(args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = Main(context.Background(), args, &out, &errs)
	return code, out.String(), errs.String()
}

func TestMainAnswersWithCitation(t *testing.T) {
	t.Parallel()
	code, out, errs := run("--index", build(t, small()), "--", "where do parrots sleep?")
	require.Zero(t, code)
	require.Empty(t, errs)
	require.Equal(t, "Parrots sleep on branches.\n\n— handbook/a.md › Where parrots sleep\n", out)
}

func TestMainIsHonestWhereNothingIsFound(t *testing.T) {
	t.Parallel()
	index := build(t, small())
	for _, question := range []string{"hi", "", "what is the capital of France?", "--index", "-- --"} {
		code, out, errs := run("--index", index, "--", question)
		require.Zero(t, code)
		require.Empty(t, errs)
		require.Contains(t, out, "I found nothing about this in the documents that I may search here (handbook).")
		require.NotContains(t, out, "parrots", "a heading that is not even near")
	}
	_, out, _ := run("--index", build(t, fstest.MapFS{}), "--", "parrots")
	require.Equal(t, "I found nothing: there are no documents to search here.\n", out)
}

func TestMainNamesNearHeadingsWithoutQuotingThem(t *testing.T) {
	t.Parallel()
	_, out, _ := run("--index", build(t, small()), "--", "do parrots sleep after quantum optics?")
	require.Contains(t, out, "I found nothing")
	require.NotContains(t, out, "Parrots sleep on branches")
	require.Contains(t, out, "- handbook/a.md › Where parrots sleep\n")
}

func TestMainRefusesOtherArguments(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		nil, {"question"}, {"--index", "x"}, {"--index", "x", "question"}, {"--index", "", "--", "q"}, {"--index", "x", "--"},
		{"--index", "x", "--", "two", "words"}, {"--", "q", "--index", "x"}, {"--file", "x", "--", "q"},
	} {
		code, out, errs := run(args...)
		require.Equal(t, 2, code, args)
		require.Empty(t, out)
		require.Equal(t, 1, strings.Count(errs, "\n"))
	}
}

func TestMainFailsWithOneLine(t *testing.T) {
	t.Parallel()
	code, out, errs := run("--index", filepath.Join(t.TempDir(), "missing"), "--", "q")
	require.Equal(t, 1, code)
	require.Empty(t, out)
	require.Equal(t, 1, strings.Count(errs, "\n"))

	var report bytes.Buffer
	require.Equal(t, 1, Main(context.Background(), []string{"--index", build(t, small()), "--", "parrots"}, closed{}, &report))
	require.Contains(t, report.String(), "closed")
}

type closed struct{}

func (closed) Write([]byte) (int, error) { return 0, errors.New("closed") }

func TestShortenKeepsWhatMatters(t *testing.T) {
	filler := strings.Repeat("Nothing of interest stands in this sentence here. ", 12)
	list := "- " + strings.Repeat("filler ", 20) + "\n"
	cases := map[string]struct{ text, keeps string }{
		"short text":      {"A parrot.", "A parrot."},
		"sentence":        {filler + "The parrot is here. " + filler, "The parrot is here."},
		"paragraph":       {filler + "\n\nThe parrot is\nin this one.\n\n" + filler, "The parrot is\nin this one."},
		"line of a list":  {strings.Repeat(list, 9) + "- a parrot\n" + strings.Repeat(list, 9), "- a parrot"},
		"code":            {filler + "\n\n```sh\nparrot --x\n```\n\n" + filler, "```sh\nparrot --x\n```"},
		"long code":       {"```\n" + strings.Repeat("x\n", 900) + "parrot\n```", "parrot"},
		"long list lines": {strings.Repeat("- "+strings.Repeat("filler ", 160)+"\n", 2) + "- parrot", "- parrot"},
		"nothing short":   {strings.Repeat("- "+strings.Repeat("parrot ", 160)+"\n", 2), "parrot"},
		"without a space": {strings.Repeat("ö", 1500) + " parrot", "parrot"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := shorten(c.text, query{terms: []string{"parrot"}, weight: map[string]float64{"parrot": 3}})
			require.Contains(t, got, c.keeps)
			require.LessOrEqual(t, utf8.RuneCountInString(got), excerpt)
			require.True(t, utf8.ValidString(got))
			require.Zero(t, strings.Count(got, "```")%2, got)
		})
	}
}

func FuzzShorten(f *testing.F) {
	f.Add(strings.Repeat("a parrot. ", 200))
	f.Add("```\n" + strings.Repeat("- x\n", 500))
	f.Add("x" + strings.Repeat(" ", 5000) + "\x01")
	f.Add(strings.Repeat("ö", 900) + "\n\n" + strings.Repeat("1. parrot\n", 90))
	f.Fuzz(func(t *testing.T, text string) {
		q := query{terms: []string{"parrot"}, weight: map[string]float64{"parrot": 3}}
		for _, s := range split(cleanText(text)) {
			got := shorten(s.text, q)
			if got == "" || utf8.RuneCountInString(got) > excerpt || !utf8.ValidString(got) {
				t.Fatalf("%d characters: %q", utf8.RuneCountInString(got), got)
			}
		}
	})
}
