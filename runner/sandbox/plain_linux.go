//go:build amd64 || arm64

package sandbox

import (
	"context"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"parlour/runner/policy"
	"parlour/runner/sandbox/entry"
)

// startPlain runs the bot's own program without a box, with what needs none:
// limits, an own process group, no descriptors, no new rights, and an end with
// the bot.
func (e *Engine) startPlain(ctx context.Context, eff policy.Effective, cmd Command) (*Run, error) {
	root, remove, err := plainFolder(e.cfg.Temp, e.alive, cmd)
	if err != nil {
		remove()
		return nil, &StartError{"make the run's folder", err}
	}
	return launch{
		steps: plainSteps(eff.Limits(), cmd, root), cmd: cmd, ties: byGroup, ended: remove,
	}.start(ctx, e)
}

func plainSteps(l policy.Limits, cmd Command, root string) []entry.Step {
	steps := []entry.Step{{Op: entry.Watch}}
	for _, r := range [][]int64{
		{unix.RLIMIT_CORE, 0},
		{unix.RLIMIT_FSIZE, l.Disk},
		{unix.RLIMIT_NOFILE, int64(l.OpenFiles)},
		{unix.RLIMIT_DATA, l.Memory},
		{unix.RLIMIT_CPU, int64(l.Processor().Seconds())},
	} {
		steps = append(steps, entry.Step{Op: entry.Rlimit, N: r})
	}
	argv := append([]string{cmd.Name}, cmd.Args...)
	return append(steps,
		entry.Step{Op: entry.NoNewPrivs},
		entry.Step{Op: entry.Chdir, S: []string{filepath.Join(root, policy.WorkDir)}},
		entry.Step{Op: entry.CloseOnExec},
		entry.Step{Op: entry.Exec, N: []int64{int64(len(argv))}, S: slices.Concat([]string{cmd.Path}, argv, plainEnv(cmd.Env, root))},
	)
}
