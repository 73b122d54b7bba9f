//go:build linux && (amd64 || arm64)

package sandbox

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"parlour/runner/policy"
	"parlour/runner/sandbox/entry"
)

var update = flag.Bool("update", false, "write the golden files")

func TestPlansAreExactlyTheReviewedOnes(t *testing.T) {
	for name, j := range map[string]job{
		"root-read-only-model":    exampleJob(t, policy.ReadOnly, policy.ModelOnly, true, 7),
		"root-write-none-old":     exampleJob(t, policy.WorkspaceWrite, policy.NetworkNone, true, 0),
		"user-write-model":        exampleJob(t, policy.WorkspaceWrite, policy.ModelOnly, false, 3),
		"user-read-only-none-new": exampleJob(t, policy.ReadOnly, policy.NetworkNone, false, 10),
	} {
		t.Run(name, func(t *testing.T) {
			got, file := text(j.plan()), filepath.Join("testdata", name+".golden")
			if *update {
				require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
			}
			want, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Equal(t, string(want), got)
			require.Equal(t, got, text(j.plan()), "equal jobs must give equal plans")
			_, ok := entry.Encode(j.plan())
			require.True(t, ok)
		})
	}
}

func TestTheProbeDoesEveryStepOfARun(t *testing.T) {
	j := exampleJob(t, policy.ReadOnly, policy.ModelOnly, true, 7)
	run := j.plan()
	j.report = true
	probe := text(j.plan())
	for _, s := range run[:len(run)-1] { // all but exec
		require.Contains(t, probe, line(s))
	}
	require.True(t, strings.HasSuffix(probe, "report\n"))
}

func exampleJob(t *testing.T, mode policy.Mode, network policy.Network, root bool, landlock int) job {
	t.Helper()
	eff, err := policy.Narrow(policy.Wish{Mode: mode, Network: network, Scratch: []string{"/var/cache/agent"},
		Limits: policy.Limits{Wall: time.Minute, Memory: 1 << 30, Disk: 1 << 26, Files: 100, Processes: 64, OpenFiles: 256, Answer: 1}},
		full(landlock))
	require.NoError(t, err)
	f := facts{
		root: root, nodes: root, landlock: landlock, trees: []string{"/usr", "/lib64"}, links: [][2]string{{"/bin", "usr/bin"}},
		masks: []string{"/usr/local", "/usr/src"}, procs: []string{"cpuinfo"}, secrets: []string{"cmdline"},
		offline: "offline", online: "online",
	}
	uid := insideUID
	if root {
		uid = 1_900_000_001
	}
	return job{facts: f, eff: eff, uid: uid, program: source{host: "/srv/state/claude", inside: "/agent/claude"},
		mounts: []source{
			{host: "/srv/index.db", inside: "/docs/index.db"},
			{host: "/usr/local/lib/node", inside: "/usr/local/lib/node", folder: true},
		},
		cmd: Command{Name: "claude", Args: []string{"-p", "hi there"}, Env: []string{"HOME=/home/agent"},
			Files: map[string]string{"/home/agent/.claude/settings.json": "{}"}},
	}
}

func text(steps []entry.Step) string {
	var b strings.Builder
	for _, s := range steps {
		b.WriteString(line(s) + "\n")
	}
	return b.String()
}

func line(s entry.Step) string {
	out := s.Op.String()
	numbers := s.N
	if s.Op == entry.Denied {
		numbers = numbers[1:] // the number of a call differs between architectures
	}
	for _, n := range numbers {
		out += fmt.Sprintf(" %#x", n)
	}
	for _, str := range s.S {
		out += fmt.Sprintf(" %q", str)
	}
	return out
}
