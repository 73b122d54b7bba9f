//go:build linux

package attacks_test

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"parlour/runner/policy"
	"parlour/runner/probe"
	"parlour/runner/sandbox"
)

// told is what the intruder learns from its input of the targets.
type told struct {
	Folder, Shm, VarTmp, Queue, KeyName string
	TCP4, UDP4, Abstract, AbstractGram  string
	Path, PathGram                      string
	Knock                               int
	Shared, Semaphores, Messages        int
}

func toldTo(t *testing.T, cmd sandbox.Command) told {
	t.Helper()
	var of told
	require.NoError(t, json.Unmarshal(cmd.Stdin, &of))
	return of
}

// errNoRun ends a battery as soon as its stage stands.
var errNoRun = errors.New("nothing is started here")

// listing gives everything below a folder.
func listing(folder string) (all []string) {
	_ = filepath.WalkDir(folder, func(path string, _ fs.DirEntry, _ error) error {
		all = append(all, path)
		return nil
	})
	return all
}

// entered waits for a stage that others may enter, and gives what was in it then.
func entered(temp string, over <-chan struct{}) []string {
	for {
		select {
		case <-over:
			return nil
		default:
		}
		entries, _ := os.ReadDir(temp)
		for _, e := range entries {
			path := filepath.Join(temp, e.Name())
			if info, err := os.Stat(path); err == nil && info.Mode().Perm()&0o001 != 0 {
				return listing(path)
			}
		}
	}
}

// Scenario: another user waits for the folder of targets, to put a link to a
// file of the bot where the bot is about to write.
func TestNoOtherUserEntersAStageThatIsBuilt(t *testing.T) {
	rung, seen := promised(t, policy.NetworkNone), map[string]bool{}
	for range 20 {
		over, early, looked := make(chan struct{}), make(chan []string, 1), false
		temp := openFolder(t)
		cfg := batteryConfig(t, func(_ context.Context, _ policy.Effective, cmd sandbox.Command) (probe.Run, error) {
			stage := toldTo(t, cmd).Folder
			if looked {
				return nil, errNoRun
			}
			looked = true
			select {
			case was := <-early:
				require.Equal(t, listing(stage), was, "it could be entered before it stood")
			default: // the other user was too slow, or looks again
			}
			for _, path := range listing(stage) {
				info, err := os.Lstat(path)
				require.NoError(t, err)
				if info.IsDir() && info.Mode().Perm()&0o002 != 0 {
					require.Zero(t, info.Mode().Perm()&0o004, "%s is listed to everybody", path)
					for _, name := range listing(path) {
						require.False(t, seen[filepath.Base(name)], "%s can be guessed", name)
						defer func() { seen[filepath.Base(name)] = true }()
					}
				}
			}
			return nil, errNoRun
		})
		cfg.Temp = temp
		var watch sync.WaitGroup
		watch.Go(func() {
			if was := entered(temp, over); was != nil {
				early <- was
			}
		})
		b, err := probe.New(cfg)
		require.NoError(t, err)
		b.Measure(t.Context(), rung)
		close(over)
		watch.Wait()
	}
	require.NotEmpty(t, seen, "there is no folder where everybody may write")
}

// another gives a command of another user, where this one may start it.
func another(t *testing.T, name string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), name, args...)
	cmd.Env = []string{"PATH=/usr/bin:/bin"}
	if os.Getuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65533, Gid: 65533}}
	}
	return cmd
}

// say tells the listeners that an attempt was made.
func say(t *testing.T, network, address string, attempts ...string) {
	t.Helper()
	for _, a := range attempts {
		c, err := net.Dial(network, address)
		require.NoError(t, err, "%s %s", network, address)
		_, err = c.Write([]byte(a + "\n"))
		require.NoError(t, err)
		require.NoError(t, c.Close())
	}
}

// Scenario: another user of the host wants the bot to refuse its runs. Every
// target that can be reached is touched, and a process has the battery's words.
func TestAnotherUserCannotMakeTheBatteryLie(t *testing.T) {
	inside, engine := boxed(t)
	rung := probe.Rungs(engine.Probe(t.Context()))[0]
	if len(rung.Policies) == 0 {
		t.Skipf("this host has no full rung: %s", rung.Why)
	}
	var decoys []func()
	r := battery(t, func(ctx context.Context, e policy.Effective, cmd sandbox.Command) (probe.Run, error) {
		mark, targets := cmd.Args[2], toldTo(t, cmd)
		for _, part := range []string{"hold", "stay", "try"} {
			decoy := another(t, "/bin/sh", "-c", "read forever", "bot", probe.Subcommand, part, mark, "")
			in, err := decoy.StdinPipe()
			require.NoError(t, err)
			require.NoError(t, decoy.Start())
			t.Cleanup(func() { _ = in.Close() })
			decoys = append(decoys, func() {
				_ = in.Close()
				require.NoError(t, ignoreExit(decoy.Wait()))
				require.False(t, decoy.ProcessState.Sys().(syscall.WaitStatus).Signaled(), "the bot ended a process of others")
			})
		}
		say(t, "tcp4", targets.TCP4, "loopback-4", "loopback-mapped", "loopback-any", "multipath", "fast-open", "host-address", "broker-twin")
		say(t, "udp4", targets.UDP4, "datagram-4", "datagram-6", strings.Repeat("0", 32)+" datagram-4")
		say(t, "unix", "@"+targets.Abstract, "abstract", "path", "serve")
		say(t, "unixgram", "@"+targets.AbstractGram, "abstract-datagram", "pair", "path-datagram")
		say(t, "unix", targets.Path, "path")
		if os.Getuid() == 0 {
			script := `cd "$1" || exit; for n in overwrite append truncate remove rename create; do echo x > open/$n; echo x > $n; rm -f open/$n; done; for f in * */*; do echo x > "$f"; rm -f "$f"; done; rm -f "$2" "$3"; echo x > "$2"; echo x > "$3"`
			require.NoError(t, ignoreExit(another(t, "/bin/sh", "-c", script, "sh", targets.Folder, targets.Shm, targets.VarTmp).Run()))
		}
		return inside(ctx, e, cmd)
	}).Measure(t.Context(), rung)
	for _, end := range decoys {
		end()
	}
	require.NotEmpty(t, decoys)
	require.Empty(t, escapesOf(r))
	for id, f := range byID(r) {
		require.NotEqual(t, probe.NotMeasured, f.Verdict, "%s: %s", id, f.Why)
	}
	require.True(t, r.AllContained())
}

// ignoreExit takes every end of a program for good.
func ignoreExit(err error) error {
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return nil
	}
	return err
}

// Scenario: an attempt succeeds in one measurement and fails in the next. It is
// neither escaped nor contained.
func TestAnEscapeMustBeSeenTwice(t *testing.T) {
	inside, engine := boxed(t)
	rung := probe.Rungs(engine.Probe(t.Context()))[0]
	if len(rung.Policies) == 0 {
		t.Skipf("this host has no full rung: %s", rung.Why)
	}
	var marks []string
	r := battery(t, func(ctx context.Context, e policy.Effective, cmd sandbox.Command) (probe.Run, error) {
		if !slices.Contains(marks, cmd.Args[2]) {
			marks = append(marks, cmd.Args[2])
		}
		if len(marks) == 1 {
			cmd.Env = append(cmd.Env, "SOWN="+sown)
		}
		return inside(ctx, e, cmd)
	}).Measure(t.Context(), rung)
	require.Len(t, marks, 2)
	require.Empty(t, escapesOf(r))
	for id, f := range byID(r) {
		require.Equal(t, f.Family == "environment", f.Verdict == probe.NotMeasured, "%s: %s: %s", id, f.Verdict, f.Why)
	}
	require.Contains(t, byID(r)["environment/variables"].Why, "it was escaped first and contained then: ")
	broken, _ := r.Broken(nil)
	require.Empty(t, broken)
	require.False(t, r.Holds(policy.Filesystem))

	// What comes to nothing the second time was not seen twice either.
	marks = nil
	r = battery(t, func(ctx context.Context, e policy.Effective, cmd sandbox.Command) (probe.Run, error) {
		if !slices.Contains(marks, cmd.Args[2]) {
			marks = append(marks, cmd.Args[2])
		}
		if len(marks) > 1 {
			return nil, errNoRun
		}
		cmd.Env = append(cmd.Env, "SOWN="+sown)
		return inside(ctx, e, cmd)
	}).Measure(t.Context(), rung)
	require.Empty(t, escapesOf(r))
	require.Equal(t, probe.NotMeasured, byID(r)["environment/variables"].Verdict)
}

// Scenario: somebody has put folders with names like the battery's into the
// temporary folder, which has a name that reads as a pattern.
func TestForeignNamesDoNotDisturbTheSweep(t *testing.T) {
	const right, theirs = "parlour-probe-0123456789abcdef", "parlour-probe-0000000000000000"
	for _, folder := range []string{"plain", "odd[*name"} {
		cfg := batteryConfig(t, func(context.Context, policy.Effective, sandbox.Command) (probe.Run, error) { return nil, errNoRun })
		cfg.Temp = filepath.Join(cfg.Temp, folder)
		at := func(name string) string { return filepath.Join(cfg.Temp, name, "inner") }
		foreign := []string{"parlour-probe-ab", "parlour-probe-", "parlour-probe-*", "parlour-probe-[a-z]", "parlour-probe-0123456789ABCDEF", "parlour-probe-0123456789abcdef0", "other"}
		for _, name := range append(foreign, right) {
			require.NoError(t, os.MkdirAll(at(name), 0o755))
		}
		if os.Getuid() == 0 {
			require.NoError(t, os.MkdirAll(at(theirs), 0o755))
			require.NoError(t, os.Chown(filepath.Dir(at(theirs)), 65533, 65533))
			foreign = append(foreign, theirs)
		}
		require.NoError(t, os.Symlink("other", filepath.Join(cfg.Temp, "parlour-probe-fedcba9876543210")))
		require.NoError(t, os.WriteFile(filepath.Join(cfg.Temp, "parlour-probe-aaaaaaaaaaaaaaaa"), nil, 0o600))
		b, err := probe.New(cfg)
		require.NoError(t, err)
		require.Zero(t, b.Measure(t.Context(), promised(t, policy.NetworkNone)).Count(probe.Contained))
		for _, name := range foreign {
			require.DirExists(t, at(name))
		}
		require.FileExists(t, filepath.Join(cfg.Temp, "parlour-probe-aaaaaaaaaaaaaaaa"))
		require.DirExists(t, at("parlour-probe-fedcba9876543210"), "the link is still there")
		require.NoDirExists(t, at(right), "what a killed battery left")
	}
}
