package config_test

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/stretchr/testify/require"

	"parlour/manifests"
	"parlour/tests/cases"
	"parlour/tiers"
)

// The ids of the cases below.
const (
	caseOwner   = "111111111111111111"
	caseTeam    = "222222222222222222"
	caseGuest   = "333333333333333333"
	caseGuild   = "900000000000000001"
	caseRole    = "800000000000000001"
	caseChannel = "700000000000000001"
)

// asked is one message, and what its sender must be.
type asked struct {
	what  string
	who   tiers.Identity
	where tiers.Place
	want  tiers.Tier
}

func onDiscord(user, guild string, roles ...string) tiers.Identity {
	return tiers.Identity{Platform: tiers.Discord, Workspace: guild, User: user, Kind: tiers.Person, Member: guild != "", Roles: roles}
}

func inChannel(guild, channel string) tiers.Place {
	return tiers.Place{Platform: tiers.Discord, Workspace: guild, Channel: channel, Most: tiers.Owner, Direct: guild == ""}
}

func onSlack(user string) tiers.Identity {
	return tiers.Identity{Platform: tiers.Slack, Workspace: "T0HOME001", User: user, Kind: tiers.Person, Member: true}
}

func inSlack() tiers.Place {
	return tiers.Place{Platform: tiers.Slack, Workspace: "T0HOME001", Channel: "C0123ABCD", Most: tiers.Owner}
}

// identityCase is a folder that another bot would have read as more rights than
// it gives. What an adapter has to do with a platform's events is tested in
// tests/contract, what a running bot has to do in tests/journeys.
type identityCase struct {
	cases.Case
	what  string
	files map[string]string
	asked []asked
}

func ownerFile(users string) string {
	return "tier: owner\nmatch:\n  discord:\n    - users: " + users + "\n"
}

func identityCases() []identityCase {
	owner := inChannel(caseGuild, caseChannel)
	return []identityCase{
		{cases.Public("B01", "openclaw/openclaw#27775, PR 16691, PR 22397; open-gsd/gsd-pi#280, PR 364; measured: yaml.v3 3.0.1"), "bare and in quotes", map[string]string{
			"tiers/owner.yaml": ownerFile("[1048693844750901359]"), "tiers/team.yaml": "tier: team\nmatch: {discord: [{users: [\"1048693844750901358\"]}]}\n",
		}, []asked{
			{"without quotes", onDiscord("1048693844750901359", ""), inChannel("", caseChannel), tiers.Owner},
			{"in quotes", onDiscord("1048693844750901358", ""), inChannel("", caseChannel), tiers.Team},
			{"rounded as a float rounds", onDiscord("1048693844750901400", ""), inChannel("", caseChannel), tiers.None},
			{"rounded otherwise", onDiscord("1048693844750901248", ""), inChannel("", caseChannel), tiers.None},
		}},
		{cases.Public("B07", "Growth-Circle/cadis#3022, #359; rappdw/sandy PR 289; NousResearch/hermes-agent PR 8410, PR 58583; littlebearapps/untether#84"), "nobody is listed",
			map[string]string{"tiers/owner.yaml": ownerFile("[]"), "tiers/team.yaml": "tier: team\nmatch: {discord: [], slack: []}\n", "tiers/guest.yaml": "tier: guest\nmatch: {}\n"},
			[]asked{{"owner with empty users", onDiscord(caseOwner, caseGuild), owner, tiers.None}}},
		{cases.Public("B07", "Growth-Circle/cadis#3022, #359; rappdw/sandy PR 289; NousResearch/hermes-agent PR 8410, PR 58583; littlebearapps/untether#84"), "the folder is empty",
			nil, []asked{{"no file at all", onDiscord(caseOwner, caseGuild), owner, tiers.None}}},
		{cases.Public("B16", "measured"), "a byte order mark and CRLF", map[string]string{
			"tiers/owner.yaml": "\ufeff" + strings.ReplaceAll(ownerFile("[\""+caseOwner+"\"]"), "\n", "\r\n"),
		}, []asked{{"the same tiers", onDiscord(caseOwner, caseGuild), owner, tiers.Owner}}},
		{cases.Public("B19", "NVIDIA/NeMo-Agent-Toolkit PR 157 (unset gives empty); derived"), "an event without an author's id", map[string]string{
			"tiers/owner.yaml": ownerFile("[\"" + caseOwner + "\"]"),
		}, []asked{{"no author", onDiscord("", caseGuild), owner, tiers.None}, {"in a direct message", onDiscord("", ""), inChannel("", caseChannel), tiers.None}}},
		{cases.Public("B32", "openabdev/openab config.toml.example"), "the last id was taken out of the list", map[string]string{
			"tiers/team.yaml": "tier: team\nmatch:\n  discord:\n    - guild: \"" + caseGuild + "\"\n      users: []\n",
		}, []asked{{"the door stays closed", onDiscord(caseTeam, caseGuild), owner, tiers.None}}},
		{cases.Public("B35", "Jbarfield101/Blossom_Music-gen docs/discord.md (config/discord.yaml)"), "roles: [] and channels: []", map[string]string{
			"tiers/team.yaml":  "tier: team\nmatch: {discord: [{guild: \"" + caseGuild + "\", roles: []}]}\n",
			"tiers/guest.yaml": "tier: guest\nmatch: {discord: [{guild: \"" + caseGuild + "\", channels: [], anyone: true}]}\n",
		}, []asked{{"empty means nobody", onDiscord(caseGuest, caseGuild, caseRole), owner, tiers.None}}},
		{cases.Public("B38", "public config file (connectors/<platform>.toml, repository not named)"), "Discord alone", map[string]string{
			"tiers/owner.yaml": ownerFile("[" + caseOwner + "]"),
		}, []asked{
			{"there", onDiscord(caseOwner, caseGuild), owner, tiers.Owner},
			{"on the platform that no file speaks of", onSlack("U0OWNER01"), inSlack(), tiers.None},
		}},
	}
}

func TestPublicCasesOfIdentity(t *testing.T) {
	for _, c := range identityCases() {
		t.Run(c.ID()+" "+c.what, func(t *testing.T) {
			c.In(t)
			t.Parallel()
			set, err := manifests.Check(operator(t, c.files))
			require.NoError(t, err)
			for _, a := range c.asked {
				d := set.Rules().Resolve(a.who, a.where, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
				require.Equal(t, a.want, d.Tier, "%s: %s", a.what, d.Why)
			}
		})
	}
}

// What the schema says of a key stands beside the key in an editor.
func TestFilesSayWhatTheyMeanAndWhenTheyAreRead(t *testing.T) {
	cases.Public("B35", "Jbarfield101/Blossom_Music-gen docs/discord.md (config/discord.yaml)").In(t)
	cases.Public("B40", "42wim/matterbridge matterbridge.toml.sample").In(t)
	text, err := manifests.Schema()
	require.NoError(t, err)
	require.Contains(t, string(text), "Read again while the bot serves: less right is in force at once, more after bot accept-gains.")
	example, err := os.ReadFile(filepath.Join("..", "..", "config.example.yaml"))
	require.NoError(t, err)
	require.Contains(t, string(example), "read at a start only")
	require.Contains(t, string(text), "An empty list matches nobody.")
	require.Contains(t, string(text), "An empty list: nowhere.")
}

// fileCase is a fault of other bots in reading files, with the texts that showed it.
type fileCase struct {
	cases.Case
	texts []badText
}

// badText is what stands in the files, and parts of the faults, in any order.
type badText struct {
	what  string
	files map[string]string
	want  []string
}

func guestText(text string) map[string]string { return map[string]string{"tiers/guest.yaml": text} }

func ownerUsers(list string) map[string]string {
	return map[string]string{"tiers/owner.yaml": "tier: owner\nmatch: {discord: [{users: " + list + "}]}\n"}
}

func slackUsers(list string) map[string]string {
	return map[string]string{"tiers/team.yaml": "tier: team\nmatch: {slack: [{workspace: T0HOME001, users: " + list + "}]}\n"}
}

func anyoneIs(value string) map[string]string {
	return guestText("tier: guest\nmatch: {discord: [{guild: \"" + caseGuild + "\", channels: [\"" + caseChannel + "\"], anyone: " + value + "}]}\n")
}

// utf16le is a text as some editors save it.
func utf16le(text string) string {
	out := []byte{0xff, 0xfe}
	for _, unit := range utf16.Encode([]rune(text)) {
		out = binary.LittleEndian.AppendUint16(out, unit)
	}
	return string(out)
}

func idCases() []fileCase {
	const names = "names, mentions and addresses can be taken over by others"
	const star = "* does not mean everybody"
	return []fileCase{
		{cases.Public("A02", "Cog-Creators/Red-DiscordBot#48; NousResearch/hermes-agent PR 41246; getpaseo/hub PR 49"), []badText{
			{"a name", ownerUsers("[alice]"), []string{"tiers/owner.yaml:2:28: ", `"alice" is not a Discord user id`, names}},
			{"a handle", ownerUsers(`["@alice"]`), []string{"tiers/owner.yaml:2:28: ", `"@alice"`, names}},
			{"a tag", ownerUsers(`["alice#0001"]`), []string{"tiers/owner.yaml:2:28: ", `"alice#0001"`, names}},
			{"an address", ownerUsers("[alice@example.org]"), []string{"tiers/owner.yaml:2:28: ", `"alice@example.org"`, names}},
			{"on Slack", slackUsers("[alice]"), []string{"tiers/team.yaml:2:48: ", `"alice" is not a Slack user id`}},
		}},
		{cases.Public("B02", "openabdev/openab PR 70 (#43, #64); measured"), []badText{
			{"as Helm wrote it", ownerUsers("[1.048693844750901359e18]"), []string{"tiers/owner.yaml:2:28: ", "something turned it into a rounded number"}},
		}},
		{cases.Public("B04", "measured; unicode cases as in ECC PR 1982"), []badText{
			{"a blank of no width", slackUsers(`["U0AAA0001\u200b"]`), []string{"it holds U+200B"}},
			{"the character itself", slackUsers("[\"U0AAA0001\u200b\"]"), []string{"it holds U+200B"}},
			{"a turn of direction", slackUsers(`["\u2066U0AAA0001"]`), []string{"it holds U+2066"}},
			{"look-alikes", slackUsers("[U0ААА0001]"), []string{"it holds U+0410"}},
		}},
		{cases.Public("B08", `chenhg5/cc-connect config.example.toml (allow_from="*" default, admin_from="*" warned)`), []badText{
			{"owner", ownerUsers(`["*"]`), []string{"tiers/owner.yaml:2:28: ", star, "exact ids; for every person of a channel, anyone: true with its channels"}},
			{"team", slackUsers(`["*"]`), []string{"tiers/team.yaml:2:48: ", star}},
			{"guest", guestText("tier: guest\nmatch: {discord: [{users: [\"*\"]}]}\n"), []string{"tiers/guest.yaml:2:28: ", star}},
		}},
		{cases.Public("B19", "NVIDIA/NeMo-Agent-Toolkit PR 157 (unset gives empty); derived"), []badText{
			{"a variable that is not set", ownerUsers(`["${OWNER_ID}"]`), []string{"variables are not filled in"}},
			{"an empty id", ownerUsers(`[""]`), []string{"an empty id matches nobody"}},
		}},
		{cases.Public("B31", "chenhg5/cc-connect config.example.toml"), []badText{
			{"a list with commas in one string", ownerUsers("\"" + caseOwner + "," + caseTeam + "\""), []string{"tiers/owner.yaml:2:27: ", "a list: each entry on its own"}},
			{"roles with ids", guestText("tier: guest\nroles:\n  member:\n    user_ids: [\"*\"]\n"), []string{`unknown key "roles"`}},
			{"where rates are", guestText("tier: guest\nrate_limit: 4\nasking: {per_minute: none}\n"), []string{`unknown key "rate_limit"`, "asking.per_minute is"}},
		}},
		{cases.Public("B34", "ZeppelinBot/Zeppelin README (config/<guildId>.yml)"), []badText{
			{"one role at two levels", map[string]string{
				"tiers/team.yaml":  "tier: team\nmatch: {discord: [{guild: \"" + caseGuild + "\", roles: [\"" + caseRole + "\"]}]}\n",
				"tiers/guest.yaml": "tier: guest\nmatch: {discord: [{guild: \"" + caseGuild + "\", roles: [\"" + caseRole + "\"]}]}\n",
			}, []string{"tiers/guest.yaml:2:57: the role " + caseRole + " is team already (", "tiers/team.yaml:2:57)"}},
			{"levels as keys", guestText("tier: guest\nlevels: {100: \"" + caseRole + "\", 50: \"" + caseRole + "\", \"100\": x}\n"),
				[]string{`unknown key "levels"`, `the key "100" stands here and at 2:10`}},
		}},
	}
}

func yamlCases() []fileCase {
	bomb := "a0: &a0 [x]\n"
	for i := range 9 {
		inner := strings.TrimSuffix(strings.Repeat("*a"+string(rune('0'+i))+",", 9), ",")
		bomb += "a" + string(rune('1'+i)) + ": &a" + string(rune('1'+i)) + " [" + inner + "]\n"
	}
	return []fileCase{
		{cases.Public("B05", "YAML 1.1 booleans; measured"), []badText{
			{"yes", anyoneIs("yes"), []string{`match.discord.anyone is "yes"; right: true or false, without quotes`}},
			{"on", anyoneIs("on"), []string{`match.discord.anyone is "on"; right: true or false, without quotes`}},
			{"a quoted true", anyoneIs(`"true"`), []string{`match.discord.anyone is "true"; right: true or false, without quotes`}},
			{"no", guestText("tier: no\n"), []string{`tier is "no"`, "one of guest, team, owner"}},
		}},
		{cases.Public("B10", "yaml/pyyaml#165; go-yaml/yaml#410; measured"), []badText{
			{"a block twice", guestText("tier: guest\nmatch: {}\nmatch: {}\n"), []string{`tiers/guest.yaml:3:1: the key "match" stands here and at 2:1`}},
			{`"1" and 1`, guestText("tier: guest\n\"1\": {}\n1: {}\n"), []string{`tiers/guest.yaml:3:1: the key "1" stands here and at 2:1`}},
		}},
		{cases.Public("B11", "measured"), []badText{
			{"a blank, and capitals", guestText("tier: guest\nmatch: {\"discord \": [], DISCORD: []}\n"), []string{
				`tiers/guest.yaml:2:9: unknown key "discord " in match (it holds U+0020)`, `tiers/guest.yaml:2:25: unknown key "DISCORD" in match`, "discord? "}},
			{"in a tier's own name", map[string]string{"tiers/OWNER.yaml": "tier: owner\n", "tiers/owner .yaml": "tier: owner\n"}, []string{
				"tiers/OWNER.yaml: this file is not read; right: owner? ", "tiers/owner .yaml: this file is not read"}},
		}},
		{cases.Public("B13", "measured"), []badText{
			{"anchors under an extra key", guestText("tier: guest\nx-common: &c {discord: []}\nmatch: *c\n"), []string{
				`unknown key "x-common"`, "tiers/guest.yaml:2:11: anchors and aliases (& and *) are not read", "tiers/guest.yaml:3:8: anchors and aliases"}},
		}},
		{cases.Public("B14", "csstaub/hue-scene-keeper#12; dokku/docket#319; measured"), []badText{
			{"the second part restricts", guestText("tier: guest\n---\nmatch: {discord: []}\n"), []string{"tiers/guest.yaml:2:1: a second document begins here"}},
		}},
		{cases.Public("B16", "measured"), []badText{
			{"UTF-16", guestText(utf16le("tier: guest\n")), []string{"the file is UTF-16; right: UTF-8"}},
			{"a tab", guestText("tier: guest\nmatch:\n\tdiscord: []\n"), []string{"tiers/guest.yaml:3:1: a tab indents this line"}},
			{"a blank that is none", guestText("tier: guest\nmatch:\n\u00a0 discord: []\n  slack: []\n"), []string{"the character U+00A0 looks like a space and is none"}},
			{"a NUL", guestText("tier: guest\x00\n"), []string{"tiers/guest.yaml:1:12: the character U+0000"}},
			{"no UTF-8", guestText("tier: guest\xff\n"), []string{"tiers/guest.yaml:1:12: byte 0xFF is not UTF-8"}},
		}},
		{cases.Public("B17", "kubernetes/kubernetes#83253; nodeca/js-yaml#742; dasel advisory quoted in kjanat/actionlint PR 184; measured"), []badText{
			{"nine times nine aliases", guestText("tier: guest\n" + bomb), []string{"anchors and aliases"}},
			{"20,000 brackets", guestText(strings.Repeat("[", 20000)), []string{"tiers/guest.yaml:1:101: brackets stand more than 100 deep"}},
			{"50 MB of blanks", guestText(strings.Repeat(" ", 50<<20)), []string{"is larger than 8 MiB"}},
		}},
		{cases.Public("B28", "measured"), []badText{
			{"no unit", guestText("tier: guest\nlimits: {wall: 240}\n"), []string{"a time with its unit and more than zero, such as 45s or 4m"}},
			{"no unit in quotes", guestText("tier: guest\nlimits: {wall: \"240\"}\n"), []string{"such as 45s or 4m"}},
			{"a clock", guestText("tier: guest\nlimits: {wall: 4:00}\n"), []string{"such as 45s or 4m"}},
			{"negative", guestText("tier: guest\nlimits: {wall: -5s}\n"), []string{"more than zero"}},
			{"zero", guestText("tier: guest\nlimits: {wall: 0}\n"), []string{"more than zero"}},
		}},
		{cases.Public("B29", "NousResearch/hermes-agent PR 109782"), []badText{
			{"a blank", guestText("tier: guest\nlimits: {stall: \"15 s\"}\n"), []string{`limits.stall is "15 s"`}},
			{"nan", guestText("tier: guest\nlimits: {stall: nan}\n"), []string{`limits.stall is "nan"`}},
			{"true", guestText("tier: guest\nlimits: {stall: true}\n"), []string{`limits.stall is "true"`}},
		}},
		{cases.Public("B38", "public config file (connectors/<platform>.toml, repository not named)"), []badText{
			{"a file for each platform", map[string]string{"tiers/discord.yaml": "allow_from: [1]\n"}, []string{"tiers/discord.yaml: this file is not read"}},
		}},
		{cases.Public("B41", "issc29/probot-prevent-public-repos#7; probot/reminders#14; repository-settings/app#130"), []badText{
			{"a handle", guestText("tier: guest\nmatch: @alice @bob\n"), []string{"tiers/guest.yaml:2:8: not YAML: @ cannot start a value"}},
			{"twice", guestText("tier: guest\nreply: {where: thread, where: thread}\n"), []string{`tiers/guest.yaml:2:24: the key "where" stands here and at 2:9`}},
		}},
	}
}

func TestPublicCasesOfFiles(t *testing.T) {
	for _, c := range append(idCases(), yamlCases()...) {
		for _, bad := range c.texts {
			t.Run(c.ID()+" "+bad.what, func(t *testing.T) {
				c.In(t)
				t.Parallel()
				began := time.Now()
				set, err := manifests.Load(operator(t, bad.files))
				require.Nil(t, set)
				var faults manifests.Faults
				require.ErrorAs(t, err, &faults)
				for _, part := range bad.want {
					require.ErrorContains(t, err, part)
				}
				require.Less(t, time.Since(began), 5*time.Second)
			})
		}
	}
}

func TestATimeWithItsUnitIsRead(t *testing.T) {
	cases.Public("B28", "measured").In(t)
	set, err := manifests.Load(operator(t, guestText("tier: guest\nlimits: {wall: 240s}\n")))
	require.NoError(t, err)
	guest, _ := set.Tier(tiers.Guest)
	require.Equal(t, 4*time.Minute, guest.Wish.Limits.Wall)
}

// Files with secrets, and files that others can write.
func TestPublicCaseB26(t *testing.T) {
	cases.Public("B26", "Noksa/gokeenapi PR 39; sigoden/aichat#103; JOJ0/synadm#7; xetys/hetzner-kube#188").In(t)
	config := filepath.Join(t.TempDir(), "config.yaml")
	write(t, config, "discord: {token: sentinel-of-a-token}\n") // mode 0644
	_, err := manifests.LoadConfig(config)
	require.ErrorContains(t, err, config+":1:18: discord.token is not a reference to a secret", "no file of ours holds a secret")
	require.NotContains(t, err.Error(), "sentinel")
	for path, mode := range map[string]os.FileMode{"tiers/owner.yaml": 0o666, "tiers": 0o777, ".": 0o777, "runners": 0o777} {
		dir := operator(t, ownerUsers("["+caseOwner+"]"))
		require.NoError(t, os.Chmod(filepath.Join(dir, path), mode))
		_, err := manifests.Load(dir)
		require.ErrorContains(t, err, "can be written by everybody", path)
	}
}
