// Package journeys tells stories of people who use Parlour, and checks that they
// end as they should. It uses what people use: the program's own ways in, never
// the inside of a package.
package journeys

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	handbook "parlour/docs"
	"parlour/manifests"
	"parlour/runner/docs"
	"parlour/tiers"
)

const nothing = "nothing"

// asked is one question with the citations that are right for it.
type asked struct {
	question string
	want     []string
}

// readAsked reads the form that testdata/handbook.txt describes.
func readAsked(t *testing.T, name string) []asked {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	require.NoError(t, err)
	var all []asked
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		want, isWant := strings.CutPrefix(line, "-> ")
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case isWant:
			require.NotEmpty(t, all, "an answer without a question")
			all[len(all)-1].want = append(all[len(all)-1].want, want)
		default:
			all = append(all, asked{question: line})
		}
	}
	return all
}

// firstCitation asks the runner as the bot does and gives the citation of the
// first passage, or nothing.
func firstCitation(t *testing.T, index, question string) string {
	t.Helper()
	var out, errs bytes.Buffer
	code := docs.Main(context.Background(), []string{"--index", index, "--", question}, &out, &errs)
	require.Zero(t, code, errs.String())
	require.Empty(t, errs.String())
	for line := range strings.Lines(out.String()) {
		if citation, ok := strings.CutPrefix(line, "— "); ok {
			return strings.TrimSuffix(citation, "\n")
		}
	}
	require.Contains(t, out.String(), "I found nothing")
	return nothing
}

// score counts the right answers, apart for questions that the handbook answers
// and those that it does not.
func score(t *testing.T, name string) (found, silent int) {
	t.Helper()
	index, err := docs.Ensure(context.Background(), handbook.Handbook(), t.TempDir())
	require.NoError(t, err)
	for _, a := range readAsked(t, name) {
		require.NotEmpty(t, a.want, a.question)
		got := firstCitation(t, index, a.question)
		switch {
		case !slices.Contains(a.want, got):
			t.Logf("%q\n  gives %s\n  wants %s", a.question, got, strings.Join(a.want, " or "))
		case got == nothing:
			silent++
		default:
			found++
		}
	}
	return found, silent
}

func TestHandbookAnswersWhatPeopleAsk(t *testing.T) {
	t.Parallel()
	found, silent := score(t, "handbook.txt")
	t.Logf("%d of 20 found, %d of 10 rightly not", found, silent)
	require.GreaterOrEqual(t, found, 18)
	require.GreaterOrEqual(t, silent, 9)
}

// TestHandbookUnseenQuestions is an honest measure and a guard against a fall,
// not a promise: without a model, a question in other words than the handbook's
// often finds nothing. What must hold is that it then says so.
func TestHandbookUnseenQuestions(t *testing.T) {
	t.Parallel()
	found, silent := score(t, "handbook-unseen.txt")
	t.Logf("%d of 14 found, %d of 6 rightly not", found, silent)
	require.GreaterOrEqual(t, found, 5)
	require.GreaterOrEqual(t, silent, 5)
}

// An operator copies the handbook's guest manifest and finds that it loads.
func TestHandbookGuestManifestLoads(t *testing.T) {
	t.Parallel()
	text, err := fs.ReadFile(handbook.Handbook(), "handbook/manifests.md")
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(text), "```yaml\n")
	require.True(t, found)
	example, _, found := strings.Cut(rest, "```")
	require.True(t, found)

	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "tiers"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "tiers", "guest.yaml"), []byte(example), 0o644))
	set, err := manifests.Load(dir)
	require.NoError(t, err)
	require.Empty(t, set.Warnings)
	require.Equal(t, 1, set.Rules().Count(tiers.Guest))
}
