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
	slackEnvelopes      = map[string]bool{"hello": false, "events_api": true, "slash_commands": false, "interactive": false}
	slackOtherEnvelopes = []string{"disconnect", "options", "tomorrow"}
	slackInteractions   = strings.Fields(`block_actions block_suggestion dialog_cancellation dialog_submission dialog_suggestion
		interactive_message message_action shortcut view_closed view_submission workflow_step_edit kind_of_tomorrow`)
	// What the library tells of itself, and no frame of Slack can be.
	slackOwnWords = strings.Fields(`EventTypeInvalidAuth EventTypeConnected EventTypeIncomingError EventTypeErrorWriteFailed EventTypeDisconnect`)
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
		GUILD_SCHEDULED_EVENT_USER_ADD GUILD_SCHEDULED_EVENT_USER_REMOVE PRESENCES_REPLACE STAGE_INSTANCE_EVENT_CREATE
		STAGE_INSTANCE_EVENT_DELETE STAGE_INSTANCE_EVENT_UPDATE STAGE_INSTANCE_UPDATE STAGE_INSTANCE_DELETE SUBSCRIPTION_UPDATE
		SUBSCRIPTION_DELETE MESSAGE_REACTION_REMOVE_EMOJI GUILD_SOUNDBOARD_SOUND_CREATE GUILD_SOUNDBOARD_SOUND_UPDATE
		GUILD_SOUNDBOARD_SOUND_DELETE GUILD_SOUNDBOARD_SOUNDS_UPDATE SOUNDBOARD_SOUNDS VOICE_CHANNEL_EFFECT_SEND CHANNEL_INFO
		VOICE_CHANNEL_STATUS_UPDATE VOICE_CHANNEL_START_TIME_UPDATE RATE_LIMITED A_KIND_OF_TOMORROW`)
	slackOthers = strings.Fields(`app_home_opened app_uninstalled assistant_thread_started assistant_thread_context_changed
		channel_archive channel_created channel_rename channel_shared file_created file_shared function_executed group_rename im_open
		link_shared member_joined_channel member_left_channel message.im message_metadata_posted pin_added reaction_added
		reaction_removed shared_channel_invite_accepted star_added subteam_members_changed team_join tokens_revoked user_change
		workflow_step_execute agent_session_stopped agent_session_title_changed app_context_changed app_deleted app_installed
		app_requested app_uninstalled_team call_rejected channel_deleted channel_history_changed channel_id_changed channel_left
		channel_unarchive channel_unshared commands_changed dnd_updated dnd_updated_user email_domain_changed emoji_changed
		entity_details_requested file_change file_deleted file_public file_unshared grid_migration_finished grid_migration_started
		group_archive group_close group_deleted group_history_changed group_left group_open group_unarchive im_close im_created
		im_history_changed invite_requested message_metadata_deleted message_metadata_updated pin_removed
		shared_channel_invite_approved shared_channel_invite_declined shared_channel_invite_received shared_channel_invite_requested
		star_removed subteam_created subteam_self_added subteam_self_removed subteam_updated team_access_granted
		team_access_revoked team_domain_change team_rename user_connection user_connection_status_requested user_huddle_changed
		user_profile_changed user_status_changed kind_of_tomorrow`)
	slackSubtypes = strings.Fields(`assistant_app_thread bot_add bot_remove channel_archive channel_join channel_leave channel_name
		channel_topic ekm_access_denied group_join me_message message_changed message_deleted message_replied reminder_add
		sh_room_created tombstone unpinned_item channel_posting_permissions channel_purpose channel_unarchive file_comment file_mention
		group_archive group_leave group_name group_purpose group_topic group_unarchive pinned_item reply_broadcast huddle_thread
		kind_of_tomorrow`)
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
		var own []string // the questions of settled
		for i, kind := range slackOthers {
			require.NotContains(t, slackKinds, kind)
			if i%30 == 29 { // of one person no more than 64 posts wait
				r.settled()
				own = append(own, "are you there")
			}
			r.fake.Send(r.fake.Event(slackInner(r.fake, kind, slackHall, slackTeam, "<@U0BOT00001> by "+kind)))
		}
		r.settled()
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
		own = append(own, "are you there", "are you there")
		require.Equal(t, own, r.questions())
		require.Len(t, r.jobs(), len(own))
		require.Len(t, r.fake.Answers(), len(own))
	})
}
