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

// tally is how many questions a set has, and how many of them were answered
// rightly, apart for those that the handbook answers and those that it does not.
type tally struct{ answerable, found, other, silent int }

// score asks every question of a set and logs those that went wrong.
func score(t *testing.T, name string) (all tally) {
	t.Helper()
	index, err := docs.Ensure(context.Background(), handbook.Handbook(), t.TempDir())
	require.NoError(t, err)
	for _, a := range readAsked(t, name) {
		require.NotEmpty(t, a.want, a.question)
		got := firstCitation(t, index, a.question)
		right := 0
		if slices.Contains(a.want, got) {
			right = 1
		} else {
			t.Logf("%q\n  gives %s\n  wants %s", a.question, got, strings.Join(a.want, " or "))
		}
		if slices.Contains(a.want, nothing) {
			all.other, all.silent = all.other+1, all.silent+right
		} else {
			all.answerable, all.found = all.answerable+1, all.found+right
		}
	}
	t.Logf("%s: %d of %d found, %d of %d rightly not", name, all.found, all.answerable, all.silent, all.other)
	return all
}

func TestHandbookAnswersWhatPeopleAsk(t *testing.T) {
	t.Parallel()
	got := score(t, "handbook.txt")
	require.GreaterOrEqual(t, got.found, 18)
	require.GreaterOrEqual(t, got.silent, 9)
}

func TestHandbookAnswersWhatNewcomersAsked(t *testing.T) {
	t.Parallel()
	got := score(t, "handbook-asked.txt")
	require.GreaterOrEqual(t, 100*got.found, 80*got.answerable)
	require.GreaterOrEqual(t, 100*got.silent, 80*got.other)
}

// TestHandbookUnseenQuestions is an honest measure and a guard against a fall,
// not a promise: without a model, a question in other words than the handbook's
// often finds nothing. What must hold is that it then says so.
func TestHandbookUnseenQuestions(t *testing.T) {
	t.Parallel()
	got := score(t, "handbook-unseen.txt")
	require.GreaterOrEqual(t, got.found, 12)
	require.GreaterOrEqual(t, got.silent, 8)
}

// A heading that was renamed must not make a question unanswerable in silence.
func TestHandbookQuestionsNameHeadingsThatExist(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"handbook.txt", "handbook-asked.txt", "handbook-unseen.txt"} {
		for _, a := range readAsked(t, name) {
			for _, want := range a.want {
				file, heading, cited := strings.Cut(want, " › ")
				if !cited {
					require.Equal(t, nothing, want, a.question)
					continue
				}
				text, err := fs.ReadFile(handbook.Handbook(), file)
				require.NoError(t, err, a.question)
				require.Contains(t, string(text), "\n## "+heading+"\n", a.question)
			}
		}
	}
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
