//go:build linux

package attacks_test

import (
	"bytes"
	"context"
	"net"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"parlour/runner/policy"
	"parlour/runner/probe"
	"parlour/runner/sandbox"
	"parlour/tests/house"
)

// sown is what the batteries of these tests find in the environment where
// nothing keeps it away.
const sown = "PARLOUR-PLANTED-FOR-THE-BATTERY"

// starter starts the intruder somehow.
type starter func(context.Context, policy.Effective, sandbox.Command) (probe.Run, error)

// boxed starts it in a real sandbox of the bot's own program.
func boxed(t *testing.T) (starter, *sandbox.Engine) {
	t.Helper()
	engine, err := sandbox.New(sandbox.Config{Self: house.Bot(t), Temp: openFolder(t)})
	require.NoError(t, err)
	return func(ctx context.Context, e policy.Effective, cmd sandbox.Command) (probe.Run, error) {
		run, err := engine.Start(ctx, e, cmd)
		if err != nil {
			return nil, err
		}
		return run, nil
	}, engine
}

// battery is the battery over a way to start the intruder.
func battery(t *testing.T, start starter) *probe.Battery {
	t.Helper()
	b, err := probe.New(batteryConfig(t, start))
	require.NoError(t, err)
	return b
}

// batteryConfig measures in a folder that everybody may enter: no wall but the
// sandbox's is to hold.
func batteryConfig(t *testing.T, start starter) probe.Config {
	t.Helper()
	return probe.Config{Self: house.Bot(t), Temp: openFolder(t), Environ: os.Environ(), Planted: sown, Start: start}
}

// unwalled is the intruder as a plain child of the test: no sandbox at all, or
// what little wrap gives it.
type unwalled struct {
	cmd *exec.Cmd
}

func (u *unwalled) Listener() net.Listener { return nil }

func (u *unwalled) Wait() (sandbox.Exit, error) {
	err := u.cmd.Wait()
	exit := sandbox.Exit{Code: u.cmd.ProcessState.ExitCode(), Held: u.cmd.ProcessState.Success() && err != nil}
	return exit, nil
}

// plainly starts the intruder without a sandbox. wrap may give the command what
// it likes.
func plainly(t *testing.T, wrap func(*exec.Cmd)) starter {
	home, temp := t.TempDir(), t.TempDir()
	return func(ctx context.Context, _ policy.Effective, c sandbox.Command) (probe.Run, error) {
		cmd := exec.CommandContext(ctx, c.Path, c.Args...)
		cmd.Env = append(os.Environ(), "SOWN="+sown, "HOME="+home, "TMPDIR="+temp)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(c.Stdin), c.Stdout, c.Stderr
		cmd.WaitDelay = outputPatience
		if wrap != nil {
			wrap(cmd)
		}
		if err := cmd.Start(); err != nil {
			return nil, err
		}
		return &unwalled{cmd: cmd}, nil
	}
}

// promised is a policy that a host without any wall could never give.
func promised(t *testing.T, n policy.Network) probe.Rung {
	t.Helper()
	caps := policy.Capabilities{
		Rung: policy.RungFull, Filesystem: policy.Enforced, Network: policy.Enforced, Processes: policy.Enforced,
		Memory: policy.Soft, Disk: policy.Enforced, ProcessCount: policy.Enforced, OpenFiles: policy.Enforced, Landlock: 7,
	}
	for _, r := range probe.Rungs(caps) {
		if r.Rung == policy.RungFull {
			for _, e := range r.Policies {
				if e.Network() == n {
					r.Policies = []policy.Effective{e}
					return r
				}
			}
		}
	}
	require.Fail(t, "no such policy")
	return probe.Rung{}
}

// byID gives the verdict of each attempt.
func byID(r probe.Report) map[string]probe.Finding {
	all := map[string]probe.Finding{}
	for _, f := range r.Merged() {
		all[f.ID()] = f
	}
	return all
}
