package entry

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func example() []Step {
	return []Step{
		{Op: Watch},
		{Op: Mount, N: []int64{-1}, S: []string{"tmpfs", "/proc", "tmpfs", "mode=755"}},
		{Op: File, N: []int64{0o600, -1, 1 << 40}, S: []string{"a", "content\x00with a NUL"}},
		{Op: Denied, N: make([]int64, 8), S: []string{"label", ""}},
		{Op: Exec, N: []int64{2}, S: []string{"/agent/x", "x", "y", "A=1"}},
	}
}

func TestStepsSurviveTheWay(t *testing.T) {
	data, ok := Encode(example())
	require.True(t, ok)
	steps, ok := Decode(data)
	require.True(t, ok)
	require.Equal(t, example(), steps)
}

func TestMalformedStepsAreNotEncoded(t *testing.T) {
	for name, s := range map[string]Step{
		"no kind":           {},
		"unknown kind":      {Op: opCount},
		"a number missing":  {Op: Rlimit, N: []int64{1}},
		"a number too many": {Op: Watch, N: []int64{1}},
		"a string missing":  {Op: Mount, N: []int64{1}, S: []string{"a"}},
		"a string too many": {Op: Chdir, S: []string{"a", "b"}},
		"no argv":           {Op: Exec, N: []int64{0}, S: []string{"/x"}},
		"argv that lacks":   {Op: Exec, N: []int64{2}, S: []string{"/x", "x"}},
		"a huge argv":       {Op: Exec, N: []int64{1 << 62}, S: []string{"/x", "x"}},
	} {
		_, ok := Encode([]Step{s})
		require.False(t, ok, name)
	}
}

func TestCutStepsAreRefused(t *testing.T) {
	data, ok := Encode(example())
	require.True(t, ok)
	whole := map[int]bool{len(magic): true} // a list may end after any whole step
	for i := range example() {
		part, _ := Encode(example()[:i+1])
		whole[len(part)] = true
	}
	for n := range data {
		_, ok := Decode(data[:n])
		require.Equal(t, whole[n], ok, "cut at %d", n)
	}
}

func TestEveryKindHasAName(t *testing.T) {
	for op := OpInvalid + 1; op < opCount; op++ {
		require.NotEmpty(t, op.String())
	}
	require.Equal(t, "unknown step", opCount.String())
	require.Equal(t, "mount /proc", example()[1].String())
	require.NotContains(t, example()[2].String(), "content")
}

func FuzzDecode(f *testing.F) {
	data, _ := Encode(example())
	f.Add(data)
	f.Add([]byte(magic))
	f.Add([]byte(magic + "\x01\xff"))
	f.Fuzz(func(t *testing.T, data []byte) {
		steps, ok := Decode(data)
		if !ok {
			return
		}
		for _, s := range steps {
			_ = s.String()
		}
		again, ok := Encode(steps)
		require.True(t, ok)
		require.Equal(t, data, again)
	})
}
