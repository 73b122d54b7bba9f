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
		"root-read-only-model":    exampleJob(t, policy.RungFull, policy.ReadOnly, policy.ModelOnly, true, 7),
		"root-write-none-old":     exampleJob(t, policy.RungFull, policy.WorkspaceWrite, policy.NetworkNone, true, 0),
		"user-write-model":        exampleJob(t, policy.RungFull, policy.WorkspaceWrite, policy.ModelOnly, false, 3),
		"user-read-only-none-new": exampleJob(t, policy.RungFull, policy.ReadOnly, policy.NetworkNone, false, 10),
		"bwrap-read-only-none":    exampleJob(t, policy.RungBwrap, policy.ReadOnly, policy.NetworkNone, false, 7),
		"bwrap-write-model-old":   exampleJob(t, policy.RungBwrap, policy.WorkspaceWrite, policy.ModelOnly, false, 0),
		"landlock-root-none":      exampleJob(t, policy.RungLandlock, policy.ReadOnly, policy.NetworkNone, true, 7),
		"landlock-user-model-old": exampleJob(t, policy.RungLandlock, policy.WorkspaceWrite, policy.ModelOnly, false, 3),
	} {
		t.Run(name, func(t *testing.T) {
			got, file := outside(j)+text(j.plan()), filepath.Join("testdata", name+".golden")
			if *update {
				require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
			}
			want, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Equal(t, string(want), got)
			require.Equal(t, got, outside(j)+text(j.plan()), "equal jobs must give equal plans")
			_, ok := entry.Encode(j.plan())
			require.True(t, ok)
		})
	}
}

func TestTheProbeDoesEveryStepOfARun(t *testing.T) {
	for _, rung := range policy.Rungs() {
		j := exampleJob(t, rung, policy.ReadOnly, policy.ModelOnly, rung != policy.RungBwrap, 7)
		run := j.plan()
		j.report = true
		probe := text(j.plan())
		for _, s := range run[:len(run)-1] { // all but exec
			require.Contains(t, probe, line(s))
		}
		require.True(t, strings.HasSuffix(probe, "report\n"))
	}
}

// outside is what is planned besides the steps of the child.
func outside(j job) string {
	if j.eff.Rung() != policy.RungBwrap {
		return ""
	}
	var b strings.Builder
	bubble := j.bubble()
	for _, word := range bubble.argv {
		if strings.HasPrefix(word, "--") {
			b.WriteString("\nbwrap")
		}
		fmt.Fprintf(&b, " %s", word)
	}
	for i, text := range bubble.data {
		fmt.Fprintf(&b, "\ndescriptor %d %q", firstData+i, text)
	}
	return b.String()[1:] + "\n"
}

func exampleJob(t *testing.T, rung policy.Rung, mode policy.Mode, network policy.Network, root bool, landlock int) job {
	t.Helper()
	eff, err := policy.Narrow(policy.Wish{Mode: mode, Network: network, Scratch: []string{"/var/cache/agent"}, Require: []policy.Clause{policy.Filesystem},
		Limits: policy.Limits{Wall: time.Minute, Memory: 1 << 30, Disk: 1 << 26, Files: 100, Processes: 64, OpenFiles: 256, Answer: 1}},
		levels(rung, landlock, root))
	require.NoError(t, err)
	f := facts{
		root: root, nodes: root, landlock: landlock, trees: []string{"/usr", "/lib64"}, links: [][2]string{{"/bin", "usr/bin"}},
		masks: []string{"/usr/local", "/usr/src"}, procs: []string{"cpuinfo"}, secrets: []string{"cmdline"},
		core: []string{"/usr/bin", "/usr/lib"}, settings: []string{"ssl/openssl.cnf"},
		offline: "offline", online: "online", stillOffline: "still offline", stillOnline: "still online",
		sharedOffline: "shared offline", sharedOnline: "shared online",
	}
	uid := insideUID
	if root {
		uid = 1_900_000_001
	}
	base, inside := "", "/agent/claude"
	if rung == policy.RungLandlock {
		base, inside = "/tmp/parlour-run-X", "/srv/state/claude"
	}
	return job{facts: f, eff: eff, uid: uid, base: base, program: source{host: "/srv/state/claude", inside: inside},
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
