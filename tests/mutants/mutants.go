// Command mutants removes one safety line after the other and runs the test
// that must notice. A mutant whose test stays green has survived: the line is
// then guarded by nothing.
//
// It changes no file: the go tool is shown an overlay. It refuses a list that no
// longer fits the source, so a line cannot be moved out of its sight, and counts
// nothing as noticed but a failure of the named test, which was green before.
// Where it runs as root, it runs some of the tests as a user who owns nothing.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"go/build"
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

// trial is a mutant and who runs its test.
type trial struct {
	mutant
	nobody bool // where the tests run as root, this one runs as a user who owns nothing
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
	list := slices.DeleteFunc(trials(), func(t trial) bool { return !match.MatchString(t.name) })
	if len(list) == 0 {
		return 0, fmt.Errorf("no mutant is named like %q", only)
	}
	work, err := os.MkdirTemp("", "mutants-") // short: sockets lie below it
	if err != nil {
		return 0, err
	}
	defer func() { _ = os.RemoveAll(work) }()
	root, err := os.Getwd()
	if err != nil {
		return 0, err
	}
	b := bench{root: root, work: work, privileged: os.Geteuid() == 0}
	if err := b.furnish(list); err != nil {
		return 0, err
	}
	if err := b.green(ctx, list); err != nil {
		return 0, err
	}
	for _, t := range list {
		begin := time.Now()
		verdict, err := b.try(ctx, t)
		if err != nil {
			return survived, fmt.Errorf("%s: %w", t.name, err)
		}
		if verdict != killed {
			survived++
		}
		_, _ = fmt.Fprintf(out, "%-8s %-62s %s (%s)\n", verdict, t.name, t.test, time.Since(begin).Round(100*time.Millisecond))
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
type bench struct {
	root, work string
	privileged bool // it is root, so nobody's tests need another user
}

// nobody owns nothing, as in tests/identity.sh.
const nobody = 65534

// furnish gives nobody a home and a temporary folder, where the list needs them.
func (b bench) furnish(list []trial) error {
	if !b.privileged || !slices.ContainsFunc(list, func(t trial) bool { return t.nobody }) {
		return nil
	}
	if _, err := exec.LookPath("setpriv"); err != nil {
		return fmt.Errorf("to run tests as another user needs setpriv (util-linux): %w", err)
	}
	errs := []error{os.Chmod(b.work, 0o711)}
	for _, name := range []string{"home", "tmp"} {
		dir := filepath.Join(b.work, name)
		errs = append(errs, os.Mkdir(dir, 0o700), os.Chown(dir, nobody, nobody))
	}
	return errors.Join(errs...)
}

// place is where tests run, and as whom.
type place struct {
	pkg    string
	nobody bool
}

// green runs all tests of the mutants on the source as it is: one that is red
// without any change proves nothing.
func (b bench) green(ctx context.Context, list []trial) error {
	tests := map[place][]string{}
	for _, t := range list {
		at := place{t.pkg, t.nobody && b.privileged}
		tests[at] = append(tests[at], t.test)
	}
	byName := func(p, q place) int { return strings.Compare(p.pkg, q.pkg) }
	for _, at := range slices.SortedFunc(maps.Keys(tests), byName) {
		if said, err := b.test(ctx, "", at, strings.Join(tests[at], "|")); err != nil {
			return fmt.Errorf("tests of %s fail without any change: %w\n%s", at.pkg, err, said)
		}
	}
	return nil
}

// try runs the test on the changed source. A source that does not build proves
// nothing, so it is an error; one of another system is not looked at.
func (b bench) try(ctx context.Context, t trial) (verdict string, err error) {
	text, err := t.source(b.root)
	if err != nil {
		return "", err
	}
	file := filepath.Join(b.root, t.file)
	if built, err := build.Default.MatchFile(filepath.Dir(file), filepath.Base(file)); err != nil || !built {
		return skipped, err
	}
	changed, overlay := filepath.Join(b.work, "changed.go"), filepath.Join(b.work, "overlay.json")
	list, err := json.Marshal(map[string]map[string]string{"Replace": {file: changed}})
	if err != nil {
		return "", err
	}
	if err := errors.Join(os.WriteFile(changed, []byte(text), 0o600), os.WriteFile(overlay, list, 0o600)); err != nil {
		return "", err
	}
	if said, err := b.tool(ctx, overlay, "list", "-export", "./"+filepath.Dir(t.file)); err != nil {
		return "", fmt.Errorf("it does not build: %w\n%s", err, said)
	}
	said, err := b.test(ctx, overlay, place{t.pkg, t.nobody && b.privileged}, t.test)
	return judge(t.test, said, err)
}

// patience is how long one test may take.
const patience = "5m"

// test runs tests of one folder.
func (b bench) test(ctx context.Context, overlay string, at place, tests string) (string, error) {
	tests = "^(" + tests + ")$"
	if !at.nobody {
		return b.tool(ctx, overlay, "test", "-count=1", "-timeout="+patience, "-v", "-run", tests, "./"+at.pkg)
	}
	program := filepath.Join(b.work, "nobody.test")
	if said, err := b.tool(ctx, overlay, "test", "-c", "-o", program, "./"+at.pkg); err != nil {
		return said, err
	}
	cmd := exec.CommandContext(ctx, "setpriv", fmt.Sprint("--reuid=", nobody), fmt.Sprint("--regid=", nobody), "--clear-groups", "--inh-caps=-all",
		program, "-test.count=1", "-test.timeout="+patience, "-test.v", "-test.run="+tests)
	cmd.Dir = filepath.Join(b.root, at.pkg)
	cmd.Env = []string{"PATH=/usr/bin:/bin", "LANG=C.UTF-8", "HOME=" + filepath.Join(b.work, "home"), "TMPDIR=" + filepath.Join(b.work, "tmp")}
	return output(ctx, cmd)
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
	return output(ctx, cmd)
}

// output runs a command and gives all that it says.
func output(ctx context.Context, cmd *exec.Cmd) (string, error) {
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
