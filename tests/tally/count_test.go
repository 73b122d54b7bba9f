package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const stream = `go vet said hello
identity: uid 0
{"Action":"run","Package":"p/a","Test":"TestOne"}
{"Action":"output","Package":"p/a","Test":"TestOne","Output":"=== RUN   TestOne\n"}
{"Action":"pass","Package":"p/a","Test":"TestOne"}
{"Action":"output","Package":"p/a","Test":"TestTwo","Output":"    a_test.go:7: needs a kernel with wings\n"}
{"Action":"output","Package":"p/a","Test":"TestTwo","Output":"--- SKIP: TestTwo (0.00s)\n"}
{"Action":"skip","Package":"p/a","Test":"TestTwo"}
{"Action":"pass","Package":"p/a","Elapsed":0.5}
{"Action":"skip","Package":"p/without"}
identity: uid 65534
{"Action":"output","Package":"p/a","Test":"TestOne","Output":"    a_test.go:9: broken\n"}
{"Action":"fail","Package":"p/a","Test":"TestOne"}
{"Action":"fail","Package":"p/a"}
{"Action":"output","Package":"p/b","Output":"panic: outside a test\n"}
{"Action":"fail","Package":"p/b"}
{"Action":"output","Package":"p/c","Test":"TestSlow","Output":"panic: test timed out\n"}
{"Action":"fail","Package":"p/c"}
`

func TestCountIsFullAndSaysWhy(t *testing.T) {
	c, out := newCount(), &bytes.Buffer{}
	require.NoError(t, c.read(strings.NewReader(stream), out))
	require.Equal(t, "1 passed, 3 failed, 1 skipped", c.String())
	require.Equal(t, []string{"uid 0 p/a TestTwo: needs a kernel with wings"}, c.skips)
	require.Contains(t, out.String(), "go vet said hello")
	require.Contains(t, out.String(), "broken")
	require.Contains(t, out.String(), "panic: outside a test")
	require.Contains(t, out.String(), "did not end: p/c TestSlow\npanic: test timed out\n")
	require.NotContains(t, out.String(), "=== RUN")
}

func TestFaults(t *testing.T) {
	skip := `{"Action":"skip","Package":"p/a","Test":"TestTwo"}` + "\n"
	pass := `{"Action":"pass","Package":"p/a","Test":"TestOne"}` + "\n"
	cases := map[string]struct {
		stream, allowed string
		want            []string
	}{
		"fine":               {"identity: a\n" + pass + "identity: b\n" + pass, "", nil},
		"an identity is out": {"identity: a\n" + pass, "", []string{"no test ran as b"}},
		"only skips":         {"identity: a\n" + pass + "identity: b\n" + skip, "TestTwo -> why", []string{"no test ran as b"}},
		"skip":               {"identity: a\n" + pass + "identity: b\n" + pass + skip, "TestOther -> why", []string{"skip not allowed: b p/a TestTwo: no reason given"}},
		"other identity":     {"identity: a\n" + pass + "identity: b\n" + pass + skip, "^a .*TestTwo -> why", []string{"skip not allowed: b p/a TestTwo: no reason given"}},
		"allowed skip":       {"identity: a\n" + pass + "identity: b\n" + pass + skip, "# a note\n\n^b .*TestTwo -> why", nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			count := newCount()
			require.NoError(t, count.read(strings.NewReader(c.stream), &bytes.Buffer{}))
			allowed, err := parseAllowed(c.allowed)
			require.NoError(t, err)
			require.Equal(t, c.want, count.faults(allowed, []string{"a", "b"}))
		})
	}
}

func TestAllowedSkipsNeedAReason(t *testing.T) {
	for _, text := range []string{"TestOne", "TestOne -> ", "( -> why"} {
		_, err := parseAllowed(text)
		require.Error(t, err, text)
	}
}

// A case counts with a test that passed, whatever else is about it.
func TestPublicCasesCountWhereTheirTestPassed(t *testing.T) {
	attr := func(test, key, value string) string {
		return `{"Action":"attr","Package":"p","Test":"` + test + `","Key":"` + key + `","Value":"` + value + `"}` + "\n"
	}
	end := func(action, test string) string {
		return `{"Action":"` + action + `","Package":"p","Test":"` + test + `"}` + "\n"
	}
	count := newCount()
	require.NoError(t, count.read(strings.NewReader(
		attr("TestA", "public-case", "A01")+attr("TestA", "public-case", "A02")+end("pass", "TestA")+
			attr("TestB", "public-case", "A04")+end("fail", "TestB")+attr("TestC", "public-case", "A05")+end("skip", "TestC")+
			attr("TestD", "other", "A07")+end("pass", "TestD")+attr("TestE", "public-case", "A08")), &bytes.Buffer{}))
	require.Equal(t, []string{
		"no test passed about the public case A04", "no test passed about the public case A05",
		"no test passed about the public case A07", "no test passed about the public case A08",
	}, count.missing([]string{"A01", "A02", "A04", "A05", "A07", "A08"}))
}
