package docs

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestStem(t *testing.T) {
	// Porter's own examples and words of everyday questions.
	cases := map[string]string{
		"caresses": "caress", "ponies": "poni", "cats": "cat", "feed": "feed", "agreed": "agre", "plastered": "plaster",
		"motoring": "motor", "sing": "sing", "conflated": "conflat", "troubled": "troubl", "sized": "size", "hopping": "hop",
		"falling": "fall", "filing": "file", "happy": "happi", "sky": "sky", "relational": "relat", "conditional": "condit",
		"digitizer": "digit", "operator": "oper", "feudalism": "feudal", "hopefulness": "hope", "formative": "form",
		"electrical": "electr", "goodness": "good", "revival": "reviv", "allowance": "allow", "adjustment": "adjust",
		"adoption": "adopt", "bowdlerize": "bowdler", "probate": "probat", "rate": "rate", "cease": "ceas",
		"controlling": "control", "roll": "roll", "editing": "edit", "answers": "answer", "manifests": "manifest",
		"ids": "id", "is": "is", "straße": "straße", "0x7f": "0x7f", "": "",
	}
	for word, want := range cases {
		require.Equal(t, want, stem(word), word)
	}
	require.NotPanics(t, func() { stem(strings.Repeat("y", maxWord)) })
}

func TestTerms(t *testing.T) {
	cases := map[string]struct {
		text string
		want []string
	}{
		"plural and case":    {"MANIFESTS, manifests!", []string{"manifest", "manifest"}},
		"only stop words":    {"hi, could you please tell me what this is?", nil},
		"operators":          {`tier AND NEAR(a, b) OR "x" * ^y -z`, []string{"tier", "near"}},
		"hyphen and column":  {"guest-tier path:x", []string{"guest", "tier", "path"}},
		"single letters":     {"what is C++? And C#? Press Ctrl-C, exit 3", []string{"press", "ctrl", "exit", "3"}},
		"apostrophes":        {"the operator's, don’t", []string{"oper"}},
		"I'd is no id":       {"I'd like my user id, I’ve lost it", []string{"user", "id", "lost"}},
		"flags":              {"use --as, --job or as --prompt-file --, not -as", []string{"as", "job", "prompt", "file"}},
		"file name":          {"config.yaml", []string{"configur", "yaml"}},
		"other scripts":      {"Öffnungszeiten Москва", []string{"öffnungszeiten", "москва"}},
		"no spaces":          {"東京の", []string{"東", "京", "の"}},
		"combining mark":     {"cafe\u0301", []string{"cafe"}},
		"emoji":              {"🦜🦜 tier", []string{"tier"}},
		"not UTF-8":          {"\xff\xfetier\x00", []string{"tier"}},
		"nothing":            {"", nil},
		"control characters": {"\x1b[31mtier", []string{"31mtier"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, terms(c.text)) })
	}
}

func TestAskedWords(t *testing.T) {
	cases := map[string][]string{
		"Who are YOU?": {"who", "are", "you"}, "who's this": {"who", "is", "this"}, "what’re you you": {"what", "are", "you"},
		"please, the sandbox": nil, "": nil, "who--are": {"who", "are"},
	}
	for text, want := range cases {
		require.Equal(t, want, asked(text), text)
	}
}

func TestWordsAreCutAndNeverLost(t *testing.T) {
	long := words(strings.Repeat("ö", 1000))
	require.Equal(t, []string{strings.Repeat("ö", maxWord/2)}, long)
	require.Len(t, distinct(manyWords(1000), MaxTerms), MaxTerms)
	require.Equal(t, []string{"tier", "guest"}, distinct("tier guest tiers guests", MaxTerms))
}

// manyWords gives n different words that stem to different terms.
func manyWords(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString("w")
		for d := i; ; d /= 10 {
			b.WriteByte(byte('0' + d%10))
			if d < 10 {
				break
			}
		}
		b.WriteByte(' ')
	}
	return b.String()
}
