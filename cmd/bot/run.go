package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/alecthomas/kong"

	"parlour/manifests"
	"parlour/runner"
	"parlour/runner/docs"
	"parlour/runner/policy"
	"parlour/runner/probe"
	"parlour/runner/sandbox/entry"
)

// The exit codes. They are documented in the README.
const (
	exitFine    = 0
	exitFailed  = 1
	exitBad     = 2 // bad input: nothing was started
	exitRefused = 3 // refused by policy
)

// badInput is a fault of what a person typed or wrote into a file.
type badInput struct{ error }

func bad(format string, args ...any) error { return badInput{fmt.Errorf(format, args...)} }

// silent is an exit code whose reason was already printed.
type silent int

func (s silent) Error() string { return fmt.Sprintf("exit %d", int(s)) }

// process is what a command may use of the world around it.
type process struct {
	env    map[string]string
	stdout *checkedWriter
	stderr io.Writer
}

// checkedWriter remembers that output was lost, since an answer that nobody
// could read must not count as given.
type checkedWriter struct {
	io.Writer
	err error
}

// Write writes on and keeps the first error.
func (w *checkedWriter) Write(p []byte) (int, error) {
	n, err := w.Writer.Write(p)
	if err != nil && w.err == nil {
		w.err = err
	}
	return n, err
}

type cli struct {
	Config    *string          `placeholder:"FILE" help:"Configuration file (default: the variable PARLOUR_CONFIG, else none)."`
	Manifests *string          `placeholder:"DIR" help:"Folder with tiers/ and runners/ (default: the configuration's, else the shipped ones)."`
	State     *string          `placeholder:"DIR" help:"Folder for the journal (default: the configuration's, else ~/.local/state/parlour)."`
	JSON      bool             `help:"Print JSON for programs."`
	Version   kong.VersionFlag `help:"Print the version."`

	Serve       serveCmd       `cmd:"" help:"Answer on Discord and Slack until stopped."`
	Ask         askCmd         `cmd:"" help:"Ask a question from this terminal."`
	Accept      acceptCmd      `cmd:"" help:"Take in a message that another gateway received; print the text for its core agent."`
	AcceptGains acceptGainsCmd `cmd:"" help:"Consent to rights that the manifests give beyond what was accepted before."`
	Check       checkCmd       `cmd:"" help:"Check the configuration and the manifests; print every fault."`
	Runners     runnersCmd     `cmd:"" help:"List every known runner and whether it is safe, installed and usable."`
	Probe       probeCmd       `cmd:"" help:"Try to escape from the sandbox in every known way, and say what came of it."`
	Guardrail   guardrailCmd   `cmd:"" help:"Print the exact policy text of a tier on this host."`
	Explain     explainCmd     `cmd:"" help:"Explain what somebody may do somewhere, and why."`
	Tiers       tiersCmd       `cmd:"" help:"List who is in which tier, by which rule."`
	Diff        diffCmd        `cmd:"" help:"Say who gains and who loses what between two folders of manifests."`
	Schema      schemaCmd      `cmd:"" help:"Print the JSON Schema of tier files, for an editor."`
	Grant       grantCmd       `cmd:"" help:"Give one person a tier for a time."`
	Grants      grantsCmd      `cmd:"" help:"List who was given a tier for a time."`
	Revoke      revokeCmd      `cmd:"" help:"Take grants back, by their numbers or by the person."`
	Events      eventsCmd      `cmd:"" help:"Print what happened, from the journal."`
}

// run is the whole program but for the process around it.
func run(ctx context.Context, args, environ []string, stdout, stderr io.Writer) int {
	if len(args) > 0 && args[0] == entry.Name {
		// The sandbox child never comes here: it ends in its init. Something kept
		// that from happening, so nothing may run.
		_, _ = fmt.Fprintln(stderr, "bot: the sandbox child was not entered")
		return entry.ExitCode
	}
	if len(args) > 1 && args[1] == runner.Subcommand {
		return docs.Main(ctx, args[2:], stdout, stderr)
	}
	if len(args) > 1 && args[1] == probe.Subcommand {
		return probe.Main(ctx, args[2:], environ, os.Stdin, stdout, stderr)
	}
	p := &process{env: toMap(environ), stdout: &checkedWriter{Writer: stdout}, stderr: stderr}
	err := p.dispatch(ctx, args)
	if err == nil && p.stdout.err != nil {
		err = fmt.Errorf("write the output: %w", p.stdout.err)
	}
	code := exitCode(err)
	var quiet silent
	if err != nil && !errors.As(err, &quiet) {
		p.complain(err)
		if slices.Contains(args, "--json") {
			_ = p.json(failure(err, code)) // a program reads one object, whatever happened
		}
	}
	return code
}

// failed is what a program reads where a command did not get as far as its own
// output.
type failed struct {
	Error  string   `json:"error"`
	Faults []string `json:"faults,omitempty"`
	Exit   int      `json:"exit"`
}

func failure(err error, code int) failed {
	f := failed{Error: err.Error(), Exit: code}
	var faults manifests.Faults
	if errors.As(err, &faults) {
		f.Error = fmt.Sprintf("%d faults", len(faults))
		for _, fault := range faults {
			f.Faults = append(f.Faults, fault.String())
		}
	}
	return f
}

func (p *process) dispatch(ctx context.Context, args []string) error {
	// The parser would replace what is not UTF-8, and the question is an argument.
	for i, arg := range args {
		if !utf8.ValidString(arg) {
			return bad("argument %d is not valid UTF-8", i)
		}
	}
	c := &cli{}
	ended := false
	parser, err := kong.New(c,
		kong.Name("bot"),
		kong.Description("Questions from Discord, Slack and the terminal, answered from a sandbox."),
		kong.Writers(p.stdout, p.stderr),
		kong.Vars{"version": version()},
		kong.Exit(func(int) { ended = true }),
		kong.BindTo(ctx, (*context.Context)(nil)),
	)
	if err != nil {
		return err
	}
	parsed, err := parser.Parse(plain(args[1:]))
	if ended {
		return nil // help was asked for and printed
	}
	if err != nil {
		return bad("%s; see '%s --help'%s", spoken(err), command(parser, args), quoting(args, err))
	}
	return parsed.Run(p, c)
}

// plain takes the words that people try first for what is a flag.
func plain(args []string) []string {
	if len(args) == 1 && (args[0] == "help" || args[0] == "version") {
		return []string{"--" + args[0]}
	}
	return args
}

// spoken says a fault of the parser without its own words for things.
func spoken(err error) string {
	flag, _, found := strings.Cut(err.Error(), ": expected ")
	if found && strings.Contains(err.Error(), "EOL") {
		return flag + " needs a value"
	}
	return err.Error()
}

// command gives the command whose help fits the arguments.
func command(parser *kong.Kong, args []string) string {
	for _, known := range parser.Model.Children {
		if len(args) > 1 && args[1] == known.Name {
			return "bot " + known.Name
		}
	}
	return "bot"
}

// quoting helps whoever left out the quotes around a question.
func quoting(args []string, err error) string {
	if slices.Contains(args, "ask") && strings.Contains(err.Error(), "unexpected argument") {
		return "; a question of several words stands in quotes"
	}
	return ""
}

func toMap(environ []string) map[string]string {
	env := make(map[string]string, len(environ))
	for _, pair := range environ {
		if name, value, ok := strings.Cut(pair, "="); ok {
			env[name] = value
		}
	}
	return env
}

func exitCode(err error) int {
	var quiet silent
	var refused *policy.RefusedError
	var faults manifests.Faults
	switch {
	case err == nil:
		return exitFine
	case errors.As(err, &quiet):
		return int(quiet)
	case errors.As(err, &badInput{}), errors.As(err, &faults):
		return exitBad
	case errors.As(err, &refused):
		return exitRefused
	}
	return exitFailed
}

// complain prints an error for a person: one line for each fault.
func (p *process) complain(err error) {
	var faults manifests.Faults
	if errors.As(err, &faults) {
		for _, f := range faults {
			p.note("%s", f)
		}
		return
	}
	p.note("bot: %s", err)
}

// version is what the Go toolchain recorded of the source.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	return "parlour " + info.Main.Version + " " + info.GoVersion
}
