package main

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"parlour/bridge"
	"parlour/bridge/journal"
	"parlour/runner"
	"parlour/tiers"
)

type grantsCmd struct{}

// told is a grant as the list shows it.
type told struct {
	journal.Given
	Fate string `json:"fate"`
}

// Run lists the grants: those that hold, and those that ended or were revoked
// within the last 30 days.
func (*grantsCmd) Run(ctx context.Context, p *process, c *cli) error {
	state, err := stateOf(p, c)
	if err != nil {
		return err
	}
	now := time.Now()
	found, err := journal.PeekGrants(ctx, state, now)
	if err != nil {
		return err
	}
	all := []told{}
	for _, fate := range []string{journal.Holds, journal.Over, journal.Revoked} {
		for _, g := range found.All {
			if g.Fate(now) == fate {
				all = append(all, told{g, fate})
			}
		}
	}
	if c.JSON {
		return p.json(all)
	}
	if len(all) == 0 {
		p.print("no grants in %s", state)
	}
	for _, g := range all {
		p.print("%s", g.line(now))
	}
	return nil
}

func (g told) line(now time.Time) string {
	end := "until " + utc(g.Until) + ", in " + span(g.Until.Sub(now))
	switch g.Fate {
	case journal.Over:
		end = "ended at " + utc(g.Until)
	case journal.Revoked:
		end = "revoked at " + utc(g.Revoked)
	}
	text := fmt.Sprintf("%d: %s, %s", g.ID, given(g.Grant), end)
	if g.Note != "" {
		text += " (" + g.Note + ")"
	}
	return text
}

// given says what a grant gives to whom, and where.
func given(g tiers.Grant) string {
	who := string(g.Platform) + " user " + g.User
	if g.External {
		who += " of another organisation"
	}
	where := "everywhere in " + g.Workspace
	switch len(g.Channels) {
	case 0:
	case 1:
		where = "in channel " + g.Channels[0] + " of " + g.Workspace
	default:
		where = "in channels " + strings.Join(g.Channels, " ") + " of " + g.Workspace
	}
	return fmt.Sprintf("%s for %s %s", g.Tier, who, where)
}

func utc(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// span says a time in its two largest units.
func span(d time.Duration) string {
	d = max(d, 0)
	const day = 24 * time.Hour
	switch {
	case d >= day:
		return fmt.Sprintf("%d d %d h", d/day, d%day/time.Hour)
	case d >= time.Hour:
		return fmt.Sprintf("%d h %d min", d/time.Hour, d%time.Hour/time.Minute)
	case d >= time.Minute:
		return fmt.Sprintf("%d min", d/time.Minute)
	}
	return fmt.Sprintf("%d s", d/time.Second)
}

// stateOf gives the state folder. A faulty configuration does not stand in the
// way of whoever names the folder: a grant can always be taken back.
func stateOf(p *process, c *cli) (string, error) {
	cfg, err := p.readConfig(c)
	if err != nil && (c.State == nil || *c.State == "") {
		return "", err
	}
	return p.stateFolder(cfg)
}

// ledger opens the grants of a state folder for a change. The caller closes the
// journal.
func ledger(ctx context.Context, state string) (*journal.Journal, *journal.Ledger, error) {
	origin, err := journal.AskOrigin(time.Now())
	if err != nil {
		return nil, nil, err
	}
	j, err := journal.Open(ctx, journal.Config{Dir: state, Origin: origin, Now: time.Now})
	if err != nil {
		return nil, nil, err
	}
	l, err := journal.NewLedger(ctx, j)
	if err != nil {
		_ = j.Close()
		return nil, nil, err
	}
	return j, l, nil
}

// granting wires the grants of the journal before the rulebook of the manifests.
func granting(ctx context.Context, j *journal.Journal, base func() *bridge.Rulebook, changed func(), log *slog.Logger) (*bridge.Granting, error) {
	l, err := journal.NewLedger(ctx, j)
	if err != nil {
		return nil, err
	}
	return bridge.NewGranting(ctx, base, l, changed, log)
}

// peekGrants gives the grants that were not revoked, for a command that only
// looks. Those that cannot be read are none, and it is said.
func peekGrants(ctx context.Context, p *process, state string) []tiers.Grant {
	found, err := journal.PeekGrants(ctx, state, time.Now())
	if err != nil {
		p.note("warning: %s; they are left out", err)
	}
	var list []tiers.Grant
	for _, g := range found.All {
		if g.Revoked.IsZero() {
			list = append(list, g.Grant)
		}
	}
	return list
}

// again gives the command line of another command on the same state folder, and
// on the same manifests where it reads them.
func (c *cli) again(words ...string) string {
	argv, reads := []string{"bot"}, words[0] == "grant" || words[0] == "accept-gains"
	for _, f := range []struct {
		name  string
		value *string
		told  bool
	}{{"--config", c.Config, true}, {"--manifests", c.Manifests, reads}, {"--state", c.State, true}} {
		if f.value != nil && f.told {
			argv = append(argv, f.name, *f.value)
		}
	}
	return runner.ShellWords(append(argv, words...))
}
