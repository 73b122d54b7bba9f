package contract_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"parlour/bridge"
	"parlour/tiers"

	fake "parlour/tests/fakes/discord"
	slackfake "parlour/tests/fakes/slack"
)

// interaction is what Discord sends of a command, a button or a form. Whoever
// uses it is the owner; where they are no member, or the app is installed for a
// user alone, the guild vouches for nobody.
func interaction(kind int, more map[string]any) fake.Said {
	raw := map[string]any{
		"type": kind, "application_id": discordBot, "token": "interaction-token", "version": 1, "app_permissions": "0", "context": 0,
		"authorizing_integration_owners": map[string]any{"0": discordGuild}, "entitlements": []any{},
		"data": map[string]any{"id": "1", "name": "ask", "type": 1, "options": []any{map[string]any{"name": "q", "type": 3, "value": mentionBot + " by a command"}}},
	}
	for k, v := range more {
		raw[k] = v
	}
	return fake.Said{Channel: discordChannel, Author: discordOwner, Content: mentionBot + " by an interaction", Type: "INTERACTION_CREATE", Raw: raw}
}

// Every way in which somebody's words can reach the bot on Discord, and what
// they are then. None: they are decided about, and refused. No entry in came:
// they are no question at all.
func TestEveryWayInOnDiscordHasItsResult(t *testing.T) {
	t.Parallel()
	const forum, post, lounge = "700000000000000200", "700000000000000201", "700000000000000202"
	r := serveDiscord(t, answers("an answer"))
	r.fake.AddChannel(fake.Channel{ID: forum, Guild: discordGuild, Type: 15, Name: "forum", Parent: "700000000000000777"})
	r.fake.AddChannel(fake.Channel{ID: post, Guild: discordGuild, Type: fake.PublicThread, Parent: forum, Name: "a post"})
	r.fake.AddChannel(fake.Channel{ID: lounge, Guild: "900000000000000099", Name: "another guild's"})
	rules := tiers.NewRules(append(discordRules().All(),
		tiers.Rule{Tier: tiers.Guest, Platform: tiers.Discord, Workspace: discordGuild, Channels: []string{forum}, Anyone: true},
		tiers.Rule{Tier: tiers.Team, Platform: tiers.Discord, Workspace: discordGuild, Roles: []string{"800000000000000001"}}), nil)
	r.shelf.put(book(rules)())
	user := map[string]any{"id": discordOwner.ID, "username": "owner"}
	snapshot := []any{map[string]any{"message": map[string]any{"content": "do as I say", "type": 0}}}
	byUser := map[string]any{"1": discordOwner.ID}

	nothing := map[string]fake.Said{
		"a slash command of a member":          interaction(2, nil),
		"a slash command of a non-member":      interaction(2, map[string]any{"member": nil, "user": user}),
		"a command of a user-installed app":    interaction(2, map[string]any{"member": nil, "user": user, "guild_id": nil, "context": 2, "authorizing_integration_owners": byUser}),
		"a command in a direct message":        interaction(2, map[string]any{"member": nil, "user": user, "guild_id": nil, "context": 1}),
		"a user command":                       interaction(2, map[string]any{"data": map[string]any{"name": "ask", "type": 2, "target_id": discordOwner.ID}}),
		"a message command":                    interaction(2, map[string]any{"data": map[string]any{"name": "ask", "type": 3, "target_id": "1"}}),
		"a button":                             interaction(3, map[string]any{"data": map[string]any{"custom_id": "ask", "component_type": 2}}),
		"an autocompletion":                    interaction(4, nil),
		"a form":                               interaction(5, map[string]any{"data": map[string]any{"custom_id": "ask", "components": []any{}}}),
		"an interaction of tomorrow":           interaction(99, nil),
		"the answer to a command":              {Channel: discordChannel, Author: fake.User{ID: "444444444444444444", Bot: true}, Content: mentionBot + " x", Raw: map[string]any{"type": 20, "interaction_metadata": map[string]any{"type": 2, "user": user}}},
		"what a user-installed app posts":      {Channel: discordChannel, Author: fake.User{ID: "444444444444444444", Bot: true}, Content: mentionBot + " x", Raw: map[string]any{"application_id": "4", "interaction_metadata": map[string]any{"type": 2, "user": user, "authorizing_integration_owners": byUser}}},
		"what an app posts for them, plainly":  {Channel: discordChannel, Author: discordOwner, Content: mentionBot + " x", Raw: map[string]any{"webhook_id": "4", "interaction_metadata": map[string]any{"type": 2, "user": user}}},
		"a thread that is made":                {Channel: discordChannel, Author: discordOwner, Content: mentionBot + " x", Type: "THREAD_CREATE", Raw: map[string]any{"newly_created": true, "name": mentionBot + " x", "owner_id": discordOwner.ID, "type": 11}},
		"the note that a thread was made":      {Channel: discordChannel, Author: discordOwner, Content: mentionBot + " x", Raw: map[string]any{"type": 18}},
		"the first message, shown in a thread": {Channel: discordThread, Author: discordOwner, Content: mentionBot + " x", Raw: map[string]any{"type": 21}},
		"an edit that mentions the bot":        {Channel: discordChannel, Author: discordOwner, Content: mentionBot + " edited", Type: "MESSAGE_UPDATE", Raw: map[string]any{"edited_timestamp": "2026-01-01T00:00:00Z"}},
		"a reaction":                           {Channel: discordChannel, Author: discordOwner, Content: mentionBot, Type: "MESSAGE_REACTION_ADD", Raw: map[string]any{"emoji": map[string]any{"name": mentionBot}}},
		"a poll's end":                         {Channel: discordChannel, Author: discordOwner, Content: mentionBot + " x", Raw: map[string]any{"type": 46}},
		"a forum post that names nobody":       {Channel: post, Author: discordOwner, Content: "hello all"},
	}
	for name, said := range nothing {
		t.Log(name)
		r.fake.Say(said)
	}
	came := map[string]struct {
		said  fake.Said
		want  tiers.Tier
		check func(bridge.Message)
	}{
		"a forum post": {fake.Said{Channel: post, Author: discordGuest, Content: mentionBot + " a forum post"}, tiers.Guest, func(m bridge.Message) {
			require.Equal(t, forum, m.Place.Parent)
			require.Equal(t, "700000000000000777", m.Place.Category)
		}},
		"a forum post of the team":       {fake.Said{Channel: post, Author: discordTeam, Content: mentionBot + " a forum post of the team"}, tiers.Team, nil},
		"a member-less event":            {fake.Said{Channel: discordChannel, Author: discordTeam, Content: mentionBot + " a member-less event", Raw: map[string]any{"member": nil}}, tiers.None, nil},
		"a member-less event, owner":     {fake.Said{Channel: discordChannel, Author: discordOwner, Content: mentionBot + " a member-less event, owner", Raw: map[string]any{"member": nil}}, tiers.Owner, nil},
		"another guild's event":          {fake.Said{Channel: lounge, Author: discordTeam, Content: mentionBot + " another guild's event", Raw: map[string]any{"member": map[string]any{"roles": []any{"800000000000000001"}}}}, tiers.None, nil},
		"a role of this guild":           {fake.Said{Channel: discordOther, Author: discordGuest, Content: mentionBot + " a role of this guild", Raw: map[string]any{"member": map[string]any{"roles": []any{"800000000000000001"}}}}, tiers.Team, nil},
		"the owner's words":              {fake.Said{Channel: discordChannel, Author: discordOwner, Content: mentionBot + " the owner's words"}, tiers.Owner, nil},
		"the owner's, with a forward":    {fake.Said{Channel: discordChannel, Author: discordOwner, Content: mentionBot + " the owner's, with a forward", Raw: map[string]any{"message_reference": map[string]any{"type": 1}, "message_snapshots": snapshot}}, tiers.Guest, nil},
		"the owner's forward, direct":    {fake.Said{Channel: discordDM, Author: discordOwner, Content: "the owner's forward, direct", Raw: map[string]any{"message_reference": map[string]any{"type": 1}, "message_snapshots": snapshot}}, tiers.Guest, nil},
		"a stranger's forward of theirs": {fake.Said{Channel: discordOther, Author: discordGuest, Content: mentionBot + " a stranger's forward of theirs", Raw: map[string]any{"message_snapshots": []any{map[string]any{"message": map[string]any{"content": "x", "author": user}}}}}, tiers.None, nil},
		"a direct message":               {fake.Said{Channel: discordDM, Author: discordOwner, Content: "a direct message"}, tiers.Owner, nil},
		"a direct message of the team":   {fake.Said{Channel: discordDM, Author: discordTeam, Content: "a direct message of the team", Raw: map[string]any{"member": map[string]any{"roles": []any{"800000000000000001"}}}}, tiers.None, nil},
	}
	for _, c := range came {
		r.fake.Say(c.said)
	}
	r.until("all that ask have come", func() bool { return len(r.probe.messages()) == len(came) })
	r.settled()
	byText := map[string]bridge.Message{}
	for _, m := range r.probe.messages() {
		head, _, _ := strings.Cut(m.Text, "\n")
		byText[head] = m
	}
	require.Len(t, byText, len(came)+1, "and the last one: %v", texts(r.probe))
	for name, c := range came {
		m, ok := byText[name]
		require.True(t, ok, name)
		require.Equal(t, c.want, rules.Resolve(m.Identity, m.Place, time.Now()).Tier, name)
		if c.check != nil {
			c.check(m)
		}
	}
	require.Empty(t, r.fake.Requests("POST", func(path string) bool { return strings.HasPrefix(path, "/interactions") }), "an interaction is answered by nobody")
	r.stop()
}

// The same on Slack, by somebody of the team.
func TestEveryWayInOnSlackHasItsResult(t *testing.T) {
	t.Parallel()
	r := slackServe(t, answers("an answer"))
	event := func(kind, channel, text string, more map[string]any) map[string]any {
		e := slackInner(r.fake, kind, channel, slackTeam, text)
		for k, v := range more {
			e[k] = v
		}
		return r.fake.Event(e)
	}
	const words = "<@U0BOT00001> by this way"
	then := map[string]any{"text": words, "user": slackTeam, "ts": "1.1", "type": "message"}
	nothing := map[string]map[string]any{
		"a workflow's post":               event("message", slackHall, words, map[string]any{"workflow_id": "Wf0001", "bot_id": "B0WORKFLOW"}),
		"a workflow's mention":            event("app_mention", slackHall, words, map[string]any{"subtype": "bot_message", "username": "workflow"}),
		"a workflow's step":               event("function_executed", slackHall, words, map[string]any{"function": map[string]any{"callback_id": "ask"}, "inputs": map[string]any{"q": words}}),
		"an edit":                         event("message", slackHall, "", map[string]any{"subtype": "message_changed", "message": then, "previous_message": then}),
		"an edit that adds the mention":   event("app_mention", slackHall, words, map[string]any{"edited": map[string]any{"user": slackTeam, "ts": "2.1"}}),
		"a deletion":                      event("message", slackHall, "", map[string]any{"subtype": "message_deleted", "previous_message": then}),
		"the app's home is opened":        event("app_home_opened", slackDM, words, map[string]any{"tab": "messages", "view": map[string]any{"private_metadata": words}}),
		"an assistant's thread begins":    event("assistant_thread_started", slackDM, words, map[string]any{"assistant_thread": map[string]any{"user_id": slackTeam, "channel_id": slackDM, "thread_ts": "1.1"}}),
		"an assistant's thread is shown":  event("message", slackDM, words, map[string]any{"subtype": "assistant_app_thread", "channel_type": "im"}),
		"an assistant's context":          event("assistant_thread_context_changed", slackDM, words, nil),
		"a reaction":                      event("reaction_added", slackHall, words, map[string]any{"item": map[string]any{"type": "message", "channel": slackHall, "ts": "1.1"}, "reaction": "eyes"}),
		"a shared link":                   event("link_shared", slackHall, words, map[string]any{"links": []any{map[string]any{"url": "https://x.example/" + words}}}),
		"a file":                          event("file_shared", slackHall, words, map[string]any{"file_id": "F0001"}),
		"a shared post names the bot":     event("message", slackHall, "look", map[string]any{"attachments": []any{map[string]any{"is_share": true, "author_id": slackTeam, "text": words}}}),
		"a note of the system":            event("message", slackHall, words, map[string]any{"subtype": "channel_topic", "topic": words}),
		"an invitation":                   event("shared_channel_invite_received", slackHall, words, nil),
		"a member joins":                  event("member_joined_channel", slackHall, words, nil),
		"a channel's message of tomorrow": event("message", slackHall, words, map[string]any{"subtype": "brand_new"}),
	}
	for _, payload := range nothing {
		r.fake.Send(payload)
	}
	r.fake.SendEnvelope("slash_commands", map[string]any{"command": "/ask", "text": words, "user_id": slackTeam, "team_id": "T0HOME001", "channel_id": slackHall})
	for _, kind := range []string{"shortcut", "message_action", "block_actions", "view_submission"} {
		r.fake.SendEnvelope("interactive", map[string]any{"type": kind, "user": map[string]any{"id": slackTeam}, "message": then, "callback_id": "ask"})
	}
	r.settled()
	require.Equal(t, []string{"are you there"}, r.questions())
	require.Len(t, r.fake.Answers(), 1)

	begun, _ := r.fake.Write(slackfake.Post{Channel: slackDM, User: slackTeam, Text: "New chat"})
	root, _ := r.fake.Write(slackfake.Post{Channel: slackOther, User: slackGuest, Text: "a thread"})
	for name, c := range map[string]struct {
		payload map[string]any
		want    string
	}{
		"in the tab of messages":      {event("message", slackDM, "in the tab of messages", map[string]any{"channel_type": "app_home"}), "— team · fake"},
		"in an assistant's thread":    {event("message", slackDM, "in an assistant's thread", map[string]any{"channel_type": "im", "thread_ts": begun, "assistant_thread": map[string]any{"action_token": "x"}}), "— team · fake"},
		"sent to a channel too":       {event("message", slackOther, "<@U0BOT00001> sent to a channel too", map[string]any{"subtype": "thread_broadcast", "thread_ts": root}), "— team · fake"},
		"with a file":                 {event("message", slackOther, "<@U0BOT00001> with a file", map[string]any{"subtype": "file_share", "files": []any{}}), "— team · fake"},
		"with a post that is shared":  {event("message", slackOther, "<@U0BOT00001> with a post that is shared", map[string]any{"attachments": []any{map[string]any{"is_share": true, "author_id": "U0OWNER001", "text": "do as the owner says"}}}), "— team · fake"},
		"by somebody who has no rule": {event("message", slackOther, "<@U0BOT00001> by somebody who has no rule", map[string]any{"user": slackGuest}), "nothing was run"},
	} {
		before := len(r.fake.Answers())
		r.fake.Send(c.payload)
		r.until(name, func() bool { return len(r.fake.Answers()) > before })
		got := r.fake.Answers()
		require.Contains(t, got[len(got)-1].Text, c.want, name)
		if c.want == "— team · fake" {
			require.Contains(t, r.questions(), name, "only the words of the post itself")
		}
	}
}
