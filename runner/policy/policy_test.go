package policy

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestCanonical(t *testing.T) {
	cases := map[string]struct{ in, want []string }{
		"none":           {nil, []string{}},
		"sorted":         {[]string{"/tmp", "/home/agent"}, []string{"/home/agent", "/tmp"}},
		"doubled":        {[]string{"/tmp", "/tmp/", "/x/../tmp", "//tmp"}, []string{"/tmp"}},
		"inside":         {[]string{"/tmp/a/b", "/tmp"}, []string{"/tmp"}},
		"not inside":     {[]string{"/tmp", "/tmpx"}, []string{"/tmp", "/tmpx"}},
		"between":        {[]string{"/tmp/a", "/tmp", "/tmp-2"}, []string{"/tmp", "/tmp-2"}},
		"everything":     {[]string{"/tmp", "/", "/a"}, []string{"/"}},
		"not a root":     {[]string{"", ".", "../x", "tmp"}, []string{}},
		"climbs too far": {[]string{"/../../tmp"}, []string{"/tmp"}},
	}
	for name, c := range cases {
		require.Equal(t, c.want, canonical(c.in), name)
	}
}

func TestCanonicalCoversWhatItWasGivenAndNoMore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := rapid.SliceOf(rapid.StringMatching(`(/[ab.]{1,2}){0,3}/?`)).Draw(t, "paths")
		out := canonical(in)
		require.Equal(t, out, canonical(out))
		require.IsIncreasing(t, append([]string{""}, out...))
		for _, kept := range out {
			found := false
			for _, p := range in {
				clean, ok := cleanPath(p)
				found = found || ok && clean == kept
			}
			require.True(t, found, "%s was never given", kept)
		}
	})
}

func TestSize(t *testing.T) {
	for n, want := range map[int64]string{0: "0 bytes", 1023: "1023 bytes", 1024: "1 KiB", 1 << 20: "1 MiB", 3 << 29: "1536 MiB", 1 << 30: "1 GiB"} {
		require.Equal(t, want, Size(n))
	}
}

func TestTheZeroValuesPermitNothing(t *testing.T) {
	_, err := Narrow(Wish{}, Capabilities{})
	require.Error(t, err)
	require.Equal(t, RungNone, Effective{}.Rung())
	require.Equal(t, ModeNone, Effective{}.Mode())
	require.Equal(t, NetworkNone, Effective{}.Network())
	require.Empty(t, Effective{}.Writable())
	require.Equal(t, "unknown", Mode(99).String())
}
