package attacks_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"parlour/guardrail/secret"
	"parlour/runner/broker"
	"parlour/runner/probe/mock"
)

// forbiddenCalls are calls that no run of these tests may make.
func forbiddenCalls(p broker.Protocol) []mock.Call {
	calls := []mock.Call{{Name: "Bash", Input: `{"command":"CALL"}`}, {Name: "read", Input: `{"a":"CALL"}`}, {Name: "Read ", Input: `{"a":"CALL"}`}, {Name: "", Input: `{"a":"CALL"}`}}
	if p == broker.Anthropic {
		return append(calls, mock.Call{Type: "server_tool_use", Name: "web_search", Input: `{"query":"CALL"}`}, mock.Call{Type: "mcp_tool_use", Name: "Read", Input: `{"a":"CALL"}`})
	}
	return append(calls, mock.Call{Name: "spawn_agent", Namespace: "collaboration", Input: `{"message":"CALL"}`}, mock.Call{Name: "Read", Namespace: "x", Input: `{"a":"CALL"}`},
		mock.Call{Name: "exec", Custom: true, Input: "CALL"}, mock.Call{Type: "web_search_call", Input: `{"q":"CALL"}`}, mock.Call{Type: "local_shell_call", Input: `{"q":"CALL"}`})
}

// TestT18ACallOutsideTheSetIsNotRelayed: it ends the run, is counted, and the
// CLI never sees it, in a stream or whole.
func TestT18ACallOutsideTheSetIsNotRelayed(t *testing.T) {
	forBoth(t, func(t *testing.T, p broker.Protocol) {
		for _, call := range forbiddenCalls(p) {
			for _, stream := range []bool{true, false} {
				gw := newGateway(t, p, grantOf(), mock.New(mock.Turn{Text: "Let me look.", Pieces: 1, Calls: []mock.Call{{Name: "Read", Input: `{"a":1}`}, call}}))
				body := question(p, "")
				if !stream {
					body = strings.Replace(body, `"stream":true`, `"stream":false`, 1)
				}
				got := gw.post(path(p), body)
				require.NotContains(t, got.body, "CALL", "%+v", call)
				require.Contains(t, got.body, "the run was ended")
				require.Equal(t, stream, strings.Contains(got.body, "Let me look."), "what came before was relayed already")
				var violation *broker.ViolationError
				require.ErrorAs(t, gw.end(), &violation)
				require.Equal(t, http.StatusForbidden, gw.post(path(p), body).status, "nothing more is forwarded")
				require.Len(t, gw.model.Requests(), 1)
				result := gw.result()
				require.Equal(t, violation, result.Violation)
				require.Empty(t, result.Answer)
				require.Contains(t, result.Receipt.String(), "tool call "+violation.Tool+" ×1")
			}
		}
	})
}

// TestT18AGrantedCallIsRelayed is the honest path of the one above.
func TestT18AGrantedCallIsRelayed(t *testing.T) {
	forBoth(t, func(t *testing.T, p broker.Protocol) {
		gw := newGateway(t, p, grantOf(), mock.New(
			mock.Turn{Thinking: "hm", Text: "Let me look.", Pieces: 1, Calls: []mock.Call{{Name: "Read", Input: `{"file_path":"/in.txt"}`}}}, mock.Turn{Text: "It says so.", Pieces: 1}))
		first := gw.post(path(p), question(p, ""))
		require.Equal(t, http.StatusOK, first.status)
		require.Contains(t, first.body, `"Read"`)
		require.Contains(t, strings.ReplaceAll(first.body, `\"`, `"`), `file_path`)
		require.Contains(t, gw.post(path(p), question(p, "")).body, "It says so.")
		result := gw.result()
		require.Equal(t, "It says so.", result.Answer)
		require.Equal(t, 2, result.Requests)
		require.Equal(t, broker.Usage{Input: 20, Output: 14}, result.Usage)
		require.Nil(t, result.Violation)
	})
}

// TestT17TheAnswerIsWhatWasRelayed: text and tokens come from the relayed bytes,
// of the last complete answer, in a stream or whole.
func TestT17TheAnswerIsWhatWasRelayed(t *testing.T) {
	forBoth(t, func(t *testing.T, p broker.Protocol) {
		text := "Grüße, 世界 <b>&\u2028 \"x\" " + strings.Repeat("long ", 40_000)
		for _, body := range []string{question(p, ""), strings.Replace(question(p, ""), `"stream":true`, `"stream":false`, 1)} {
			gw := newGateway(t, p, grantOf(), mock.New(mock.Turn{
				Thinking: "not the answer", Text: text, Pieces: 99, Usage: mock.Usage{In: 100, Out: 50, CacheRead: 30},
			}))
			got := gw.post(path(p), body)
			require.Equal(t, http.StatusOK, got.status)
			require.NotContains(t, got.body, "broken off")
			result := gw.result()
			require.Equal(t, text, result.Answer)
			want := broker.Usage{Input: 100, Output: 50, CacheRead: 30}
			if p == broker.OpenAI {
				want.Input = 70 // there the cached ones are part of the input
			}
			require.Equal(t, want, result.Usage)
			require.EqualValues(t, len(got.body), result.Receipt.Received)
			require.EqualValues(t, len(body), result.Receipt.Sent)
		}
	})
}

// TestT17AContinuedAnswerIsWhole: claude asks for the rest of an answer that ran
// out of tokens, and prints only that.
func TestT17AContinuedAnswerIsWhole(t *testing.T) {
	gw := newGateway(t, broker.Anthropic, grantOf(), mock.New(
		mock.Turn{Text: "The first half ", Stop: "max_tokens"}, mock.Turn{Text: "and more ", Stop: "max_tokens"}, mock.Turn{Text: "and the end."}, mock.Turn{Text: "Another."}))
	for range 3 {
		require.Equal(t, http.StatusOK, gw.post("/v1/messages", question(broker.Anthropic, "")).status)
	}
	require.Equal(t, "The first half and more and the end.", gw.session.Result().Answer)
	require.Equal(t, http.StatusOK, gw.post("/v1/messages", question(broker.Anthropic, "")).status)
	require.Equal(t, "Another.", gw.result().Answer)
}

// TestT20NothingOfTheProviderButTheAnswer: account ids in headers, error bodies
// and odd fields of the answer stay outside; gateway.do looks for them in every
// reply of these tests.
func TestT20NothingOfTheProviderButTheAnswer(t *testing.T) {
	forBoth(t, func(t *testing.T, p broker.Protocol) {
		extra := []string{"event: debug\ndata: {\"type\":\"debug\",\"organization\":\"" + mock.Leak + "\"}\n\n", ": " + mock.Leak + "\n\n", "id: " + mock.Leak + "\n\n"}
		for _, turn := range []mock.Turn{
			{Text: "a", Extra: extra}, {Fault: mock.Unauthorized}, {Fault: mock.TooMany}, {Fault: mock.Internal}, {Fault: mock.Rejected},
			{Text: "abcdefgh", Fault: mock.StreamError}, {Text: "abcdefgh", Fault: mock.Broken},
		} {
			gw := newGateway(t, p, grantOf(), mock.New(turn))
			got := gw.post(path(p), question(p, ""))
			for name := range got.header {
				require.Contains(t, []string{"Cache-Control", "Connection", "Content-Length", "Content-Type", "Date", "X-Should-Retry"}, name)
			}
			result := gw.result()
			require.NotContains(t, result.Receipt.String(), mock.Leak)
			if turn.Fault == mock.NoFault {
				require.Equal(t, "a", result.Answer)
				require.Contains(t, result.Receipt.String(), "event debug")
			}
		}
		whole := newGateway(t, p, grantOf(), mock.New(mock.Turn{Text: "a"}))
		require.Equal(t, http.StatusOK, whole.post(path(p), strings.Replace(question(p, ""), `"stream":true`, `"stream":false`, 1)).status)
	})
}

// TestEveryFailureOfTheModelHasItsOutcome: a kind for the runner, a fixed text
// for the CLI, an end for the run, and tokens only where some may be owed.
func TestEveryFailureOfTheModelHasItsOutcome(t *testing.T) {
	forBoth(t, func(t *testing.T, p broker.Protocol) {
		for _, c := range []struct {
			fault  mock.Fault
			kind   broker.FailureKind
			status int // upstream
			shown  int // to the CLI
			owed   bool
		}{
			{mock.Unauthorized, broker.Unauthorized, 401, 403, false},
			{mock.TooMany, broker.RateLimited, 429, 429, false},
			{mock.Internal, broker.ServerError, 500, 500, false},
			{mock.Overloaded, broker.Overloaded, 529, 529, false},
			{mock.Rejected, broker.Rejected, 400, 400, false},
			{mock.Redirect, broker.Redirected, 307, 502, false},
			{mock.Hang, broker.Silent, 0, 504, true},
			{mock.Reset, broker.Reset, 0, 502, true},
			{mock.Silence, broker.Silent, 0, 200, true},
			{mock.Broken, broker.BrokenStream, 0, 200, true},
			{mock.Cut, broker.BrokenStream, 0, 200, true},
			{mock.Compressed, broker.BrokenStream, 0, 502, true},
		} {
			g := grantOf()
			if c.kind == broker.Silent {
				g.Silence = 300 * time.Millisecond
			}
			gw := newGateway(t, p, g, mock.New(mock.Turn{Text: "half of it", Fault: c.fault, RetryAfter: 30 * time.Second, To: "http://127.0.0.1:1/"}))
			got := gw.post(path(p), question(p, ""))
			require.Equal(t, c.shown, got.status, c.kind)
			require.Contains(t, got.body, "the model", c.kind)
			require.Contains(t, got.body, `"error"`, c.kind)
			if c.shown != 200 {
				require.Equal(t, "false", got.header.Get("X-Should-Retry"))
			}
			var failure *broker.Failure
			require.ErrorAs(t, gw.end(), &failure)
			require.Equal(t, http.StatusForbidden, gw.post(path(p), question(p, "")).status, "to try again is the runner's decision")
			require.Len(t, gw.model.Requests(), 1)
			result := gw.result()
			require.Equal(t, failure, result.Failure)
			require.Equal(t, c.kind, failure.Kind)
			require.Equal(t, c.status, failure.Status)
			require.Equal(t, c.fault == mock.TooMany, failure.RetryAfter == 30*time.Second, c.kind)
			require.Empty(t, result.Answer)
			require.Equal(t, c.owed, result.Usage.Output == 4096 && result.Usage.Guessed, "%s: %+v", c.kind, result.Usage)
		}
		dead := openGateway(t, broker.Upstream{Protocol: p, BaseURL: "http://127.0.0.1:1", Key: secret.New(operatorKey)}, grantOf())
		require.Equal(t, http.StatusBadGateway, dead.post(path(p), question(p, "")).status)
		require.Equal(t, broker.Unreachable, dead.result().Failure.Kind)
		require.Zero(t, dead.session.Result().Usage.Total())
	})
}

// TestAnEmptyAnswerIsNoFailure: that it is empty is the runner's to judge.
func TestAnEmptyAnswerIsNoFailure(t *testing.T) {
	forBoth(t, func(t *testing.T, p broker.Protocol) {
		gw := newGateway(t, p, grantOf(), mock.New(mock.Turn{Fault: mock.Empty}))
		require.Equal(t, http.StatusOK, gw.post(path(p), question(p, "")).status)
		result := gw.result()
		require.Empty(t, result.Answer)
		require.Nil(t, result.Failure)
		require.NotEmpty(t, result.Stop)
	})
}

// TestEveryByteOfTheModelIsASignOfLife: also those that are not relayed.
func TestEveryByteOfTheModelIsASignOfLife(t *testing.T) {
	forBoth(t, func(t *testing.T, p broker.Protocol) {
		gw := newGateway(t, p, grantOf(), mock.New(mock.Turn{Thinking: strings.Repeat("think ", 50), Text: "a", Pieces: 40}))
		require.Equal(t, http.StatusOK, gw.post(path(p), question(p, "")).status)
		require.NotEmpty(t, gw.beats)
		refused := newGateway(t, p, grantOf(), mock.New())
		refused.post(path(p), "{}")
		require.Empty(t, refused.beats)
	})
}
