package contract_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"

	"parlour/manifests"
	"parlour/tiers"
)

// decisionTable is what testdata/decisions.yaml holds. The first key of each
// mapping is a platform, the second a name.
type decisionTable struct {
	Rules  map[string]map[string]map[string]string `yaml:"rules"` // the texts of the tier files
	People map[string]map[string]somebody          `yaml:"people"`
	Places map[string]map[string]somewhere         `yaml:"places"`
	Grants map[string]map[string]granted           `yaml:"grants"`
	Rows   []decisionRow                           `yaml:"rows"`
}

type somebody struct {
	User, Workspace, Kind        string
	Member, External, Restricted bool
	Roles, Groups                []string
	Unasked                      bool // Slack did not tell the groups
}

type somewhere struct {
	Channel, Parent, Category, Workspace, Most string
	Direct                                     bool
}

type granted struct {
	Tier, Workspace, User string
	Channels              []string
	External              bool
	Until                 time.Time
}

type decisionRow struct {
	On, Rules, Grant, Who, Where, Tier, Because string
}

// grant gives the grant of a row; it ends with the next day if it says nothing.
func (g granted) grant(platform string, now time.Time) tiers.Grant {
	out := tiers.Grant{
		ID: 1, Platform: tiers.Platform(platform), Workspace: g.Workspace, Channels: g.Channels, User: g.User, External: g.External,
		Made: now.AddDate(0, 0, -1), Until: g.Until,
	}
	out.Tier, _ = tiers.Parse(g.Tier)
	if out.Until.IsZero() {
		out.Until = now.AddDate(0, 0, 1)
	}
	return out
}

func readDecisions(t *testing.T) decisionTable {
	t.Helper()
	file, err := os.Open(filepath.Join("testdata", "decisions.yaml"))
	require.NoError(t, err)
	defer file.Close()
	var table decisionTable
	decoder := yaml.NewDecoder(file)
	decoder.KnownFields(true)
	require.NoError(t, decoder.Decode(&table))
	return table
}

// identity gives somebody as the adapter of the platform tells of them at a
// place: whoever has no workspace of their own is of the place's.
func (s somebody) identity(platform string, at somewhere) tiers.Identity {
	kinds := map[string]tiers.Kind{"": tiers.Person, "bot": tiers.Bot, "webhook": tiers.Webhook}
	who := tiers.Identity{
		Platform: tiers.Platform(platform), Workspace: s.Workspace, User: s.User, Kind: kinds[s.Kind],
		Member: s.Member && at.Workspace != "", External: s.External, Restricted: s.Restricted, Roles: s.Roles,
		Groups: s.Groups, GroupsKnown: platform == string(tiers.Slack) && !s.Unasked,
	}
	if who.Workspace == "" {
		who.Workspace = at.Workspace
	}
	if at.Workspace == "" {
		who.Roles = nil
	}
	return who
}

func (s somewhere) place(platform string) tiers.Place {
	p := tiers.Place{
		Platform: tiers.Platform(platform), Workspace: s.Workspace, Channel: s.Channel, Parent: s.Parent, Category: s.Category,
		Direct: s.Direct, Most: tiers.Owner,
	}
	if s.Most != "" {
		p.Most, _ = tiers.Parse(s.Most)
	}
	return p
}

// written loads tier files from their texts.
func written(t testing.TB, texts map[string]string) (*manifests.Set, string) {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "tiers"), 0o755))
	for name, text := range texts {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "tiers", name+".yaml"), []byte(text), 0o644))
	}
	set, err := manifests.Load(dir)
	require.NoError(t, err)
	return set, dir
}

func TestTheDecisionTable(t *testing.T) {
	t.Parallel()
	table := readDecisions(t)
	require.GreaterOrEqual(t, len(table.Rows), 250)
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for platform, books := range table.Rules {
		for name, texts := range books {
			set, dir := written(t, texts)
			for i, row := range table.Rows {
				if row.On != platform || row.Rules != name {
					continue
				}
				at, known := table.Places[platform][row.Where]
				require.True(t, known, row.Where)
				who, known := table.People[platform][row.Who]
				require.True(t, known, row.Who)
				identity, place := who.identity(platform, at), at.place(platform)
				rules := set.Rules()
				if row.Grant != "" {
					g, known := table.Grants[platform][row.Grant]
					require.True(t, known, row.Grant)
					require.NoError(t, g.grant(platform, now).Check())
					rules = rules.With(g.grant(platform, now))
				}
				d := rules.Resolve(identity, place, now)
				require.Equal(t, row.Tier, d.Tier.String(), "row %d: %+v: %s", i, row, d.Why)
				require.Contains(t, strings.ReplaceAll(d.Why, dir+"/tiers/", ""), row.Because, "row %d: %+v", i, row)
				explained := rules.Explain(identity, place, now)
				require.Equal(t, d, explained.Decision, "row %d: what is explained is what is decided", i)
				requireWinners(t, explained)
			}
		}
	}
}

// requireWinners looks whether an explanation names the line of each file that
// had a part in the decision as one that won, and no other.
func requireWinners(t *testing.T, x tiers.Explanation) {
	t.Helper()
	won := map[string]bool{}
	for _, f := range x.Findings {
		if f.Won {
			won[f.Origin] = true
		}
	}
	want := map[string]bool{}
	for _, origin := range []string{x.Decision.Rule, x.Decision.Cap, x.Decision.Block} {
		if strings.Contains(origin, ".yaml:") || strings.HasPrefix(origin, "grant ") {
			want[origin] = true
		}
	}
	require.Equal(t, want, won)
}
