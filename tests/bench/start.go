package main

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"time"
)

const (
	program = "/usr/bin/true"
	maker   = "/usr/bin/bwrap"
)

// bubble runs the program under bubblewrap with the same view. It has no filter
// and no second wall, which flatters it.
func bubble() error {
	words := "--unshare-all --die-with-parent --new-session --hostname sandbox --ro-bind /usr /usr " +
		"--symlink usr/bin /bin --symlink usr/lib /lib --symlink usr/lib64 /lib64 --symlink usr/sbin /sbin " +
		"--proc /proc --dev /dev --tmpfs /tmp --tmpfs /home/agent --tmpfs /work --tmpfs /usr/local --tmpfs /usr/src " +
		"--ro-bind /etc/hosts /etc/hosts --ro-bind /etc/passwd /etc/passwd --ro-bind /etc/group /etc/group " +
		"--ro-bind /etc/nsswitch.conf /etc/nsswitch.conf --uid 1000 --gid 1000 --cap-drop ALL --chdir /work --clearenv -- " + program
	if out, err := exec.Command(maker, strings.Fields(words)...).CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

func bare() error { return exec.Command(program).Run() }

func (r *rig) boxed(ctx context.Context) (time.Duration, error) {
	_, whole, err := r.run(ctx, nil, program)
	return whole, err
}

// coldStart compares a sandbox that is made when it is asked for.
func coldStart(ctx context.Context, r *rig) ([]row, error) {
	all, err := turns(r.n,
		func() (time.Duration, error) { return r.boxed(ctx) },
		func() (time.Duration, error) { return timed(bubble) },
		func() (time.Duration, error) { return timed(bare) })
	if err != nil {
		return nil, err
	}
	bar := 1.0
	if r.who == "root" {
		bar = 0.9
	}
	box, bwrap, plain := all[0], all[1], all[2]
	return []row{
		below("cold sandbox ÷ bubblewrap, p50", box.at(50)/bwrap.at(50), bar),
		said("cold sandbox ÷ bubblewrap, p10", fmt.Sprintf("%.2f", box.at(10)/bwrap.at(10))),
		said("cold sandbox ÷ bare start, p50", fmt.Sprintf("%.2f", box.at(50)/plain.at(50))),
		said("cold sandbox, p50", time.Duration(box.at(50)).Round(10*time.Microsecond).String()),
	}, nil
}

// warmStart compares a sandbox that was made before.
func warmStart(ctx context.Context, r *rig) ([]row, error) {
	r.Reserve(1)
	defer r.Reserve(0)
	all, err := turns(r.n,
		func() (time.Duration, error) {
			if err := r.Warm(ctx, r.eff, command(program)); err != nil {
				return 0, err
			}
			return r.boxed(ctx)
		},
		func() (time.Duration, error) { return timed(bare) })
	if err != nil {
		return nil, err
	}
	return []row{
		below("warm sandbox ÷ bare start, p10", all[0].at(10)/all[1].at(10), 1.5),
		below("warm sandbox ÷ bare start, p50", all[0].at(50)/all[1].at(50), 2),
	}, nil
}

// rates compares how many sandboxes a second there can be.
func rates(ctx context.Context, r *rig) ([]row, error) {
	var rows []row
	for _, at := range []int{8, 32} {
		box, bwrap, err := r.race(ctx, at)
		if err != nil {
			return nil, err
		}
		rows = append(rows, said(fmt.Sprintf("sandboxes per second ÷ bubblewrap, %d at a time, none made before", at), fmt.Sprintf("%.2f", box/bwrap)))
		r.Reserve(at)
		box, bwrap, err = r.race(ctx, at)
		r.Reserve(0)
		if err != nil {
			return nil, err
		}
		rows = append(rows, above(fmt.Sprintf("sandboxes per second ÷ bubblewrap, %d at a time", at), box/bwrap, 1))
	}
	return rows, nil
}

// race gives both rates, of several rounds in turns.
func (r *rig) race(ctx context.Context, at int) (box, bwrap float64, err error) {
	const rounds, each = 5, 64
	all, err := turns(rounds,
		func() (time.Duration, error) {
			return together(at, each, func() error { _, err := r.boxed(ctx); return err })
		},
		func() (time.Duration, error) { return together(at, each, bubble) })
	if err != nil {
		return 0, 0, err
	}
	rate := func(s samples) float64 { return each / time.Duration(s.at(50)).Seconds() }
	return rate(all[0]), rate(all[1]), nil
}

// together does something n times, some at a time, and gives how long it took.
func together(at, n int, do func() error) (time.Duration, error) {
	todo := make(chan struct{}, n)
	for range n {
		todo <- struct{}{}
	}
	close(todo)
	failed := make(chan error, n)
	begin := time.Now()
	var all sync.WaitGroup
	for range at {
		all.Go(func() {
			for range todo {
				if err := do(); err != nil {
					failed <- err
				}
			}
		})
	}
	all.Wait()
	took := time.Since(begin)
	select {
	case err := <-failed:
		return 0, err
	default:
		return took, nil
	}
}
