package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"parlour/runner/probe/mock"
	"parlour/runner/sandbox"
)

// claude is where the tests install the real program.
const claude = "tests/realcli/node_modules/@anthropic-ai/claude-code-linux-x64/claude"

// agent compares the start of the sandbox with the whole of a real agent's run.
func agent(ctx context.Context, r *rig) ([]row, error) {
	const name = "sandbox ready ÷ whole claude run, p50"
	bot, err := filepath.Abs("bin/bot")
	if err != nil {
		return nil, err
	}
	real, err := filepath.Abs(claude)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(bot); err != nil {
		return []row{said(name+" (no bin/bot)", unmeasured)}, nil
	}
	if _, err := os.Stat(real); err != nil {
		return []row{said(name+" (claude is not installed)", unmeasured)}, nil
	}
	remove, ask, err := house(ctx, r, bot, real)
	if err != nil {
		return nil, err
	}
	defer remove()
	all, err := turns(5, func() (time.Duration, error) { return timed(ask) },
		func() (time.Duration, error) { ready, _, err := r.run(ctx, nil, program); return ready, err })
	if err != nil {
		return nil, err
	}
	share := 100 * all[1].at(50) / all[0].at(50)
	return []row{{name, fmt.Sprintf("%.2f %%", share), "<= 5 %", share > 5}}, nil
}

// house prepares a home in which the bot asks the real claude.
func house(ctx context.Context, r *rig, bot, real string) (remove func(), ask func() error, err error) {
	model := httptest.NewServer(mock.New(mock.Turn{Text: "an answer"}))
	home, err := os.MkdirTemp("", "parlour-bench-home-")
	if err != nil {
		model.Close()
		return nil, nil, err
	}
	remove = func() { model.Close(); _ = os.RemoveAll(home) }
	config := filepath.Join(home, "config.yaml")
	text := "model: {anthropic: {base_url: " + model.URL + ", key: {env: BENCH_KEY}}}\nrunners: {order: [claude]}\nstate: state\n"
	bin := filepath.Join(home, "bin")
	err = errors.Join(os.WriteFile(config, []byte(text), 0o600), os.Mkdir(bin, 0o755), os.Symlink(real, filepath.Join(bin, "claude")))
	ask = func() error {
		cmd := exec.CommandContext(ctx, bot, "ask", "--config", config, "what is it?")
		cmd.Env = []string{"PATH=" + bin + ":/usr/bin:/bin", "HOME=" + home, "BENCH_KEY=sk-bench-0123456789"}
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("%w: %s", err, out.String())
		}
		return nil
	}
	return remove, ask, err
}

// resident counts the processes that stay beside the programs of running
// sandboxes.
func resident(ctx context.Context, r *rig) ([]row, error) {
	const n = 4
	var runs []*sandbox.Run
	defer func() {
		for _, run := range runs {
			run.Kill()
			_, _ = run.Wait()
		}
	}()
	for range n {
		run, err := r.Start(ctx, r.eff, sandbox.Command{Name: "sleep", Path: "/usr/bin/sleep", Args: []string{"60"}, Env: []string{}})
		if err != nil {
			return nil, err
		}
		runs = append(runs, run)
	}
	children, err := descendants()
	if err != nil {
		return nil, err
	}
	return []row{below("resident helpers per running sandbox", float64(children-n)/n, 0)}, nil
}

// descendants counts the children of this process and theirs.
func descendants() (int, error) {
	tasks, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil {
		return 0, err
	}
	n := 0
	for len(tasks) > 0 {
		text, err := os.ReadFile(tasks[0])
		tasks = tasks[1:]
		if err != nil {
			continue // it has ended
		}
		for _, pid := range strings.Fields(string(text)) {
			n++
			below, _ := filepath.Glob("/proc/" + pid + "/task/*/children")
			tasks = append(tasks, below...)
		}
	}
	return n, nil
}

// selfTest measures what the bot does before and beside its first answer.
func selfTest(ctx context.Context, r *rig) ([]row, error) {
	took, err := timed(func() error {
		fresh, err := sandbox.New(sandbox.Config{Self: r.self, Temp: filepath.Dir(r.self)})
		if err == nil {
			fresh.Probe(ctx)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	rows := []row{said("self-test of the rung at the first start", took.Round(100*time.Microsecond).String())}
	bot, err := filepath.Abs("bin/bot")
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(bot); err != nil {
		return rows, nil
	}
	home, err := os.MkdirTemp("", "parlour-bench-home-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(home) }()
	battery, err := timed(func() error {
		cmd := exec.CommandContext(ctx, bot, "probe", "--rung", "full")
		cmd.Env = []string{"PATH=/usr/bin:/bin", "HOME=" + home}
		return cmd.Run()
	})
	if err != nil {
		return nil, fmt.Errorf("bot probe: %w", err)
	}
	return append(rows, said("escape battery of the rung, beside the first answers", battery.Round(time.Millisecond).String())), nil
}
