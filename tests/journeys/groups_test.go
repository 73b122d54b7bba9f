package journeys

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"parlour/tests/house"
)

// User groups of Slack are listed, explained and compared as roles are.
func TestUserGroupsAreToldLikeRoles(t *testing.T) {
	t.Parallel()
	h := house.New(t)
	h.Write("manifests/tiers/team.yaml", "tier: team\nmatch:\n  slack:\n    - {workspace: T0HOME001, groups: [S0TEAM001]}\n")
	h.Write("manifests/tiers/guest.yaml", "tier: guest\nmatch:\n  slack:\n    - {workspace: T0HOME001, channels: [C0HALL001], anyone: true}\n"+
		"block:\n  slack:\n    - {workspace: T0HOME001, groups: [S0NOISY01]}\n")
	h.Write("later/tiers/team.yaml", "tier: team\nmatch:\n  slack:\n    - {workspace: T0HOME001, groups: [S0OTHER01]}\n")
	bot := func(args string) string {
		got := h.Bot(append(strings.Fields(args), "--manifests", h.Path("manifests"))...)
		require.Equal(t, 0, got.Code, got.Err)
		return strings.ReplaceAll(got.Out, h.Path("manifests")+"/", "")
	}
	list := bot("tiers")
	require.Contains(t, list, "  slack: user groups S0TEAM001; in T0HOME001 (tiers/team.yaml:4)")
	require.Contains(t, list, "  slack: user groups S0NOISY01; in T0HOME001 (tiers/guest.yaml:7)")
	require.Contains(t, bot("tiers --json"), `"S0TEAM001"`)

	const who = "explain --platform slack --workspace T0HOME001 --channel C0HALL001 --user U0SAM0001"
	for flags, want := range map[string][]string{
		"":                                     {"tier: guest", "for this place, but they are not in the user group S0TEAM001", "membership of the user group S0TEAM001 (tiers/team.yaml:4)"},
		" --group S0TEAM001":                   {"tier: team", "why: a user group of theirs makes them team (tiers/team.yaml:4)"},
		" --group S0TEAM001 --restricted":      {"tier: guest"},
		" --group S0TEAM001 --group S0NOISY01": {"tier: none", "why: they are blocked (tiers/guest.yaml:7)"},
		" --groups-unknown":                    {"tier: none", "why: a user group is blocked here, and theirs are not known (tiers/guest.yaml:7)"},
	} {
		out := bot(who + flags)
		for _, line := range want {
			require.Contains(t, out, line, flags)
		}
	}
	h.Write("open/tiers/team.yaml", "tier: team\nmatch:\n  slack:\n    - {workspace: T0HOME001, groups: [S0TEAM001]}\n")
	open := h.Bot(append(strings.Fields(who), "--groups-unknown", "--manifests", h.Path("open"))...)
	require.Contains(t, open.Out, "why: no rule matches this person here; their user groups are not known")
	for _, bad := range []string{"--group staff", "--group U0SAM0001", "--group S0TEAM001 --groups-unknown", "--role S0TEAM001"} {
		got := h.Bot(append(strings.Fields(who+" "+bad), "--manifests", h.Path("manifests"))...)
		require.Equal(t, 2, got.Code, "%s: %s", bad, got.Out)
	}

	diff := h.Bot("diff", h.Path("manifests"), h.Path("later"))
	require.Equal(t, 0, diff.Code, diff.Err)
	out := strings.NewReplacer(h.Path("manifests"), "old", h.Path("later"), "new").Replace(diff.Out)
	for _, line := range []string{
		"gain    team, group: the user group S0OTHER01 is team on slack in T0HOME001 (new/tiers/team.yaml:4)",
		"loss    team, group: no longer: the user group S0TEAM001 is team on slack in T0HOME001 (old/tiers/team.yaml:4)",
		"gain    block: no longer: user group S0NOISY01 is blocked on slack in T0HOME001 (old/tiers/guest.yaml:7)",
	} {
		require.Contains(t, out, line)
	}
	var schema map[string]any
	require.NoError(t, json.Unmarshal([]byte(h.Bot("schema").Out), &schema))
	for _, section := range []string{"match", "block"} {
		of := schema["properties"].(map[string]any)[section].(map[string]any)["properties"].(map[string]any)
		entry := of["slack"].(map[string]any)["items"].(map[string]any)["properties"].(map[string]any)
		require.Equal(t, "^[S][A-Z0-9]{6,63}$", entry["groups"].(map[string]any)["items"].(map[string]any)["pattern"])
		require.NotContains(t, of["discord"].(map[string]any)["items"].(map[string]any)["properties"], "groups")
	}
}
