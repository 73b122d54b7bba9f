package manifests

import (
	"parlour/runner/policy"
	"parlour/tiers"
)

// key is one key of a tier file. The loader knows the keys of a mapping from
// these tables, and Schema is made from them, so that an editor proposes what
// the loader reads.
type key struct {
	name  string
	what  string // for whoever writes the file
	value shape
	must  bool
}

// shape is the form of a value.
type shape struct {
	kind  string // mapping, list, text, word, id, time, duration, size, whole, truth
	keys  []key  // of a mapping
	of    *shape // of a list
	words []string
	form  string // a regular expression, for ids and texts
	least int    // of a whole number, or of the entries of a list
}

// names gives the names of keys, for reader.fields.
func names(keys []key) []string {
	out := make([]string, len(keys))
	for i, k := range keys {
		out[i] = k.name
	}
	return out
}

func listOf(s shape) shape         { return shape{kind: "list", of: &s} }
func wordOf(words ...string) shape { return shape{kind: "word", words: words} }
func mappingOf(keys ...key) shape  { return shape{kind: "mapping", keys: keys} }
func idOf(k idKind) shape          { return shape{kind: "id", form: k.form} }

func tierKeys() []key {
	return []key{
		{"tier", "The tier that the file describes, as its name does.", wordOf(tierWords()...), true},
		{"match", "Who is in the tier: ids, never names. An empty list matches nobody.", byNetwork(matchKeys), false},
		{"places", "Where nobody is more than the tier.", byNetwork(placeKeys), false},
		{"block", "Who may do nothing, whatever any file gives them.", byNetwork(blockKeys), false},
		{"policy", "What a run of the tier may do.", mappingOf(policyKeys()...), false},
		{"limits", "What one run may use. What is left out is as in the shipped guest.yaml.", mappingOf(limitKeys()...), false},
		{"asking", "How much one person may ask, and what a day may cost.", mappingOf(askingKeys()...), false},
		{"reply", "How an answer is posted.", mappingOf(replyKeys()...), false},
		{"expect", "Cases that must hold, tried against all tier files at every load.", listOf(mappingOf(expectKeys()...)), false},
	}
}

// byNetwork gives the mapping that holds a list of entries for each platform.
func byNetwork(entry func(network) []key) shape {
	var keys []key
	for _, n := range networks() {
		keys = append(keys, key{string(n.platform), "", listOf(mappingOf(entry(n)...)), false})
	}
	return mappingOf(keys...)
}

func matchKeys(n network) []key {
	keys := append(scopeKeys(n), key{"users", "User ids.", listOf(idOf(n.user)), false})
	if n.platform == tiers.Discord {
		keys = append(keys, key{"roles", "Role ids of the guild; they never give owner.", listOf(idOf(discordID("role"))), false})
	} else {
		keys = append(keys, key{"groups", "User group ids of the workspace; they never give owner.", listOf(idOf(slackGroup())), false})
	}
	keys = append(keys, key{"anyone", "true: every member in the channels; no bots, webhooks or direct messages.", shape{kind: "truth"}, false})
	if n.platform == tiers.Slack {
		keys = append(keys, key{"external", "People of other organisations: refuse, or guest.", wordOf("refuse", "guest"), false})
	}
	return append(keys, key{"until", "When the rule ends, such as 2030-01-31T18:00:00Z.", shape{kind: "time"}, false})
}

// scopeKeys say where an entry holds.
func scopeKeys(n network) []key {
	keys := []key{
		{n.workspace, "The " + n.workspace + " that the ids belong to.", idOf(n.work), n.platform == tiers.Slack},
		{"channels", "Channels, with their threads and posts. An empty list: nowhere.", listOf(idOf(n.channel)), false},
	}
	if n.platform == tiers.Discord {
		keys = append(keys, key{"categories", "Categories, with all their channels.", listOf(idOf(discordID("category"))), false})
	}
	return keys
}

func placeKeys(n network) []key {
	return append(scopeKeys(n), key{"audience", "team: everybody who can read there is of the team.", wordOf("team"), false})
}

func blockKeys(n network) []key {
	keys := []key{
		{n.workspace, "The " + n.workspace + "; on Discord without it: everywhere.", idOf(n.work), n.platform == tiers.Slack},
		{"users", "User ids.", listOf(idOf(n.user)), false},
	}
	if n.platform == tiers.Discord {
		keys = append(keys, key{"roles", "Role ids of the guild.", listOf(idOf(discordID("role"))), false})
	} else {
		keys = append(keys, key{"groups", "User group ids of the workspace.", listOf(idOf(slackGroup())), false})
	}
	return keys
}

func policyKeys() []key {
	modes := []string{policy.ReadOnly.String(), policy.WorkspaceWrite.String(), policy.DangerFullAccess.String()}
	clauses := []string{}
	for _, c := range policy.Clauses() {
		clauses = append(clauses, c.String())
	}
	model := []key{}
	for _, p := range modelProviders() {
		model = append(model, key{string(p), "The name of a model of your account.", shape{kind: "text", form: `^[A-Za-z0-9][A-Za-z0-9._:/@-]{0,127}$`}, false})
	}
	model = append(model, key{"output_tokens", "The most tokens of one answer of the model.", shape{kind: "whole", least: 1}, false})
	return []key{
		{"mode", "danger-full-access is for the owner only.", wordOf(modes...), true},
		{"workspace", "", wordOf("none"), false},
		{"documents", "What the docs runner may cite.", listOf(wordOf(policy.Handbook)), false},
		{"tools", "Tools of the agent, for files inside of the sandbox.", listOf(wordOf(string(policy.Read), string(policy.Search))), false},
		{"network", "", wordOf(policy.ModelOnly.String(), policy.NetworkNone.String()), true},
		{"require", "What the host must enforce, else nothing is run.", shape{kind: "list", of: &shape{kind: "word", words: clauses}, least: 1}, false},
		{"runners", "Order and ceiling: names of files in runners/.", shape{kind: "list", of: &shape{kind: "text", form: "^[a-z0-9][a-z0-9-]{0,31}$"}, least: 1}, true},
		{"model", "The model of each provider.", mappingOf(model...), false},
	}
}

func limitKeys() []key {
	return []key{
		{"wall", "The whole run.", shape{kind: "duration"}, false},
		{"stall", "The longest silence.", shape{kind: "duration"}, false},
		{"memory", "", shape{kind: "size"}, false},
		{"disk", "All scratch folders together.", shape{kind: "size"}, false},
		{"files", "In each scratch folder.", shape{kind: "whole", least: 1}, false},
		{"processes", "", shape{kind: "whole", least: 1}, false},
		{"open_files", "", shape{kind: "whole", least: 1}, false},
		{"answer", "", shape{kind: "size"}, false},
		{"model_requests", "", shape{kind: "whole", least: 1}, false},
	}
}

func askingKeys() []key {
	return []key{
		{"per_minute", "Questions of one person.", shape{kind: "whole", least: 1}, false},
		{"running", "Of one person, at the same time.", shape{kind: "whole", least: 1}, false},
		{"waiting", "Of one person.", shape{kind: "whole"}, false},
		{"tokens_per_day", "", mappingOf(dayKeys()...), false},
	}
}

func dayKeys() []key {
	return []key{{"user", "", shape{kind: "whole", least: 1}, false}, {"tier", "", shape{kind: "whole", least: 1}, false}}
}

func replyKeys() []key {
	return []key{
		{"where", "", wordOf("thread"), false},
		{"mentions", "", wordOf("none"), false},
		{"unfurl", "", shape{kind: "truth"}, false},
	}
}

func expectKeys() []key {
	var keys []key
	for _, n := range networks() {
		keys = append(keys, key{string(n.platform), "Who asks, and where.", mappingOf(caseKeys(n)...), false})
	}
	return append(keys,
		key{"at", "When they ask; without it before every until.", shape{kind: "time"}, false},
		key{"tier", "What must come out.", wordOf(append(tierWords(), "none")...), true})
}

// caseKeys say who asks in a case of expect, and where.
func caseKeys(n network) []key {
	keys := []key{
		{n.workspace, "", idOf(n.work), n.platform == tiers.Slack},
		{"channel", "", idOf(n.channel), true},
		{"parent", "The channel that a thread belongs to.", idOf(n.channel), false},
	}
	if n.platform == tiers.Discord {
		keys = append(keys, key{"category", "The category of the channel, or of the thread's channel.", idOf(discordID("category")), false})
	}
	keys = append(keys,
		key{"direct", "A direct message.", shape{kind: "truth"}, false},
		key{"user", "", idOf(n.user), true})
	if n.platform == tiers.Discord {
		keys = append(keys, key{"roles", "The roles that they hold in the guild.", listOf(idOf(discordID("role"))), false})
	} else {
		keys = append(keys,
			key{"groups", "The user groups that they are in.", listOf(idOf(slackGroup())), false},
			key{"external", "true: somebody of another organisation.", shape{kind: "truth"}, false},
			key{"restricted", "true: a guest account of the workspace.", shape{kind: "truth"}, false})
	}
	return append(keys, key{"member", "false: not, or no longer, of the " + n.workspace + ".", shape{kind: "truth"}, false})
}
