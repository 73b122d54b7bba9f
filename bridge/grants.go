package bridge

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"parlour/bridge/journal"
	"parlour/tiers"
)

// Ledger holds the grants. Changed is another number after each change of them.
type Ledger interface {
	Changed(ctx context.Context) (int64, error)
	List(ctx context.Context) (journal.Grants, error)
}

var _ Ledger = (*journal.Ledger)(nil)

// Granting adds to the rulebook of the manifests the grants that hold. It looks
// at the ledger for each decision, so none is made by a grant that was revoked
// before. Where the ledger cannot be read nobody is granted anything.
type Granting struct {
	ctx     context.Context // for the ledger; decisions have none of their own
	base    func() *Rulebook
	ledger  Ledger
	changed func()
	log     *slog.Logger

	mu     sync.Mutex
	from   *Rulebook // what book was made of
	at     int64     // how often grants had changed by then
	read   bool      // grants and at are of the ledger
	silent bool      // that the ledger cannot be read was said
	grants []tiers.Grant
	book   Rulebook
}

// mostLook is how long the ledger may take. It is on a local disk, and the
// decision waits.
const mostLook = 5 * time.Second

// NewGranting begins without having looked at the ledger. The end of ctx is not
// an end of the looks: what runs on meanwhile is still decided about. Changed is
// told when the rulebook is another one because of grants; it must not wait.
func NewGranting(ctx context.Context, base func() *Rulebook, ledger Ledger, changed func(), log *slog.Logger) (*Granting, error) {
	if base == nil || ledger == nil || changed == nil || log == nil {
		return nil, errors.New("grants: rulebook, ledger, changed and log are required")
	}
	return &Granting{ctx: context.WithoutCancel(ctx), base: base, ledger: ledger, changed: changed, log: log}, nil
}

// Book gives the rulebook of now.
// Guarded by tests/contract TestNoDecisionGoesByARevokedGrant.
func (g *Granting) Book() Rulebook {
	g.mu.Lock()
	defer g.mu.Unlock()
	base := g.base()
	fresh, err := g.look()
	if err != nil {
		g.lose(err)
		return *base
	}
	if fresh || g.from != base {
		g.from, g.book = base, base.With(g.grants...)
	}
	return g.book
}

// look reads the grants where they have changed, and says whether they had.
func (g *Granting) look() (fresh bool, err error) {
	ctx, stop := context.WithTimeout(g.ctx, mostLook)
	defer stop()
	at, err := g.ledger.Changed(ctx)
	if err != nil || g.read && at == g.at {
		return false, err
	}
	list, err := g.ledger.List(ctx)
	if err != nil {
		return false, err
	}
	if g.read || g.silent {
		g.changed()
	}
	if g.silent {
		g.log.Info("the grants can be read again")
	}
	g.at, g.grants, g.read, g.silent = list.Changed, list.Holding(time.Now()), true, false
	return true, nil
}

// lose forgets the grants: what cannot be read may have been revoked.
// Guarded by tests/contract TestGrantsThatCannotBeReadGiveNothing.
func (g *Granting) lose(err error) {
	g.grants, g.read, g.from = nil, false, nil
	if g.silent {
		return
	}
	g.silent = true
	g.log.Error("the grants cannot be read; until they can, nobody is granted anything", "err", err)
	g.changed()
}

// Holding says how many grants hold.
func (g *Granting) Holding() int {
	g.Book()
	g.mu.Lock()
	defer g.mu.Unlock()
	now, n := time.Now(), 0
	for _, one := range g.grants {
		if one.Holds(now) {
			n++
		}
	}
	return n
}

// With gives the rulebook with these grants. The operator made them at the
// terminal, which is the consent that a change of the manifests waits for: they
// count in the rules underneath too.
// Guarded by tests/contract TestAGrantNeedsNoFurtherConsent.
func (b Rulebook) With(grants ...tiers.Grant) Rulebook {
	b.Rules, b.Under = b.Rules.With(grants...), slices.Clone(b.Under)
	for i, rules := range b.Under {
		b.Under[i] = rules.With(grants...)
	}
	return b
}
