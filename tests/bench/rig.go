package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"parlour/runner/policy"
	"parlour/runner/sandbox"
)

// rig is the engine on this host, and the policy of a small run.
type rig struct {
	*sandbox.Engine
	who  string
	self string // this program, where every user can start it
	n    int
	eff  policy.Effective
	drop func()
}

func newRig(ctx context.Context, n int) (*rig, error) {
	self, remove, err := open()
	if err != nil {
		return nil, err
	}
	r := &rig{who: "user", self: self, n: n, drop: remove}
	if os.Getuid() == 0 {
		r.who = "root"
	}
	if r.Engine, err = sandbox.New(sandbox.Config{Self: self, Temp: filepath.Dir(self)}); err != nil {
		return nil, errors.Join(err, closed(remove))
	}
	caps := r.Probe(ctx)
	if caps.Rung != policy.RungFull {
		return nil, errors.Join(fmt.Errorf("this host has no full rung: %s; cure: %s", caps.Why, caps.Cure), closed(remove))
	}
	r.eff, err = policy.Narrow(policy.Wish{Mode: policy.ReadOnly, Network: policy.ModelOnly, Limits: policy.Limits{
		Wall: time.Minute, Memory: 1 << 30, Disk: 16 << 20, Files: 1000, Processes: 64, OpenFiles: 256, Answer: 1 << 20,
		ModelRequests: 1, OutputTokens: 1,
	}}, caps)
	return r, err
}

func closed(f func()) error { f(); return nil }

func (r *rig) close() {
	r.Reserve(0)
	r.drop()
}

// open copies this program to a folder that every user can enter.
func open() (path string, remove func(), err error) {
	self, err := os.Executable()
	if err != nil {
		return "", nil, err
	}
	folder, err := os.MkdirTemp("", "parlour-bench-")
	if err != nil {
		return "", nil, err
	}
	remove = func() { _ = os.RemoveAll(folder) }
	text, err := os.ReadFile(self)
	path = filepath.Join(folder, "bench")
	if err = errors.Join(err, os.Chmod(folder, 0o755), os.WriteFile(path, text, 0o755), os.Chmod(path, 0o755)); err != nil {
		remove()
	}
	return path, remove, err
}

// run runs one program in a sandbox of its own and gives how long the start and
// the whole took.
func (r *rig) run(ctx context.Context, stdout io.Writer, path string, args ...string) (ready, whole time.Duration, err error) {
	begin := time.Now()
	run, err := r.Start(ctx, r.eff, sandbox.Command{Name: filepath.Base(path), Path: path, Args: args, Env: []string{}, Stdout: stdout})
	if err != nil {
		return 0, 0, err
	}
	ready = time.Since(begin)
	exit, err := run.Wait()
	if err == nil && exit.Code != 0 {
		err = fmt.Errorf("%s ended with %d", path, exit.Code)
	}
	return ready, time.Since(begin), err
}

// samples are the times of one variant.
type samples []time.Duration

// at gives the time that a share of the samples did not exceed.
func (s samples) at(percent int) float64 {
	sorted := slices.Sorted(slices.Values(s))
	return float64(sorted[len(sorted)*percent/100])
}

// turns measures variants in turns.
func turns(n int, variants ...func() (time.Duration, error)) ([]samples, error) {
	all := make([]samples, len(variants))
	for range n {
		for i, v := range variants {
			took, err := v()
			if err != nil {
				return nil, err
			}
			all[i] = append(all[i], took)
		}
	}
	return all, nil
}

// timed measures one call.
func timed(do func() error) (time.Duration, error) {
	begin := time.Now()
	err := do()
	return time.Since(begin), err
}
