package contract_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"parlour/bridge/ask"
	"parlour/bridge/journal"
)

const (
	journalRole = "parlour-journal-process"
	untilKilled = -1
	idle        = "idle" // as a prefix: claims one job and finishes none
)

// journalProcess is a small bot: it accepts count messages, runs and delivers
// them, and prints a line for each step that was acknowledged. Where dieAt is
// positive, it kills itself at that reading of the clock, which the journal
// reads inside its transactions. Where it is untilKilled, it ends only when its
// standard input does.
func journalProcess(args []string) int {
	dir, origin, prefix := args[0], args[1], args[2]
	count, _ := strconv.Atoi(args[3])
	dieAt, _ := strconv.ParseInt(args[4], 10, 64)
	var readings atomic.Int64
	now := func() time.Time {
		if readings.Add(1) == dieAt {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
		return time.Now()
	}
	ctx := context.Background()
	j, err := journal.Open(ctx, journal.Config{Dir: dir, Origin: origin, Now: now})
	if err == nil {
		fmt.Println("open")
		bot := &smallBot{j: j, prefix: prefix}
		if prefix == idle {
			err = bot.dawdle(ctx, count)
		} else {
			err = bot.run(ctx, count)
		}
	}
	if err == nil && dieAt == untilKilled {
		_, err = io.Copy(io.Discard, os.Stdin)
	}
	if err == nil {
		err = j.Close()
	}
	if err != nil {
		fmt.Println("error", err)
		return 1
	}
	return 0
}

type smallBot struct {
	j      *journal.Journal
	prefix string
}

func (b *smallBot) run(ctx context.Context, count int) error {
	errs := make(chan error, 3)
	jobs := make(chan ask.Job)
	accepted := make(chan struct{})
	var workers sync.WaitGroup
	for range 2 {
		workers.Go(func() {
			for job := range jobs {
				if err := b.work(ctx, job); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	go func() {
		defer close(accepted)
		if err := b.accept(ctx, count); err != nil {
			errs <- err
		}
	}()
	err := b.claim(ctx, jobs, accepted, errs)
	close(jobs)
	if err == nil {
		workers.Wait()
	}
	return err
}

func (b *smallBot) accept(ctx context.Context, count int) error {
	for i := range count {
		job := jobOf(fmt.Sprintf("%s-%d", b.prefix, i), fmt.Sprint(b.prefix, "person", i%5), fmt.Sprint(b.prefix, "lane", i%7))
		var refuse *ask.Ended
		if i%11 == 10 {
			refuse = &ask.Ended{Outcome: ask.Outcome{Kind: ask.Refused, Cause: ask.NotAllowed, Text: ask.Sentence(ask.NotAllowed)}}
		}
		got, err := b.j.Accept(ctx, job, waits(1000), refuse)
		if err != nil {
			return err
		}
		fmt.Println("accepted", got.Job.ID)
	}
	return nil
}

func (b *smallBot) dawdle(ctx context.Context, count int) error {
	if err := b.accept(ctx, count); err != nil {
		return err
	}
	if _, err := b.j.Claim(ctx, 1); err != nil {
		return err
	}
	return (&smallBot{j: b.j, prefix: b.prefix + "-more"}).accept(ctx, count)
}

// claim hands out jobs until all are accepted and none is left.
func (b *smallBot) claim(ctx context.Context, jobs chan<- ask.Job, accepted chan struct{}, errs <-chan error) error {
	all := false
	for {
		job, err := b.j.Claim(ctx, 1)
		if err != nil {
			return err
		}
		if job != nil {
			fmt.Println("claimed", job.ID)
			select {
			case jobs <- *job:
				continue
			case err := <-errs:
				return err
			}
		}
		if all {
			if left, err := b.mine(ctx); err != nil || left == 0 {
				return err
			}
		}
		select {
		case <-b.j.Wake():
		case <-accepted:
			all, accepted = true, nil
		case err := <-errs:
			return err
		}
	}
}

// mine counts this process's own jobs that are queued or running: the queue's
// counts are over all processes.
func (b *smallBot) mine(ctx context.Context) (int, error) {
	left := map[string]bool{}
	for after := int64(0); ; {
		events, err := b.j.Events(ctx, journal.Filter{After: after})
		if err != nil || len(events) == 0 {
			return len(left), err
		}
		for _, event := range events {
			after = event.Seq
			switch {
			case event.Kind == ask.EventAccepted && strings.Contains(string(event.Data), `"message":"`+b.family()):
				left[event.Job] = true
			case event.Kind == ask.EventOutcome:
				delete(left, event.Job)
			}
		}
	}
}

// family is the prefix without the number of the life.
func (b *smallBot) family() string { return strings.TrimRight(b.prefix, "0123456789") }

func (b *smallBot) work(ctx context.Context, job ask.Job) error {
	if err := b.j.Append(ctx, job.ID, ask.EventRequest, ask.RequestHeader{Runner: "docs"}); err != nil {
		return err
	}
	var err error
	if strings.HasSuffix(job.Message, "7") {
		err = b.j.Cancel(ctx, job.ID, ask.Interrupted)
	} else {
		err = b.j.Finish(ctx, job, endOf(job, "it is so"))
	}
	if err != nil {
		return err
	}
	fmt.Println("ended", job.ID)
	if err := b.j.Delivered(ctx, job.ID); err != nil {
		return err
	}
	fmt.Println("delivered", job.ID)
	return nil
}

// journalChild is a running journalProcess as its parent sees it.
type journalChild struct {
	t     *testing.T
	cmd   *exec.Cmd
	lines *bufio.Scanner
	said  map[string][]string // verb -> ids, in order
	count int
}

func startJournal(t *testing.T, dir, origin, prefix string, count int, dieAt int64) *journalChild {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(self)
	cmd.Args = []string{journalRole, dir, origin, prefix, strconv.Itoa(count), strconv.FormatInt(dieAt, 10)}
	cmd.Env = []string{}
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	cmd.Stderr = os.Stderr
	if dieAt == untilKilled {
		_, err = cmd.StdinPipe()
		require.NoError(t, err)
	}
	require.NoError(t, cmd.Start())
	return &journalChild{t: t, cmd: cmd, lines: bufio.NewScanner(out), said: map[string][]string{}}
}

// read takes one line; false at the end.
func (p *journalChild) read() bool {
	if !p.lines.Scan() {
		return false
	}
	verb, rest, _ := strings.Cut(p.lines.Text(), " ")
	p.said[verb] = append(p.said[verb], rest)
	p.count++
	return true
}

// end reads what is left and waits; it gives the signal that ended the process,
// or -1.
func (p *journalChild) end() syscall.Signal {
	p.t.Helper()
	for p.read() {
	}
	_ = p.cmd.Wait()
	status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	require.True(p.t, ok)
	require.Empty(p.t, p.said["error"])
	if status.Signaled() {
		return status.Signal()
	}
	require.Zero(p.t, status.ExitStatus())
	return -1
}

func jobOf(message, person, lane string) ask.Job {
	return ask.Job{
		Message:  message,
		Person:   person,
		Lane:     lane,
		Question: ask.Question{Text: "why?"},
	}
}

func endOf(job ask.Job, text string) ask.Ended {
	return ask.Ended{
		Outcome: ask.Outcome{Kind: ask.Answered, Text: text},
		Receipt: ask.Receipt{Job: job.ID, Rung: "full"},
	}
}
