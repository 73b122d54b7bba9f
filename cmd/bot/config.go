package main

import (
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"parlour/guardrail/secret"
	"parlour/manifests"
	"parlour/runner/spec"
)

// config is the configuration file with its secrets read and the flags applied.
type config struct {
	manifests.Config
	file   string // empty: there is none
	keys   map[spec.Provider]secret.Value
	tokens tokens
}

// tokens are those of the chat platforms; an empty one means that the platform
// is off.
type tokens struct{ discord, slackApp, slackBot secret.Value }

// config reads the file that --config or PARLOUR_CONFIG names, and the secrets
// that it refers to. Without one the zero configuration holds: shipped
// manifests, no key, no chat.
func (p *process) config(c *cli) (config, error) {
	cfg, err := p.readConfig(c)
	if err != nil {
		return config{}, err
	}
	faults, warnings := p.readSecrets(&cfg)
	if len(faults) > 0 {
		return config{}, faults
	}
	for _, w := range warnings {
		if w.unsafe {
			p.note("warning: %s", w.Fault)
		}
	}
	return cfg, nil
}

// readConfig reads no secret. With Faults it gives what could be read.
func (p *process) readConfig(c *cli) (config, error) {
	cfg := config{file: p.env["PARLOUR_CONFIG"], keys: map[spec.Provider]secret.Value{}}
	if c.Config != nil {
		if cfg.file = *c.Config; cfg.file == "" {
			return cfg, bad("--config is empty; leave it out for none")
		}
	}
	var err error
	if cfg.file != "" {
		cfg.Config, err = manifests.LoadConfig(cfg.file)
	}
	for _, f := range []struct {
		name  string
		given *string
		to    *string
	}{{"--manifests", c.Manifests, &cfg.Manifests}, {"--state", c.State, &cfg.State}} {
		if f.given == nil {
			continue
		}
		if *f.given == "" {
			return cfg, bad("%s is empty; leave it out for the default", f.name)
		}
		abs, wrong := filepath.Abs(*f.given)
		if wrong != nil {
			return cfg, bad("%s: %w", f.name, wrong)
		}
		*f.to = abs
	}
	return cfg, err
}

// warning is a fault that stops nothing.
type warning struct {
	manifests.Fault
	unsafe bool // it is worth a word at every start, not only at check
}

// readSecrets reads every secret, and gives all faults at once.
func (p *process) readSecrets(cfg *config) (faults manifests.Faults, warnings []warning) {
	read := func(ref manifests.Ref) secret.Value {
		value, fs, ws := p.secret(ref)
		faults, warnings = append(faults, fs...), append(warnings, ws...)
		return value
	}
	for _, provider := range slices.Sorted(maps.Keys(cfg.Models)) {
		cfg.keys[provider] = read(cfg.Models[provider].Key)
	}
	cfg.tokens = tokens{read(cfg.Discord.Token), read(cfg.Slack.AppToken), read(cfg.Slack.BotToken)}
	for _, t := range []struct {
		ref    manifests.Ref
		token  secret.Value
		prefix string
	}{{cfg.Slack.AppToken, cfg.tokens.slackApp, "xapp-"}, {cfg.Slack.BotToken, cfg.tokens.slackBot, "xoxb-"}} {
		if !t.token.Empty() && !strings.HasPrefix(t.token.Reveal(), t.prefix) {
			faults = append(faults, t.ref.Fault("this is not such a token of Slack", "the one that begins with "+t.prefix))
		}
	}
	return faults, warnings
}

// secrets lists every secret that the bot holds, for the redactor.
func (c config) secrets() []secret.Value {
	return append(slices.Collect(maps.Values(c.keys)), c.tokens.discord, c.tokens.slackApp, c.tokens.slackBot)
}

// The bounds of a secret in bytes: a shorter one cannot be told from ordinary
// text when answers are screened, and a larger file is not a key.
const (
	leastSecret = 6
	mostSecret  = 16 << 10
)

// secret reads the value that a reference names. A variable that is not set is
// no secret; a file that cannot be read is a fault. The value is in no message.
func (p *process) secret(ref manifests.Ref) (secret.Value, manifests.Faults, []warning) {
	text, warnings := p.env[ref.Env], []warning(nil)
	switch {
	case ref.File != "":
		var fault *manifests.Fault
		if text, warnings, fault = readSecretFile(ref); fault != nil {
			return secret.Value{}, manifests.Faults{*fault}, warnings
		}
	case ref.Env != "" && text == "":
		f := ref.Fault("the variable "+ref.Env+" is not set", "the variable set where the bot starts, if this is to be used")
		return secret.Value{}, nil, []warning{{Fault: f}}
	}
	value := strings.TrimSpace(text)
	if value == "" && ref.File == "" {
		return secret.Value{}, nil, warnings
	}
	if len(value) < leastSecret || strings.ContainsFunc(value, func(r rune) bool { return r <= ' ' || r > '~' }) {
		f := ref.Fault("this is not a secret: it is shorter than 6 characters, or not one line of printable ones", "the key or token alone")
		return secret.Value{}, manifests.Faults{f}, warnings
	}
	return secret.New(value), nil, warnings
}

func readSecretFile(ref manifests.Ref) (string, []warning, *manifests.Fault) {
	unreadable := func(what string) *manifests.Fault {
		f := ref.Fault("the file "+manifests.ShowPath(ref.File)+" "+what, "a file of the bot's user that holds the key alone")
		return &f
	}
	info, err := os.Stat(ref.File)
	if err != nil || !info.Mode().IsRegular() {
		return "", nil, unreadable("is not there, or is not a file that can be read")
	}
	file, err := os.Open(ref.File)
	if err != nil {
		return "", nil, unreadable("cannot be read")
	}
	defer func() { _ = file.Close() }()
	text, err := io.ReadAll(io.LimitReader(file, mostSecret+1))
	if err != nil || len(text) > mostSecret {
		return "", nil, unreadable("cannot be read or is too large")
	}
	var warnings []warning
	if info.Mode().Perm()&0o044 != 0 {
		what := fmt.Sprintf("others can read the file %s (mode %04o)", ref.File, info.Mode().Perm())
		warnings = append(warnings, warning{ref.Fault(what, "chmod 600"), true})
	}
	return string(text), warnings, nil
}
