// Package slack_test shows the stand-in for Slack to a client that Slack itself
// has written, so that the stand-in is not graded by the adapter it was made
// for. It needs `npm ci` in this folder, and skips without.
package slack_test

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	slackfake "parlour/tests/fakes/slack"
)

const patience = time.Minute

// bolt starts the bot and gives the lines that it prints.
func bolt(t *testing.T, fake *slackfake.Server) <-chan string {
	t.Helper()
	arch := map[string]string{"amd64": "x64", "arm64": "arm64"}[runtime.GOARCH]
	node, err := filepath.Abs("node_modules/node-linux-" + arch + "/bin/node")
	require.NoError(t, err)
	for _, needed := range []string{node, "node_modules/@slack/bolt"} {
		if _, err := os.Stat(needed); err != nil {
			t.Skipf("@slack/bolt is not installed here: run npm ci --ignore-scripts in tests/crosscheck/slack (%v)", err)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience) // it ends by itself, after the test's own context
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, node, "bot.mjs", fake.API(), slackfake.BotToken, slackfake.AppToken)
	cmd.Env = []string{"PATH=/usr/bin:/bin"}
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	lines := make(chan string, 100)
	read := make(chan struct{})
	go func() {
		defer close(read)
		defer close(lines)
		for scanner := bufio.NewScanner(out); scanner.Scan(); {
			lines <- scanner.Text()
		}
	}()
	t.Cleanup(func() {
		_ = in.Close()
		<-read
		require.NoError(t, cmd.Wait())
	})
	return lines
}

// next waits for a line that begins so. A line that tells a failure fails.
func next(t *testing.T, lines <-chan string, begin string) string {
	t.Helper()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for {
		select {
		case line, open := <-lines:
			require.True(t, open, "the bot ended")
			require.False(t, strings.HasPrefix(line, "failed"), line)
			if strings.HasPrefix(line, begin) {
				return line
			}
		case <-timer.C:
			require.Fail(t, "the bot did not print "+begin)
		}
	}
}

func start(t *testing.T, cfg slackfake.Config) *slackfake.Server {
	t.Helper()
	fake, err := slackfake.Start(cfg)
	require.NoError(t, err)
	t.Cleanup(fake.Close)
	fake.AddChannel(slackfake.Channel{ID: "C0HALL0001"})
	fake.AddUser(slackfake.User{ID: "U0GUEST001"})
	fake.AddGroup(slackfake.UserGroup{ID: "S0TEAM0001", Users: []string{"U0GUEST001"}})
	fake.AddGroup(slackfake.UserGroup{ID: "S0GONE0001", Users: []string{"U0GUEST001"}, Disabled: true})
	return fake
}

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

var mention = slackfake.Post{Channel: "C0HALL0001", User: "U0GUEST001", Text: "<@U0BOT00001> hello"}

func TestBoltIsServed(t *testing.T) {
	fake := start(t, slackfake.Config{})
	lines := bolt(t, fake)
	require.Equal(t, "ready "+slackfake.BotUser, next(t, lines, "ready"))
	require.NoError(t, fake.Wait(within(t), func() bool { open, _ := fake.Sockets(); return open == 1 }))

	ts := fake.Say(mention)
	require.Equal(t, "answered "+ts, next(t, lines, "answered"))
	require.Equal(t, "from bolt, edited", fake.Answers()[0].Text)
	require.Equal(t, ts, fake.Answers()[0].Thread)
	require.Equal(t, []slackfake.Reaction{{Channel: "C0HALL0001", TS: ts, Name: "eyes"}}, fake.Reactions())
	require.NoError(t, fake.Wait(within(t), func() bool { return len(fake.Unacknowledged()) == 0 }))

	// Slack's client reconnects on each of these, and is served on the new socket.
	for i, happens := range []func(){
		func() { fake.Disconnect("warning") },
		func() { fake.Disconnect("refresh_requested") },
		fake.Drop,
	} {
		happens()
		require.NoError(t, fake.Wait(within(t), func() bool { open, ever := fake.Sockets(); return open == 1 && ever == i+2 }))
		ts := fake.Say(mention)
		require.Equal(t, "answered "+ts, next(t, lines, "answered"))
	}

	// It waits as long as a 429 says.
	fake.Fail("chat.postMessage", slackfake.Fault{RetryAfter: "1"})
	ts = fake.Say(mention)
	require.Equal(t, "answered "+ts, next(t, lines, "answered"))
}
