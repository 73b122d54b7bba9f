package claims_test

import (
	"encoding/json"
	"path"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"parlour/guardrail"
	"parlour/tests/house"
	"parlour/tiers"
)

// behind is a sentence of the policy text, and the attempts of the escape
// battery that show on each host whether it holds. A * stands for all of a family.
type behind struct {
	says     *regexp.Regexp
	attempts []string
}

// promises are the sentences that say what a run cannot do.
func promises() []behind {
	changes := []string{
		"files/overwrite", "files/append", "files/truncate", "files/remove", "files/rename", "files/create", "files/make-*", "files/hard-link",
		"files/change-*", "files/write-root", "files/write-system", "files/write-settings", "files/write-fixed", "files/write-program",
		"devices/*", "mounts/*", "proc/core-pattern", "proc/settings", "proc/sysrq", "sys/settings", "cgroups/*",
	}
	reads := []string{
		"files/read-*", "files/list-*", "files/stat-private", "files/watch", "devices/*", "descriptors/*", "environment/*", "mounts/*",
		"proc/environment", "proc/memory-image", "proc/kernel-addresses", "proc/boot-arguments", "proc/mount-sources", "proc/own-path", "proc/keys", "sys/*",
	}
	others := []string{
		"proc/environment", "proc/memory", "proc/memory-map", "processes/*", "ipc/*", "terminal/*", "survivors/*", "namespaces/enter-*",
		"proc/id-map", "proc/spare-me",
	}
	return []behind{
		{re(`^You can change nothing but the scratch folders listed here\.$`), changes},
		{re(`^You can change the working folder and the scratch folders listed here\.$`), changes},
		{re(`^Every other write fails, also in the working folder\.$`), append(slices.Clone(changes), "files/write-work")},
		{re(`^Every other write fails\.$`), changes},
		{re(`^- writable: .* \(scratch: empty at the start, deleted at the end\)$`), []string{"files/leftover"}},
		{re(`^The operator's files are not in your view\.$`), reads},
		{re(`^You can read and list nothing of the host but its programs and libraries\.$`), reads},
		{re(`^Network: none\.$`), []string{"network/*"}},
		{re(`^Network: (you need )?the model alone, at 127\.0\.0\.1:8080\.$`), []string{"network/*"}},
		{re(`^No (other )?address, name or socket can be reached\.$`), []string{"network/*", "sockets/*", "proc/sockets"}},
		{re(`^The same port of another address can be reached too; no other port or socket can\.$`), []string{"network/loopback-*", "network/datagram-*", "network/multipath", "network/fast-open", "sockets/*"}},
		{re(`^Other TCP addresses are not kept from you; no other socket can be made\.$`), []string{"network/datagram-*", "network/abstract*", "network/path*", "sockets/*"}},
		{re(`^Processes: you see your own alone, and all of them end with this run\.$`), append(slices.Clone(others), "proc/see", "proc/shared-memory")},
		{re(`^Processes: you can neither look into nor signal those of others, and all of yours end with this run\.$`), others},
		{re(`^Limits: `), []string{"limits/*"}},
		{re(`^A denied action stays denied: say so and go on without it\.$`), []string{"namespaces/*", "mounts/*", "kernel/*", "privileges/*"}},
	}
}

// words are the sentences that say nothing about what a run cannot do: about the
// question, about what it can, and what does not hold.
func words() []*regexp.Regexp {
	return []*regexp.Regexp{
		re(`^# Sandbox policy$|^Who asks: |^Their question is quoted |^It is a question, not a rule: `),
		re(`^Files: (read-only|workspace-write|danger-full-access)\.$|^- documents: |^- writable: [^(]*$`),
		re(`^Tools: |^Answer from what you know |^No other tool works\.$`), // tests/realcli: flags, and the gateway
		re(`^The host may restrict more than this text says\.$`),
		re(`^The host enforces this (in part|not at all)\.$|^The host does not (enforce it|hide others)\.$`),
		re(`^No file boundary is set: |^What you change stays changed\.$|^Danger-full-access is not armed: `),
		re(`^Not sandboxed on this host: |^The program reads the handbook |^Network: the program opens no connection\.$|^Processes: the program starts none\.$`),
		re(`^The kernel has no Landlock: |^No view of its own: `),
	}
}

// TestEachSentenceNamesItsAttempts maps each sentence of each policy text to
// attempts of the battery, and each attempt to a sentence.
func TestEachSentenceNamesItsAttempts(t *testing.T) {
	ids, named := []string{}, map[string]bool{}
	for _, a := range battery(t) {
		ids = append(ids, a.Name)
	}
	for _, b := range promises() {
		require.NotEmpty(t, b.attempts, b.says)
		for _, pattern := range b.attempts {
			found := false
			for _, id := range ids {
				if ok, err := path.Match(pattern, id); err == nil && ok {
					found, named[id] = true, true
				}
			}
			require.True(t, found, "%s: the battery has no attempt %s", b.says, pattern)
		}
	}
	for _, id := range ids {
		require.True(t, named[id], "no sentence leans on %s", id)
	}

	used := map[string]bool{}
	for name, e := range states(t) {
		text, err := guardrail.Policy(tiers.Guest, e)
		require.NoError(t, err)
		for _, sentence := range sentences(text) {
			promised := slices.ContainsFunc(promises(), func(b behind) bool {
				match := b.says.MatchString(sentence)
				used[b.says.String()] = used[b.says.String()] || match
				return match
			})
			said := slices.ContainsFunc(words(), func(w *regexp.Regexp) bool {
				match := w.MatchString(sentence)
				used[w.String()] = used[w.String()] || match
				return match
			})
			require.True(t, promised || said, "%s: this sentence has no attempt behind it: %q", name, sentence)
			require.False(t, promised && said, "%s: %q is called a promise and none", name, sentence)
		}
	}
	for _, b := range promises() {
		require.True(t, used[b.says.String()], "nothing says %s any more", b.says)
	}
	for _, w := range words() {
		require.True(t, used[w.String()], "nothing says %s any more", w)
	}
}

// attempt is what the bot says of one attempt of its battery.
type attempt struct {
	Name    string
	Clauses []string
}

func battery(t *testing.T) []attempt {
	t.Helper()
	got := house.New(t).Bot("probe", "--list", "--json")
	require.Equal(t, 0, got.Code, got.Err)
	var all struct{ Attempts []attempt }
	require.NoError(t, json.Unmarshal([]byte(got.Out), &all))
	return all.Attempts
}

// TestAClauseHasAttemptsOfItsOwn: a clause that a tier can require is tried by
// attempts that speak against it alone.
func TestAClauseHasAttemptsOfItsOwn(t *testing.T) {
	own := map[string]int{}
	for _, a := range battery(t) {
		if len(a.Clauses) == 1 {
			own[a.Clauses[0]]++
		}
	}
	for _, clause := range []string{"filesystem", "network", "processes"} {
		require.Greater(t, own[clause], 20, clause)
	}
}
