//go:build linux && (amd64 || arm64)

package entry

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// plain are the kinds that need more than calls.
func plain(o Op) bool { return o == Keep || o == Copy }

func TestEveryKindIsCompiled(t *testing.T) {
	for op := OpInvalid + 1; op < opCount; op++ {
		s := Step{Op: op, N: make([]int64, shapes[op].numbers), S: make([]string, shapes[op].strs)}
		before := []Step{{Op: Ruleset, N: []int64{1, 1, 0, 16}}, {Op: Tree, N: []int64{0, 0, 0}, S: []string{"/"}}}
		switch op {
		case Exec:
			s.N, s.S = []int64{1}, []string{"/x", "x"}
		case Seccomp:
			s.S[0] = "12345678"
		}
		p, ok := Compile(nil, append(before, s), Frame{})
		require.Equal(t, !plain(op), ok, op)
		if ok {
			require.Equal(t, len(before), p.owner[len(p.calls)-1], "%s makes no call", op)
		}
	}
}

func TestWhatCannotWorkIsNotCompiled(t *testing.T) {
	for name, steps := range map[string][]Step{
		"a slot that nothing was cloned into": {{Op: Place, N: []int64{3}, S: []string{"x"}}},
		"a slot that is used twice": {
			{Op: Tree, N: []int64{1, 0, 0}, S: []string{"/"}}, {Op: Place, N: []int64{1}, S: []string{"x"}}, {Op: Place, N: []int64{1}, S: []string{"y"}},
		},
		"more slots than there are":    {{Op: Tree, N: []int64{64, 0, 0}, S: []string{"/"}}},
		"a rule without a ruleset":     {{Op: PathRule, N: []int64{1}, S: []string{"/"}}},
		"a restriction without one":    {{Op: Restrict}},
		"a filter of half an order":    {{Op: Seccomp, S: []string{"1234"}}},
		"no filter":                    {{Op: Seccomp, S: []string{""}}},
		"a program without a name":     {{Op: Exec, N: []int64{0}, S: []string{"/x"}}},
		"more arguments than it has":   {{Op: Exec, N: []int64{2}, S: []string{"/x", "x"}}},
		"a kind that nobody knows":     {{Op: opCount}},
		"a step of another shape":      {{Op: Umask}},
		"a child that leaves a keeper": {{Op: Keep}},
	} {
		_, ok := Compile(nil, steps, Frame{})
		require.False(t, ok, name)
	}
}

func TestNoLimitIsRaised(t *testing.T) {
	p, ok := Compile(nil, []Step{{Op: Rlimit, N: []int64{7, 100}}, {Op: Rlimit, N: []int64{6, 100}}}, Frame{Hard: map[int64]uint64{7: 50, 6: 500}})
	require.True(t, ok)
	at := func(c call, word int) byte {
		for _, b := range p.blocks {
			if off := c.args[2] - address(b); off < uintptr(len(b)) {
				return b[int(off)+8*word]
			}
		}
		return 0
	}
	require.EqualValues(t, 50, at(p.calls[0], 0))
	require.EqualValues(t, 50, at(p.calls[0], 1))
	require.EqualValues(t, 100, at(p.calls[1], 1))
}

// FuzzCompile: whatever the steps are, the calls stay inside their memory and
// leave out only calls that exist.
func FuzzCompile(f *testing.F) {
	for _, steps := range [][]Step{
		{{Op: Blank, S: []string{"/proc/cmdline"}}, {Op: Report}},
		{{Op: Tree, N: []int64{0, 7, 1}, S: []string{"/usr"}}, {Op: Place, N: []int64{0}, S: []string{"usr"}}, {Op: Exec, N: []int64{1}, S: []string{"/a", "a", "X=1"}}},
	} {
		data, ok := Encode(steps)
		require.True(f, ok)
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		steps, ok := Decode(data)
		if !ok {
			return
		}
		p, ok := Compile(&Newborn{Stdio: [3]int{5, 6, 7}, Keep: []int{8, 9}, Groups: []int{10}, Session: true, UID: "1 2 1", GID: "1 2 1"}, steps, Frame{Status: 8, Parent: 9})
		if !ok {
			return
		}
		require.Len(t, p.owner, len(p.calls))
		for i, c := range p.calls {
			require.Less(t, i+int(c.skip), len(p.calls)+1)
			for n := range c.args {
				if c.load&(1<<n) != 0 {
					require.True(t, p.holds(c.args[n]), "call %d reads outside", i)
				}
			}
			require.True(t, c.store == 0 || p.holds(c.store), "call %d writes outside", i)
		}
	})
}

// holds says whether a word of 4 bytes at the address is the program's own.
func (p *Program) holds(at uintptr) bool {
	for _, b := range p.blocks {
		if off := at - address(b); at >= address(b) && off+4 <= uintptr(len(b)) {
			return true
		}
	}
	return false
}
