// Package spec says how one agent CLI is driven: the type behind
// manifests/runners/*.yaml.
//
// It is data only. It starts nothing, looks nothing up, and a zero Spec is safe
// for nobody.
package spec

import (
	"slices"
	"strings"
	"time"

	"parlour/runner/policy"
)

// Provider is the protocol in which a CLI talks to its model.
type Provider string

// The providers. NoProvider needs no model, no key and no network.
const (
	NoProvider Provider = "none"
	Anthropic  Provider = "anthropic"
	OpenAI     Provider = "openai"
	Gemini     Provider = "gemini"
)

// Verdict says whether a runner may serve a tier, and why not. The zero
// Verdict is no.
type Verdict struct {
	OK     bool
	Reason string // required where OK is false
}

// Safety holds a verdict for each tier.
type Safety struct{ Owner, Team, Guest Verdict }

// For gives the verdict for a tier by its word. An unknown word is not safe.
func (s Safety) For(tier string) Verdict {
	switch tier {
	case "owner":
		return s.Owner
	case "team":
		return s.Team
	case "guest":
		return s.Guest
	}
	return Verdict{Reason: "unknown tier"}
}

// PromptBy is how the question reaches the CLI.
type PromptBy string

// The ways. The zero value is none of them and the loader refuses it.
const (
	ByArgument PromptBy = "argument" // the last argument, after "--"
	ByFlag     PromptBy = "flag"     // one word: PromptFlag followed by the question
	ByFile     PromptBy = "file"     // a sealed regular file that ends, as stdin
)

// Format is how a CLI prints its answer.
type Format string

// The formats.
const (
	Text       Format = "text"               // standard output is the answer
	ClaudeJSON Format = "claude-stream-json" // claude --output-format stream-json
	CodexJSON  Format = "codex-json"         // codex exec --json
	GeminiJSON Format = "gemini-stream-json" // gemini -o stream-json
)

// Placeholders that an element of Args or a value of Env may hold. They are
// replaced inside the element and never split it.
const (
	GuardrailPlaceholder = "{guardrail}" // the policy text
	ModelPlaceholder     = "{model}"     // the tier's model for the provider
	BrokerPlaceholder    = "{broker}"    // http://127.0.0.1:8080
	TokenPlaceholder     = "{token}"     // the run's one-time token for the broker
)

// Spec is one runner.
type Spec struct {
	Name       string
	BuiltIn    bool     // the bot's own program; only "docs" may be
	Binaries   []string // names or absolute paths, in order of preference
	Safe       Safety
	Provider   Provider
	NeedsFlags []string // each must occur in the output of HelpArgs
	HelpArgs   []string

	Args       []string                 // before the tool arguments
	ToolArgs   map[string][]string      // key: the tools sorted and joined by "+", "none" for none
	WireTools  map[policy.Tool][]string // the names by which the CLI offers a tool to its model
	Prompt     PromptBy
	PromptFlag string // for ByFlag, such as "--prompt="
	StdinArg   string // last argument where the question comes on standard input, such as "-"
	Answer     Format

	Env       map[string]string // literal values, placeholders allowed
	EnvAllow  []string          // names that are taken over from the bot's environment
	ConfigEnv map[string]string // variable -> folder inside policy.HomeDir, made empty
	Files     map[string]string // path inside policy.HomeDir -> content, written beforehand
	ReadOnly  []string          // extra host paths, mounted read-only at the same path

	Stall  *time.Duration // nil: the tier's; 0: none, for a CLI that prints at its end
	Origin string         // file that describes it
}

// ToolKey gives the key of ToolArgs for tools in any order.
func ToolKey(tools []policy.Tool) string {
	words := make([]string, len(tools))
	for i, t := range tools {
		words[i] = string(t)
	}
	slices.Sort(words)
	if len(words) == 0 {
		return "none"
	}
	return strings.Join(words, "+")
}

// Offers says whether the runner can be driven with exactly these tools. The
// built-in reader uses none, and without tools no arguments are needed.
func (s Spec) Offers(tools []policy.Tool) bool {
	_, ok := s.ToolArgs[ToolKey(tools)]
	return ok || len(tools) == 0 || s.BuiltIn
}

// OnTheWire gives the names of the policy's tools in a model request.
func (s Spec) OnTheWire(tools []policy.Tool) []string {
	names := []string{}
	for _, t := range tools {
		names = append(names, s.WireTools[t]...)
	}
	return names
}

// NeedsModel says whether the runner talks to a model.
func (s Spec) NeedsModel() bool { return s.Provider != NoProvider }
