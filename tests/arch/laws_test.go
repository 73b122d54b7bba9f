// Package arch_test keeps the laws of the source tree: who may import whom,
// which calls live where, what a file, a function and a page of the docs must
// hold. Every law comes with samples that break it, so none can pass by
// checking nothing. It does not judge behaviour: the other folders of tests do.
package arch_test

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// law is one rule about the tree.
type law struct {
	name  string
	check func(*tree) []string // one "file:line: what is wrong" for each breach
	bad   []sample             // each breaks the law
	good  []sample             // each keeps it, though it looks close
}

func laws() []law {
	return slices.Concat(importLaws(), callLaws(), stateLaws(), sizeLaws(), commentLaws(), testLaws(), paperLaws())
}

var repository = sync.OnceValues(func() (*tree, error) { return readTree("../..") })

func TestTheTreeKeepsItsLaws(t *testing.T) {
	tree, err := repository()
	require.NoError(t, err)
	require.Greater(t, len(tree.product()), 10, "the tree was not found")
	for _, l := range laws() {
		t.Run(l.name, func(t *testing.T) {
			found := l.check(tree)
			require.Zero(t, len(found), "\n%s", strings.Join(found, "\n"))
		})
	}
}

func TestEveryLawCanFail(t *testing.T) {
	for _, l := range laws() {
		t.Run(l.name, func(t *testing.T) {
			require.NotEmpty(t, l.bad, "a law needs a sample that breaks it")
			for i, s := range l.bad {
				require.NotEmpty(t, l.check(parsed(t, s)), "bad sample %d passed:\n%v", i, s)
			}
			for i, s := range l.good {
				require.Empty(t, l.check(parsed(t, s)), "good sample %d failed", i)
			}
		})
	}
}

// parsed grows a sample whose Go files all parse, but where the sample is
// about files that do not.
func parsed(t *testing.T, s sample) *tree {
	t.Helper()
	tree := grow(s)
	if _, broken := s["broken.go"]; !broken {
		require.Empty(t, tree.broken)
	}
	return tree
}

func code(path, text string) sample { return sample{path: text} }
