package journeys_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"parlour/tests/house"
)

// gatewayTakes gives what `bot accept --json` says of a message in a guild.
func gatewayTakes(h *house.House, flags ...string) house.Result {
	return h.Bot(append(append([]string{"accept", "--json"}, flags...), "what is this?")...)
}

// A limit on a channel holds in its threads for a gateway that does not tell
// which channel a thread belongs to.
func TestAGatewayThatTellsNoParentGetsLess(t *testing.T) {
	t.Parallel()
	const (
		teamMember = "222222222222222222"
		limited    = "700000000000000001"
		open       = "700000000000000002"
		thread     = "700000000000000009"
		otherGuild = "900000000000000002"
	)
	h := house.New(t)
	h.Write("manifests/tiers/team.yaml", "tier: team\nmatch: {discord: [{users: [\""+teamMember+"\"]}], slack: [{workspace: T0HOME001, users: [U0LENA001]}]}\n")
	h.Write("manifests/tiers/guest.yaml", "tier: guest\nplaces: {discord: [{guild: \""+guildID+"\", channels: [\""+limited+"\"]}], slack: [{workspace: T0HOME001, channels: [C0HALL001]}]}\n")
	for name, c := range map[string]struct {
		want  string
		flags []string
	}{
		"a thread of the limited channel":  {"guest", []string{"--workspace", guildID, "--channel", thread, "--parent", limited}},
		"a thread of the open channel":     {"team", []string{"--workspace", guildID, "--channel", thread, "--parent", open}},
		"the open channel itself":          {"team", []string{"--workspace", guildID, "--channel", open, "--parent", open}},
		"the limited channel itself":       {"guest", []string{"--workspace", guildID, "--channel", limited, "--parent", limited}},
		"a channel that may be a thread":   {"guest", []string{"--workspace", guildID, "--channel", thread}},
		"a guild without limits":           {"team", []string{"--workspace", otherGuild, "--channel", thread}},
		"a direct message":                 {"team", []string{"--direct", "--channel", thread}},
		"a category and no word of parent": {"guest", []string{"--workspace", guildID, "--channel", thread, "--category", "710000000000000001"}},
	} {
		got := gatewayTakes(h, append([]string{"--manifests", h.Path("manifests"), "--platform", "discord", "--user", teamMember}, c.flags...)...)
		require.Contains(t, got.Out, `"tier":"`+c.want+`"`, "%s: %s", name, got.Err)
		if name == "a channel that may be a thread" {
			require.Contains(t, got.Err, "warning: nobody is more than guest there, as it may be in a place with a limit; tell --parent (the channel of the thread; "+thread+" itself where it is no thread)")
		} else if c.want == "team" {
			require.Empty(t, got.Err, name)
		}
	}
	// On Slack a thread has the id of its channel.
	got := gatewayTakes(h, "--manifests", h.Path("manifests"), "--platform", "slack", "--workspace", "T0HOME001", "--channel", "C0ELSE001", "--user", "U0LENA001")
	require.Contains(t, got.Out, `"tier":"team"`, got.Err)
}

// Whoever only looks leaves nothing behind.
func TestToLookMakesNoStateFolder(t *testing.T) {
	t.Parallel()
	h := house.New(t)
	for _, command := range [][]string{
		{"explain", "--platform", "discord", "--direct", "--channel", "600000000000000001", "--user", ownerID},
		{"tiers"}, {"check"}, {"runners"}, {"guardrail", "--tier", "guest"}, {"accept-gains"},
	} {
		h.Write("manifests/tiers/owner.yaml", "tier: owner\nmatch:\n  discord:\n    - {users: [\""+ownerID+"\"]}\n")
		got := h.Bot(append(command, "--manifests", h.Path("manifests"))...)
		require.Equal(t, 0, got.Code, "%s: %s", command, got.Err)
		require.NoDirExists(t, h.Path("state", "parlour"), command)
	}
}
