// Command mutants removes one safety line after the other and runs the test
// that must notice. A mutant whose test stays green has survived: the line is
// then guarded by nothing.
//
// It changes no file: the go tool is shown an overlay. It refuses a list that no
// longer fits the source, so a line cannot be moved out of its sight, and counts
// nothing as noticed but a failure of the named test, which was green before.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"
)

// mutant is one safety line and what becomes of it.
type mutant struct {
	name string
	file string // from the root of the module
	line string // the text; it stands exactly once in the file
	into string // what stands there instead
	pkg  string // the folder of the test that must turn red
	test string // its name
}

// source gives the file with the line changed.
func (m mutant) source(root string) (string, error) {
	text, err := os.ReadFile(filepath.Join(root, m.file))
	if err != nil {
		return "", err
	}
	if n := strings.Count(string(text), m.line); n != 1 {
		return "", fmt.Errorf("%s: the line of %q stands %d times; right: once", m.file, m.name, n)
	}
	return strings.Replace(string(text), m.line, m.into, 1), nil
}

func main() {
	only := flag.String("run", "", "run the mutants whose names match this expression only")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	survived, err := run(ctx, os.Stdout, *only)
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(2)
	}
	if survived > 0 {
		os.Exit(1)
	}
}

// run tries the mutants one after the other, since a busy machine can turn a
// test red too, and says how many survived.
func run(ctx context.Context, out io.Writer, only string) (survived int, err error) {
	match, err := regexp.Compile(only)
	if err != nil {
		return 0, err
	}
	list := slices.DeleteFunc(mutants(), func(m mutant) bool { return !match.MatchString(m.name) })
	if len(list) == 0 {
		return 0, fmt.Errorf("no mutant is named like %q", only)
	}
	work, err := os.MkdirTemp("", "parlour-mutants-")
	if err != nil {
		return 0, err
	}
	defer func() { _ = os.RemoveAll(work) }()
	root, err := os.Getwd()
	if err != nil {
		return 0, err
	}
	b := bench{root: root, work: work}
	if err := b.green(ctx, list); err != nil {
		return 0, err
	}
	for _, m := range list {
		begin := time.Now()
		verdict, err := b.try(ctx, m)
		if err != nil {
			return survived, fmt.Errorf("%s: %w", m.name, err)
		}
		if verdict != killed {
			survived++
		}
		_, _ = fmt.Fprintf(out, "%-8s %-62s %s (%s)\n", verdict, m.name, m.test, time.Since(begin).Round(100*time.Millisecond))
	}
	_, _ = fmt.Fprintf(out, "killed %d/%d\n", len(list)-survived, len(list))
	return survived, nil
}

const (
	killed  = "killed"
	lives   = "SURVIVED"
	skipped = "SKIPPED" // this host lacks what the test needs, so nothing was tried
)

// bench is where mutants are tried.
type bench struct{ root, work string }

// green runs all tests of the mutants on the source as it is: one that is red
// without any change proves nothing.
func (b bench) green(ctx context.Context, list []mutant) error {
	tests := map[string][]string{}
	for _, m := range list {
		tests[m.pkg] = append(tests[m.pkg], m.test)
	}
	for _, pkg := range slices.Sorted(maps.Keys(tests)) {
		if said, err := b.test(ctx, "", pkg, strings.Join(tests[pkg], "|")); err != nil {
			return fmt.Errorf("tests of %s fail without any change: %w\n%s", pkg, err, said)
		}
	}
	return nil
}

// try runs the test on the changed source. A source that does not build proves
// nothing, so it is an error.
func (b bench) try(ctx context.Context, m mutant) (verdict string, err error) {
	text, err := m.source(b.root)
	if err != nil {
		return "", err
	}
	changed, overlay := filepath.Join(b.work, "changed.go"), filepath.Join(b.work, "overlay.json")
	list, err := json.Marshal(map[string]map[string]string{"Replace": {filepath.Join(b.root, m.file): changed}})
	if err != nil {
		return "", err
	}
	if err := errors.Join(os.WriteFile(changed, []byte(text), 0o600), os.WriteFile(overlay, list, 0o600)); err != nil {
		return "", err
	}
	if said, err := b.tool(ctx, overlay, "list", "-export", "./"+filepath.Dir(m.file)); err != nil {
		return "", fmt.Errorf("it does not build: %w\n%s", err, said)
	}
	said, err := b.test(ctx, overlay, m.pkg, m.test, "-v")
	return judge(m.test, said, err)
}

// test runs tests of one folder.
func (b bench) test(ctx context.Context, overlay, pkg, tests string, flags ...string) (string, error) {
	args := slices.Concat([]string{"test", "-count=1", "-timeout=5m", "-run", "^(" + tests + ")$"}, flags, []string{"./" + pkg})
	return b.tool(ctx, overlay, args...)
}

// tool runs the go tool with an overlay and gives all that it says.
func (b bench) tool(ctx context.Context, overlay string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = b.root
	// The tests that build the bot inherit the overlay with the flags.
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "PARLOUR_TEST_BOT=")
	if overlay != "" {
		cmd.Env = append(cmd.Env, "GOFLAGS='-overlay="+overlay+"'")
	}
	said, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return string(said), err
}

// judge reads what came of a test. Only its own failure, or a crash in it, is a
// kill: a test binary also fails where it could not begin.
func judge(test, said string, err error) (string, error) {
	ran := strings.Contains(said, "=== RUN   "+test+"\n")
	var exit *exec.ExitError
	switch {
	case err != nil && !errors.As(err, &exit):
		return "", err
	case !ran:
		return "", fmt.Errorf("the test %s did not run:\n%s", test, said)
	case err != nil:
		return killed, nil
	case strings.Contains(said, "--- SKIP: "+test):
		return skipped, nil
	}
	return lives, nil
}
