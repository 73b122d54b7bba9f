//go:build linux

package attacks_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"parlour/runner/policy"
)

// Scenario: sockets other than TCP reach what a network namespace does not
// hold, or walk around Landlock.
func TestNoSocketButTCPToTheBroker(t *testing.T) {
	t.Parallel()
	r := newBox(t)
	require.Empty(t, report[[]string](t, r, r.policy(t, policy.ReadOnly, policy.NetworkNone), "sockets"))
	tcp := []string{}
	for _, domain := range []int{unix.AF_INET, unix.AF_INET6} {
		for _, protocol := range []int{0, unix.IPPROTO_TCP} {
			tcp = append(tcp, fmt.Sprintf("%d/%d/%d", domain, unix.SOCK_STREAM, protocol))
		}
	}
	require.ElementsMatch(t, tcp, report[[]string](t, r, r.guest(t), "sockets"))
}

// Scenario: services of the host listen on loopback, on paths and on abstract
// names.
func TestServicesOfTheHostAreOutOfReach(t *testing.T) {
	t.Parallel()
	r := newBox(t)
	targets := []string{"tcp", "127.0.0.1:1", "tcp", "127.0.0.2:8080", "tcp", "[::1]:8080", "tcp", "10.0.0.1:80", "udp", "127.0.0.1:53", "tcp", "1.1.1.1:53"}
	folder := t.TempDir()
	for _, at := range [][2]string{{"tcp", "127.0.0.1:0"}, {"unix", filepath.Join(folder, "s")}, {"unix", "@parlour-attack-" + filepath.Base(folder)}} {
		l, err := net.Listen(at[0], at[1])
		require.NoError(t, err)
		defer l.Close()
		targets = append(targets, at[0], l.Addr().String())
	}
	for _, eff := range []policy.Effective{r.guest(t), r.policy(t, policy.WorkspaceWrite, policy.NetworkNone)} {
		require.Empty(t, report[[]string](t, r, eff, append([]string{"dial"}, targets...)...))
	}
}

// The honest path: one address answers, and the bot is who answers.
func TestPassedListenerAnswers(t *testing.T) {
	t.Parallel()
	r := newBox(t)
	run, out := r.start(t, r.guest(t), r.command("get", "http://"+policy.BrokerAddr+"/v1/x?y=z"))
	require.Equal(t, policy.BrokerAddr, run.Listener().Addr().String())
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		_, _ = io.WriteString(w, "the broker heard "+q.URL.String())
	}))
	require.NoError(t, server.Listener.Close())
	server.Listener = run.Listener()
	server.Start()
	defer server.Close()
	exit, err := run.Wait()
	require.NoError(t, err)
	require.Zero(t, exit.Code)
	require.Contains(t, out.String(), "the broker heard /v1/x?y=z")
	_, err = run.Listener().Accept()
	require.ErrorIs(t, err, net.ErrClosed, "the listener ends with the run")
}

func TestNoNetworkHasNoListener(t *testing.T) {
	t.Parallel()
	r := newBox(t)
	run, out := r.start(t, r.policy(t, policy.ReadOnly, policy.NetworkNone), r.command("get", "http://"+policy.BrokerAddr))
	require.Nil(t, run.Listener())
	_, err := run.Wait()
	require.NoError(t, err)
	require.True(t, strings.Contains(out.String(), "not permitted") || strings.Contains(out.String(), "unreachable"), out)
}

// Scenario: one guest's agent asks another guest's broker.
func TestListenersAreNotShared(t *testing.T) {
	t.Parallel()
	r := newBox(t)
	first, out := r.start(t, r.guest(t), r.command("stay", "listener"))
	out.await(t, "staying")
	served := make(chan struct{})
	go func() {
		defer close(served)
		if c, err := first.Listener().Accept(); err == nil {
			_ = c.Close()
			served <- struct{}{}
		}
	}()
	second := r.command("dial", "tcp", policy.BrokerAddr)
	require.Equal(t, []string{"tcp " + policy.BrokerAddr}, func() (got []string) {
		decode(t, r.do(t, r.guest(t), second), &got)
		return got
	}(), "the second box has a listener of its own")
	first.Kill()
	_, err := first.Wait()
	require.NoError(t, err)
	_, open := <-served
	require.False(t, open, "nobody but the first box can reach its listener")
}
