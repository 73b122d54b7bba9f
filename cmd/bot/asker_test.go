package main

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTheFirstSecretStays: whoever makes it later, or at the same time, gets the
// one that is there, and nothing is left beside it.
func TestTheFirstSecretStays(t *testing.T) {
	path := filepath.Join(t.TempDir(), askerKeyFile)
	require.NoError(t, makeAskerKey(path))
	first, err := readAskerKey(path)
	require.NoError(t, err)
	require.Len(t, first.Reveal(), 2*askerKeyBytes)
	require.NoError(t, makeAskerKey(path))

	var group sync.WaitGroup
	got := make([]string, 16)
	for i := range got {
		group.Go(func() {
			if key, err := askerKey(path); err == nil {
				got[i] = key.Reveal()
			}
		})
	}
	group.Wait()
	for _, key := range got {
		require.Equal(t, first.Reveal(), key)
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, entries, 1)
}
