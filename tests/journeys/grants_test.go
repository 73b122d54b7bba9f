package journeys

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"parlour/tests/house"
)

const visitor = "--platform discord --workspace 900000000000000001 --channel 700000000000000002 --parent 700000000000000002 --user 333333333333333333"

// inClub runs a command with the club's manifests.
func inClub(h *house.House, line string) house.Result {
	return h.Bot(append([]string{"--manifests", h.Path("manifests")}, strings.Fields(line)...)...)
}

func TestAGrantIsMadeListedAndTakenBack(t *testing.T) {
	t.Parallel()
	h := clubHouse(t)
	require.Equal(t, "no grants in "+h.Path("state", "parlour")+"\n", h.Bot("grants").Out)
	require.NoDirExists(t, h.Path("state", "parlour"), "looking begins nothing")
	got := h.Bot("--manifests", h.Path("manifests"), "grant", "--platform", "discord", "--workspace", "900000000000000001",
		"--channel", "700000000000000002", "--user", "333333333333333333", "--tier", "team", "--for", "1d12h", "--note", "Mia, for the talk")
	require.Equal(t, 0, got.Code, got.Err)
	until := time.Now().Add(36 * time.Hour).UTC().Format("2006-01-02T15")
	const whom = "team for discord user 333333333333333333 in channel 700000000000000002 of 900000000000000001"
	require.Regexp(t, "^granted 1: "+whom+", until "+until+`:\d\d:\d\dZ, in 1 d 12 h; take it back: bot revoke 1\n$`, got.Out)
	require.Contains(t, got.Err, "no bot serves from "+h.Path("state", "parlour")+" now")
	require.Regexp(t, "^1: "+whom+", until "+until+`:\d\d:\d\dZ, in 1 d 11 h \(Mia, for the talk\)\n$`, h.Bot("grants").Out)

	explained := inClub(h, "explain "+visitor).Out
	require.Contains(t, explained, "tier: team\nwhy: their user id makes them team (grant 1 until "+until)
	require.NotContains(t, explained, "Mia")
	require.Contains(t, inClub(h, "tiers").Out, "granted for a time:\n  discord: team, users 333333333333333333; in 900000000000000001, channels 700000000000000002; until "+until)
	require.Contains(t, inClub(h, "explain "+strings.ReplaceAll(visitor, "700000000000000002", "700000000000000003")).Out,
		"their user id would match, but it is for other channels")

	accepted := inClub(h, "accept --json "+visitor+" what?")
	require.Equal(t, 0, accepted.Code, accepted.Err)
	var job struct{ Job string }
	require.NoError(t, json.Unmarshal([]byte(accepted.Out), &job))
	require.Equal(t, "revoked 1: "+whom+"\n", h.Bot("revoke", "1").Out)
	require.Contains(t, h.Bot("grants").Out, "revoked at 20")
	require.NotContains(t, inClub(h, "tiers").Out, "granted for a time")
	require.Contains(t, inClub(h, "explain "+visitor).Out, "tier: none")
	asked := h.Bot("--manifests", h.Path("manifests"), "ask", "--job", job.Job)
	require.Equal(t, 3, asked.Code, "what waits for its turn is decided again: %s", asked.Err)
	require.Equal(t, 3, inClub(h, "accept "+visitor+" what?").Code)
	events := h.Bot("events").Out
	require.Contains(t, events, "granted 1: "+whom)
	require.Contains(t, events, "revoked 1: "+whom)
}

func TestGrantsAreTakenBackByNumberOrPerson(t *testing.T) {
	t.Parallel()
	h := clubHouse(t)
	give := func(flags string) {
		require.Equal(t, 0, inClub(h, "grant --platform discord --tier guest --for 1h "+flags).Code)
	}
	give("--workspace 900000000000000001 --user 333333333333333333")
	give("--workspace 900000000000000002 --user 333333333333333333")
	give("--workspace 900000000000000002 --user 777777777777777777")
	h.Write("broken.yaml", "mannifests: .\n")
	first := h.Bot("--config", h.Path("broken.yaml"), "--state", h.Path("state", "parlour"), "revoke", "1", "99")
	require.Equal(t, 2, first.Code)
	require.Contains(t, first.Out, "revoked 1: ", "neither a typo nor a faulty configuration stands in the way")
	require.Contains(t, first.Err, "bot: no grant 99 in "+h.Path("state", "parlour"))
	again := h.Bot("revoke", "1")
	require.Equal(t, 0, again.Code)
	require.Contains(t, again.Out, "grant 1 was over before: revoked at 20")
	other := h.Bot("revoke", "--platform", "discord", "--user", "333333333333333333", "--workspace", "900000000000000001")
	require.Equal(t, 0, other.Code)
	require.Contains(t, other.Out, "grant 1 was over before", "of the other guild nothing was said")
	person := h.Bot("revoke", "--json", "--platform", "discord", "--user", "333333333333333333")
	require.Equal(t, 0, person.Code, person.Err)
	require.Contains(t, person.Out, `{"revoked":[{"id":2,`)
	require.Equal(t, 1, strings.Count(h.Bot("grants").Out, "until 20"), "that of the other person holds")
	for _, wrong := range []string{"0", "-1", "bob", "1.5", "--user=333333333333333333", "--platform=discord", "3 --user=333333333333333333 --platform=discord",
		"--platform=discord --user=888888888888888888", "--platform=matrix --user=333333333333333333", "--platform=discord --user=@bob", ""} {
		got := h.Bot(append([]string{"revoke"}, strings.Fields(wrong)...)...)
		require.Equal(t, 2, got.Code, "%s: %s", wrong, got.Out)
		require.Equal(t, 1, strings.Count(got.Err, "\n"), got.Err)
	}
	require.Contains(t, h.Bot("grants").Out, "3: guest for discord user 777777777777777777 everywhere in 900000000000000002, until 20")
}

func TestRevokeSaysWhatIsLeft(t *testing.T) {
	t.Parallel()
	h := clubHouse(t)
	for _, flags := range []string{
		"--tier guest --workspace 900000000000000001 --user 333333333333333333", "--tier team --workspace 900000000000000001 --user 333333333333333333",
		"--tier guest --workspace 900000000000000002 --user 333333333333333333", "--tier guest --workspace 900000000000000001 --user 777777777777777777",
	} {
		require.Equal(t, 0, inClub(h, "grant --platform discord --for 1h "+flags).Code)
	}
	got := h.Bot("revoke", "1")
	require.Equal(t, 0, got.Code)
	require.Regexp(t, `^revoked 1: .*
they still have grant 2: team for discord user 333333333333333333 everywhere in 900000000000000001, until 20.*
they still have grant 3: guest for discord user 333333333333333333 everywhere in 900000000000000002, until 20.*
$`, got.Out)
	require.Contains(t, got.Err, "warning: no bot serves from "+h.Path("state", "parlour")+" now")
	require.Contains(t, h.Bot("revoke", "--json", "2").Out, `"left":[{"id":3,`)
	require.NotContains(t, h.Bot("revoke", "3").Out, "still")
	require.NotContains(t, h.Bot("revoke", "1").Out, "still", "of another person nothing is said")
}

// What a grant gives is not told of the time before it.
func TestAGrantDoesNotExplainTheTimeBeforeIt(t *testing.T) {
	t.Parallel()
	h := clubHouse(t)
	require.Equal(t, 0, inClub(h, "grant --platform discord --workspace 900000000000000001 --user 333333333333333333 --tier team --for 1h").Code)
	at := func(ago time.Duration) string { return " --at " + time.Now().Add(-ago).UTC().Format(time.RFC3339) }
	require.Contains(t, inClub(h, "explain "+visitor+at(0)).Out, "tier: team")
	before := inClub(h, "explain "+visitor+at(time.Hour))
	require.Contains(t, before.Out, "tier: none", before.Err)
	require.Contains(t, before.Out, "the grant was made later")
}

func TestWhatIsTypedWrongGrantsNothing(t *testing.T) {
	t.Parallel()
	h := clubHouse(t)
	right := map[string]string{
		"platform": "discord", "workspace": "900000000000000001", "channel": "700000000000000002", "user": "333333333333333333", "tier": "guest", "for": "1h",
	}
	try := func(edit map[string]string) house.Result {
		args := []string{"--manifests", h.Path("manifests"), "grant"}
		for _, name := range []string{"platform", "workspace", "channel", "user", "tier", "for", "until", "note", "external"} {
			value, given := right[name]
			if edited, ok := edit[name]; ok {
				value, given = edited, edited != "-"
			}
			if given {
				args = append(args, "--"+name+"="+value)
			}
		}
		return h.Bot(args...)
	}
	for want, edit := range map[string]map[string]string{
		"missing flags: --platform":         {"platform": "-"},
		"missing flags: --workspace":        {"workspace": "-"},
		"missing flags: --user":             {"user": "-"},
		"missing flags: --tier":             {"tier": "-"},
		`must be one of "discord","slack"`:  {"platform": "matrix"},
		"is not a Discord guild id":         {"workspace": "club"},
		"workspace, and none is named":      {"workspace": ""},
		"is not a Discord channel id":       {"channel": "#hall"},
		"an empty channel":                  {"channel": ""},
		"each id on its own":                {"channel": "700000000000000001,700000000000000002"},
		"is not a Discord user id":          {"user": "@mia"},
		"no user id is given":               {"user": ""},
		"it looks like a Slack":             {"user": "U0STRANGE1"},
		"a grant never gives owner":         {"tier": "owner"},
		`unknown tier "admin"`:              {"tier": "admin"},
		"a grant has an end: --for 24h":     {"for": "-"},
		`--for is "soon"`:                   {"for": "soon"},
		`--for is "1d-1h"`:                  {"for": "1d-1h"},
		`--for is "99999d"`:                 {"for": "99999d"},
		"have ended already":                {"for": "-1h"},
		"would have ended already, at 2020": {"for": "-", "until": "2020-01-31T18:00:00Z"},
		"366 days at most":                  {"for": "367d"},
		"--for or --until, not both":        {"until": "2030-01-31T18:00:00Z"},
		`--until is "tomorrow"`:             {"for": "-", "until": "tomorrow"},
		"with its zone":                     {"for": "-", "until": "2030-01-31T18:00:00"},
		"the note is longer than 200":       {"note": strings.Repeat("x", 201)},
		"the note holds the character":      {"note": "\x1b[2J"},
		"are known on slack only":           {"external": "true"},
		"is an organisation":                {"platform": "slack", "workspace": "E0HOME001", "user": "U0LENA001", "channel": "C0HALL001"},
		"is a direct message":               {"platform": "slack", "workspace": "T0HOME001", "user": "U0LENA001", "channel": "D0DIRECT1"},
		"organisations are guests at most":  {"platform": "slack", "workspace": "T0HOME001", "user": "U0LENA001", "channel": "C0HALL001", "tier": "team", "external": "true"},
	} {
		got := try(edit)
		require.Equal(t, 2, got.Code, "%s: %s%s", want, got.Out, got.Err)
		require.Contains(t, got.Err, want)
		require.Equal(t, 1, strings.Count(got.Err, "\n"), got.Err)
		require.Empty(t, got.Out)
	}
	require.NoDirExists(t, h.Path("state", "parlour"), "nothing was written")
	require.Equal(t, 0, try(nil).Code, "the control")
}

// A grant that has no effect is made all the same, and it is said why.
func TestAGrantThatDoesNothingIsWarnedOf(t *testing.T) {
	t.Parallel()
	h := clubHouse(t)
	const guild = "grant --platform discord --workspace 900000000000000001 --for 1h "
	for _, c := range []struct{ flags, want string }{
		{guild + "--tier team --user 444444444444444444", "they are blocked (tiers/guest.yaml:13): while that stands the grant gives them nothing"},
		{guild + "--tier team --user 111111111111111111", "they are owner there already (tiers/owner.yaml:4): the grant changes nothing while that stands"},
		{guild + "--tier team --channel 700000000000000001 --user 222222222222222222", "they are team in channel 700000000000000001 already (tiers/team.yaml:5)"},
		{guild + "--tier team --channel 700000000000000005 --user 333333333333333333", "in channel 700000000000000005 they are guest all the same: this place allows at most guest (tiers/guest.yaml:10)"},
		{guild + "--tier team --user 333333333333333333", "nobody is more than guest in channels 700000000000000005 (tiers/guest.yaml:10)"},
		{guild + "--tier guest --channel 700000000000000002 --user 888888888888888888", ""},
		{guild + "--tier guest --channel 700000000000000002 --user 333333333333333333", "they are team in channel 700000000000000002 already (grant 5 until 20"},
	} {
		got := inClub(h, c.flags)
		require.Equal(t, 0, got.Code, got.Err)
		said := strings.ReplaceAll(got.Err, h.Path("manifests")+"/", "")
		require.Contains(t, said, c.want)
		if c.want == "" {
			require.Equal(t, 1, strings.Count(said, "warning: "), said)
		}
	}
	require.Equal(t, 7, strings.Count(h.Bot("grants").Out, "\n"))
	// Blocks of roles and user groups may be about them: nobody was asked.
	h.Write("manifests/tiers/guest.yaml", "tier: guest\nblock:\n  discord:\n    - {guild: \"900000000000000001\", roles: [\"800000000000000066\"]}\n"+
		"  slack:\n    - {workspace: T0HOME001, groups: [S0BAN0001, S0BAN0002]}\n")
	for flags, want := range map[string]string{
		guild + "--tier team --user 888888888888888888":                                      "whoever has the role 800000000000000066 is blocked (tiers/guest.yaml:4); it is not known here whether they have it",
		"grant --platform slack --workspace T0HOME001 --for 1h --tier team --user U0LENA001": "whoever is in user group S0BAN0001 or S0BAN0002 is blocked (tiers/guest.yaml:6); it is not known here whether they are",
	} {
		got := inClub(h, flags)
		require.Equal(t, 0, got.Code, got.Err)
		said := strings.ReplaceAll(got.Err, h.Path("manifests")+"/", "")
		require.Contains(t, said, want)
		require.NotContains(t, said, "they are blocked")
		require.Equal(t, strings.Contains(flags, "slack"), strings.Contains(said, "they are team there already (tiers/team.yaml:8)"), said)
	}
	info, err := os.Stat(h.Path("state", "parlour"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
}
