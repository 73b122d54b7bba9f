package contract_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	fake "parlour/tests/fakes/discord"
)

// What the adapters look at, kind by kind, and whether it can become a question.
// A kind that an adapter begins to read needs a row here, and one that can become
// a question goes through the gate as every other does.
var (
	discordKinds = map[string]bool{"READY": false, "RESUMED": false, "MESSAGE_CREATE": true}
	slackKinds   = map[string]bool{
		// of Socket Mode
		"EventTypeConnecting": false, "EventTypeHello": false, "EventTypeConnectionError": false, "EventTypeErrorBadMessage": false,
		"EventTypeEventsAPI": true, "EventTypeSlashCommand": false, "EventTypeInteractive": false,
		// of payloads and events
		"event_callback": true, "app_mention": true, "message": true, "app_rate_limited": false,
		// of posts
		"bot_message": false, "file_share": true, "thread_broadcast": true, "im": true,
	}
)

// Everything else that Discord and Slack send today.
var (
	discordOthers = strings.Fields(`APPLICATION_COMMAND_PERMISSIONS_UPDATE AUTO_MODERATION_RULE_CREATE AUTO_MODERATION_RULE_UPDATE
		AUTO_MODERATION_RULE_DELETE AUTO_MODERATION_ACTION_EXECUTION CHANNEL_CREATE CHANNEL_UPDATE CHANNEL_DELETE CHANNEL_PINS_UPDATE
		THREAD_CREATE THREAD_UPDATE THREAD_DELETE THREAD_LIST_SYNC THREAD_MEMBER_UPDATE THREAD_MEMBERS_UPDATE ENTITLEMENT_CREATE
		ENTITLEMENT_UPDATE ENTITLEMENT_DELETE GUILD_CREATE GUILD_UPDATE GUILD_DELETE GUILD_AUDIT_LOG_ENTRY_CREATE GUILD_BAN_ADD
		GUILD_BAN_REMOVE GUILD_EMOJIS_UPDATE GUILD_STICKERS_UPDATE GUILD_INTEGRATIONS_UPDATE GUILD_MEMBER_ADD GUILD_MEMBER_REMOVE
		GUILD_MEMBER_UPDATE GUILD_MEMBERS_CHUNK GUILD_ROLE_CREATE GUILD_ROLE_UPDATE GUILD_ROLE_DELETE GUILD_SCHEDULED_EVENT_CREATE
		GUILD_SCHEDULED_EVENT_UPDATE GUILD_SCHEDULED_EVENT_DELETE INTEGRATION_CREATE INTEGRATION_UPDATE INTEGRATION_DELETE
		INTERACTION_CREATE INVITE_CREATE INVITE_DELETE MESSAGE_UPDATE MESSAGE_DELETE MESSAGE_DELETE_BULK MESSAGE_REACTION_ADD
		MESSAGE_REACTION_REMOVE MESSAGE_REACTION_REMOVE_ALL MESSAGE_POLL_VOTE_ADD MESSAGE_POLL_VOTE_REMOVE PRESENCE_UPDATE
		STAGE_INSTANCE_CREATE SUBSCRIPTION_CREATE TYPING_START USER_UPDATE VOICE_STATE_UPDATE VOICE_SERVER_UPDATE WEBHOOKS_UPDATE
		A_KIND_OF_TOMORROW`)
	slackOthers = strings.Fields(`app_home_opened app_uninstalled assistant_thread_started assistant_thread_context_changed
		channel_archive channel_created channel_rename channel_shared file_created file_shared function_executed group_rename im_open
		link_shared member_joined_channel member_left_channel message.im message_metadata_posted pin_added reaction_added
		reaction_removed shared_channel_invite_accepted star_added subteam_members_changed team_join tokens_revoked user_change
		workflow_step_execute kind_of_tomorrow`)
	slackSubtypes = strings.Fields(`assistant_app_thread bot_add bot_remove channel_archive channel_join channel_leave channel_name
		channel_topic ekm_access_denied group_join me_message message_changed message_deleted message_replied reminder_add
		sh_room_created tombstone unpinned_item kind_of_tomorrow`)
)

func TestEveryKindOfEventHasItsRow(t *testing.T) {
	t.Parallel()
	require.ElementsMatch(t, keysOf(discordKinds), kindsIn(t, "../../bridge/discord", map[string]string{"run.go": "hear"}))
	found := kindsIn(t, "../../bridge/slack", map[string]string{"socket.go": "", "convert.go": "", "intake.go": ""})
	require.ElementsMatch(t, keysOf(slackKinds), found)
	for _, dir := range []string{"discord", "slack"} {
		require.Equal(t, 1, gateCalls(t, filepath.Join("../../bridge", dir)), "%s: one way in", dir)
	}
}

func keysOf(m map[string]bool) (keys []string) {
	for k := range m {
		keys = append(keys, k)
	}
	return keys
}

// kindsIn gives the words by which the files of an adapter tell events apart:
// what the cases and comparisons of kinds name.
func kindsIn(t *testing.T, dir string, files map[string]string) (kinds []string) {
	t.Helper()
	about := []string{"Type", "SubType", "ChannelType"}
	for file, only := range files {
		tree, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, file), nil, 0)
		require.NoError(t, err)
		for _, d := range tree.Decls {
			f, isFunc := d.(*ast.FuncDecl)
			if !isFunc || only != "" && f.Name.Name != only {
				continue
			}
			ast.Inspect(f, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.SwitchStmt:
					if selects(n.Tag, about) {
						for _, c := range n.Body.List {
							for _, e := range c.(*ast.CaseClause).List {
								kinds = append(kinds, words(e)...)
							}
						}
					}
				case *ast.BinaryExpr:
					if selects(n.X, about) {
						kinds = append(kinds, words(n.Y)...)
					}
				case *ast.CallExpr: // slices.Contains(list, e.SubType)
					if len(n.Args) == 2 && selects(n.Args[1], about) {
						kinds = append(kinds, words(n.Args[0])...)
					}
				}
				return true
			})
		}
	}
	slices.Sort(kinds)
	return slices.DeleteFunc(slices.Compact(kinds), func(s string) bool { return s == "" || strings.Contains(s, " ") }) // sentences are no kinds
}

func selects(e ast.Expr, names []string) bool {
	s, ok := e.(*ast.SelectorExpr)
	return ok && slices.Contains(names, s.Sel.Name)
}

// words gives the string literals and the names of constants in an expression.
func words(e ast.Expr) (out []string) {
	ast.Inspect(e, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BasicLit:
			if s, err := strconv.Unquote(n.Value); err == nil {
				out = append(out, s)
			}
		case *ast.SelectorExpr:
			if strings.HasPrefix(n.Sel.Name, "EventType") {
				out = append(out, n.Sel.Name)
			}
		}
		return true
	})
	return out
}

// gateCalls counts the calls of Accept in a folder.
func gateCalls(t *testing.T, dir string) (n int) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		tree, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, e.Name()), nil, 0)
		require.NoError(t, err)
		ast.Inspect(tree, func(node ast.Node) bool {
			if call, ok := node.(*ast.CallExpr); ok && selects(call.Fun, []string{"Accept"}) {
				n++
			}
			return true
		})
	}
	return n
}

// Each kind of event that has no way to the gate brings the owner's own words,
// addressed to the bot, and still nothing comes of it.
func TestOnlyWhatTheGateDecidesCanAsk(t *testing.T) {
	t.Parallel()
	t.Run("discord", func(t *testing.T) {
		t.Parallel()
		r := serveDiscord(t, answers("an answer"))
		for _, kind := range discordOthers {
			require.NotContains(t, discordKinds, kind)
			r.fake.Say(fake.Said{Channel: discordChannel, Author: discordOwner, Content: mentionBot + " by " + kind, Type: kind})
		}
		r.settled()
		require.Empty(t, r.ran())
		require.Len(t, r.probe.messages(), 1)
		require.Equal(t, "the last one", r.probe.messages()[0].Text)
		r.stop()
	})
	t.Run("slack", func(t *testing.T) {
		t.Parallel()
		r := slackServe(t, answers("an answer"))
		for _, kind := range slackOthers {
			require.NotContains(t, slackKinds, kind)
			r.fake.Send(r.fake.Event(slackInner(r.fake, kind, slackHall, slackTeam, "<@U0BOT00001> by "+kind)))
		}
		for _, sub := range slackSubtypes {
			require.NotContains(t, slackKinds, sub)
			e := slackInner(r.fake, "message", slackHall, slackTeam, "<@U0BOT00001> by "+sub)
			e["subtype"] = sub
			r.fake.Send(r.fake.Event(e))
		}
		for _, envelope := range []string{"slash_commands", "interactive", "options", "tomorrow"} {
			r.fake.SendEnvelope(envelope, map[string]any{"type": "message", "user": slackTeam, "text": "<@U0BOT00001> x", "channel": slackHall})
		}
		r.settled()
		require.Equal(t, []string{"are you there"}, r.questions())
		require.Len(t, r.jobs(), 1)
		require.Len(t, r.fake.Answers(), 1)
	})
}
