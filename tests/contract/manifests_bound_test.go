package contract_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"parlour/bridge"
	"parlour/runner/spec"
	"parlour/tiers"
)

// mostStates is how many states a bot remembers without consent.
const mostStates = 16

// crowd are the people of these tests.
func crowd() (all []string) {
	for i := range 24 {
		all = append(all, fmt.Sprint(600000000000000000+i))
	}
	return all
}

// Whatever becomes of the files without consent, nobody has more than each state
// since the last consent gave, no tier may do more, and what is remembered stays
// small. Each step reads files, so the ways are few; TestNobodyHasMoreByLesserRules
// tries many more states.
func TestT13WithoutConsentNobodyHasMoreThanEveryStateGave(t *testing.T) {
	folds := 0
	for seed := range uint64(2) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			w := newWay(t, seed)
			for range 36 {
				w.step()
			}
			folds += w.folds
		})
	}
	require.Positive(t, folds, "no state was folded")
}

// way is one random way of the files, and the least that they gave since the last
// consent.
type way struct {
	files
	*desk
	random *rand.Rand
	tiers  map[string]tiers.Tier
	wall   time.Duration
	model  string // of the last consent
	folds  int
}

func newWay(t *testing.T, seed uint64) *way {
	w := &way{files: newFiles(t), random: rand.New(rand.NewPCG(seed, 0))}
	w.draw()
	w.desk = w.files.live()
	w.accepted()
	return w
}

func (w *way) draw() {
	users := slices.DeleteFunc(crowd(), func(string) bool { return w.random.IntN(12) == 0 })
	text := strings.Replace(listed("guest", users...), "runners: [docs]", fmt.Sprintf("runners: [docs], model: {anthropic: m%d}", w.random.IntN(3)), 1) +
		fmt.Sprintf("limits: {wall: %ds, stall: 1s}\n", 1+w.random.IntN(9))
	if w.random.IntN(4) == 0 {
		text += "block:\n  discord:\n    - {users: [\"" + crowd()[w.random.IntN(24)] + "\"]}\n"
	}
	w.write("guest", text)
}

// accepted begins anew: all that the files say now is accepted.
func (w *way) accepted() {
	w.tiers, w.wall = map[string]tiers.Tier{}, time.Hour
	for _, user := range crowd() {
		w.tiers[user] = tiers.Owner
	}
	w.lower()
	guest, _ := w.load().Tier(tiers.Guest)
	w.model = guest.Models[spec.Anthropic]
}

func (w *way) lower() {
	set := w.load()
	guest, _ := set.Tier(tiers.Guest)
	w.wall = min(w.wall, guest.Wish.Limits.Wall)
	for user, tier := range w.tiers {
		w.tiers[user] = min(tier, decided(set.Rules(), user))
	}
}

func (w *way) step() {
	switch w.random.IntN(50) {
	case 0:
		w.consent.Store(w.load().Texts().Hash())
		w.Look()
		w.consent.Store("") // it is used up
		w.accepted()
	case 1: // the bot is killed and started again
		w.desk = w.files.live(w.kept...)
	default:
		w.draw()
	}
	w.Look()
	require.NoError(w.t, w.Status().Refused)
	w.lower()
	now, _ := w.Force().Tier(tiers.Guest)
	require.LessOrEqual(w.t, now.Wish.Limits.Wall, w.wall)
	for user, least := range w.tiers {
		require.LessOrEqual(w.t, w.tier(user), least)
	}
	if name, ok := now.Models[spec.Anthropic]; ok {
		require.Equal(w.t, w.model, name, "a model that nobody accepted is used")
	}
	require.LessOrEqual(w.t, len(w.kept), mostStates)
	for _, turn := range w.turns {
		if turn.Folded {
			w.folds++
		}
	}
	w.turns = nil
}

// decided gives a person's tier by rules alone.
func decided(rules tiers.Rules, user string) tiers.Tier {
	return rules.Resolve(tiers.Identity{Platform: tiers.Discord, User: user, Kind: tiers.Person},
		tiers.Place{Platform: tiers.Discord, Channel: "700000000000000001", Direct: true, Most: tiers.Owner}, time.Now()).Tier
}

// Many edits, each of which gives and takes: what was accepted and never
// taken away is still there, and nothing grows.
func TestManyEditsWithoutConsentCostNoMoreThanAFew(t *testing.T) {
	f := newFiles(t)
	everybody := crowd()
	stays := everybody[0]
	f.write("guest", listed("guest", everybody...))
	d := f.live()
	for i := range 48 {
		gone, newcomer := 1+i%23, fmt.Sprint(700000000000000000+i)
		f.write("guest", listed("guest", append(slices.Delete(crowd(), gone, gone+1), newcomer)...))
		require.True(t, d.Look())
		for _, user := range everybody[1 : 1+min(i+1, 23)] {
			require.Equal(t, tiers.None, d.tier(user), "each was taken away once")
		}
		require.LessOrEqual(t, len(d.kept), mostStates)
		require.Equal(t, tiers.None, d.tier(newcomer))
		require.Equal(t, tiers.Guest, d.tier(stays), "what nobody has taken away")
	}
	kept, err := json.Marshal(d.kept)
	require.NoError(t, err)
	require.Less(t, len(kept), 64<<10)

	d.consent.Store(f.load().Texts().Hash())
	d.Look()
	require.Equal(t, tiers.Guest, d.tier(fmt.Sprint(700000000000000047)), "consent is to all of the last state")
	require.Len(t, d.kept, 1)
}

// A later state that is narrower takes the place of the accepted one, not a place
// behind others: else the name of a model that nobody accepted would hold.
func TestT13TheNameThatWasAcceptedOutlivesTheStatesAfterIt(t *testing.T) {
	f := newFiles(t)
	state := func(model string, users ...string) {
		f.write("guest", strings.Replace(listed("guest", users...), "runners: [docs]", "runners: [docs], model: {anthropic: "+model+"}", 1))
	}
	state("cheap", liveGuest, liveOther)
	d := f.live()
	for _, next := range []func(){
		func() { state("dear", liveGuest) },
		func() { state("cheap", liveOther) },
		func() { state("dear", liveGuest, liveOther) },
	} {
		next()
		d.Look()
		now, _ := d.Force().Tier(tiers.Guest)
		require.Equal(t, "cheap", now.Models[spec.Anthropic])
	}
}

// What readers are vouched to be is a right too.
func TestT13ReadersAreVouchedForByAllStates(t *testing.T) {
	of := func(audience tiers.Tier) tiers.Rules {
		return tiers.NewRules([]tiers.Rule{{Tier: tiers.Team, Platform: tiers.Discord, Workspace: "G", Users: []string{liveTeam}}},
			[]tiers.Cap{{Tier: tiers.Team, Platform: tiers.Discord, Workspace: "G", Audience: audience}})
	}
	who := tiers.Identity{Platform: tiers.Discord, Workspace: "G", User: liveTeam, Kind: tiers.Person, Member: true}
	where := tiers.Place{Platform: tiers.Discord, Workspace: "G", Channel: "C", Most: tiers.Owner}
	for _, c := range []struct{ now, before, want tiers.Tier }{
		{tiers.Team, tiers.None, tiers.None}, {tiers.None, tiers.Team, tiers.None}, {tiers.Team, tiers.Team, tiers.Team}, {tiers.Team, tiers.Guest, tiers.Guest},
	} {
		book := bridge.Rulebook{Rules: of(c.now), Under: []tiers.Rules{of(c.before)}}
		require.Equal(t, tiers.Team, book.Decide(who, where).Tier)
		require.Equal(t, c.want, book.Decide(who, where).Audience, "%s, before %s", c.now, c.before)
	}
}
