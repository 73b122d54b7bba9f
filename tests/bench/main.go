// Command bench measures what the sandbox and deciding cost, against bars.
//
// Every ratio is of medians (p50) or of the tenth of the samples that was
// disturbed least (p10), of variants that took turns in one run, because the
// machine is never quiet. It prints one line for each figure and exits with 1
// where one is short of its bar. As root it measures an ordinary user as well.
// It refuses nothing and proves nothing: the tests do.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"syscall"
)

// nobody is the user who owns nothing.
const nobody = 65534

// row is one figure.
type row struct {
	name  string
	value string
	bar   string // empty: printed only
	short bool
}

// below is a ratio that should not be above its bar.
func below(name string, value, bar float64) row {
	return row{name, fmt.Sprintf("%.2f", value), fmt.Sprintf("<= %.2f", bar), value > bar}
}

// above is a ratio that should not be below its bar.
func above(name string, value, bar float64) row {
	return row{name, fmt.Sprintf("%.2f", value), fmt.Sprintf(">= %.2f", bar), value < bar}
}

// unmeasured is the value of a figure for which something is not installed.
const unmeasured = "-"

// said is a figure without a bar.
func said(name, value string) row { return row{name: name, value: value} }

// figure measures some rows.
type figure struct {
	name string
	take func(context.Context, *rig) ([]row, error)
}

func figures() []figure {
	return []figure{
		{"cold", coldStart}, {"warm", warmStart}, {"rate", rates}, {"listener", listener},
		{"gateway", gateway}, {"agent", agent}, {"resident", resident}, {"selftest", selfTest}, {"decisions", decisions}, {"reloads", reloads},
	}
}

func main() {
	if len(os.Args) > 2 && os.Args[1] == clientName {
		os.Exit(client(os.Args[2], os.Args[3:]))
	}
	only := flag.String("run", "", "measure the figures whose names match this expression only")
	n := flag.Int("n", 120, "how many times each variant of a start is measured")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	short, err := measure(ctx, os.Stdout, *only, *n)
	if err == nil && os.Getuid() == 0 {
		var also bool
		also, err = asNobody(ctx, *only, *n)
		short = short || also
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(2)
	}
	if short {
		os.Exit(1)
	}
}

// measure takes the figures one after the other and says whether one was short.
func measure(ctx context.Context, out io.Writer, only string, n int) (short bool, err error) {
	match, err := regexp.Compile(only)
	if err != nil {
		return false, err
	}
	r, err := newRig(ctx, n)
	if err != nil {
		return false, err
	}
	defer r.close()
	for _, f := range figures() {
		if !match.MatchString(f.name) {
			continue
		}
		rows, err := f.take(ctx, r)
		if err != nil {
			return short, fmt.Errorf("%s: %w", f.name, err)
		}
		for _, row := range rows {
			verdict := "ok"
			switch {
			case row.short:
				verdict, short = "short", true
			case row.value == unmeasured:
				verdict = "skipped"
			}
			_, _ = fmt.Fprintf(out, "%-64s %12s %10s %s\n", row.name+", "+r.who, row.value, row.bar, verdict)
		}
	}
	return short, nil
}

// asNobody runs this program again as a user who owns nothing.
func asNobody(ctx context.Context, only string, n int) (short bool, err error) {
	self, remove, err := open()
	if err != nil {
		return false, err
	}
	defer remove()
	again := exec.CommandContext(ctx, self, "-run", only, "-n", fmt.Sprint(n))
	again.Env, again.Stdout, again.Stderr = []string{"PATH=/usr/bin:/bin", "HOME=" + os.TempDir()}, os.Stdout, os.Stderr
	again.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	err = again.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 1 {
		return true, nil
	}
	return false, err
}
