package contract_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/bwmarrin/discordgo"
	slackgo "github.com/slack-go/slack"
	"github.com/slack-go/slack/slackevents"
	"github.com/slack-go/slack/socketmode"
	"github.com/stretchr/testify/require"

	fake "parlour/tests/fakes/discord"
	slackfake "parlour/tests/fakes/slack"
)

// constants gives the values of a library's constants whose names fit, read from
// its own source beside one of its functions.
func constants(t *testing.T, of any, file string, name string) map[string]string {
	t.Helper()
	at, _ := runtime.FuncForPC(reflect.ValueOf(of).Pointer()).FileLine(reflect.ValueOf(of).Pointer())
	path := filepath.Join(filepath.Dir(at), file)
	if _, err := os.Stat(path); err != nil {
		t.Skip("the library's source is not here: " + err.Error())
	}
	tree, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	require.NoError(t, err)
	fits, found := regexp.MustCompile(name), map[string]string{}
	ast.Inspect(tree, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		for i, ident := range spec.Names {
			if i < len(spec.Values) && fits.MatchString(ident.Name) {
				found[ident.Name] = literal(spec.Values[i])
			}
		}
		return true
	})
	require.NotEmpty(t, found, "%s: %s", path, name)
	return found
}

// literal gives a string or number, plain or in a conversion.
func literal(e ast.Expr) string {
	if call, ok := e.(*ast.CallExpr); ok && len(call.Args) == 1 {
		e = call.Args[0]
	}
	lit, ok := e.(*ast.BasicLit)
	if !ok {
		return ""
	}
	if s, err := strconv.Unquote(lit.Value); err == nil {
		return s
	}
	return lit.Value
}

// requireRows wants a row for each kind: one that is read, or one that is sent to
// a bot to see that nothing comes of it.
func requireRows(t *testing.T, kinds map[string]string, read map[string]bool, others []string) {
	t.Helper()
	for name, kind := range kinds {
		_, known := read[kind]
		require.True(t, known || slices.Contains(others, kind), "%s (%s) has no row", kind, name)
	}
}

// What the libraries know of both platforms grows with them; what is new needs a
// row before it can come in.
func TestEveryKindThatTheLibrariesKnowHasItsRow(t *testing.T) {
	t.Parallel()
	t.Run("discord", func(t *testing.T) {
		t.Parallel()
		kinds := constants(t, discordgo.New, "eventhandlers.go", `EventType$`)
		for name, kind := range kinds {
			if strings.HasPrefix(kind, "__") {
				delete(kinds, name) // the library's own word
			}
		}
		require.Greater(t, len(kinds), 60)
		requireRows(t, kinds, discordKinds, discordOthers)
		for name, kind := range constants(t, discordgo.New, "message.go", `^MessageType`) {
			n, err := strconv.Atoi(kind)
			require.NoError(t, err, name)
			require.Less(t, n, mostMessageTypes, name)
		}
	})
	t.Run("slack", func(t *testing.T) {
		t.Parallel()
		kinds := map[string]string{}
		for kind := range slackevents.EventsAPIInnerEventMapping {
			kinds["of the mapping: "+string(kind)] = string(kind)
		}
		require.Greater(t, len(kinds), 80)
		requireRows(t, kinds, slackKinds, slackOthers)
		requireRows(t, constants(t, slackgo.New, "messages.go", `^MsgSubType`), slackKinds, slackSubtypes)
		requireRows(t, constants(t, slackgo.New, "interactions.go", `^InteractionType`), nil, slackInteractions)
		requireRows(t, constants(t, socketmode.New, "socketmode.go", `^RequestType`), slackEnvelopes, slackOtherEnvelopes)
		for name := range constants(t, socketmode.New, "socketmode.go", `^EventType`) {
			_, known := slackKinds[name]
			require.True(t, known || slices.Contains(slackOwnWords, name), "%s has no row", name)
		}
	})
}

// mostMessageTypes is above every type of message that Discord has.
const mostMessageTypes = 100

// Each type of message is sent by somebody who is listed, to the bot: a plain one
// and a reply are questions, all others are Discord's own notes.
func TestDiscordOnlyPlainMessagesAndRepliesAsk(t *testing.T) {
	t.Parallel()
	r := serveDiscord(t, answers("an answer"))
	for kind := range mostMessageTypes {
		r.fake.Say(fake.Said{Channel: discordChannel, Author: discordTeam, Content: mentionBot + " type " + strconv.Itoa(kind), Raw: map[string]any{"type": kind}})
	}
	r.settled()
	require.Equal(t, []string{"type 0", "type 19", "the last one"}, texts(r.probe))
	r.stop()
}

func texts(p *gateProbe) (out []string) {
	for _, m := range p.messages() {
		out = append(out, m.Text)
	}
	return out
}

// Each interaction of Slack brings the words of somebody who is listed.
func TestSlackInteractionsAskNothing(t *testing.T) {
	t.Parallel()
	r := slackServe(t, answers("an answer"))
	words := map[string]any{
		"user": map[string]any{"id": slackTeam, "team_id": slackfake.HomeTeam}, "team": map[string]any{"id": slackfake.HomeTeam},
		"channel": map[string]any{"id": slackHall}, "callback_id": "ask", "trigger_id": "1.2.3", "response_url": "https://hooks.slack.example/x",
		"message": map[string]any{"type": "message", "user": slackTeam, "text": "<@U0BOT00001> by a shortcut", "ts": "1.1"},
		"actions": []any{map[string]any{"action_id": "ask", "value": "<@U0BOT00001> by a button"}},
		"view":    map[string]any{"state": map[string]any{"values": map[string]any{"q": map[string]any{"q": map[string]any{"value": "by a form"}}}}},
	}
	for _, kind := range slackInteractions {
		words["type"] = kind
		r.fake.SendEnvelope("interactive", words)
	}
	for _, command := range []string{"/ask", "/parlour", "/sandbox", "/permission"} {
		r.fake.SendEnvelope("slash_commands", map[string]any{
			"command": command, "text": "<@U0BOT00001> by a command", "user_id": slackTeam, "team_id": slackfake.HomeTeam, "channel_id": slackHall,
		})
	}
	r.settled()
	require.Equal(t, []string{"are you there"}, r.questions())
	require.Len(t, r.jobs(), 1)
	require.Len(t, r.fake.Answers(), 1)
}
