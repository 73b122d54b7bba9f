package contract_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"parlour/bridge/ask"
	"parlour/bridge/journal"
)

// modelQueue is the queue as a person would describe it: a list of jobs in
// order of acceptance, and the order in which people were served.
type modelQueue struct {
	jobs   []*modelJob
	served map[string]int
	clock  int
}

type modelJob struct {
	id, person, lane string
	state            journal.State
	attempt          int
}

func (m *modelQueue) count(state journal.State, same func(*modelJob) bool) int {
	n := 0
	for _, job := range m.jobs {
		if job.state == state && same(job) {
			n++
		}
	}
	return n
}

// unended counts what a person has queued and running.
func (m *modelQueue) unended(person string) int {
	n := 0
	for _, job := range m.jobs {
		if job.person == person && job.state != journal.Ended {
			n++
		}
	}
	return n
}

func (m *modelQueue) admits(person string, waiting int) bool {
	theirs := func(job *modelJob) bool { return job.person == person }
	queued, running := m.count(journal.Queued, theirs), m.count(journal.Running, theirs)
	if running > 0 {
		return queued < waiting
	}
	return queued < waiting+1
}

// next gives the job that must be claimed, or nil.
func (m *modelQueue) next(running int) *modelJob {
	var best *modelJob
	passed := map[string]bool{}
	for _, job := range m.jobs {
		if job.state != journal.Queued || passed[job.lane] {
			continue
		}
		passed[job.lane] = true
		laneBusy := m.count(journal.Running, func(o *modelJob) bool { return o.lane == job.lane }) > 0
		theirs := m.count(journal.Running, func(o *modelJob) bool { return o.person == job.person })
		if laneBusy || theirs >= running {
			continue
		}
		if best == nil || m.served[job.person] < m.served[best.person] {
			best = job
		}
	}
	return best
}

func (m *modelQueue) in(states ...journal.State) []*modelJob {
	return slices.DeleteFunc(slices.Clone(m.jobs), func(job *modelJob) bool { return !slices.Contains(states, job.state) })
}

// TestJournalAgreesWithAModel plays random steps, restarts included, on the
// journal and on the model. All plays share one store, each with its own people
// and lanes, because making a store costs more than a play.
func TestJournalAgreesWithAModel(t *testing.T) {
	t.Parallel()
	p := &modelPlay{dir: memoryFolder(t), m: &modelQueue{}}
	defer func() { require.NoError(t, p.j.Close()) }()
	rapid.Check(t, func(r *rapid.T) {
		p.begin(r)
		r.Repeat(map[string]func(*rapid.T){
			// The more names, the more often: a restart costs as much as 20 claims.
			"accept": p.accept, "accept 2": p.accept, "accept 3": p.accept, "accept 4": p.accept,
			"claim": p.claim, "claim 2": p.claim, "claim 3": p.claim, "claim 4": p.claim,
			"finish": p.finish, "finish 2": p.finish, "cancel": p.cancel, "restart": p.restart,
		})
		p.agree(r)
	})
}

// memoryFolder is a folder without a disk where there is one: this test asks
// about thousands of small changes, not about their durability.
func memoryFolder(t *testing.T) string {
	dir, err := os.MkdirTemp("/dev/shm", "parlour-journal-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	return dir
}

type modelPlay struct {
	dir   string
	j     *journal.Journal
	m     *modelQueue
	plays int
}

// begin clears away what the play before has left.
func (p *modelPlay) begin(r *rapid.T) {
	if p.j == nil {
		p.restart(r)
	}
	for _, job := range p.m.in(journal.Queued, journal.Running) {
		require.NoError(r, p.j.Cancel(context.Background(), job.id, ask.Interrupted))
	}
	p.m = &modelQueue{served: map[string]int{}}
	p.plays++
}

func (p *modelPlay) restart(r *rapid.T) {
	if p.j != nil {
		require.NoError(r, p.j.Close())
	}
	j, err := journal.Open(context.Background(), journal.Config{Dir: p.dir, Origin: journal.Serve, MaxAttempts: 2})
	require.NoError(r, err)
	p.j = j
	for _, job := range p.m.in(journal.Running) {
		job.state = journal.Queued
		if job.attempt == 2 {
			job.state = journal.Ended
		}
	}
}

func (p *modelPlay) accept(r *rapid.T) {
	person := rapid.SampledFrom([]string{"anna", "bert", "cleo"}).Draw(r, "person")
	lane := rapid.SampledFrom([]string{"l1", "l2", "l3", "l4"}).Draw(r, "lane")
	waiting := rapid.IntRange(0, 3).Draw(r, "waiting")
	asked := jobOf(p.name(len(p.m.jobs)), p.name(person), p.name(lane))
	got, err := p.j.Accept(context.Background(), asked, waits(waiting), nil)
	require.NoError(r, err)
	job := &modelJob{id: got.Job.ID, person: person, lane: lane, state: journal.Ended}
	if p.m.admits(person, waiting) {
		job.state = journal.Queued
		require.Equal(r, p.m.unended(person), got.Ahead)
	}
	require.Equal(r, job.state == journal.Ended, got.Ended != nil)
	p.m.jobs = append(p.m.jobs, job)
}

func (p *modelPlay) name(what any) string { return fmt.Sprint(p.plays, " ", what) }

func (p *modelPlay) claim(r *rapid.T) {
	running := rapid.IntRange(0, 2).Draw(r, "running")
	got, err := p.j.Claim(context.Background(), running)
	require.NoError(r, err)
	want := p.m.next(running)
	if want == nil {
		require.Nil(r, got)
		return
	}
	require.NotNil(r, got)
	want.state, want.attempt = journal.Running, want.attempt+1
	p.m.clock++
	p.m.served[want.person] = p.m.clock
	require.Equal(r, want.id, got.ID)
	require.Equal(r, want.attempt, got.Attempt)
}

func (p *modelPlay) finish(r *rapid.T) {
	open := p.m.in(journal.Running, journal.Ended)
	if len(open) == 0 {
		r.Skip("nothing to finish")
	}
	job := rapid.SampledFrom(open).Draw(r, "job")
	attempt := rapid.IntRange(1, 2).Draw(r, "attempt")
	err := p.j.Finish(context.Background(), ask.Job{ID: job.id, Attempt: attempt}, endOf(ask.Job{ID: job.id}, "so"))
	if job.state != journal.Running || attempt != job.attempt {
		require.ErrorIs(r, err, journal.ErrStale)
		return
	}
	require.NoError(r, err)
	job.state = journal.Ended
}

func (p *modelPlay) cancel(r *rapid.T) {
	if len(p.m.jobs) == 0 {
		r.Skip("nothing to cancel")
	}
	job := rapid.SampledFrom(p.m.jobs).Draw(r, "job")
	err := p.j.Cancel(context.Background(), job.id, ask.Interrupted)
	if job.state == journal.Ended {
		require.ErrorIs(r, err, journal.ErrEnded)
		return
	}
	require.NoError(r, err)
	job.state = journal.Ended
}

func (p *modelPlay) agree(r *rapid.T) {
	count, err := p.j.Queue(context.Background())
	require.NoError(r, err)
	require.Equal(r, len(p.m.in(journal.Queued)), count.Queued)
	require.Equal(r, len(p.m.in(journal.Running)), count.Running)
}
