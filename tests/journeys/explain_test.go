package journeys

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"parlour/tests/house"
)

// advice gives the lines that tell how to be a tier, and all of the page.
func advice(t *testing.T, h *house.House, tier, flags string) (ways []string, page string) {
	t.Helper()
	got := h.Bot(append(strings.Fields("explain "+flags), "--manifests", h.Path("manifests"))...)
	require.Equal(t, 0, got.Code, got.Err)
	page = strings.ReplaceAll(got.Out, h.Path("manifests")+"/", "")
	lines := strings.Split(page, "\n")
	for i, line := range lines {
		head, one, _ := strings.Cut(line, ": ")
		switch {
		case strings.HasPrefix(head, "to be "+tier), strings.HasPrefix(head, "or straight to "+tier):
			if one != "" {
				return []string{one}, page
			}
			for _, way := range lines[i+1:] {
				if !strings.HasPrefix(way, "  - ") {
					return ways, page
				}
				ways = append(ways, strings.TrimPrefix(way, "  - "))
			}
		}
	}
	return nil, page
}

// The places in which advice is easily wrong, each with what an operator reads.
func TestAdviceHelpsWhereItIsEasilyWrong(t *testing.T) {
	t.Parallel()
	h := house.New(t)
	h.Write("manifests/tiers/owner.yaml", "tier: owner\nmatch:\n  discord:\n    - {users: [\"111111111111111111\"]}\n")
	h.Write("manifests/tiers/team.yaml", `tier: team
match:
  discord:
    - {guild: "900000000000000001", users: ["222222222222222222"]}
    - {guild: "900000000000000001", roles: ["800000000000000001"]}
    - {guild: "900000000000000001", channels: ["700000000000000005", "700000000000000007"], users: ["555555555555555555"]}
  slack:
    - {workspace: T0HOME001, groups: [S0CORE001]}
    - {workspace: T0HOME001, channels: [C0CORE001], anyone: true}
`)
	h.Write("manifests/tiers/guest.yaml", `tier: guest
match:
  discord:
    - {users: ["333333333333333333"]}
  slack:
    - {workspace: T0HOME001, channels: [C0HALL001], anyone: true}
places:
  discord:
    - {guild: "900000000000000001", channels: ["700000000000000005"]}
block:
  discord:
    - {guild: "900000000000000001", users: ["444444444444444444"]}
    - {users: ["444444444444444444"]}
  slack:
    - {workspace: T0HOME001, groups: [S0BAN0001]}
`)
	const (
		guild = "--platform discord --workspace 900000000000000001 "
		two   = guild + "--channel 700000000000000002 --parent 700000000000000002 "
		hall  = "--platform slack --workspace T0HOME001 --channel C0HALL001 --user U0SAM0001 "
	)
	for _, c := range []struct{ about, flags, tier, has, hasNot string }{
		{"groups that are not known", hall + "--groups-unknown", "guest", "Slack saying which user groups they are in, none of them blocked; then they are guest by tiers/guest.yaml:6", "nothing else helps"},
		{"a guest account", hall + "--restricted", "team", "{workspace: T0HOME001, users: [U0SAM0001]}", "S0CORE001"},
		{"a guest account, elsewhere", hall + "--restricted", "team", " grant --platform slack", "C0CORE001"},
		{"somebody listed below", two + "--user 333333333333333333", "team", "their user id moved from tiers/guest.yaml:4 to a line under match: discord: in tiers/team.yaml: - {users: [\"333333333333333333\"]}", ": a line under"},
		{"team to owner", two + "--user 222222222222222222", "owner", "their user id moved from tiers/team.yaml:4 to a line under match: discord: in tiers/owner.yaml", ": a line under"},
		{"team of a guild, in a direct message", "--platform discord --direct --channel 600000000000000001 --user 222222222222222222", "team", "a line under match: discord: in tiers/team.yaml: - {users: [\"222222222222222222\"]}, without a guild", "tiers/guest.yaml"},
		{"team of a guild, in another", "--platform discord --workspace 900000000000000002 --channel 700000000000000009 --user 222222222222222222", "team", "asking in the guild 900000000000000001, as a member of it (tiers/team.yaml:4)", "moved"},
		{"straight to team", two + "--user 888888888888888888", "team", "the role 800000000000000001 (tiers/team.yaml:5)", "asking in"},
		{"two blocks", two + "--user 444444444444444444 --role 800000000000000001", "team", "both blocks, tiers/guest.yaml:12 and tiers/guest.yaml:13, taken away; then they are team by tiers/team.yaml:5", "the block"},
		{"a channel with a limit", two + "--user 555555555555555555", "team", ": asking in channel 700000000000000007 (tiers/team.yaml:6)", "700000000000000005"},
		{"a place with a limit", guild + "--channel 700000000000000005 --parent 700000000000000005 --user 888888888888888888", "team", "asking in another channel of the guild 900000000000000001, one without a limit, and having the role 800000000000000001 (tiers/team.yaml:5)", ": having the role"},
	} {
		ways, page := advice(t, h, c.tier, c.flags)
		all := "\n: " + strings.Join(ways, "\n: ")
		require.Contains(t, all, c.has, "%s: %s", c.about, page)
		require.NotContains(t, all, c.hasNot, "%s: %s", c.about, page)
	}
	_, page := advice(t, h, "team", two+"--user 888888888888888888 --role 800000000000000001 --bot")
	require.Contains(t, page, "it names a role of theirs, but only people are answered, not bots or webhooks")
	require.Contains(t, page, "cannot be guest: only people are answered")
	_, page = advice(t, h, "team", hall+"--shared --group S0CORE001")
	require.Contains(t, page, "tier: guest\n")
	require.Contains(t, page, "why: nobody is more than guest in a channel that is shared with another organisation\n")
	require.Contains(t, page, "to be team: asking in a channel that is not shared with another organisation; then they are team by tiers/team.yaml:8")
}

// Advice to edit a file leads to files that the bot takes, and to what it promises.
func TestAdviceIsFollowedInTheFiles(t *testing.T) {
	t.Parallel()
	h := house.New(t)
	team := "tier: team\nmatch:\n  discord:\n    - {guild: \"900000000000000001\", users: [\"222222222222222222\"]}\n"
	guest := "tier: guest\nmatch:\n  discord:\n    - {guild: \"900000000000000001\", users: [\"333333333333333333\"]}\n    - {users: [\"444444444444444444\"]}\n"
	const other = "    - {users: [\"777777777777777777\"]}\n"
	followed := 0
	for _, user := range []string{"222222222222222222", "333333333333333333", "444444444444444444", "888888888888888888"} {
		for _, place := range []string{
			"--workspace 900000000000000001 --channel 700000000000000001", "--workspace 900000000000000002 --channel 700000000000000001",
			"--direct --channel 700000000000000001", "--workspace 900000000000000001 --channel 700000000000000001 --no-member",
		} {
			for _, tier := range []string{"guest", "team", "owner"} {
				files := map[string]string{"owner": "tier: owner\nmatch:\n  discord:\n    - {users: [\"111111111111111111\"]}\n", "team": team + other, "guest": guest}
				for name, text := range files {
					h.Write("manifests/tiers/"+name+".yaml", text)
				}
				flags := "--platform discord --user " + user + " " + place
				ways, _ := advice(t, h, tier, flags)
				for _, way := range ways {
					_, line, found := strings.Cut(way, "a line under match: discord: in tiers/"+tier+".yaml: - ")
					if !found {
						continue
					}
					followed++
					line = line[:strings.Index(line, "}")+1]
					for name, text := range files {
						if strings.Contains(way, "moved from") {
							text = strings.Replace(text, `["`+user+`"]`, `["999999999999999999"]`, 1)
						}
						if name == tier {
							text = strings.Replace(text, "  discord:\n", "  discord:\n    - "+line+"\n", 1)
						}
						h.Write("manifests/tiers/"+name+".yaml", text)
					}
					check := h.Bot("check", "--manifests", h.Path("manifests"))
					require.Equal(t, 0, check.Code, "%s: %s: %s", flags, way, check.Err)
					_, page := advice(t, h, tier, flags)
					require.Contains(t, page, "\ntier: "+tier+"\n", way)
				}
			}
		}
	}
	require.Greater(t, followed, 15)
}

// What another gateway gets for these ids is what explain says of them.
func TestExplainAndAcceptAgree(t *testing.T) {
	t.Parallel()
	h := house.New(t)
	h.Write("manifests/tiers/team.yaml", "tier: team\nmatch: {discord: [{users: [\"222222222222222222\"]}], slack: [{workspace: T0HOME001, users: [U0LENA001]}]}\n")
	h.Write("manifests/tiers/guest.yaml", "tier: guest\nplaces: {discord: [{guild: \"900000000000000001\", categories: [\"710000000000000001\"]},"+
		" {guild: \"900000000000000003\", channels: [\"700000000000000003\"]}]}\n")
	for flags, want := range map[string]string{
		"--workspace 900000000000000001":                                                       "guest",
		"--workspace 900000000000000001 --category 710000000000000001":                         "guest",
		"--workspace 900000000000000001 --category 710000000000000002":                         "team",
		"--workspace 900000000000000001 --category none":                                       "team",
		"--workspace 900000000000000002":                                                       "team",
		"--workspace 900000000000000003":                                                       "guest",
		"--workspace 900000000000000003 --parent 700000000000000001":                           "team",
		"--workspace 900000000000000003 --parent 700000000000000003":                           "guest",
		"--platform slack --workspace T0HOME001 --channel C0HALL001 --user U0LENA001":          "team",
		"--platform slack --workspace T0HOME001 --channel C0HALL001 --user U0LENA001 --shared": "guest",
	} {
		if !strings.Contains(flags, "slack") {
			flags += " --platform discord --channel 700000000000000001 --user 222222222222222222"
		}
		explained := h.Bot(append(strings.Fields("explain --json "+flags), "--manifests", h.Path("manifests"))...)
		accepted := h.Bot(append(append(strings.Fields("accept --json "+flags), "--manifests", h.Path("manifests")), "what is this?")...)
		require.Equal(t, 0, explained.Code, explained.Err)
		require.Contains(t, accepted.Out, `"tier":"`+want+`"`, "%s: %s", flags, accepted.Err)
		var x struct {
			InForce struct{ Tier string } `json:"in_force"`
			Untold  []string
		}
		require.NoError(t, json.Unmarshal([]byte(explained.Out), &x))
		require.Equal(t, want, x.InForce.Tier, flags)
		require.Equal(t, strings.Contains(accepted.Err, "it may be in a place with a limit"), len(x.Untold) > 0, flags)
	}
	ways, page := advice(t, h, "team", "--workspace 900000000000000003 --platform discord --channel 700000000000000001 --user 222222222222222222")
	require.Equal(t, []string{"giving what is not told here: --parent; then they are team by tiers/team.yaml:2"}, ways)
	require.Contains(t, page, "\nwhy: this may be a place with a limit, so nobody is more than guest until the flags tell it whole\n")
	require.Contains(t, page, "\nnot told: --parent (the channel of the thread; ")
}

// Flags that contradict each other, or mean nothing on the platform, are refused.
func TestFlagsThatCannotBeAreRefused(t *testing.T) {
	t.Parallel()
	h := clubHouse(t)
	const discord, slack = "--platform discord --workspace 900000000000000001 --channel 700000000000000001 --user 333333333333333333 ", "--platform slack --workspace T0HOME001 --channel C0HALL001 --user U0SAM0001 "
	for flags, want := range map[string]string{
		discord + "--restricted":                          "are of Slack",
		discord + "--external":                            "are of Slack",
		discord + "--shared":                              "are of Slack",
		discord + "--role 800000000000000001 --no-member": "--no-member goes with no --role",
		slack + "--group S0TEAM001 --no-member":           "--no-member goes with no --role and no --group",
		slack + "--group S0TEAM001 --external":            "--external goes with no --group",
		slack + "--category none":                         "--role and --category are of Discord",
		discord + "--category support":                    "support",
	} {
		got := inClub(h, "explain "+flags)
		require.Equal(t, 2, got.Code, fmt.Sprint(flags, got.Out))
		require.Contains(t, got.Err, want)
	}
}
