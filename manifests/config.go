package manifests

import (
	"maps"
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"parlour/runner/spec"
)

// Config is the configuration file: what is not policy. Relative paths in it
// are relative to the file; those here are absolute.
type Config struct {
	Discord   Discord
	Slack     Slack
	Models    map[spec.Provider]Model
	Order     []string // of runners; empty: each tier's own
	Manifests string   // folder; empty: the shipped manifests
	State     string   // folder; empty: the user's own
	Listen    string   // host:port; empty: nothing listens

	file    string
	orderAt []spot // of each name of Order
}

// Discord is how the bot connects to Discord.
type Discord struct {
	Token Ref
	API   string // another base URL; empty: Discord's
}

// Slack is how the bot connects to Slack.
type Slack struct {
	AppToken, BotToken Ref
	API                string // another base URL; empty: Slack's
}

// Model is how the bot reaches one provider's models.
type Model struct {
	BaseURL string // empty: the provider's
	Key     Ref
}

// Ref names where a secret is: in a variable of the environment or in a file.
// A secret itself is never written in a file that this package reads.
type Ref struct {
	Env  string
	File string // absolute
	Name string // dotted, such as model.openai.key

	file string
	at   spot
}

// Fault gives a fault of what the reference names, at the reference's place.
func (r Ref) Fault(what, right string) Fault {
	return Fault{File: r.file, Line: r.at.line, Column: r.at.column, What: r.Name + ": " + what, Right: right}
}

// LoadConfig reads a configuration file as strictly as a manifest. It fails
// with Faults, and then gives what could be read, so that a check can go on. It
// reads no secret.
// Guarded by tests/config TestEveryBadConfigHasExactlyItsFaults.
func LoadConfig(file string) (Config, error) {
	abs, err := filepath.Abs(file)
	if err != nil {
		return Config{}, Faults{{File: file, What: cause(err), Right: "a file"}}
	}
	text, faults := readFile(abs, false)
	if len(faults) > 0 {
		return Config{}, faults
	}
	r, top := parse(file, text)
	if top == nil {
		return Config{}, r.faults.sorted()
	}
	c := readConfig(r, item{"", top, top}, filepath.Dir(abs))
	c.file = file
	if len(r.faults) > 0 {
		return c, r.faults.sorted()
	}
	return c, nil
}

// Against checks the configuration and the manifests against each other: an
// order with an unknown runner, since a slip could start a dearer one; a runner
// that is shown the configuration, a key or one of the private folders; and a
// runner that would be handed the variable of a secret. The folder of the state
// is among the private ones.
// Guarded by tests/config TestRunnersCannotReachWhatTheConfigNames.
func (c Config) Against(s *Set, private ...string) error {
	known := slices.Concat(slices.Collect(maps.Keys(s.runners)), slices.Collect(maps.Keys(s.broken)))
	slices.Sort(known)
	var faults Faults
	for i, name := range c.Order {
		if !contains(known, name) {
			faults = append(faults, Fault{File: c.file, Line: c.orderAt[i].line, Column: c.orderAt[i].column,
				What: "runners.order holds the unknown runner " + show(name), Right: oneOf(name, known)})
		}
	}
	names := []string{}
	for _, ref := range c.Refs() {
		private = append(private, ref.File)
		names = append(names, ref.Env)
	}
	for _, r := range s.Runners() {
		faults = append(faults, reaches(r, append(private, c.file, c.Manifests, c.State), names)...)
	}
	if len(faults) > 0 {
		return faults.sorted()
	}
	return nil
}

// Refs gives every reference to a secret.
func (c Config) Refs() []Ref {
	refs := []Ref{c.Discord.Token, c.Slack.AppToken, c.Slack.BotToken}
	for _, p := range slices.Sorted(maps.Keys(c.Models)) {
		refs = append(refs, c.Models[p].Key)
	}
	return refs
}

// reaches reports what a runner's file shows or hands to its runs, links
// resolved as they are now.
func reaches(r spec.Spec, private, secrets []string) (faults Faults) {
	for _, shown := range r.ReadOnly {
		for _, p := range private {
			if p == "" {
				continue
			}
			if a, b := resolved(shown), resolved(p); within(a, b) || within(b, a) {
				faults = append(faults, Fault{File: r.Origin, What: "read_only holds " + show(shown) + ", which overlaps with " + p,
					Right: "a path outside of the bot's configuration, keys and state"})
			}
		}
	}
	for _, name := range r.EnvAllow {
		if name != "" && contains(secrets, name) {
			faults = append(faults, Fault{File: r.Origin, What: "env_allow holds " + name + ", which holds a secret of the bot",
				Right: "names of variables without secrets"})
		}
	}
	return faults
}

// resolved follows links as far as the path exists.
func resolved(p string) string {
	abs, err := filepath.Abs(p)
	if err != nil {
		return p
	}
	for rest := ""; ; {
		if target, err := filepath.EvalSymlinks(abs); err == nil {
			return filepath.Join(target, rest)
		}
		rest = filepath.Join(filepath.Base(abs), rest)
		if parent := filepath.Dir(abs); parent != abs {
			abs = parent
			continue
		}
		return p
	}
}

func readConfig(r *reader, top item, dir string) Config {
	s := r.fields(top, "discord", "slack", "model", "runners", "manifests", "state", "listen")
	c := Config{Models: map[spec.Provider]Model{}}
	d := r.fields(s.get("discord"), "token", "api")
	c.Discord = Discord{Token: readRef(r, d.get("token"), dir), API: readBaseURL(r, d.get("api"))}
	k := r.fields(s.get("slack"), "app_token", "bot_token", "api")
	c.Slack = Slack{AppToken: readRef(r, k.get("app_token"), dir), BotToken: readRef(r, k.get("bot_token"), dir), API: readBaseURL(r, k.get("api"))}
	m := r.fields(s.get("model"), string(spec.Anthropic), string(spec.OpenAI), string(spec.Gemini))
	for _, p := range []spec.Provider{spec.Anthropic, spec.OpenAI, spec.Gemini} {
		one := r.fields(m.get(string(p)), "base_url", "key")
		if one.given() {
			c.Models[p] = Model{BaseURL: readBaseURL(r, one.get("base_url")), Key: readRef(r, one.get("key"), dir)}
		}
	}
	for _, e := range r.list(r.fields(s.get("runners"), "order").get("order")) {
		if name, ok := r.text(e); ok {
			c.Order, c.orderAt = append(c.Order, name), append(c.orderAt, spotOf(e.node))
		}
	}
	c.Manifests = readPath(r, s.get("manifests"), dir)
	c.State = readPath(r, s.get("state"), dir)
	c.Listen = readListen(r, s.get("listen"))
	return c
}

// readRef reads where a secret is. The value that stands where a reference belongs
// is not repeated in the fault: it may be the secret.
func readRef(r *reader, i item, dir string) Ref {
	const right = "{env: NAME} or {file: PATH}"
	if !i.given() {
		return Ref{}
	}
	if i.null() || i.node.Kind != yaml.MappingNode {
		r.fault(i.node, i.name+" is not a reference to a secret", right+", never the secret itself")
		return Ref{}
	}
	s := r.fields(i, "env", "file")
	env, file := s.get("env"), s.get("file")
	if env.given() == file.given() {
		r.fault(i.node, i.name+" names not exactly one place", right)
		return Ref{}
	}
	ref := Ref{Name: i.name, file: r.file, File: readPath(r, file, dir)}
	if file.given() {
		ref.at = spotOf(file.node)
	} else {
		ref.at = spotOf(env.node)
		ref.Env, _ = r.text(env)
		if !variableName(ref.Env) {
			r.fault(env.node, env.name+" is not the name of a variable", "a name such as ANTHROPIC_API_KEY")
		}
	}
	return ref
}

func variableName(s string) bool {
	return s != "" && only(s, alnum+"_") && !only(s[:1], digits)
}

func readPath(r *reader, i item, dir string) string {
	if !i.given() {
		return ""
	}
	p, ok := r.text(i)
	if ok && p == "" {
		r.fault(i.node, i.name+" is empty", "a path, or no such key")
	}
	if !ok || p == "" {
		return ""
	}
	if strings.HasPrefix(p, "~") || strings.Contains(p, "$") {
		r.fault(i.node, i.name+" is "+show(p), "a path in full: ~ and variables are not filled in")
		return ""
	}
	if !filepath.IsAbs(p) {
		p = filepath.Join(dir, p)
	}
	return filepath.Clean(p)
}

// readBaseURL reads another address of a service. Without TLS only this machine is
// reached, since a secret goes with every request.
func readBaseURL(r *reader, i item) string {
	if !i.given() {
		return ""
	}
	text, ok := r.text(i)
	if !ok || text == "" {
		return ""
	}
	const right = "an https URL, or http to 127.0.0.1, without user, query or fragment"
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "":
		r.fault(i.node, i.name+" is not a usable address", right)
		return ""
	case u.Scheme == "https", u.Scheme == "http" && loopback(u.Hostname()):
		return text
	}
	r.fault(i.node, i.name+" is "+show(u.Scheme+"://"+u.Host), right)
	return ""
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

func readListen(r *reader, i item) string {
	if !i.given() {
		return ""
	}
	text, ok := r.text(i)
	if !ok || text == "" {
		return ""
	}
	if _, port, err := net.SplitHostPort(text); err != nil || port == "" || !only(port, digits) {
		r.fault(i.node, i.name+" is not host:port", "host:port, such as 127.0.0.1:9464")
		return ""
	}
	return text
}
