//go:build linux && (amd64 || arm64)

package sandbox

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBubblewrapOfOthersIsNotUsed(t *testing.T) {
	const first, second = "/usr/bin/bwrap", "/opt/b/bwrap"
	folder, program := owned{0, os.ModeDir | 0o755}, owned{0, 0o755}
	for name, c := range map[string]struct {
		change map[string]owned
		found  string
		why    string
	}{
		"both":                 {nil, first, ""},
		"set-user-id":          {map[string]owned{first: {0, os.ModeSetuid | 0o755}}, first, ""},
		"another's program":    {map[string]owned{first: {1000, 0o755}}, second, ""},
		"writable for a group": {map[string]owned{first: {0, 0o775}}, second, ""},
		"writable for all":     {map[string]owned{first: {0, 0o757}}, second, ""},
		"a folder":             {map[string]owned{first: folder}, second, ""},
		"another's folder":     {map[string]owned{"/usr/bin": {1000, os.ModeDir | 0o755}}, second, ""},
		"an open folder":       {map[string]owned{"/usr": {0, os.ModeDir | 0o777}}, second, ""},
		"an open root":         {map[string]owned{"/": {0, os.ModeDir | 0o777}}, "", "/ can be changed by others than root"},
		"only the second":      {map[string]owned{first: {}}, second, ""},
		"neither":              {map[string]owned{first: {}, second: {}}, "", "bubblewrap is not installed"},
	} {
		files := map[string]owned{first: program, second: program, "/": folder, "/usr": folder, "/usr/bin": folder, "/opt": folder, "/opt/b": folder}
		missing := map[string]bool{}
		for p, o := range c.change {
			files[p], missing[p] = o, o == owned{}
		}
		found, why := findMaker([]string{first, second}, func(p string) (owned, error) {
			if o, ok := files[p]; ok && !missing[p] {
				return o, nil
			}
			return owned{}, os.ErrNotExist
		})
		require.Equal(t, c.found, found, name)
		require.Equal(t, c.why, why, name)
	}
}
