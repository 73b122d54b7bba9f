package runner

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"parlour/bridge/ask"
	"parlour/runner/policy"
	"parlour/runner/sandbox"
	"parlour/runner/spec"
)

// maxArgument is the longest question that is given as an argument. Linux takes
// 128 KiB in one; the rest is room for what stands around it.
const maxArgument = 96 << 10

// Subcommand is the hidden subcommand of the bot's own program that reads the
// documents.
const Subcommand = "__docs"

const indexInside = policy.DocsDir + "/index.sqlite"

// built gives the invocation of the built-in document reader. It gets the
// question as it was asked: there is no model that could be talked into
// anything. Outside a sandbox the index is read where it lies; where the places of
// a run lie below a folder of the host, the path starts from the working folder.
func built(self string, e policy.Effective, p ask.Prompt, index string) sandbox.Command {
	at, mounts := indexInside, []sandbox.Mount{{Host: index, Inside: indexInside}}
	switch e.Rung() {
	case policy.RungPlain:
		at, mounts = index, nil
	case policy.RungLandlock:
		at = ".." + indexInside
	}
	return sandbox.Command{
		Name:   filepath.Base(self),
		Path:   self,
		Args:   []string{Subcommand, "--index", at, "--", p.Question},
		Env:    childEnv(spec.Spec{}, nil, nil),
		Mounts: mounts,
	}
}

// invoke gives the invocation of an agent program from its manifest.
func (r *Runner) invoke(s spec.Spec, plan ask.Plan, p ask.Prompt, token string) (sandbox.Command, error) {
	e := plan.Policy
	extra := s.ToolArgs[spec.ToolKey(e.Tools())]
	if !s.Offers(e.Tools()) {
		return sandbox.Command{}, fmt.Errorf("runner %s has no arguments for the tools %s", s.Name, spec.ToolKey(e.Tools()))
	}
	fill := strings.NewReplacer(
		spec.GuardrailPlaceholder, p.Policy,
		spec.ModelPlaceholder, plan.Choice.Model,
		spec.BrokerPlaceholder, "http://"+policy.BrokerAddr,
		spec.TokenPlaceholder, token,
	)
	args := []string{}
	carried := false
	for _, a := range slices.Concat(s.Args, extra) {
		carried = carried || strings.Contains(a, spec.GuardrailPlaceholder)
		args = append(args, fill.Replace(a))
	}
	// A program without a place of its own for the policy gets it in front of
	// the question. Either way the words of the person never come first.
	question := p.Fenced
	if !carried {
		question = p.Policy + "\n" + p.Fenced
	}
	cmd := sandbox.Command{
		Name: s.Name, Path: plan.Choice.Path, Env: childEnv(s, r.cfg.Env, fill),
		Files: s.Files, Folders: slices.Sorted(maps.Values(s.ConfigEnv)), Mounts: readOnly(s.ReadOnly),
	}
	cmd.Args, cmd.Stdin = place(s, args, question)
	return cmd, nil
}

// place puts the question where the program looks for it: among the arguments,
// or on standard input as a file that ends.
func place(s spec.Spec, args []string, question string) (argv []string, stdin []byte) {
	switch {
	case s.Prompt == spec.ByFile || len(question) > maxArgument:
		if s.StdinArg != "" {
			args = append(args, s.StdinArg)
		}
		return args, []byte(question)
	case s.Prompt == spec.ByFlag:
		return append(args, s.PromptFlag+question), nil
	}
	return append(args, "--", question), nil
}

func readOnly(paths []string) []sandbox.Mount {
	mounts := []sandbox.Mount{}
	for _, p := range paths {
		mounts = append(mounts, sandbox.Mount{Host: p, Inside: p})
	}
	return mounts
}

// childEnv builds the environment of a run from a literal that is never nil,
// since a nil environment would be the bot's own. Names outside the manifest's
// lists cannot get in.
// Guarded by tests/attacks TestEnvironmentIsExactlyTheAllowedNames.
func childEnv(s spec.Spec, bot map[string]string, fill *strings.Replacer) []string {
	env := map[string]string{}
	for _, name := range s.EnvAllow {
		if value, ok := bot[name]; ok {
			env[name] = value
		}
	}
	for name, value := range s.Env {
		env[name] = fill.Replace(value)
	}
	maps.Copy(env, s.ConfigEnv)
	maps.Copy(env, map[string]string{
		"PATH":   "/usr/bin:/bin",
		"HOME":   policy.HomeDir,
		"TMPDIR": policy.TempDir,
		"LANG":   "C.UTF-8",
	})
	out := []string{}
	for _, name := range slices.Sorted(maps.Keys(env)) {
		out = append(out, name+"="+env[name])
	}
	return out
}

// Preview is what a run would start, for people: the program and its
// arguments, and the names in its environment.
type Preview struct {
	Argv  []string
	Env   []string // names
	Pairs []string // the same with their values; the run's token is not among them
	Stdin []byte   // the question, where it comes as a file; empty: standard input ends at once
}

// Preview gives the invocation that Run would start for the plan and prompt.
func (r *Runner) Preview(ctx context.Context, plan ask.Plan, p ask.Prompt) (Preview, error) {
	// The index of the handbook is built by the first run, and not by a look.
	cmd, err := built(r.cfg.Self, plan.Policy, p, filepath.Join(r.cfg.Index, "<index>")), error(nil)
	if !r.specs[plan.Choice.Runner].BuiltIn {
		cmd, err = r.command(ctx, plan, p, "<token>")
	}
	if err != nil {
		return Preview{}, err
	}
	names := []string{}
	for _, pair := range cmd.Env {
		name, _, _ := strings.Cut(pair, "=")
		names = append(names, name)
	}
	return Preview{Argv: append([]string{cmd.Path}, cmd.Args...), Env: names, Pairs: cmd.Env, Stdin: cmd.Stdin}, nil
}
