package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"parlour/manifests"
	"parlour/tiers"
)

// How many ids and rules the large manifest has.
const (
	manyIDs   = 100_000
	manyRules = 1_000
	manyTurns = 200_000
)

// decisions loads a large manifest and decides by it.
func decisions(_ context.Context, _ *rig) (rows []row, err error) {
	dir, err := os.MkdirTemp("", "parlour-rules-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := large(dir); err != nil {
		return nil, err
	}
	load := samples{}
	var set *manifests.Set
	for range 5 {
		began := time.Now()
		if set, err = manifests.Load(dir); err != nil {
			return nil, err
		}
		load = append(load, time.Since(began))
	}
	rows = append(rows, short(fmt.Sprintf("load %d ids in %d rules, p50", manyIDs, manyRules), time.Duration(load.at(50)), time.Second))
	rules := set.Rules()
	for _, c := range asking() {
		if d := rules.Resolve(c.who, c.where, time.Time{}); d.Tier != c.want {
			return nil, fmt.Errorf("%s is %s: %s", c.name, d.Tier, d.Why)
		}
		now := time.Now()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		began := time.Now()
		for range manyTurns {
			_ = rules.Resolve(c.who, c.where, now)
		}
		each := time.Since(began) / manyTurns
		runtime.ReadMemStats(&after)
		rows = append(rows, short("decide about "+c.name, each, 2*time.Microsecond),
			below("allocations of it", float64((after.Mallocs-before.Mallocs)/manyTurns), 0))
	}
	return rows, nil
}

// short is a time that should be less than its bar.
func short(name string, took, bar time.Duration) row {
	return row{name, took.Round(time.Nanosecond).String(), "< " + bar.String(), took >= bar}
}

func discordID(n int) string { return fmt.Sprintf("9%017d", n) }

// large writes tier files: rules by user ids, each in its own channel, by roles,
// and for anyone.
func large(dir string) error {
	if err := os.Mkdir(filepath.Join(dir, "tiers"), 0o755); err != nil {
		return err
	}
	var team, guest strings.Builder
	team.WriteString("tier: team\nmatch:\n  discord:\n")
	guest.WriteString("tier: guest\nmatch:\n  discord:\n")
	for i := range manyRules {
		into := &team
		if i%2 == 1 {
			into = &guest
		}
		fmt.Fprintf(into, "    - guild: \"%s\"\n      channels: [\"%s\"]\n", discordID(1), discordID(1_000+i))
		if i%10 == 0 {
			fmt.Fprintf(into, "      roles: [\"%s\"]\n", discordID(10_000+i))
		}
		if i%10 == 1 {
			into.WriteString("      anyone: true\n")
		}
		into.WriteString("      users:\n")
		for j := range manyIDs / manyRules {
			fmt.Fprintf(into, "        - \"%s\"\n", discordID(1_000_000+i*manyIDs/manyRules+j))
		}
	}
	return errors.Join(
		os.WriteFile(filepath.Join(dir, "tiers", "team.yaml"), []byte(team.String()), 0o644),
		os.WriteFile(filepath.Join(dir, "tiers", "guest.yaml"), []byte(guest.String()), 0o644))
}

type asker struct {
	name  string
	who   tiers.Identity
	where tiers.Place
	want  tiers.Tier
}

func asking() []asker {
	at := func(user, channel int, roles ...string) (tiers.Identity, tiers.Place) {
		return tiers.Identity{Platform: tiers.Discord, Workspace: discordID(1), User: discordID(user), Kind: tiers.Person, Member: true, Roles: roles},
			tiers.Place{Platform: tiers.Discord, Workspace: discordID(1), Channel: discordID(channel), Most: tiers.Owner}
	}
	roles := []string{}
	for i := range 20 {
		roles = append(roles, discordID(20_000+i))
	}
	out := []asker{{name: "a listed one", want: tiers.Team}, {name: "anyone in a channel, with 20 roles", want: tiers.Guest}, {name: "one with 21 roles, the last of which counts", want: tiers.Team}, {name: "a stranger with 20 roles", want: tiers.None}}
	out[0].who, out[0].where = at(1_000_000+998*manyIDs/manyRules, 1_998)
	out[1].who, out[1].where = at(5, 1_991, roles...)
	out[2].who, out[2].where = at(5, 1_990, append(roles, discordID(10_990))...)
	out[3].who, out[3].where = at(5, 7, roles...)
	return out
}
