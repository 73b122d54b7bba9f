//go:build amd64 || arm64

package probe

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"parlour/runner/policy"
	"parlour/runner/sandbox"
)

// longestRun bounds one run of the battery.
const longestRun = 30 * time.Second

// measure sets the stage, makes the attempts under each policy, and those about
// limits and the end once.
func (b *Battery) measure(ctx context.Context, r Rung, report *Report) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s, err := b.setUp(ctx)
	if err != nil {
		return err
	}
	defer s.tearDown()
	s.absent["second"] = "there was no run before"
	policies := r.Policies
	if len(policies) == 1 {
		policies = append(policies, policies[0])
	}
	for _, e := range policies {
		fit(s, e)
		answers, err := b.play(ctx, s, e, partTry)
		report.Findings = append(report.Findings, judge(s, e, answers, err, func(t trial) bool { return !t.alone })...)
		delete(s.absent, "second")
	}
	last := r.Policies[len(r.Policies)-1]
	answers, err := b.play(ctx, s, last, partLimits)
	kerr := b.kill(ctx, s, last)
	if kerr != nil {
		s.missing["killed"] = kerr.Error()
	}
	report.Findings = append(report.Findings, judge(s, last, answers, err, func(t trial) bool { return t.alone })...)
	return nil
}

// fit tells the intruder about the policy of its run.
func fit(s *stage, e policy.Effective) {
	l := e.Limits()
	s.Limits.Memory, s.Limits.Disk = l.Memory, l.Disk
	s.Limits.Files, s.Limits.Processes, s.Limits.OpenFile = l.Files, l.Processes, l.OpenFiles
	s.outlived, s.heldOutput, s.signalled = false, false, false
	delete(s.absent, "work")
	if e.Mode() == policy.WorkspaceWrite {
		s.absent["work"] = "the policy lets the run write there"
	}
}

func (b *Battery) command(s *stage, part string) (sandbox.Command, error) {
	stdin, err := json.Marshal(s.targets)
	return sandbox.Command{
		Name: "bot", Path: b.cfg.Self, Args: []string{Subcommand, part, s.Mark}, Stdin: stdin,
		Env: []string{"PATH=/usr/bin:/bin", "HOME=" + policy.HomeDir, "TMPDIR=" + policy.TempDir, "LANG=C.UTF-8"},
	}, err
}

// play runs one part in the sandbox and gives what it said.
func (b *Battery) play(ctx context.Context, s *stage, e policy.Effective, part string) (map[string]said, error) {
	ctx, cancel := context.WithTimeout(ctx, longestRun)
	defer cancel()
	s.renew()
	cmd, err := b.command(s, part)
	if err != nil {
		return nil, err
	}
	complaint := &output{most: 4 << 10}
	out := &output{most: 8 << 20}
	cmd.Stdout, cmd.Stderr = out, complaint
	run, err := b.cfg.Start(ctx, e, cmd)
	if err != nil {
		return nil, fmt.Errorf("start the sandbox: %w", err)
	}
	exit, err := run.Wait()
	s.heldOutput = exit.Held
	living, unsure := s.endAll()
	s.outlived = living > 0
	if delete(s.missing, "survivors"); living == 0 && unsure > 0 {
		s.missing["survivors"] = errUnsure.Error()
	}
	s.collect()
	answers := map[string]said{}
	for line := range strings.Lines(out.String()) {
		var a said
		if json.Unmarshal([]byte(line), &a) == nil {
			answers[a.ID] = a
		}
	}
	if err == nil && (exit.Code != 0 || exit.Signal != 0) {
		err = fmt.Errorf("the intruder ended early: exit %d, signal %d: %s", exit.Code, exit.Signal, firstLine(complaint.String()))
	}
	return answers, err
}

// kill kills a run whose processes do not want to end.
func (b *Battery) kill(ctx context.Context, s *stage, e policy.Effective) error {
	ctx, cancel := context.WithTimeout(ctx, longestRun)
	defer cancel()
	s.renew()
	cmd, err := b.command(s, partStay)
	if err != nil {
		return err
	}
	holding := make(chan struct{})
	out := &output{most: 1 << 10, seen: "holding\n", tell: func() { close(holding) }}
	cmd.Stdout = out
	run, err := b.cfg.Start(ctx, e, cmd)
	if err != nil {
		return err
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, err = run.Wait()
	}()
	held := false
	select {
	case <-holding:
		held = true
	case <-ended:
	case <-ctx.Done():
	}
	cancel()
	<-ended
	living, unsure := s.endAll()
	s.survived = living > 0
	switch {
	case err != nil:
		return err
	case !held:
		return fmt.Errorf("its processes did not start: %s", firstLine(out.String()))
	case living == 0 && unsure > 0:
		return errUnsure
	}
	return nil
}

// errUnsure tells of processes that have the battery's public words, and that
// this user may not ask for the run's secret.
var errUnsure = errors.New("a process that could be of the run lives, and may not be asked")

// judge gives the finding of each attempt.
func judge(s *stage, e policy.Effective, answers map[string]said, err error, which func(trial) bool) []Finding {
	var out []Finding
	for _, t := range table() {
		if !which(t) {
			continue
		}
		f := Finding{Attempt: t.Attempt, Network: e.Network()}
		a, heard := answers[t.ID()]
		f.Verdict, f.Why = s.verdict(e, t, a, heard || t.try == nil, err)
		f.Admitted = f.Verdict == Escaped && t.tells && slices.Contains(e.Notes(), policy.NoView)
		out = append(out, f)
	}
	return out
}

func (s *stage) verdict(e policy.Effective, t trial, a said, heard bool, failed error) (Verdict, string) {
	if why, ok := s.absent[t.target]; ok {
		return NotApplicable, why
	}
	if t.paths != nil && !slices.ContainsFunc(t.paths, exists) {
		return NotApplicable, "this host has none"
	}
	if why, ok := s.missing[t.target]; ok {
		return NotMeasured, why
	}
	if why, ok := s.missing[t.Name]; ok && t.try == nil {
		return NotMeasured, why
	}
	v, why := s.judged(t, a, heard, failed)
	if promised, ok := level(e, t.limit); ok && v == Escaped && promised != policy.Enforced && !(promised == policy.Soft && t.single) {
		return NotApplicable, fmt.Sprintf("the policy says that this limit is enforced %s: %s", promised, why)
	}
	return v, why
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// judged weighs what the intruder said against what the target saw.
func (s *stage) judged(t trial, a said, heard bool, failed error) (Verdict, string) {
	switch {
	case !heard && failed != nil:
		return NotMeasured, failed.Error()
	case !heard:
		return NotMeasured, "nothing was heard of it"
	case a.Void:
		return NotMeasured, a.Why
	case a.None:
		return NotApplicable, a.Why
	case t.Family == "processes" && t.target == "victim" && a.Did && strings.HasPrefix(t.Name, "signal") && !soon(s.wasSignalled):
		return NotMeasured, "a signal was sent and did not arrive"
	case strings.Contains(a.Got, s.secret):
		return Escaped, "it read what the target holds"
	case t.judge != nil:
		if escaped, why := t.judge(s, a); escaped {
			return Escaped, why
		}
		return Contained, a.Why
	case a.Did:
		return Escaped, a.Why
	}
	return Contained, a.Why
}

// soon waits a moment for what another process is about to tell.
func soon(is func() bool) bool {
	timer, ticker := time.NewTimer(time.Second), time.NewTicker(2*time.Millisecond)
	defer timer.Stop()
	defer ticker.Stop()
	for !is() {
		select {
		case <-timer.C:
			return is()
		case <-ticker.C:
		}
	}
	return true
}

// level gives how well the policy says that a limit is enforced.
func level(e policy.Effective, limit string) (policy.Level, bool) {
	for _, l := range e.LimitList() {
		if limit != "" && l.Name == limit {
			return l.Level, true
		}
	}
	return policy.None, false
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}

// output keeps what a part prints, up to a size.
type output struct {
	most int
	seen string // what tell waits for
	tell func()

	mu   sync.Mutex
	kept bytes.Buffer
}

// Write never fails: a part must not learn that it is cut off.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.kept.Write(p[:min(len(p), max(0, o.most-o.kept.Len()))])
	if o.tell != nil && strings.Contains(o.kept.String(), o.seen) {
		o.tell()
		o.tell = nil
	}
	return len(p), nil
}

// String gives what was kept.
func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.kept.String()
}
