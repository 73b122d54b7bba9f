package secret

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

const key = "kT9+vvR/2pQ-Zw_7hunter"

func TestValueNeverPrintsItsContent(t *testing.T) {
	v := New(key)
	var logged strings.Builder
	slog.New(slog.NewTextHandler(&logged, nil)).Info("x", "v", v, "in", struct{ V Value }{v})
	asJSON, err := json.Marshal(map[string]any{"v": v, "p": &v})
	require.NoError(t, err)
	printed := fmt.Sprintf("%v %s %q %x %+v %#v %d %v", v, v, v, v, v, v, v, []Value{v}) + logged.String() + string(asJSON)
	require.NotContains(t, printed, key)
	require.NotContains(t, printed, hex.EncodeToString([]byte(key)))
	require.Equal(t, key, v.Reveal())
}

func TestRedactsEveryEncoding(t *testing.T) {
	r, err := NewRedactor(New(key))
	require.NoError(t, err)
	b64 := base64.StdEncoding.EncodeToString
	forms := map[string]string{
		"raw":              key,
		"base64":           b64([]byte(key)),
		"base64 shifted 1": b64([]byte("a" + key + "tail")),
		"base64 shifted 2": b64([]byte("ab" + key + "tail")),
		"base64 url":       base64.URLEncoding.EncodeToString([]byte(key)),
		"hex":              hex.EncodeToString([]byte(key)),
		"hex upper":        strings.ToUpper(hex.EncodeToString([]byte(key))),
		"url":              percent(key),
		"reversed":         reverse(key),
		"rot13":            rot13(key),
		"spaced":           strings.Join(strings.Split(key, ""), " "),
		"zero width":       strings.Join(strings.Split(key, ""), "\u200b"),
		"cut by a line":    key[:9] + "\n" + key[9:],
		"other case":       strings.ToUpper(key),
		"in a query":       "https://x.example/?q=" + url.QueryEscape(key) + "&z=1",
		"twice":            key + " and " + key,
	}
	for name, form := range forms {
		got, n := r.Redact("before " + form + " after")
		require.Positive(t, n, name)
		require.Contains(t, got, mask, name)
		small, _ := squeeze(got)
		needle, _ := squeeze(key)
		require.NotContains(t, small, needle, name)
	}
	clean := "Nothing to see: 1048693844750901359 \u200b and ordinary words."
	got, n := r.Redact(clean)
	require.Zero(t, n)
	require.Equal(t, clean, got)
}

func TestShapes(t *testing.T) {
	secrets := []string{
		"xoxb-123456789012-abcdefGHIJKL", "xapp-1-A0123456789-9876543210-abcdef", "xoxe.xoxp-1-Mi0yLTEyMzQ1Njc4",
		"MTA0ODY5Mzg0NDc1MDkwMTM1.GabcdE.abcdefghijklmnopqrstuvwxyz01", "sk-ant-api03-abcdefghijklmnop", "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
		"-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----", "-----BEGIN PRIVATE KEY-----\ncut off",
		"https://user:pa55word@host.example/x", "http://:" + url.QueryEscape("p") + "@proxy:3128",
	}
	for _, s := range secrets {
		_, n := Redactor{}.Redact("x " + s + " y")
		require.Equal(t, 1, n, s)
	}
	plain := []string{
		"1048693844750901359", "9fceb02d0ae598e95dc970b74767f19372d61af8", "123e4567-e89b-12d3-a456-426614174000",
		"https://example.org/a:b/c@d", "task-sk-1", "see xoxo-love", "mailto:someone@example.org",
	}
	for _, s := range plain {
		got, n := Redactor{}.Redact(s)
		require.Zero(t, n, s)
		require.Equal(t, s, got)
	}
}

func TestShortValuesAreRefusedWithoutNamingThem(t *testing.T) {
	_, err := NewRedactor(New(""), New("abc"))
	require.ErrorContains(t, err, "secret 2 is shorter than 6 bytes")
	require.NotContains(t, err.Error(), "abc")
}

func TestRedactedTextHoldsNoValue(t *testing.T) {
	r, err := NewRedactor(New(key))
	require.NoError(t, err)
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "before") + key + rapid.String().Draw(t, "after")
		got, n := r.Redact(text)
		require.Positive(t, n)
		require.NotContains(t, got, key)
	})
}
