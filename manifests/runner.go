package manifests

import (
	"fmt"
	"strings"
	"time"

	"parlour/runner/policy"
	"parlour/runner/spec"
	"parlour/tiers"
)

// builtIn is the one runner that is the bot's own program.
const builtIn = "docs"

// readRunner reads a runner file. It gives no runner where there is a fault,
// and none for one that is disabled.
func readRunner(src source, h host) (spec.Spec, Faults) {
	r, top := parse(src.file, src.text)
	if top == nil {
		return spec.Spec{}, r.faults
	}
	s := r.fields(item{"", top, top}, "name", "built_in", "disabled", "binaries", "safe", "provider", "needs_flags", "help_args",
		"args", "tool_args", "wire_tools", "prompt", "prompt_flag", "stdin_arg", "answer", "env", "env_allow", "config_env", "files", "read_only", "stall")
	out := spec.Spec{Origin: src.file}
	if r.boolean(s.get("disabled")) {
		r.fault(s.get("disabled").at, "this runner is disabled", "the file without disabled, or no file and the name in no tier's list")
	}
	if i, ok := r.need(s, "name", "name: "+src.name); ok {
		out.Name, _ = r.word(i, src.name)
	}
	out.BuiltIn = r.boolean(s.get("built_in"))
	readProgram(r, s, &out)
	readSafety(r, s, &out)
	readInvocation(r, s, &out)
	readEnvironment(r, s, &out)
	readPaths(r, s, h, &out)
	checkBuiltIn(r, s, src.name, out)
	return out, r.faults
}

func readProgram(r *reader, s section, out *spec.Spec) {
	out.Binaries = []string{}
	for _, e := range r.list(s.get("binaries")) {
		name, ok := r.text(e)
		switch {
		case !ok:
		case strings.HasPrefix(name, "/") && canonical(name), name != "" && only(name, alnum+"._+-") && only(name[:1], alnum):
			out.Binaries = append(out.Binaries, name)
		default:
			r.fault(e.node, e.name+" holds "+show(name), "a plain name such as claude, or an absolute path")
		}
	}
	if i, ok := r.need(s, "provider", oneOf("", providers())); ok {
		word, _ := r.word(i, providers()...)
		out.Provider = spec.Provider(word)
	}
	out.NeedsFlags, out.HelpArgs = r.texts(s.get("needs_flags")), r.texts(s.get("help_args"))
	if len(out.NeedsFlags) > 0 && len(out.HelpArgs) == 0 {
		r.fault(s.get("needs_flags").at, "needs_flags without help_args", "help_args: [--help], the arguments that print the flags")
	}
	if i := s.get("stall"); i.given() {
		var stall time.Duration
		ok := i.node.Value == "none"
		if !ok {
			stall, ok = r.duration(i)
		}
		if ok {
			out.Stall = &stall
		}
	}
}

func providers() []string {
	return []string{string(spec.Anthropic), string(spec.OpenAI), string(spec.Gemini), string(spec.NoProvider)}
}

// readSafety reads the verdicts. A tier without one is not safe.
func readSafety(r *reader, s section, out *spec.Spec) {
	i, _ := r.need(s, "safe", "a verdict for each tier, such as guest: {ok: false, reason: ...}")
	v := r.fields(i, tierWords()...)
	for tier, into := range map[tiers.Tier]*spec.Verdict{tiers.Owner: &out.Safe.Owner, tiers.Team: &out.Safe.Team, tiers.Guest: &out.Safe.Guest} {
		i := v.get(tier.String())
		if !i.given() {
			into.Reason = "its manifest gives no verdict for " + tier.String()
			continue
		}
		verdict := r.fields(i, "ok", "reason")
		if ok, given := r.need(verdict, "ok", "true or false"); given {
			into.OK = r.boolean(ok)
		}
		if reason := verdict.get("reason"); reason.given() {
			into.Reason, _ = r.text(reason)
			into.Reason = strings.TrimSpace(into.Reason)
		}
		if ok := verdict.get("ok"); !into.OK && into.Reason == "" && ok.given() && ok.node.Value == "false" {
			r.fault(i.at, i.name+" is not ok and gives no reason", "reason: one sentence for the operator")
		}
	}
}

func readInvocation(r *reader, s section, out *spec.Spec) {
	out.Args = readArgs(r, s.get("args"))
	out.ToolArgs = map[string][]string{}
	known := []string{
		spec.ToolKey(nil), spec.ToolKey([]policy.Tool{policy.Read}), spec.ToolKey([]policy.Tool{policy.Search}),
		spec.ToolKey([]policy.Tool{policy.Read, policy.Search}),
	}
	tools := r.fields(s.get("tool_args"), known...)
	for _, key := range known {
		if i := tools.get(key); i.given() {
			out.ToolArgs[key] = readArgs(r, i)
		}
	}
	wire := r.fields(s.get("wire_tools"), string(policy.Read), string(policy.Search))
	out.WireTools = map[policy.Tool][]string{}
	for _, tool := range []policy.Tool{policy.Read, policy.Search} {
		if i := wire.get(string(tool)); i.given() {
			out.WireTools[tool] = r.texts(i)
		}
	}
	if i := s.get("stdin_arg"); i.given() {
		out.StdinArg, _ = r.text(i)
	}
	if i, ok := r.need(s, "prompt", oneOf("", prompts())); ok {
		word, _ := r.word(i, prompts()...)
		out.Prompt = spec.PromptBy(word)
	}
	if i := s.get("prompt_flag"); i.given() {
		out.PromptFlag, _ = r.text(i)
		if !strings.HasPrefix(out.PromptFlag, "-") && !i.null() {
			r.unfit(i, "a flag that the question follows in the same word, such as --prompt=")
		}
	}
	if byFlag := out.Prompt == spec.ByFlag; byFlag != s.get("prompt_flag").given() && out.Prompt != "" {
		r.fault(s.get("prompt").at, "prompt: flag and prompt_flag belong together", "both, or neither")
	}
	if i, ok := r.need(s, "answer", oneOf("", formats())); ok {
		word, _ := r.word(i, formats()...)
		out.Answer = spec.Format(word)
	}
}

func prompts() []string {
	return []string{string(spec.ByArgument), string(spec.ByFlag), string(spec.ByFile)}
}

func formats() []string {
	return []string{string(spec.Text), string(spec.ClaudeJSON), string(spec.CodexJSON), string(spec.GeminiJSON)}
}

func readArgs(r *reader, i item) []string {
	for _, e := range r.list(i) {
		checkPlaceholders(r, e)
	}
	return r.texts(i)
}

// checkPlaceholders refuses a word in braces that nothing replaces: the CLI
// would be given the braces.
func checkPlaceholders(r *reader, i item) {
	known := []string{spec.GuardrailPlaceholder, spec.ModelPlaceholder, spec.BrokerPlaceholder, spec.TokenPlaceholder}
	rest := i.node.Value
	for {
		_, after, found := strings.Cut(rest, "{")
		if !found {
			return
		}
		name, tail, closed := strings.Cut(after, "}")
		if closed && only(name, alnum+"_-.") && !contains(known, "{"+name+"}") {
			r.fault(i.node, "unknown placeholder {"+name+"} in "+i.name, oneOf("{"+name+"}", known))
		}
		if rest = after; closed && only(name, alnum+"_-.") {
			rest = tail
		}
	}
}

// checkBuiltIn keeps the bot's own program and all others apart: a manifest may
// neither make another program the built-in one, nor dress the built-in one.
func checkBuiltIn(r *reader, s section, name string, out spec.Spec) {
	switch {
	case out.BuiltIn && name != builtIn:
		r.fault(s.get("built_in").at, "built_in is true for "+name, "built_in for "+builtIn+" only")
	case !out.BuiltIn && name == builtIn:
		r.fault(s.at, name+" is the bot's own program", "built_in: true")
	case !out.BuiltIn && len(out.Binaries) == 0 && !s.get("binaries").given():
		r.fault(s.at, "binaries is missing", "the names of the program, such as ["+name+"]")
	}
	if !out.BuiltIn {
		return
	}
	for _, key := range []string{"binaries", "args", "tool_args", "wire_tools", "stdin_arg", "needs_flags", "help_args", "env", "env_allow", "config_env", "files", "read_only"} {
		if i := s.get(key); !i.empty() {
			r.fault(i.at, key+" is set for the bot's own program", "nothing: its arguments are built in")
		}
	}
	if out.Provider != spec.NoProvider && out.Provider != "" {
		r.fault(s.get("provider").node, fmt.Sprintf("provider is %s for the bot's own program", out.Provider), "none")
	}
}
