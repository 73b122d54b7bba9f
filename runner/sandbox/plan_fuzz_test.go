//go:build linux && (amd64 || arm64)

package sandbox

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"parlour/runner/policy"
	"parlour/runner/sandbox/entry"
)

// FuzzPlan: whatever a command holds, the plan is complete: it can be compiled,
// takes every right away before it starts the program, and starts exactly that
// with exactly these arguments and variables.
func FuzzPlan(f *testing.F) {
	f.Add("claude", "/opt/claude", "-p\nwhat is it?", "HOME=/home/agent", "/srv/x", "/docs/x", "/home/agent/.claude/a.json", "{}", byte(0))
	f.Add("a b", "/a'b/c$(d)", "--\n-\n@/etc/passwd", "A=\nB=c", "/etc/hosts", "/docs/hosts", "/home/agent/x/y", "\x00", byte(7))
	f.Fuzz(func(t *testing.T, name, path, args, env, host, inside, file, content string, kind byte) {
		rungs := policy.Rungs()
		rung := rungs[int(kind)%len(rungs)]
		cmd := Command{Name: name, Path: path, Args: strings.Split(args, "\n"), Env: strings.Split(env, "\n"), Files: map[string]string{file: content}}
		if kind&4 != 0 {
			cmd.Mounts = []Mount{{Host: host, Inside: inside}}
		}
		if cmd.check() != nil {
			return
		}
		mode, network := policy.ReadOnly, policy.NetworkNone
		if kind&8 != 0 {
			mode = policy.WorkspaceWrite
		}
		if kind&16 != 0 {
			network = policy.ModelOnly
		}
		j := exampleJob(t, rung, mode, network, kind&32 != 0 && rung != policy.RungBwrap, 7)
		if checkMounts(cmd.Mounts, j.eff.Writable(), cmd.inside()) != nil {
			return
		}
		j.cmd, j.mounts = cmd, nil
		j.program = source{host: cmd.Path, inside: cmd.inside()}
		for _, m := range cmd.Mounts {
			j.mounts = append(j.mounts, source{host: m.Host, inside: m.Inside})
		}
		const filter = "one rule"
		j.offline, j.online, j.stillOffline, j.stillOnline, j.sharedOffline, j.sharedOnline = filter, filter, filter, filter, filter, filter
		steps := j.plan()
		_, ok := entry.Encode(steps)
		require.True(t, ok)
		at := func(op entry.Op) int { return slices.IndexFunc(steps, func(s entry.Step) bool { return s.Op == op }) }
		last := len(steps) - 1
		require.Equal(t, entry.Exec, steps[last].Op)
		for _, op := range []entry.Op{entry.Capless, entry.NoNewPrivs, entry.Seccomp, entry.CloseOnExec, entry.Watch, entry.Restrict} {
			require.GreaterOrEqual(t, at(op), 0, "%s is missing", op)
		}
		require.Less(t, at(entry.NoNewPrivs), at(entry.Seccomp))
		require.Less(t, at(entry.Capless), at(entry.Seccomp))
		exec := steps[last]
		require.Equal(t, append([]string{cmd.Name}, cmd.Args...), exec.S[1:1+exec.N[0]])
		if rung == policy.RungFull {
			require.Equal(t, cmd.Env, exec.S[1+exec.N[0]:])
			_, ok := entry.Compile(nil, steps, entry.Frame{})
			require.True(t, ok)
		}
	})
}
