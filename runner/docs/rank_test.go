package docs

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

// aviary is a set that is large enough for a word to be common in it.
func aviary() fstest.MapFS {
	var b strings.Builder
	for i := range 30 {
		fmt.Fprintf(&b, "## Room %d\nA bird lives here, and a keeper visits at noon.\n\n", i)
	}
	b.WriteString("## Who are you and what can you do\nAn aviary. I hold parrots.\n\n" +
		"## Example\n```yaml\nfeeding: {seeds: daily, water: daily, seeds_per_bird: 4}\n```\n\n" +
		"## Feeding\nSeeds are given daily.\n\n" +
		"## What a cage is not\nNot a cage.\n\n## What is inside a cage\nIn a cage hangs a swing. It is kept clean, and the visitor sees a label.\n\n" +
		"## Where keys hang\nThe key with --as hangs there as well.\n")
	return fstest.MapFS{"set/a.md": {Data: []byte(b.String())}}
}

func TestRanking(t *testing.T) {
	t.Parallel()
	index := build(t, aviary())
	cases := map[string]struct{ question, heading string }{
		"asking words alone find the heading that has them all": {"who are you?", "Who are you and what can you do"},
		"in any order":                               {"What can you do?", "Who are you and what can you do"},
		"short forms are the same":                   {"Who're you", "Who are you and what can you do"},
		"one is missing":                             {"how are you?", ""},
		"too few of them":                            {"are you", ""},
		"code does not win over prose":               {"are seeds given daily when feeding?", "Feeding"},
		"what only code says is not found":           {"how much water?", ""},
		"a heading that is put like the question":    {"what's inside a cage", "What is inside a cage"},
		"a rare word in passing is enough":           {"is there a swing?", "What is inside a cage"},
		"a common word in passing is not":            {"at noon?", ""},
		"a word that is everywhere asks nothing":     {"what about the bird", ""},
		"a flag is a word":                           {"what is --as", "Where keys hang"},
		"the same letters elsewhere are a filler":    {"as", ""},
		"a single letter says nothing":               {"what is C++?", ""},
		"an unknown word outweighs a known one":      {"visiting a museum in Lisbon", ""},
		"what is not in the set is not found at all": {"price of gold", ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			found, err := Search(context.Background(), index, c.question)
			require.NoError(t, err)
			if c.heading == "" {
				require.Empty(t, found)
				return
			}
			require.NotEmpty(t, found)
			require.Equal(t, c.heading, found[0].Heading)
		})
	}
}

// In a set of a few passages nothing is common.
func TestRankingOfASmallSet(t *testing.T) {
	t.Parallel()
	index := build(t, fstest.MapFS{"set/a.md": {Data: []byte("Parrots sleep on branches.\n")}})
	for _, question := range []string{"parrots", "where do they sleep?"} {
		found, err := Search(context.Background(), index, question)
		require.NoError(t, err)
		require.Len(t, found, 1, question)
	}
}
