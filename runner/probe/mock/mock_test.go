package mock

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheScriptIsFollowedAndEverythingIsRecorded(t *testing.T) {
	m := New(Turn{Text: "one"}, Turn{Text: "two"})
	m.At(1, Turn{Text: "other"})
	server := httptest.NewServer(m)
	defer server.Close()
	ask := func(path string) (int, string) {
		resp, err := server.Client().Post(server.URL+path, "application/json", strings.NewReader(`{"stream":false}`))
		require.NoError(t, err)
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		return resp.StatusCode, string(body)
	}
	for i, want := range []string{"one", "other", "two", "two"} {
		status, body := ask([]string{"/v1/messages", "/v1/responses?a=%62"}[i%2])
		require.Equal(t, http.StatusOK, status)
		require.Contains(t, body, want)
	}
	status, _ := ask("/v1/files")
	require.Equal(t, http.StatusNotFound, status)
	require.Equal(t, 4, m.Asked())
	require.Len(t, m.Requests(), 5)
	require.Equal(t, "/v1/responses?a=%62", m.Requests()[1].Target, "as it was written")
	require.Equal(t, `{"stream":false}`, string(m.Requests()[1].Body))
}

func TestPiecesMakeTheWhole(t *testing.T) {
	for _, n := range []int{0, 1, 3, 99} {
		for _, text := range []string{"", "a", "Grüße, 世界", strings.Repeat("ab", 500)} {
			require.Equal(t, text, strings.Join(pieces(text, n), ""))
		}
	}
	require.Len(t, pieces("abcdef", 1), 1)
}
