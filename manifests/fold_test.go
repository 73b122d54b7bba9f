package manifests

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"parlour/runner/policy"
	"parlour/runner/spec"
	"parlour/tiers"
)

// The small world in which rules are drawn: few ids, so that they meet.
var (
	foldUsers    = []string{"1", "2", "3"}
	foldChannels = []string{"10", "11", "12"}
	foldUntils   = []time.Time{{}, time.Unix(1000, 0), time.Unix(2000, 0)}
)

func drawSome(t *rapid.T, from []string, name string) []string {
	return rapid.SliceOfNDistinct(rapid.SampledFrom(from), 1, len(from), rapid.ID).Draw(t, name)
}

func drawPlaces(t *rapid.T) (channels, categories []string) {
	switch rapid.IntRange(0, 3).Draw(t, "where") {
	case 0:
		return drawSome(t, foldChannels, "channels"), nil
	case 1:
		return nil, drawSome(t, []string{"20", "21"}, "categories")
	case 2:
		return drawSome(t, foldChannels, "channels"), drawSome(t, []string{"20", "21"}, "categories")
	}
	return nil, nil
}

// drawRules draws rules that go on from others.
func drawRules(t *rapid.T, rules ...tiers.Rule) tiers.Rules {
	for range rapid.IntRange(0, 6).Draw(t, "rules") {
		r := tiers.Rule{Tier: rapid.SampledFrom(tiers.All()).Draw(t, "tier"), Platform: tiers.Slack, Workspace: rapid.SampledFrom([]string{"W", "V"}).Draw(t, "workspace"),
			Until: rapid.SampledFrom(foldUntils).Draw(t, "until"), External: rapid.Bool().Draw(t, "external")}
		if rapid.Bool().Draw(t, "discord") {
			r.Platform = tiers.Discord
		}
		r.Channels, r.Categories = drawPlaces(t)
		switch rapid.IntRange(0, 4).Draw(t, "whom") {
		case 0, 1:
			if r.Users = drawSome(t, foldUsers, "users"); rapid.Bool().Draw(t, "anywhere") && r.Platform == tiers.Discord {
				r.Workspace, r.Channels, r.Categories = "", nil, nil
			}
		case 2:
			r.Roles = drawSome(t, []string{"30", "31"}, "roles")
		case 3:
			r.Groups = drawSome(t, []string{"40", "41"}, "groups")
		case 4:
			r.Anyone = true
		}
		if r.Users == nil {
			r.Tier = min(r.Tier, tiers.Team) // else no file says it
		}
		rules = append(rules, r)
	}
	var caps []tiers.Cap
	for range rapid.IntRange(0, 2).Draw(t, "caps") {
		c := tiers.Cap{Tier: rapid.SampledFrom(tiers.All()).Draw(t, "most"), Platform: tiers.Discord, Workspace: "W",
			Audience: rapid.SampledFrom([]tiers.Tier{tiers.None, tiers.Guest, tiers.Team}).Draw(t, "audience")}
		c.Channels, c.Categories = drawPlaces(t)
		caps = append(caps, c)
	}
	var blocks []tiers.Block
	for range rapid.IntRange(0, 1).Draw(t, "blocks") {
		blocks = append(blocks, tiers.Block{Platform: tiers.Discord, Workspace: "W", Users: drawSome(t, foldUsers, "blocked")})
	}
	return tiers.NewRules(rules, caps, blocks...)
}

// asker is one person in one place, at a time.
type asker struct {
	who   tiers.Identity
	where tiers.Place
	now   time.Time
}

// askers gives everybody of the small world everywhere.
func askers() (all []asker) {
	for _, platform := range []tiers.Platform{tiers.Discord, tiers.Slack} {
		for _, user := range []string{"1", "2", "9"} {
			for kind := range 4 {
				who := tiers.Identity{Platform: platform, Workspace: "W", User: user, Kind: tiers.Person, Member: kind != 1, External: kind == 1, Restricted: kind == 2}
				if kind == 3 {
					who.Roles, who.Groups = []string{"30"}, []string{"40"}
				}
				for _, channel := range []string{"10", "11", "19"} {
					for _, category := range []string{"", "20"} {
						for _, second := range []int64{500, 1500} {
							where := tiers.Place{Platform: platform, Workspace: "W", Channel: channel, Category: category, Most: tiers.Owner}
							all = append(all, asker{who, where, time.Unix(second, 0)})
						}
					}
				}
				if platform == tiers.Discord {
					alone := who
					alone.Workspace, alone.Member, alone.Roles = "", false, nil
					all = append(all, asker{alone, tiers.Place{Platform: platform, Channel: "50", Direct: true, Most: tiers.Owner}, time.Unix(500, 0)})
				}
			}
		}
	}
	return all
}

func TestNobodyHasMoreByLesserRules(t *testing.T) {
	people, something := askers(), 0
	rapid.Check(t, func(t *rapid.T) {
		a := drawRules(t)
		b := drawRules(t, a.All()[rapid.IntRange(0, len(a.All())).Draw(t, "of both"):]...)
		both, twice := lesserRules(a, b), lesserRules(a, a)
		for _, p := range people {
			x, y, got := a.Resolve(p.who, p.where, p.now), b.Resolve(p.who, p.where, p.now), both.Resolve(p.who, p.where, p.now)
			if got.Tier > min(x.Tier, y.Tier) || got.Audience > min(x.Audience, y.Audience) {
				t.Fatalf("%+v\n has %+v\n by rules that give %+v\n and %+v", p, got, x, y)
			}
			if same := twice.Resolve(p.who, p.where, p.now).Tier; same != x.Tier {
				t.Fatalf("%+v\n is %s by rules that make them %s, taken twice", p, same, x.Tier)
			}
			if got.Tier > tiers.None && x.Tier != y.Tier {
				something++
			}
		}
	})
	require.Greater(t, something, 20, "the two hardly ever differed with a right in common")
}

// What is folded is not more than it has to be less: a list of people is exact.
func TestALesserListOfPeopleIsExact(t *testing.T) {
	list := func(users ...string) tiers.Rules {
		return tiers.NewRules([]tiers.Rule{{Tier: tiers.Guest, Platform: tiers.Discord, Users: users}}, nil)
	}
	got := lesserRules(list("1", "2", "3"), list("2", "3", "4")).All()
	require.Len(t, got, 1)
	require.Equal(t, []string{"2", "3"}, got[0].Users)

	in := func(workspace string, channels ...string) tiers.Rules {
		return tiers.NewRules([]tiers.Rule{{Tier: tiers.Guest, Platform: tiers.Discord, Workspace: workspace, Channels: channels, Users: []string{"1"}}}, nil)
	}
	for _, c := range []struct{ a, b, both tiers.Rules }{
		{in(""), in("W"), in("W")}, {in("W"), in("V"), tiers.Rules{}}, {in("W"), in("W", "10"), in("W", "10")},
		{in("V"), in("W", "10"), tiers.Rules{}}, {in("V", "10"), in("W", "10"), tiers.Rules{}},
		{in("W", "10", "11"), in("W", "11", "12"), in("W", "11")}, {in(""), in("W", "10"), in("W", "10")},
	} {
		require.Equal(t, c.both.All(), lesserRules(c.a, c.b).All())
		require.Equal(t, c.both.All(), lesserRules(c.b, c.a).All())
	}
}

// The numbers of a policy stand in a file that a later program reads: where their
// meaning changes, the form must too.
func TestAFoldedStateIsReadAsItWasWritten(t *testing.T) {
	s := SetOf()
	s.rules = tiers.NewRules([]tiers.Rule{
		{Tier: tiers.Guest, Platform: tiers.Slack, Workspace: "W", Channels: []string{"10"}, Anyone: true, External: true, Until: time.Unix(1000, 0).UTC(), Origin: "a:1"},
		{Tier: tiers.Team, Platform: tiers.Discord, Users: []string{"1"}, Origin: "a:2"},
	}, []tiers.Cap{{Tier: tiers.Guest, Platform: tiers.Slack, Workspace: "W", Origin: "a:3"}},
		tiers.Block{Platform: tiers.Discord, Users: []string{"2"}, Origin: "a:4"})
	s.tiers[tiers.Guest] = Tier{Tier: tiers.Guest, Origin: "a", Runners: []string{"docs"}, Models: map[spec.Provider]string{spec.OpenAI: "m"}, Wish: policy.Wish{
		Mode: policy.WorkspaceWrite, Network: policy.ModelOnly, Tools: []policy.Tool{policy.Read}, Require: []policy.Clause{policy.NetworkReach},
		Limits: policy.Limits{Wall: time.Second, Memory: 1},
	}, Asking: Asking{Waiting: 1}, Reply: Reply{Where: "thread"}}
	made := fold([]*Set{s, s})
	text := made.Texts()[foldedName]
	back, err := unfold(text)
	require.NoError(t, err)
	require.Equal(t, text, back.Texts()[foldedName])
	require.Equal(t, made.rules.All(), back.rules.All())
	require.Equal(t, s.rules.Caps(), back.rules.Caps())
	require.Equal(t, s.rules.Blocks(), back.rules.Blocks())
	for _, before := range []*Set{s, made, back} {
		require.Empty(t, more(before, back))
		require.Empty(t, more(back, before))
	}
	require.Contains(t, text, `{"form":1,`)
	require.Contains(t, text, `"Mode":2,"Armed":false,"Network":1,"Tools":["read"],"Documents":null,"Scratch":null,"Require":[1]`)
	for _, other := range []string{`{"form":2}`, `{}`, `{`} {
		_, err := unfold(other)
		require.Error(t, err, other)
	}
}

func TestWhatIsTooLargeToKeepGivesNothing(t *testing.T) {
	large := SetOf()
	large.rules = tiers.NewRules([]tiers.Rule{{Tier: tiers.Owner, Platform: tiers.Discord, Users: []string{string(make([]byte, mostFolded/2))}}}, nil)
	none := fold([]*Set{large, large})
	require.Zero(t, none.rules.Count(tiers.Owner))
	back, err := unfold(none.Texts()[foldedName])
	require.NoError(t, err)
	require.Empty(t, back.rules.All())

	many := make([]string, 2000)
	for i := range many {
		many[i] = strconv.Itoa(i)
	}
	wide := tiers.NewRules([]tiers.Rule{{Tier: tiers.Guest, Platform: tiers.Discord, Workspace: "W", Users: many, Channels: many}}, nil)
	require.Empty(t, lesserRules(wide, wide).All(), "each person in each place is a right of its own")
}
