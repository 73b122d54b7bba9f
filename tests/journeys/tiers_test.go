package journeys

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"parlour/manifests"
	"parlour/tests/house"
)

var update = flag.Bool("update", false, "write the golden files anew")

// A club with a guild on Discord and a workspace on Slack.
var club = map[string]string{
	"owner": `tier: owner
match:
  discord:
    - {users: ["111111111111111111"]}
  slack:
    - {workspace: T0HOME001, users: [U0OWNER01]}
`,
	"team": `tier: team
match:
  discord:
    - {guild: "900000000000000001", roles: ["800000000000000001"]}
    - {guild: "900000000000000001", channels: ["700000000000000001"], users: ["222222222222222222"]}
    - {users: ["666666666666666666"], until: 2024-06-30T18:00:00Z}
  slack:
    - {workspace: T0HOME001, users: [U0LENA001]}
places:
  slack:
    - {workspace: T0HOME001, channels: [C0TEAM001], audience: team}
`,
	"guest": `tier: guest
match:
  discord:
    - {guild: "900000000000000001", channels: ["700000000000000001"], anyone: true}
    - {guild: "900000000000000001", categories: ["710000000000000001"], anyone: true}
  slack:
    - {workspace: T0HOME001, channels: [C0HALL001], anyone: true, external: guest}
places:
  discord:
    - {guild: "900000000000000001", channels: ["700000000000000005"]}
block:
  discord:
    - {users: ["444444444444444444"]}
`,
}

func clubHouse(t *testing.T) *house.House {
	t.Helper()
	h := house.New(t)
	for tier, text := range club {
		h.Write("manifests/tiers/"+tier+".yaml", text)
	}
	return h
}

// twelve people, and what each asks about themselves.
var twelve = []struct{ who, flags string }{
	{"a visitor of the hall", "--platform discord --workspace 900000000000000001 --channel 700000000000000001 --parent 700000000000000001 --user 333333333333333333"},
	{"a visitor in a thread of the hall", "--platform discord --workspace 900000000000000001 --channel 700000000000000011 --parent 700000000000000001 --user 333333333333333333"},
	{"a visitor elsewhere", "--platform discord --workspace 900000000000000001 --channel 700000000000000002 --parent 700000000000000002 --user 333333333333333333"},
	{"a visitor in a direct message", "--platform discord --direct --channel 600000000000000001 --user 333333333333333333"},
	{"a moderator", "--platform discord --workspace 900000000000000001 --channel 700000000000000002 --parent 700000000000000002 --user 555555555555555555 --role 800000000000000001"},
	{"a moderator where guests read along", "--platform discord --workspace 900000000000000001 --channel 700000000000000005 --parent 700000000000000005 --user 555555555555555555 --role 800000000000000001"},
	{"a collaborator outside of their channel", "--platform discord --workspace 900000000000000001 --channel 700000000000000003 --parent 700000000000000003 --category 710000000000000001 --user 222222222222222222"},
	{"somebody whose grant has ended", "--platform discord --workspace 900000000000000001 --channel 700000000000000001 --parent 700000000000000001 --user 666666666666666666"},
	{"somebody who is blocked", "--platform discord --workspace 900000000000000001 --channel 700000000000000001 --parent 700000000000000001 --user 444444444444444444"},
	{"somebody who left", "--platform discord --workspace 900000000000000001 --channel 700000000000000001 --parent 700000000000000001 --user 333333333333333333 --no-member"},
	{"a guest account of Slack", "--platform slack --workspace T0HOME001 --channel C0HALL001 --user U0GUEST01 --restricted"},
	{"somebody of another organisation", "--platform slack --workspace T0HOME001 --channel C0HALL001 --user U0EXT0001 --external"},
}

// The page that an operator reads about each of twelve people: why they are what
// they are, and what would make them the next higher tier.
func TestTwelvePeopleAreExplained(t *testing.T) {
	t.Parallel()
	h := clubHouse(t)
	var all strings.Builder
	for _, person := range twelve {
		got := h.Bot(append([]string{"explain", "--manifests", h.Path("manifests")}, strings.Fields(person.flags)...)...)
		require.Equal(t, 0, got.Code, got.Err)
		decision, _, _ := strings.Cut(got.Out, "\nrunner: ")
		all.WriteString("# " + person.who + "\n" + strings.NewReplacer(h.Path("manifests")+"/", "", h.Path("manifests"), "manifests").Replace(strings.TrimSpace(decision)) + "\n\n")
	}
	file := filepath.Join("testdata", "explain.txt")
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(all.String()), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), all.String())
}

func TestExplainGivesProgramsTheSame(t *testing.T) {
	t.Parallel()
	h := clubHouse(t)
	flags := append([]string{"explain", "--json", "--manifests", h.Path("manifests")}, strings.Fields(twelve[5].flags)...)
	got := h.Bot(flags...)
	require.Equal(t, 0, got.Code, got.Err)
	var x struct {
		Decision struct{ Tier, Person, Place, Rule, Cap string }
		Findings []struct {
			Kind, Tier, Origin, Verdict string
			Won                         bool
		}
		Next  string
		Ways  []string
		Paths []struct {
			Tier string
			Ways []struct {
				Tier, Rule, Text string
				All              []struct {
					Step       string
					Rules, IDs []string
				}
			}
		}
	}
	require.NoError(t, json.Unmarshal([]byte(got.Out), &x))
	require.Equal(t, "guest", x.Decision.Tier)
	require.Equal(t, "team", x.Decision.Person)
	require.True(t, strings.HasSuffix(x.Decision.Rule, "tiers/team.yaml:4"))
	require.True(t, strings.HasSuffix(x.Decision.Cap, "tiers/guest.yaml:10"))
	require.Equal(t, "team", x.Next)
	require.Equal(t, []string{"decided", "limit of the place"}, []string{x.Findings[1].Verdict, x.Findings[2].Verdict})
	require.Len(t, x.Ways, 2)
	require.Len(t, x.Paths, 1)
	for i, way := range x.Paths[0].Ways {
		require.Equal(t, x.Ways[i], way.Text)
		require.Equal(t, "team", way.Tier)
		require.Equal(t, x.Decision.Rule, way.Rule)
	}
	require.Equal(t, "elsewhere", x.Paths[0].Ways[0].All[0].Step)
	require.Equal(t, "unlimit", x.Paths[0].Ways[1].All[0].Step)
	require.Equal(t, []string{x.Decision.Cap}, x.Paths[0].Ways[1].All[0].Rules)
	for _, bad := range [][]string{{"--role", "moderators"}, {"--at", "tomorrow"}, {"--category", "support"}, {"--group", "S0123ABCD"}} {
		got := h.Bot(append(flags, bad...)...)
		require.Equal(t, 2, got.Code, bad)
	}
}

func TestTiersListsWhoIsWhat(t *testing.T) {
	t.Parallel()
	h := clubHouse(t)
	got := h.Bot("tiers", "--manifests", h.Path("manifests"))
	require.Equal(t, 0, got.Code, got.Err)
	out := strings.ReplaceAll(got.Out, h.Path("manifests")+"/", "")
	for _, line := range []string{
		"  discord: users 444444444444444444; everywhere (tiers/guest.yaml:13)",
		"owner:\n  discord: users 111111111111111111; everywhere (tiers/owner.yaml:4)",
		"  discord: roles 800000000000000001; in 900000000000000001 (tiers/team.yaml:4)",
		"until 2024-06-30T18:00:00Z, which is over (tiers/team.yaml:6)",
		"  slack: anyone, people of other organisations too; in T0HOME001, channels C0HALL001 (tiers/guest.yaml:7)",
		"  slack: team; in T0HOME001, channels C0TEAM001; all who read there are team (tiers/team.yaml:11)",
	} {
		require.Contains(t, out, line)
	}
	var all []map[string]any
	require.NoError(t, json.Unmarshal([]byte(h.Bot("tiers", "--json", "--manifests", h.Path("manifests")).Out), &all))
	require.Len(t, all, 12)
	check := h.Bot("check", "--manifests", h.Path("manifests"))
	require.Equal(t, 0, check.Code, check.Err)
	require.Contains(t, check.Out, "tiers/team.yaml:6: the rule ended at 2024-06-30T18:00:00Z")
}

func TestDiffSaysWhoGainsAndLoses(t *testing.T) {
	t.Parallel()
	h := clubHouse(t)
	for tier, text := range club {
		switch tier {
		case "team":
			text = strings.Replace(text, `"222222222222222222"`, `"333333333333333333"`, 1) + "policy: {mode: read-only, network: model-only, tools: [read], runners: [claude, docs], model: {anthropic: big}}\nlimits: {wall: 10m}\n"
		case "guest":
			text, _, _ = strings.Cut(text, "block:")
		}
		h.Write("later/tiers/"+tier+".yaml", text)
	}
	got := h.Bot("diff", h.Path("manifests"), h.Path("later"))
	require.Equal(t, 0, got.Code, got.Err)
	out := strings.NewReplacer(h.Path("manifests"), "old", h.Path("later"), "new").Replace(got.Out)
	for _, line := range []string{
		"gain    team, user: user 333333333333333333 is team on discord in 900000000000000001, channels 700000000000000001 (new/tiers/team.yaml:5)",
		"loss    team, user: no longer: user 222222222222222222 is team on discord in 900000000000000001, channels 700000000000000001 (old/tiers/team.yaml:5)",
		"gain    block: no longer: user 444444444444444444 is blocked on discord (old/tiers/guest.yaml:13)",
		"gain    team, policy: tools: read added", "gain    team, policy: model: big for anthropic, was claude-haiku-4-5",
		"gain    team, limits: wall: 600000 ms, was 240000 ms", "loss    team, policy: runners: codex taken away",
	} {
		require.Contains(t, out, line)
	}
	var changes struct{ Gains, Losses, Changes []manifests.Change }
	require.NoError(t, json.Unmarshal([]byte(h.Bot("diff", "--json", h.Path("manifests"), h.Path("later")).Out), &changes))
	require.NotEmpty(t, changes.Gains)
	require.Len(t, changes.Changes, len(changes.Gains)+len(changes.Losses))
	same := h.Bot("diff", h.Path("manifests"), h.Path("manifests"))
	require.Equal(t, "no difference in rights\n", same.Out)
	require.Equal(t, 2, h.Bot("diff", h.Path("manifests"), h.Path("nowhere")).Code)
}

// Whatever the way in, an id that no rule names is nobody (A26).
func TestEveryWayInAsksTheSameRules(t *testing.T) {
	t.Parallel()
	h := clubHouse(t)
	unknown := strings.Fields("--platform slack --workspace T0HOME001 --channel C0ELSE001 --user U0NOBODY1")
	where := []string{"--manifests", h.Path("manifests")}
	config := h.Write("config.yaml", "manifests: ./manifests\n")
	for name, way := range map[string][]string{
		"explain": append(append([]string{"explain"}, where...), unknown...),
		"accept":  append(append(append([]string{"accept"}, where...), unknown...), "what is this?"),
		"config":  append([]string{"explain", "--config", config}, unknown...),
	} {
		got := h.Bot(append(way, "--json")...)
		require.Contains(t, got.Out, `"tier":"none"`, "%s: %s %s", name, got.Out, got.Err)
		if way[0] == "explain" { // which tells what would make them guest too
			require.Contains(t, got.Out, `"decision":{"tier":"none"`, name)
			require.Contains(t, got.Out, `"in_force":{"tier":"none"`, name)
			continue
		}
		require.NotContains(t, got.Out, `"tier":"guest"`, name)
	}
}

// A limit on a category holds for a gateway that does not tell categories.
func TestAGatewayThatTellsNoCategoryGetsLess(t *testing.T) {
	t.Parallel()
	h := house.New(t)
	h.Write("manifests/tiers/team.yaml", "tier: team\nmatch: {discord: [{users: [\"222222222222222222\"]}]}\n")
	h.Write("manifests/tiers/guest.yaml", "tier: guest\nplaces: {discord: [{guild: \"900000000000000001\", categories: [\"710000000000000001\"]}]}\n")
	for category, want := range map[string]string{"": "guest", "710000000000000001": "guest", "710000000000000002": "team"} {
		args := strings.Fields("accept --json --platform discord --workspace 900000000000000001 --channel 700000000000000001 --user 222222222222222222")
		if category != "" {
			args = append(args, "--category", category)
		}
		got := h.Bot(append(args, "--manifests", h.Path("manifests"), "what is this?")...)
		require.Contains(t, got.Out, `"tier":"`+want+`"`, "category %q: %s", category, got.Err)
	}
	other := strings.Fields("accept --json --platform discord --workspace 900000000000000002 --channel 700000000000000001 --user 222222222222222222")
	require.Contains(t, h.Bot(append(other, "--manifests", h.Path("manifests"), "what is this?")...).Out, `"tier":"team"`)
}

// The schema that editors get knows the keys that the loader reads.
func TestTheSchemaFitsTheShippedManifests(t *testing.T) {
	t.Parallel()
	got := house.New(t).Bot("schema")
	require.Equal(t, 0, got.Code, got.Err)
	var schema map[string]any
	require.NoError(t, json.Unmarshal([]byte(got.Out), &schema))
	properties := schema["properties"].(map[string]any)
	for _, section := range []string{"tier", "match", "places", "block", "policy", "limits", "asking", "reply", "expect"} {
		require.Contains(t, properties, section)
	}
	require.Equal(t, false, schema["additionalProperties"])
	match := properties["match"].(map[string]any)["properties"].(map[string]any)
	entry := match["discord"].(map[string]any)["items"].(map[string]any)
	require.Equal(t, false, entry["additionalProperties"])
	users := entry["properties"].(map[string]any)["users"].(map[string]any)["items"].(map[string]any)
	require.Equal(t, "^[0-9]{17,20}$", users["pattern"])
}
