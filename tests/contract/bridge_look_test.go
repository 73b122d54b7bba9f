package contract_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"parlour/bridge"
	"parlour/bridge/ask"
	"parlour/bridge/journal"
	"parlour/tests/cases"
	"parlour/tests/house"
	"parlour/tiers"
)

const lookedRole = "800000000000000001"

// lookedRules make a role team, somebody by id in the guild too, and members of
// a channel guests.
func lookedRules(blocks ...tiers.Block) tiers.Rules {
	return tiers.NewRules([]tiers.Rule{
		{Tier: tiers.Owner, Platform: tiers.Discord, Users: []string{"owner"}, Origin: "owner.yaml:3"},
		{Tier: tiers.Team, Platform: tiers.Discord, Workspace: "1", Roles: []string{lookedRole}, Origin: "team.yaml:3"},
		{Tier: tiers.Team, Platform: tiers.Discord, Workspace: "1", Users: []string{"listed"}, Origin: "team.yaml:4"},
		{Tier: tiers.Guest, Platform: tiers.Discord, Workspace: "1", Channels: []string{"5"}, Anyone: true, Origin: "guest.yaml:3"},
	}, nil, blocks...)
}

// ofTheBlocked denies everybody in the guild with the role 66.
func ofTheBlocked() tiers.Block {
	return tiers.Block{Platform: tiers.Discord, Workspace: "1", Roles: []string{"66"}, Origin: "guest.yaml:9"}
}

// watched is a platform that tells who somebody is by now.
type watched struct {
	mu      sync.Mutex
	look    func(context.Context, tiers.Identity) (tiers.Identity, error)
	looks   []string
	deliver error // of the first delivery
	got     chan ask.Ended
}

func (p *watched) Look(ctx context.Context, who tiers.Identity, where tiers.Place) (tiers.Identity, error) {
	p.mu.Lock()
	p.looks = append(p.looks, who.User+" in "+where.Workspace)
	look := p.look
	p.mu.Unlock()
	return look(ctx, who)
}

func (p *watched) Deliver(_ context.Context, _ ask.Job, ended ask.Ended) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	err := p.deliver
	if p.deliver = nil; err == nil {
		p.got <- ended
	}
	return err
}

func (p *watched) looked() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.looks)
}

// answering gives what a platform tells always.
func answering(who tiers.Identity, err error) func(context.Context, tiers.Identity) (tiers.Identity, error) {
	return func(context.Context, tiers.Identity) (tiers.Identity, error) { return who, err }
}

// member is somebody of the guild of lookedRules, as a message tells of them.
func member(user string, roles ...string) tiers.Identity {
	return tiers.Identity{Platform: tiers.Discord, Workspace: "1", User: user, Kind: tiers.Person, Member: true, Roles: roles}
}

// asks is a question of somebody in the guild, sent so long ago.
func asks(id string, who tiers.Identity, ago time.Duration) bridge.Message {
	m := message(id, who.User, "why?")
	m.Identity, m.Place, m.At = who, tiers.Place{Platform: tiers.Discord, Workspace: "1", Channel: "5", Most: tiers.Owner}, time.Now().Add(-ago)
	return m
}

// overlook is a bot in front of such a platform. It runs one question at a time.
func overlook(t *testing.T, rules tiers.Rules, d *delegate, p *watched) *seat {
	t.Helper()
	j, err := journal.Open(t.Context(), journal.Config{Dir: t.TempDir(), Origin: journal.Serve})
	require.NoError(t, err)
	s := &seat{t: t, journal: j, log: &house.Printed{}, end: j.Close}
	log := slog.New(slog.NewTextHandler(s.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	p.got = make(chan ask.Ended, 10)
	out, err := bridge.NewOutbox(j, bridge.Senders{tiers.Discord: p, tiers.Local: p}, nil, log)
	require.NoError(t, err)
	s.gate, err = bridge.NewGate(book(rules), j, out)
	require.NoError(t, err)
	s.worker, err = bridge.NewWorker(bridge.WorkerConfig{Book: book(rules), Journal: j, Delegate: d, Outbox: out, Parallel: 1, Log: log})
	require.NoError(t, err)
	s.work()
	return s
}

// takesFor is a runner that answers after so long.
func takesFor(d time.Duration) *delegate {
	return &delegate{plan: planned, run: func(context.Context, ask.Prompt) ask.Result {
		<-time.After(d)
		return ask.Result{Answer: "an answer"}
	}}
}

// A right that was taken away while a question waited in the queue.
func TestWhoLostARoleWhileWaitingHasItNotWhenTheRunStarts(t *testing.T) {
	cases.Public("A23", "swampratnz/community-agent#350, #328; Valour-Software/Valour PR 1578; milady-ai/milady PR 1687").In(t)
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &watched{look: answering(member("x"), nil)}
		s := overlook(t, lookedRules(), takesFor(20*time.Second), p)
		s.accept(asks("1", member("owner"), 0))
		s.accept(asks("2", member("x", lookedRole), 0))
		require.Equal(t, tiers.Owner, (<-p.got).Receipt.Tier)
		ended := <-p.got
		require.Equal(t, ask.Answered, ended.Outcome.Kind)
		require.Equal(t, tiers.Guest, ended.Receipt.Tier, "the role was taken away while the question waited")
		require.Equal(t, "guest.yaml:3", ended.Receipt.Rule)
		require.Contains(t, strings.Join(ended.Receipt.Notes, "; "), "looked up again before the run: guest, was team when they asked")
		require.Equal(t, []string{"x in 1"}, p.looks, "whom an id alone makes owner is not asked about")
		require.NoError(t, s.end())
	})
}

func TestALookOnlyLowers(t *testing.T) {
	t.Parallel()
	left := tiers.Identity{Platform: tiers.Discord, Workspace: "1", User: "x", Kind: tiers.Person}
	robot := member("x", lookedRole)
	robot.Kind = tiers.Bot
	for name, c := range map[string]struct {
		asked, now tiers.Identity
		want       tiers.Tier
		cause      ask.Cause
	}{
		"the role is there still":          {member("x", lookedRole), member("x", lookedRole), tiers.Team, ""},
		"the role is gone":                 {member("x", lookedRole), member("x"), tiers.Guest, ""},
		"a role has come":                  {member("x"), member("x", lookedRole), tiers.Guest, ""},
		"a blocked role has come":          {member("x"), member("x", "66"), tiers.None, ask.NotAllowed},
		"a guest has left":                 {member("x"), left, tiers.None, ask.NotAllowed},
		"a member of the team has left":    {member("x", lookedRole), left, tiers.None, ask.NotAllowed},
		"who is listed in a guild left":    {member("listed"), tiers.Identity{Platform: tiers.Discord, Workspace: "1", User: "listed", Kind: tiers.Person}, tiers.None, ask.NotAllowed},
		"an account that became a robot":   {member("x", lookedRole), robot, tiers.None, ask.NotAllowed},
		"the platform tells of an owner":   {member("x", lookedRole), member("owner"), tiers.Guest, ""},
		"the platform tells of somebody":   {member("x", lookedRole), member("y", lookedRole), tiers.Guest, ""},
		"nothing, but without an error":    {member("x", lookedRole), tiers.Identity{}, tiers.Guest, ""},
		"somebody of the other platform":   {member("x", lookedRole), tiers.Identity{Platform: tiers.Slack, Workspace: "1", User: "x", Kind: tiers.Person, Member: true}, tiers.Guest, ""},
		"a member of whom no kind is told": {member("x", lookedRole), tiers.Identity{Platform: tiers.Discord, Workspace: "1", User: "x", Member: true, Roles: []string{lookedRole}}, tiers.None, ask.NotAllowed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := &watched{look: answering(c.now, nil)}
				d := takesFor(0)
				s := overlook(t, lookedRules(ofTheBlocked()), d, p)
				s.accept(asks("1", c.asked, 10*time.Second))
				ended := <-p.got
				require.Equal(t, c.want, ended.Receipt.Tier, ended.Detail)
				require.Equal(t, c.cause, ended.Outcome.Cause)
				require.Equal(t, c.cause == "", len(d.seen) == 1, "nothing runs for whom may not ask")
				require.Equal(t, 1, p.looked())
				require.NoError(t, s.end())
			})
		})
	}
}

func TestALookThatFailsGivesGuestAtMost(t *testing.T) {
	t.Parallel()
	broken := errors.New("the platform is down")
	part := member("listed")
	for name, c := range map[string]struct {
		asked tiers.Identity
		look  func(context.Context, tiers.Identity) (tiers.Identity, error)
		want  tiers.Tier
	}{
		"a team's":                                {member("x", lookedRole), answering(tiers.Identity{}, broken), tiers.Guest},
		"a guest's":                               {member("x"), answering(tiers.Identity{}, broken), tiers.Guest},
		"what was learned is enough":              {member("listed"), answering(part, broken), tiers.Team},
		"what was learned is of somebody else":    {member("x", lookedRole), answering(part, broken), tiers.Guest},
		"what was learned gives more than before": {member("x"), answering(member("x", lookedRole), broken), tiers.Guest},
		"one that hangs": {member("x", lookedRole), func(ctx context.Context, _ tiers.Identity) (tiers.Identity, error) {
			<-ctx.Done()
			return tiers.Identity{}, ctx.Err()
		}, tiers.Guest},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := &watched{look: c.look}
				s := overlook(t, lookedRules(ofTheBlocked()), takesFor(0), p)
				s.accept(asks("1", c.asked, 10*time.Second))
				began := time.Now()
				ended := <-p.got
				require.LessOrEqual(t, time.Since(began), 6*time.Second)
				require.Equal(t, c.want, ended.Receipt.Tier)
				require.Equal(t, "an answer", ended.Outcome.Text)
				require.Contains(t, strings.Join(ended.Receipt.Notes, "; "), "could not be looked up again before the run, so the tier is "+c.want.String()+": ")
				require.Contains(t, s.log.String(), "could not be looked up again")
				require.NoError(t, s.end())
			})
		})
	}
}

// A block by a role counts although nothing else could be learned.
func TestALookThatFailsDoesNotUnblock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &watched{look: answering(member("x", "66"), errors.New("the rest is not known"))}
		s := overlook(t, lookedRules(ofTheBlocked()), takesFor(0), p)
		s.accept(asks("1", member("x", lookedRole), 10*time.Second))
		require.Equal(t, ask.NotAllowed, (<-p.got).Outcome.Cause)
		require.NoError(t, s.end())
	})
}

func TestNobodyIsLookedUpWithoutNeed(t *testing.T) {
	t.Parallel()
	terminal := tiers.Identity{Platform: tiers.Local, User: "0", Kind: tiers.Person, Member: true}
	for name, c := range map[string]struct {
		who tiers.Identity
		ago time.Duration
	}{
		"who has just asked":            {member("x", lookedRole), time.Second},
		"whose platform's clock is off": {member("x", lookedRole), -time.Second},
		"who is owner by id":            {member("owner", lookedRole), 10 * time.Minute},
		"who is at the terminal":        {terminal, 10 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := &watched{look: answering(tiers.Identity{}, errors.New("not needed"))}
				s := overlook(t, lookedRules(), takesFor(50*time.Second), p)
				m := asks("1", c.who, c.ago)
				m.Place.Platform = c.who.Platform
				s.accept(m)
				require.Equal(t, ask.Answered, (<-p.got).Outcome.Kind)
				require.Zero(t, p.looked())
				require.NoError(t, s.end())
			})
		})
	}
}

// The platform says when a message was sent by its own clock. Where that of the
// host is behind, every message looks young for ever.
func TestTheClockOfTheHostSparesNoLook(t *testing.T) {
	t.Parallel()
	for name, behind := range map[string]time.Duration{"as much as it waits": 10 * time.Minute, "a little": 7 * time.Second, "by years": 3 * 365 * 24 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := &watched{look: answering(member("x"), nil)}
				s := overlook(t, lookedRules(), takesFor(max(behind%time.Hour, 6*time.Second)), p)
				s.accept(asks("1", member("owner"), 0))
				s.accept(asks("2", member("x", lookedRole), -behind))
				<-p.got
				require.Equal(t, tiers.Guest, (<-p.got).Receipt.Tier, "the role was taken away while the question waited")
				require.NoError(t, s.end())
			})
		})
	}
	t.Run("before a late delivery", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			p := &watched{look: answering(member("x"), nil)}
			s := overlook(t, lookedRules(), takesFor(62*time.Second), p)
			m := asks("1", member("x", lookedRole), 0)
			m.At = m.At.Add(4 * time.Second) // no reason to look before the run
			s.accept(m)
			require.Equal(t, ask.Lowered, (<-p.got).Outcome.Cause)
			require.NoError(t, s.end())
		})
	})
}

// What another process has taken in is of an age that this one does not know.
func TestAfterARestartEverybodyIsLookedUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &watched{look: answering(member("x"), nil)}
		s := overlook(t, lookedRules(), takesFor(0), p)
		out, err := bridge.NewOutbox(s.journal, bridge.Senders{tiers.Discord: p}, nil, slog.New(slog.DiscardHandler))
		require.NoError(t, err)
		s.gate, err = bridge.NewGate(book(lookedRules()), s.journal, out) // of the bot before
		require.NoError(t, err)
		s.accept(asks("1", member("x", lookedRole), 0))
		require.Equal(t, tiers.Guest, (<-p.got).Receipt.Tier)
		require.NoError(t, s.end())
	})
}

// A message that comes again tells no more than it did the first time.
func TestAMessageThatComesAgainIsNotYoungAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &watched{look: answering(member("x"), nil)}
		s := overlook(t, lookedRules(), takesFor(time.Minute), p)
		s.accept(asks("1", member("owner"), 0))
		m := asks("2", member("x", lookedRole), -time.Minute)
		s.accept(m)
		<-time.After(59 * time.Second)
		_, err := s.gate.Accept(t.Context(), m)
		require.NoError(t, err)
		<-p.got
		require.Equal(t, tiers.Guest, (<-p.got).Receipt.Tier)
		require.NoError(t, s.end())
	})
}

func TestAnAnswerIsWithheldFromWhomLostTheirRoleMeanwhile(t *testing.T) {
	t.Parallel()
	left := tiers.Identity{Platform: tiers.Discord, Workspace: "1", User: "x", Kind: tiers.Person}
	for name, c := range map[string]struct {
		asked, now tiers.Identity
		took       time.Duration
		cause      ask.Cause
		looks      int
	}{
		"the role is gone":             {member("x", lookedRole), member("x"), 2 * time.Minute, ask.Lowered, 1},
		"they have left":               {member("x", lookedRole), left, 2 * time.Minute, ask.NotAllowed, 1},
		"a guest has left":             {member("x"), left, 2 * time.Minute, ask.NotAllowed, 1},
		"the role is there":            {member("x", lookedRole), member("x", lookedRole), 2 * time.Minute, "", 1},
		"a guest has another role":     {member("x"), member("x", lookedRole), 2 * time.Minute, "", 1},
		"the run was short":            {member("x", lookedRole), left, 30 * time.Second, "", 0},
		"an owner needs no membership": {member("owner"), left, 2 * time.Minute, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := &watched{look: answering(c.now, nil)}
				s := overlook(t, lookedRules(), takesFor(c.took), p)
				job := s.accept(asks("1", c.asked, 0)).Job
				ended := <-p.got
				require.Equal(t, c.cause, ended.Outcome.Cause, ended.Detail)
				require.Equal(t, c.looks, p.looked())
				if c.cause != "" {
					require.Equal(t, ask.Sentence(c.cause), ended.Outcome.Text, "the answer is not shown")
					synctest.Wait()
					events, err := s.journal.Events(t.Context(), journal.Filter{Job: job.ID})
					require.NoError(t, err)
					require.True(t, slices.ContainsFunc(events, func(e ask.Event) bool { return e.Kind == ask.EventWithheld }))
				}
				require.NoError(t, s.end())
			})
		})
	}
}

// Where it cannot be told who somebody is by now, the answer of a team's run is
// not lost at once: the delivery is tried again, and the platform asked again.
func TestAnAnswerWaitsForALookThatFailsAndIsThenWithheld(t *testing.T) {
	t.Parallel()
	broken := errors.New("the platform is down")
	for name, c := range map[string]struct {
		asked tiers.Identity
		later func(context.Context, tiers.Identity) (tiers.Identity, error)
		cause ask.Cause
		waits bool
	}{
		"it fails again":      {member("x", lookedRole), answering(tiers.Identity{}, refusedForGood{}), ask.Unchecked, true},
		"then the role is on": {member("x", lookedRole), answering(member("x", lookedRole), nil), "", true},
		"then it is gone":     {member("x", lookedRole), answering(member("x"), nil), ask.Lowered, true},
		"a guest's answer":    {member("x"), answering(tiers.Identity{}, broken), "", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := &watched{}
				p.look = func(context.Context, tiers.Identity) (tiers.Identity, error) {
					p.mu.Lock()
					defer p.mu.Unlock()
					p.look = c.later
					return tiers.Identity{}, refusedForGood{} // of the look, not of the answer
				}
				s := overlook(t, lookedRules(), takesFor(2*time.Minute), p)
				s.accept(asks("1", c.asked, 0))
				began := time.Now()
				ended := <-p.got
				require.Equal(t, c.cause, ended.Outcome.Cause, ended.Detail)
				require.Equal(t, c.waits, time.Since(began) > 150*time.Second, time.Since(began))
				require.NoError(t, s.end())
			})
		})
	}
}

func TestALateDeliveryIsForWhoSomebodyIsThen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &watched{look: answering(member("x"), nil), deliver: errors.New("the platform is down")}
		s := overlook(t, lookedRules(), takesFor(time.Second), p)
		s.accept(asks("1", member("x", lookedRole), 0))
		require.Equal(t, ask.Lowered, (<-p.got).Outcome.Cause, "the second try is a minute later")
		require.NoError(t, s.end())
	})
}
