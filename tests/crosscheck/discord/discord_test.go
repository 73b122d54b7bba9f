// Package discord_test lets discord.js talk to the fake that the adapter is
// tested against. It tests the fake, not the adapter, and runs only where the
// npm packages of the lock file are installed.
package discord_test

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	fake "parlour/tests/fakes/discord"
)

const (
	token   = "crosscheck.token.0001"
	me      = "100000000000000001"
	guild   = "900000000000000001"
	channel = "700000000000000001"
	direct  = "600000000000000001"
)

// line is one thing that discord.js saw.
type line struct {
	What, ID, Content, Author, Thread, Parent, Message, To string
	Bot, Mentioned, DM, Same                               bool
	Webhook, RepliedTo                                     *string
	Replayed, Guilds, Code, Status                         int
	Held, Roles                                            []string
	User                                                   string
	Changed                                                string
	Gone                                                   bool
	Refusal                                                int
}

// client is a running discord.js.
type client struct {
	t     *testing.T
	fake  *fake.Server
	ended chan error

	mu    sync.Mutex
	lines []line
	taken int
}

// node gives the node of the lock file.
func node(t *testing.T) string {
	t.Helper()
	arch := map[string]string{"amd64": "x64", "arm64": "arm64"}[runtime.GOARCH]
	path, err := filepath.Abs(filepath.Join("node_modules", "node-"+runtime.GOOS+"-"+arch, "bin", "node"))
	require.NoError(t, err)
	if _, err := os.Stat(path); err != nil {
		t.Skip("discord.js and its node are not installed: cd tests/crosscheck/discord && npm ci --ignore-scripts")
	}
	if _, err := os.Stat(filepath.Join("node_modules", "discord.js", "package.json")); err != nil {
		t.Skip("discord.js is not installed: cd tests/crosscheck/discord && npm ci --ignore-scripts")
	}
	return path
}

func start(t *testing.T) *client {
	t.Helper()
	program := node(t)
	f, err := fake.New(fake.Config{Token: token, Bot: me, OpenAPI: "../../../../shared/data/discord-openapi.json"})
	require.NoError(t, err)
	t.Cleanup(f.Close)
	f.AddChannel(fake.Channel{ID: channel, Guild: guild, Name: "questions"})
	f.AddChannel(fake.Channel{ID: direct, Type: fake.Direct})
	f.SetGateway(fake.Gateway{Heartbeat: 500 * time.Millisecond})
	c := &client{t: t, fake: f, ended: make(chan error, 1)}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	cmd := exec.CommandContext(ctx, program, "client.mjs", f.URL()+"/api", token)
	cmd.Env = []string{"PATH=/usr/bin:/bin", "HOME=" + t.TempDir()}
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	go func() {
		for scan := bufio.NewScanner(out); scan.Scan(); {
			c.heard(scan.Bytes())
		}
		c.ended <- cmd.Wait()
	}()
	t.Cleanup(cancel)
	return c
}

func (c *client) heard(raw []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var l line
	if json.Unmarshal(raw, &l) != nil {
		l = line{What: "error", Message: string(raw)}
	}
	c.lines = append(c.lines, l)
}

// next waits for the next line of a kind and passes over the others, but for an
// error.
func (c *client) next(what string) line {
	c.t.Helper()
	var got line
	ok := c.fake.Wait(30*time.Second, func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		for ; c.taken < len(c.lines); c.taken++ {
			if l := c.lines[c.taken]; l.What == what || l.What == "error" {
				got = l
				c.taken++
				return true
			}
		}
		return false
	})
	require.True(c.t, ok, "discord.js saw no %s", what)
	require.Equal(c.t, what, got.What, got.Message)
	return got
}

func TestDiscordJSIsServedByTheFake(t *testing.T) {
	c := start(t)
	ready := c.next("ready")
	require.Equal(t, me, ready.User)
	require.Equal(t, 1, ready.Guilds)
	person := fake.User{ID: "333333333333333333", Name: "person"}

	id := c.fake.Say(fake.Said{Channel: channel, Author: person, Content: "<@" + me + "> why?"})
	m := c.next("message")
	require.Equal(t, id, m.ID)
	require.Equal(t, "<@"+me+"> why?", m.Content, "a mention brings its text without the privileged intent")
	require.Equal(t, person.ID, m.Author)
	require.True(t, m.Mentioned)
	member := c.next("member")
	require.Equal(t, 10007, member.Refusal, "who is no member is not found")
	require.Empty(t, member.Roles, "who speaks is one")
	answered := c.next("answered")
	require.Equal(t, id, answered.Thread, "a thread has the id of its message")
	require.Equal(t, channel, answered.Parent)
	require.True(t, answered.Same, "the same nonce gives the same message")
	require.Equal(t, []string{"an edited answer"}, answered.Held)
	require.Equal(t, "an edited answer", answered.Changed, "an edit is an event")
	require.True(t, answered.Gone, "and so is a deletion")
	require.Equal(t, 50013, answered.Refusal, "what others said is not the bot's to delete")
	require.Equal(t, []string{"\U0001F440"}, c.fake.Reactions(id))

	c.fake.Join(guild, person, "800000000000000001")
	c.fake.Say(fake.Said{Channel: channel, Author: person, Content: "between people"})
	m = c.next("message")
	require.Empty(t, m.Content, "without a mention and the intent there is no text")
	member = c.next("member")
	require.Equal(t, person.ID, member.Author)
	require.Equal(t, []string{"800000000000000001"}, member.Roles)
	c.next("answered")

	posted := c.fake.Posted(id)[0]
	in := c.fake.Say(fake.Said{Channel: id, Author: person, Content: "and then?", ReplyTo: posted.ID, Ping: true})
	m = c.next("message")
	require.Equal(t, me, *m.RepliedTo)
	require.Equal(t, channel, m.Parent, "the thread is known by THREAD_CREATE")
	require.Equal(t, in, c.next("replied").To)

	c.fake.Say(fake.Said{Channel: direct, Author: person, Content: "hello"})
	require.True(t, c.next("message").DM)
	c.next("replied")

	c.fake.Say(fake.Said{Channel: channel, Author: fake.User{ID: "4", Name: "robot", Bot: true}, Content: "<@" + me + "> hi"})
	require.True(t, c.next("message").Bot)
	c.fake.Say(fake.Said{Channel: channel, Author: person, Content: "<@" + me + "> hi", Raw: map[string]any{"webhook_id": "5"}})
	require.NotNil(t, c.next("message").Webhook)
	require.Empty(t, c.fake.Problems())

	c.fake.Say(fake.Said{Channel: channel, Author: person, Content: "<@" + me + "> too long"})
	require.Equal(t, 50035, c.next("refused").Code)
	c.fake.Say(fake.Said{Channel: channel, Author: person, Content: "<@" + me + "> ping all"})
	require.Equal(t, 50035, c.next("refused").Code)
	require.Len(t, c.fake.Problems(), 2)

	c.fake.Say(fake.Said{Channel: channel, Author: person, Content: "<@" + me + "> bye"})
	c.next("bye")
	require.NoError(t, <-c.ended)
}

func TestDiscordJSComesBackToTheFake(t *testing.T) {
	c := start(t)
	c.next("ready")
	person := fake.User{ID: "333333333333333333", Name: "person"}
	missed := func(text string) {
		t.Helper()
		require.True(t, c.fake.Wait(10*time.Second, func() bool { return c.fake.Listening() == 0 }))
		id := c.fake.Say(fake.Said{Channel: direct, Author: person, Content: text})
		require.Equal(t, id, c.next("message").ID, "what was missed is repeated after RESUME")
		require.Positive(t, c.next("resumed").Replayed)
	}
	c.fake.CloseAll(4000)
	missed("closed")
	c.fake.Reconnect()
	missed("op 7")
	c.fake.SetGateway(fake.Gateway{InvalidResume: true})
	c.fake.Drop()
	require.True(t, c.fake.Wait(30*time.Second, func() bool {
		ops := c.fake.Ops()
		return c.fake.Listening() == 1 && ops[len(ops)-1] == 2
	}), "after op 9 it identifies again")
	c.fake.SetGateway(fake.Gateway{})
	c.fake.Fail(fake.Rule{Method: "POST", Match: func(p string) bool { return strings.HasSuffix(p, "/typing") }, Times: 1, Status: 429,
		Header: map[string]string{"Retry-After": "1", "X-RateLimit-Scope": "user", "X-RateLimit-Reset-After": "0.3"},
		Body:   `{"message":"slow","retry_after":0.3,"global":false}`})
	c.fake.Say(fake.Said{Channel: direct, Author: person, Content: "after"})
	c.next("message")
	c.next("replied")
	c.fake.Say(fake.Said{Channel: direct, Author: person, Content: "bye"})
	c.next("bye")
	require.NoError(t, <-c.ended)
}
