package manifests

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"parlour/tiers"
)

// sharedIDs are those of everything in a world in which a person, a role, a guild, a
// channel, a category and a user group may have the same id.
var sharedIDs = []string{"1", "2", "3"}

func drawShared(t *rapid.T, name string) []string {
	return rapid.SliceOfNDistinct(rapid.SampledFrom(sharedIDs), 1, 2, rapid.ID).Draw(t, name)
}

func drawMaybe(t *rapid.T, name string) []string {
	if rapid.Bool().Draw(t, "no "+name) {
		return nil
	}
	return drawShared(t, name)
}

// drawSharedRules draws what files can say on one platform.
func drawSharedRules(t *rapid.T, on tiers.Platform) (rules []tiers.Rule, caps []tiers.Cap, blocks []tiers.Block) {
	discord := on == tiers.Discord
	one := func(name string) string { return rapid.SampledFrom(sharedIDs).Draw(t, name) }
	for range rapid.IntRange(0, 3).Draw(t, "rules") {
		r := tiers.Rule{Tier: rapid.SampledFrom([]tiers.Tier{tiers.Guest, tiers.Team}).Draw(t, "tier"), Platform: on, Workspace: one("workspace"),
			Until: rapid.SampledFrom(foldUntils).Draw(t, "until")}
		switch rapid.IntRange(0, 2).Draw(t, "whom") {
		case 0:
			r.Users = drawShared(t, "users")
			if rapid.Bool().Draw(t, "anywhere") && discord {
				r.Workspace = ""
			}
		case 1:
			if ids := drawShared(t, "groups"); discord {
				r.Roles = ids
			} else {
				r.Groups = ids
			}
		case 2:
			r.Anyone, r.Channels = true, drawShared(t, "anyone in")
		}
		if r.Workspace != "" && r.Channels == nil {
			r.Channels = drawMaybe(t, "channels")
		}
		if r.Workspace != "" && discord {
			r.Categories = drawMaybe(t, "categories")
		}
		r.External = !discord && r.Tier == tiers.Guest && rapid.Bool().Draw(t, "external")
		rules = append(rules, r)
	}
	for range rapid.IntRange(0, 2).Draw(t, "caps") {
		c := tiers.Cap{Tier: rapid.SampledFrom([]tiers.Tier{tiers.Guest, tiers.Team}).Draw(t, "most"), Platform: on, Workspace: one("place in"), Channels: drawMaybe(t, "places")}
		if discord {
			c.Categories = drawMaybe(t, "categories of places")
		}
		if c.Tier == tiers.Team && rapid.Bool().Draw(t, "vouched") {
			c.Audience = tiers.Team
		}
		caps = append(caps, c)
	}
	for range rapid.IntRange(0, 2).Draw(t, "blocks") {
		b := tiers.Block{Platform: on, Workspace: one("blocked in")}
		switch rapid.IntRange(0, 2).Draw(t, "blocked") {
		case 0:
			b.Users = drawShared(t, "blocked users")
			if rapid.Bool().Draw(t, "blocked anywhere") && discord {
				b.Workspace = ""
			}
		case 1:
			b.Users = drawShared(t, "blocked users")
			fallthrough
		case 2:
			if ids := drawShared(t, "blocked groups"); discord {
				b.Roles = ids
			} else {
				b.Groups = ids
			}
		}
		blocks = append(blocks, b)
	}
	return rules, caps, blocks
}

// sharers gives everybody of such a world everywhere.
func sharers(on tiers.Platform) (all []asker) {
	sets := [][]string{nil, {"1"}, {"2"}, {"1", "3"}}
	for _, home := range sharedIDs {
		for _, user := range sharedIDs {
			for kind := range 4 { // a member, one of another organisation, a guest account, one who has left
				for i, groups := range sets {
					who := tiers.Identity{Platform: on, Workspace: home, User: user, Kind: tiers.Person, Member: kind == 0 || kind == 2, Restricted: kind == 2}
					who.External = kind == 1 && on == tiers.Slack
					if on == tiers.Slack {
						who.Groups, who.GroupsKnown = groups, i > 0
					} else if who.Member {
						who.Roles = groups
					}
					for _, channel := range sharedIDs {
						for _, within := range [][2]string{{}, {"1", ""}, {"", "2"}, {"3", "1"}} {
							where := tiers.Place{Platform: on, Workspace: home, Channel: channel, Most: tiers.Owner}
							if on == tiers.Discord {
								where.Parent, where.Category = within[0], within[1]
							} else if within != [2]string{} {
								continue
							}
							for _, second := range []int64{500, 1500} {
								all = append(all, asker{who, where, time.Unix(second, 0)})
							}
						}
					}
				}
			}
			direct := tiers.Place{Platform: on, Channel: "1", Direct: true, Most: tiers.Owner}
			who := tiers.Identity{Platform: on, User: user, Kind: tiers.Person}
			if on == tiers.Slack {
				direct.Workspace, who.Workspace, who.Member = home, home, true
			}
			all = append(all, asker{who, direct, time.Unix(500, 0)})
		}
	}
	return all
}

// Whatever an id is of: two states between which no gain is seen give nobody more
// in the later one, in any place and at any time.
func TestT13WhatIsNoGainWidensNobody(t *testing.T) {
	everybody := map[tiers.Platform][]asker{tiers.Discord: sharers(tiers.Discord), tiers.Slack: sharers(tiers.Slack)}
	set := func(rules []tiers.Rule, caps []tiers.Cap, blocks []tiers.Block) *Set {
		s := SetOf()
		s.rules = tiers.NewRules(rules, caps, blocks...)
		return s
	}
	judged := 0
	judge := func(t fataler, on tiers.Platform, old, now *Set) {
		if len(more(old, now)) > 0 {
			return
		}
		judged++
		for _, a := range everybody[on] {
			before, after := old.rules.Resolve(a.who, a.where, a.now), now.rules.Resolve(a.who, a.where, a.now)
			if after.Tier > before.Tier || after.Tier == before.Tier && after.Audience > before.Audience {
				require.Fail(t, "no gain was seen", "%+v\n%+v\nbefore: %+v\nafter: %+v", a.who, a.where, before, after)
			}
		}
	}
	anyone := []tiers.Rule{{Tier: tiers.Guest, Platform: tiers.Discord, Workspace: "1", Channels: []string{"1"}, Anyone: true}}
	block := func(b tiers.Block) []tiers.Block {
		b.Platform, b.Workspace = tiers.Discord, "1"
		return []tiers.Block{b}
	}
	for _, gone := range []tiers.Block{{Users: []string{"2"}}, {Roles: []string{"2"}}} {
		old := set(anyone, nil, block(gone))
		require.NotEmpty(t, more(old, set(anyone, nil, block(tiers.Block{Users: []string{"1"}}))), "%+v", gone)
		require.NotEmpty(t, more(old, set(anyone, nil, block(tiers.Block{Roles: []string{"1"}}))), "%+v", gone)
		require.NotEmpty(t, more(old, set(anyone, []tiers.Cap{{Tier: tiers.Guest, Platform: tiers.Discord, Workspace: "1"}}, nil)), "%+v", gone)
	}
	rapid.Check(t, func(t *rapid.T) {
		on := rapid.SampledFrom([]tiers.Platform{tiers.Discord, tiers.Slack}).Draw(t, "platform")
		rules, caps, blocks := drawSharedRules(t, on)
		newRules, newCaps, newBlocks := drawSharedRules(t, on)
		for _, now := range []*Set{ // one part changed: of whole other rules nearly all gain something
			set(newRules, caps, blocks), set(rules, newCaps, blocks), set(rules, caps, newBlocks), set(newRules, newCaps, newBlocks),
			set(rules[:len(rules)/2], newCaps, append(newBlocks, blocks...)),
		} {
			judge(t, on, set(rules, caps, blocks), now)
		}
	})
	require.Positive(t, judged)
}
