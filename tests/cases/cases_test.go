package cases

import (
	"bufio"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// declared is one call of Public in a test.
type declared struct{ at, id, source string }

func TestEveryPublicCaseHasATest(t *testing.T) {
	found, faults := declarations(t, os.DirFS(".."))
	require.Empty(t, faults)
	for _, d := range found {
		require.Contains(t, IDs(), d.id, d.at)
		require.NotEmpty(t, d.source, d.at)
	}
	for _, id := range IDs() {
		require.True(t, slices.ContainsFunc(found, func(d declared) bool { return d.id == id }), "no test is about the public case %s", id)
	}
}

const published = "../../../shared/cases/public-cases.jsonl"

func TestTheSourcesAreThoseOfThePublicCases(t *testing.T) {
	file, err := os.Open(published)
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("the public cases are not beside the checkout (../shared/cases/public-cases.jsonl)")
	}
	require.NoError(t, err)
	defer func() { _ = file.Close() }()
	sources, ids := map[string]string{}, []string{}
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var row struct{ ID, Area, Source string }
		require.NoError(t, json.Unmarshal(lines.Bytes(), &row))
		if row.Area == "A" || row.Area == "B" {
			sources[row.ID], ids = row.Source, append(ids, row.ID)
		}
	}
	require.ElementsMatch(t, ids, IDs())
	found, _ := declarations(t, os.DirFS(".."))
	for _, d := range found {
		require.Equal(t, sources[d.id], d.source, "%s: the source of %s", d.at, d.id)
	}
}

// A name that nobody calls is no test, and a word that is put together is not to
// be found.
func TestOnlyWhatATestReachesCounts(t *testing.T) {
	const head = "package x\nimport \"parlour/tests/cases\"\n"
	for text, want := range map[string][]string{
		`func TestX(t *testing.T) { cases.Public("A01", "s").In(t) }`:                                           {"A01"},
		`func TestX(t *testing.T) { t.Run("x", func(t *testing.T) { cases.Public("A01", "s").In(t) }) }`:        {"A01"},
		`func rows() []any { return []any{cases.Public("A01", "s")} }; func TestX(t *testing.T) { _ = rows() }`: {"A01"},
		`var rows = cases.Public("A01", "s"); func more() { _ = rows }; func TestX(t *testing.T) { more() }`:    {"A01"},
		`func rows() any { return cases.Public("A01", "s") }`:                                                   nil,
		`func BenchmarkX(b *testing.B) { cases.Public("A01", "s").In(b) }`:                                      nil,
		`func Testify(t *testing.T) { cases.Public("A01", "s").In(t) }`:                                         nil,
		`// func TestX(t *testing.T) { cases.Public("A01", "s").In(t) }`:                                        nil,
	} {
		found, faults := declarations(t, treeOf(head+text))
		require.Empty(t, faults, text)
		var ids []string
		for _, d := range found {
			ids = append(ids, d.id)
		}
		require.Equal(t, want, ids, text)
	}
	for _, text := range []string{
		`func TestX(t *testing.T) { cases.Public("A"+"01", "s").In(t) }`,
		`func TestX(t *testing.T) { cases.Public("A01", source).In(t) }`,
		`func TestX(t *testing.T) { _ = cases.Public }`,
	} {
		_, faults := declarations(t, treeOf(head+text))
		require.NotEmpty(t, faults, text)
	}
}
