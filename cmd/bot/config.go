package main

import (
	"io"
	"os"
	"strings"

	"parlour/guardrail/secret"
	"parlour/manifests"
	"parlour/runner/spec"
)

// config is the configuration file with its secrets read and the flags applied.
type config struct {
	manifests.Config
	keys   map[spec.Provider]secret.Value
	others []secret.Value // tokens of the chat platforms
}

// config reads the file that --config or PARLOUR_CONFIG names. Without one the
// zero configuration holds: shipped manifests, no key, no chat.
func (p *process) config(c *cli) (config, error) {
	file := c.Config
	if file == "" {
		file = p.env["PARLOUR_CONFIG"]
	}
	cfg := config{keys: map[spec.Provider]secret.Value{}}
	if file != "" {
		read, err := manifests.LoadConfig(file)
		if err != nil {
			return config{}, err
		}
		cfg.Config = read
	}
	if c.Manifests != "" {
		cfg.Manifests = c.Manifests
	}
	if c.State != "" {
		cfg.State = c.State
	}
	return cfg, p.readSecrets(&cfg)
}

func (p *process) readSecrets(cfg *config) error {
	for provider, model := range cfg.Models {
		value, err := p.secret(model.Key)
		if err != nil {
			return err
		}
		cfg.keys[provider] = value
	}
	for _, ref := range []manifests.Ref{cfg.Discord.Token, cfg.Slack.AppToken, cfg.Slack.BotToken} {
		value, err := p.secret(ref)
		if err != nil {
			return err
		}
		cfg.others = append(cfg.others, value)
	}
	return nil
}

// secrets lists every secret that the bot holds, for the redactor.
func (c config) secrets() []secret.Value {
	all := append([]secret.Value{}, c.others...)
	for _, key := range c.keys {
		all = append(all, key)
	}
	return all
}

// maxSecret bounds a key file; a larger one is not a key.
const maxSecret = 16 << 10

// secret reads the value that a reference names. A variable that is not set is
// no secret; a file that cannot be read is a fault. The value is in no error.
func (p *process) secret(ref manifests.Ref) (secret.Value, error) {
	if ref.File == "" {
		return secret.New(strings.TrimSpace(p.env[ref.Env])), nil
	}
	file, err := os.Open(ref.File)
	if err != nil {
		return secret.Value{}, bad("%s: the secret's file: %w", ref.At, err)
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return secret.Value{}, bad("%s: the secret's file %s is not a regular file", ref.At, ref.File)
	}
	if info.Mode().Perm()&0o044 != 0 {
		p.note("warning: %s: others can read the secret's file %s (mode %04o); right: chmod 600", ref.At, ref.File, info.Mode().Perm())
	}
	text, err := io.ReadAll(io.LimitReader(file, maxSecret+1))
	if err != nil || len(text) > maxSecret {
		return secret.Value{}, bad("%s: the secret's file %s cannot be read or is larger than %d bytes", ref.At, ref.File, maxSecret)
	}
	value := strings.TrimSpace(string(text))
	if value == "" {
		return secret.Value{}, bad("%s: the secret's file %s is empty", ref.At, ref.File)
	}
	if strings.ContainsFunc(value, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return secret.Value{}, bad("%s: the secret's file %s holds more than one line or unprintable characters", ref.At, ref.File)
	}
	return secret.New(value), nil
}
