package attacks_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"parlour/runner/broker"
	"parlour/runner/policy"
	"parlour/runner/probe/mock"
)

// TestT26TheWorstCaseIsReserved: tokens are taken before a request leaves, given
// back when the answer says what it used, and kept where it does not.
func TestT26TheWorstCaseIsReserved(t *testing.T) {
	forBoth(t, func(t *testing.T, p broker.Protocol) {
		g := grantOf()
		g.OutputTokens, g.RunTokens = 1000, 2500
		gw := newGateway(t, p, g, mock.New(mock.Turn{Text: "a", Usage: mock.Usage{In: 5, Out: 400}}, mock.Turn{Text: "b", NoUsage: true}))
		asked := func() string {
			last := gw.upstream()[len(gw.upstream())-1]
			_, rest, _ := strings.Cut(last, `_tokens":`)
			number, _, _ := strings.Cut(rest, ",")
			return number
		}
		require.Equal(t, 200, gw.post(path(p), question(p, "")).status)
		require.Equal(t, "1000", asked())
		require.Equal(t, broker.Usage{Input: 5, Output: 400}, gw.session.Result().Usage)
		require.Equal(t, 200, gw.post(path(p), question(p, "")).status)
		require.Equal(t, 1400, gw.session.Result().Usage.Output, "no usage: the reservation is charged")
		require.True(t, gw.session.Result().Usage.Guessed)
		require.Equal(t, 200, gw.post(path(p), question(p, "")).status)
		require.Equal(t, 200, gw.post(path(p), question(p, "")).status)
		require.Equal(t, "100", asked(), "the last one gets what is left")
		require.Equal(t, http.StatusForbidden, gw.post(path(p), question(p, "")).status)
		require.Equal(t, &broker.LimitError{What: "output tokens"}, gw.end())
		require.Equal(t, 2500, gw.result().Usage.Output)
		require.Len(t, gw.model.Requests(), 4)
	})
}

// TestT26ParallelRequestsShareOneBudget: what is in flight counts.
func TestT26ParallelRequestsShareOneBudget(t *testing.T) {
	g := grantOf()
	g.Requests, g.OutputTokens, g.RunTokens = 100, 1000, 3000
	gw := newGateway(t, broker.Anthropic, g, mock.New(mock.Turn{Text: "a", NoUsage: true}))
	var wait sync.WaitGroup
	for range 12 {
		wait.Go(func() { gw.post("/v1/messages", question(broker.Anthropic, "")) })
	}
	wait.Wait()
	require.Len(t, gw.model.Requests(), 3)
	require.Equal(t, 3000, gw.result().Usage.Output)
}

// TestT26EveryLimitEndsTheRun: requests, bytes both ways, connections.
func TestT26EveryLimitEndsTheRun(t *testing.T) {
	for what, c := range map[string]struct {
		edit func(*broker.Grant)
		turn mock.Turn
		asks int
	}{
		"model requests": {func(g *broker.Grant) { g.Requests = 2 }, mock.Turn{Text: "a"}, 3},
		"bytes sent":     {func(g *broker.Grant) { g.Sent = 250 }, mock.Turn{Text: "a"}, 3},
		"bytes received": {func(g *broker.Grant) { g.Received = 64 << 10 }, mock.Long(1 << 20), 1},
	} {
		g := grantOf()
		c.edit(&g)
		gw := newGateway(t, broker.Anthropic, g, mock.New(c.turn))
		for range c.asks {
			gw.post("/v1/messages", question(broker.Anthropic, ""))
		}
		require.Equal(t, &broker.LimitError{What: what}, gw.end())
		result := gw.result()
		require.Equal(t, &broker.LimitError{What: what}, result.Limit)
		require.Contains(t, result.Receipt.String(), what)
		require.LessOrEqual(t, len(gw.model.Requests()), 2, what)
		require.LessOrEqual(t, result.Receipt.Received, int64(64<<10))
	}
	g := grantOf()
	g.Requests = 1
	gw := newGateway(t, broker.OpenAI, g, mock.New())
	for range 100 {
		gw.raw("GET /x HTTP/1.1\r\nHost: " + gw.address + "\r\n\r\n")
	}
	require.Equal(t, &broker.LimitError{What: "connections"}, gw.end())
}

// TestT26AnAnswerOfAMegabyteIsRelayed where the grant allows it.
func TestT26AnAnswerOfAMegabyteIsRelayed(t *testing.T) {
	forBoth(t, func(t *testing.T, p broker.Protocol) {
		gw := newGateway(t, p, grantOf(), mock.New(mock.Long(1<<20)))
		require.Equal(t, http.StatusOK, gw.post(path(p), question(p, "")).status)
		require.Len(t, gw.result().Answer, 1<<20)
	})
}

// TestT26AHungUpCLIStillPays: who hangs up in the middle is charged, and the
// provider is told to stop.
func TestT26AHungUpCLIStillPays(t *testing.T) {
	forBoth(t, func(t *testing.T, p broker.Protocol) {
		gw := newGateway(t, p, grantOf(), mock.New(mock.Turn{Text: "half of it", Fault: mock.Silence}))
		req, err := http.NewRequest(http.MethodPost, "http://"+gw.address+path(p), strings.NewReader(question(p, "")))
		require.NoError(t, err)
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("X-Api-Key", gw.session.Token().Reveal())
		resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
		require.NoError(t, err)
		_, err = resp.Body.Read(make([]byte, 10))
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		result := gw.result()
		require.Equal(t, 4096, result.Usage.Output)
		require.Nil(t, result.Failure, "that was not the provider's fault")
		require.Empty(t, result.Answer)
	})
}

// TestTheGrantComesFromThePolicy: no model, no tools, no limits but the policy's.
func TestTheGrantComesFromThePolicy(t *testing.T) {
	host := policy.Capabilities{Rung: policy.RungFull, Filesystem: policy.Enforced, Network: policy.Enforced, Processes: policy.Enforced}
	wish := policy.Wish{
		Mode: policy.ReadOnly, Network: policy.ModelOnly, Tools: []policy.Tool{policy.Read},
		Limits: policy.Limits{Wall: 1, Stall: 7, Memory: policy.LeastMemory, Disk: 1, Files: 1, Processes: 1, OpenFiles: 1, Answer: 1, ModelRequests: 3, OutputTokens: 50},
	}
	grant := func(edit func(*policy.Wish), tools ...string) (broker.Grant, error) {
		w := wish
		edit(&w)
		e, err := policy.Narrow(w, host)
		require.NoError(t, err)
		return broker.For(e, "m", tools)
	}
	g, err := grant(func(*policy.Wish) {}, "Read")
	require.NoError(t, err)
	require.Equal(t, broker.Grant{Model: "m", Tools: []string{"Read"}, Requests: 3, OutputTokens: 50, Silence: 7}, g)
	_, err = grant(func(w *policy.Wish) { w.Network = policy.NetworkNone }, "Read")
	require.Error(t, err)
	_, err = grant(func(w *policy.Wish) { w.Tools = nil }, "Read")
	require.Error(t, err)
	require.Equal(t, "the run reached its limit of x", fmt.Sprint(&broker.LimitError{What: "x"}))
}
