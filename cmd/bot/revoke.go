package main

import (
	"context"
	"errors"
	"strconv"
	"time"

	"parlour/bridge/journal"
	"parlour/manifests"
	"parlour/tiers"
)

type revokeCmd struct {
	ID        []string `arg:"" optional:"" help:"Numbers of grants, as 'bot grants' shows them."`
	Platform  string   `placeholder:"NAME" help:"With --user: all grants of a person; discord or slack."`
	Workspace string   `placeholder:"ID" help:"With --user: only those for this guild or workspace."`
	User      string   `placeholder:"ID" help:"All grants of the person with this user id."`
}

// revoked is what became of the grants that were named.
type revoked struct {
	Revoked []journal.Given `json:"revoked"` // now
	Over    []told          `json:"over"`    // before; nothing had to be done
	Unknown []int64         `json:"unknown"`
	// Left are other grants by which the people whose grants were named have a
	// right all the same.
	Left     []journal.Given `json:"left"`
	Warnings []string        `json:"warnings"`
}

// Run takes grants back. What is known of those that were named is taken back in
// any case. One that was over before is no failure; one that is unknown is.
func (r *revokeCmd) Run(ctx context.Context, p *process, c *cli) error {
	ids, err := r.ids()
	if err != nil {
		return err
	}
	state, err := stateOf(p, c)
	if err != nil {
		return err
	}
	if ids == nil {
		if ids, err = r.person(ctx, state); err != nil {
			return err
		}
	}
	done, err := revoke(ctx, state, ids)
	if err != nil {
		return err
	}
	if c.JSON {
		if err := p.json(done); err != nil {
			return err
		}
	} else {
		done.print(p)
	}
	for _, w := range done.Warnings {
		p.note("warning: %s", w)
	}
	for _, id := range done.Unknown {
		p.note("bot: no grant %d in %s; %s lists them", id, state, c.again("grants"))
	}
	if len(done.Unknown) > 0 {
		return silent(exitBad)
	}
	return nil
}

func (d revoked) print(p *process) {
	for _, g := range d.Revoked {
		p.print("revoked %d: %s", g.ID, given(g.Grant))
	}
	for _, g := range d.Over {
		at := g.Until
		if g.Fate == journal.Revoked {
			at = g.Given.Revoked
		}
		p.print("grant %d was over before: %s at %s", g.ID, g.Fate, utc(at))
	}
	for _, g := range d.Left {
		p.print("they still have grant %d: %s, until %s", g.ID, given(g.Grant), utc(g.Until))
	}
}

// remains notes the grants that the people whose grants were named still have.
// Guarded by tests/journeys TestRevokeSaysWhatIsLeft.
func (d *revoked) remains(all []journal.Given, now time.Time) {
	named := map[[2]string]bool{}
	for _, g := range d.Revoked {
		named[[2]string{string(g.Platform), g.User}] = true
	}
	for _, g := range d.Over {
		named[[2]string{string(g.Platform), g.User}] = true
	}
	for _, g := range all {
		if named[[2]string{string(g.Platform), g.User}] && g.Fate(now) == journal.Holds {
			d.Left = append(d.Left, g)
		}
	}
}

// ids reads the numbers; nil where a person is named instead.
func (r *revokeCmd) ids() ([]int64, error) {
	person := r.User != "" || r.Platform != "" || r.Workspace != ""
	switch {
	case len(r.ID) > 0 && person:
		return nil, bad("name grants by their numbers or a person by --platform and --user, not both")
	case len(r.ID) == 0 && (r.User == "" || r.Platform == ""):
		return nil, bad("say which: the number of a grant (bot grants lists them), or --platform and --user for all of a person")
	case person:
		if r.Platform != string(tiers.Discord) && r.Platform != string(tiers.Slack) {
			return nil, bad("--platform is %q; right: discord or slack", r.Platform)
		}
		if err := manifests.CheckIDs(tiers.Platform(r.Platform), r.Workspace, "", r.User); err != nil {
			return nil, badInput{err}
		}
		return nil, nil
	}
	var ids []int64
	for _, text := range r.ID {
		id, err := strconv.ParseInt(text, 10, 64)
		if err != nil || id < 1 {
			return nil, bad("%q is not the number of a grant; bot grants lists them", text)
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// person gives the grants of the person that hold, and the others where none does.
func (r *revokeCmd) person(ctx context.Context, state string) ([]int64, error) {
	now := time.Now()
	found, err := journal.PeekGrants(ctx, state, now)
	if err != nil {
		return nil, err
	}
	var holding, over []int64
	for _, g := range found.All {
		switch {
		case string(g.Platform) != r.Platform || g.User != r.User || r.Workspace != "" && g.Workspace != r.Workspace:
		case g.Fate(now) == journal.Holds:
			holding = append(holding, g.ID)
		default:
			over = append(over, g.ID)
		}
	}
	if len(holding) == 0 {
		holding = over
	}
	if len(holding) == 0 {
		return nil, bad("no grant of %s user %s in %s", r.Platform, r.User, state)
	}
	return holding, nil
}

func revoke(ctx context.Context, state string, ids []int64) (revoked, error) {
	done := revoked{Revoked: []journal.Given{}, Over: []told{}, Unknown: []int64{}, Left: []journal.Given{}, Warnings: []string{}}
	found, err := journal.PeekGrants(ctx, state, time.Now())
	if err == nil && len(found.All) == 0 { // looking must not begin a journal
		done.Unknown = ids
		return done, nil
	}
	j, l, err := ledger(ctx, state)
	if err != nil {
		return revoked{}, err
	}
	defer func() { _ = j.Close() }()
	for _, id := range ids {
		g, now, err := l.Revoke(ctx, id)
		switch {
		case errors.Is(err, journal.ErrNoGrant):
			done.Unknown = append(done.Unknown, id)
		case err != nil:
			return revoked{}, err
		case now:
			done.Revoked = append(done.Revoked, g)
		default:
			done.Over = append(done.Over, told{g, g.Fate(time.Now())})
		}
	}
	rest, err := l.List(ctx)
	if err != nil {
		return revoked{}, err
	}
	done.remains(rest.All, time.Now())
	if served, err := l.Served(ctx); err == nil && !served {
		done.Warnings = append(done.Warnings, "no bot serves from "+state+" now: one that serves from elsewhere does not hear of this")
	}
	return done, nil
}
