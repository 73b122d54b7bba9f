package docs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func TestExpressionQuotesEveryTerm(t *testing.T) {
	cases := map[string]struct {
		question string
		count    map[string]int
		want     string
	}{
		"rarest first":        {"tier bird", map[string]int{"tier": 9, "bird": 2}, `"bird" OR "tier"`},
		"unknown left out":    {"tier unicorn", map[string]int{"tier": 9}, `"tier"`},
		"nothing known":       {"unicorn", nil, ""},
		"operators are words": {`NEAR(tier*) AND -"path:x"`, map[string]int{"near": 1, "tier": 1, "path": 1}, `"near" OR "tier" OR "path"`},
		"too many rows":       {"bird tier", map[string]int{"bird": maxRows, "tier": 1}, `"tier"`},
		"one is always asked": {"bird", map[string]int{"bird": 2 * maxRows}, `"bird"`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.want, expression(distinct(c.question, MaxTerms), c.count))
		})
	}
}

func TestRareWordsWeighMore(t *testing.T) {
	require.Greater(t, weigh(1, 100), weigh(2, 100))
	require.Greater(t, weigh(99, 100), weigh(100, 100))
	require.Positive(t, weigh(100, 100))
	require.Greater(t, weigh(0, 100), weigh(1, 100))
}

// hostile are questions that full-text syntax would choke on.
var hostile = [...]string{
	"", " ", "hi", `"`, `""`, "'", "*", "tier*", "^tier", "path:x", "text : tier", "guest-tier", "what is C++?", "(", ")", "(()",
	"NEAR", "NEAR(tier guest, 2)", "AND", "OR", "NOT tier", "tier AND", `{text heading}: tier`, `"tier" "guest`, "+", "-", "--", ";", "\\",
	"'; DROP TABLE passage; --", "SELECT * FROM passage", "%", "_", "\x00", "tier\x00guest", "\xff\xfe", "🦜", "👩‍👩‍👧‍👦 tier", "مرحبا", "東京の鳥",
	"\u202etier", "e\u0301", "İstanbul", "ß ſ ẞ", "\u2028", "?1 :name @x $y",
}

// Guarded by this test and by FuzzSearch: no question is an error.
func TestNoQuestionIsAnError(t *testing.T) {
	t.Parallel()
	index := build(t, small())
	questions := append([]string{
		strings.Repeat("parrots ", 8<<10), strings.Repeat("x", 64<<10), strings.Repeat(`"`, 64<<10), strings.Repeat("*:", 32<<10),
		strings.Repeat("鳥", 21<<10), manyWords(9000),
	}, hostile[:]...)
	for _, q := range questions {
		_, err := Search(context.Background(), index, q)
		require.NoError(t, err, "%.40q", q)
	}
}

func FuzzSearch(f *testing.F) {
	index := build(f, small())
	for _, q := range hostile {
		f.Add(q)
	}
	f.Fuzz(func(t *testing.T, question string) {
		found, err := Search(context.Background(), index, question)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range found {
			if p.Score < floor || p.Score > 1 || filepath.IsAbs(p.File) {
				t.Fatalf("%+v", p)
			}
		}
	})
}

func FuzzExpression(f *testing.F) {
	for _, q := range hostile {
		f.Add(q)
	}
	f.Fuzz(func(t *testing.T, question string) {
		asked := distinct(question, MaxTerms)
		count := map[string]int{}
		for _, term := range asked {
			count[term] = 1
		}
		if len(asked) > MaxTerms {
			t.Fatalf("%d terms", len(asked))
		}
		for part := range strings.SplitSeq(expression(asked, count), " OR ") {
			if inner := strings.Trim(part, `"`); len(asked) > 0 && (part != `"`+inner+`"` || strings.ContainsAny(inner, "\"' *:()\x00") || !utf8.ValidString(inner)) {
				t.Fatalf("%q", part)
			}
		}
	})
}

func TestSearchFindsAndStaysSilent(t *testing.T) {
	t.Parallel()
	index := build(t, small())
	cases := map[string]string{
		"where do PARROTS sleep?":   "handbook/a.md › Where parrots sleep",
		"sleeping parrot":           "handbook/a.md › Where parrots sleep",
		"who holds the key":         "handbook/deep/b.md › Keys",
		"hi":                        "",
		"parrots in quantum optics": "",
		"Markdown":                  "",
	}
	for question, want := range cases {
		found, err := Search(context.Background(), index, question)
		require.NoError(t, err)
		if want == "" {
			require.Empty(t, found, question)
			continue
		}
		require.Equal(t, want, cite(found[0]), question)
	}
}

func TestSearchNeedsNothingWritable(t *testing.T) {
	t.Parallel()
	index := build(t, small())
	require.NoError(t, os.Chmod(index, 0o444))
	dir := filepath.Dir(index)
	require.NoError(t, os.Chmod(dir, 0o555))
	t.Cleanup(func() { _ = os.Chmod(dir, 0o755) })
	before, err := os.ReadFile(index)
	require.NoError(t, err)
	found, err := Search(context.Background(), index, "parrots")
	require.NoError(t, err)
	require.Len(t, found, 1)
	requireOnly(t, dir, filepath.Base(index))
	after, err := os.ReadFile(index)
	require.NoError(t, err)
	require.Equal(t, before, after)
}

func TestSearchFailsWhereTheIndexDoes(t *testing.T) {
	t.Parallel()
	missing := filepath.Join(t.TempDir(), "missing")
	_, err := Search(context.Background(), missing, "parrots")
	require.Error(t, err)
	require.NoFileExists(t, missing)

	garbage := filepath.Join(t.TempDir(), "garbage")
	require.NoError(t, os.WriteFile(garbage, bytes.Repeat([]byte("no index "), 1000), 0o600))
	_, err = Search(context.Background(), garbage, "parrots")
	require.Error(t, err)

	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	_, err = Search(cancelled, build(t, small()), "parrots")
	require.True(t, errors.Is(err, context.Canceled), err)
}

// crowded gives 20,000 passages that share all their words.
func crowded() fstest.MapFS {
	fsys := fstest.MapFS{}
	body := "The " + manyWords(40)
	for f := range 100 {
		var b strings.Builder
		for s := range 200 {
			fmt.Fprintf(&b, "## Section %d\n%s\n\n", s, body)
		}
		fsys[fmt.Sprintf("set/%03d.md", f)] = &fstest.MapFile{Data: []byte(b.String())}
	}
	return fsys
}

// The deadline of Search is the measure: passing it is an error.
func TestWorstCaseStaysWithinTheDeadline(t *testing.T) {
	t.Parallel()
	index := build(t, crowded())
	for name, question := range map[string]string{
		"64 KiB of words that all passages hold": strings.Repeat(manyWords(100), 180)[:64<<10],
		"64 KiB of different words":              manyWords(20_000)[:64<<10],
		"one word that all passages hold":        "w7",
	} {
		_, err := Search(context.Background(), index, question)
		require.NoError(t, err, name)
	}
}

func BenchmarkSearch(b *testing.B) {
	index := build(b, crowded())
	for _, question := range []string{"w7", manyWords(32)} {
		b.Run(fmt.Sprintf("%dwords", len(terms(question))), func(b *testing.B) {
			for b.Loop() {
				_, err := Search(context.Background(), index, question)
				require.NoError(b, err)
			}
		})
	}
}
