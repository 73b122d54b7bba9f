package manifests

import (
	"fmt"
	"path"
	"strings"

	"parlour/runner/policy"
	"parlour/runner/spec"
)

// readEnvironment reads the variables of a run. What would undo the scrubbing
// is refused: the bot's own secrets, the loader's and proxies' variables, and
// the four that every run is given.
// Guarded by tests/config, cases runner-env-*.
func readEnvironment(r *reader, s section, out *spec.Spec) {
	from := map[string]string{}
	once := func(i item, name, where string) bool {
		if other, twice := from[name]; twice {
			r.fault(i.at, name+" is set in "+other+" and in "+where, "each variable in one of env, env_allow, config_env")
			return false
		}
		from[name] = where
		return true
	}
	out.Env = map[string]string{}
	for _, e := range r.pairs(s.get("env")) {
		name := e.at.Value
		value, ok := r.text(e)
		if !ok || !settable(r, e, name) || !once(e, name, "env") {
			continue
		}
		checkPlaceholders(r, e)
		if isSecret(name) && value != spec.TokenPlaceholder {
			r.fault(e.node, "env."+name+" is set to a value of its own", spec.TokenPlaceholder+": the run's one-time token; the key stays with the bot")
			continue
		}
		out.Env[name] = value
	}
	out.EnvAllow = []string{}
	for _, e := range r.list(s.get("env_allow")) {
		name, ok := r.text(e)
		if !ok || !settable(r, e, name) {
			continue
		}
		if isSecret(name) || looksSecret(name) {
			r.fault(e.node, "env_allow holds "+name+", which may hold a secret", "names of variables without secrets; a run gets its token by env")
			continue
		}
		if once(e, name, "env_allow") {
			out.EnvAllow = append(out.EnvAllow, name)
		}
	}
	out.ConfigEnv = map[string]string{}
	for _, e := range r.pairs(s.get("config_env")) {
		name := e.at.Value
		folder, ok := r.text(e)
		if !ok || !settable(r, e, name) || !once(e, name, "config_env") {
			continue
		}
		if !insideHome(folder) {
			r.fault(e.node, e.name+" is "+show(folder), "a folder inside "+policy.HomeDir+", such as "+policy.HomeDir+"/.config")
			continue
		}
		out.ConfigEnv[name] = folder
	}
}

// settable says whether a manifest may name the variable at all.
func settable(r *reader, i item, name string) bool {
	upper := strings.ToUpper(name)
	switch {
	case name == "" || !only(name, alnum+"_") || only(name[:1], digits):
		r.fault(i.at, show(name)+" is not the name of a variable", "letters, digits and _")
	case contains([]string{"PATH", "HOME", "TMPDIR", "LANG"}, name):
		r.fault(i.at, name+" is given to every run", "nothing: it cannot be set here")
	case strings.HasPrefix(upper, "LD_"), strings.HasPrefix(upper, "DYLD_"),
		strings.HasSuffix(upper, "_PROXY"), strings.HasPrefix(upper, "DOCKER_"), strings.HasPrefix(upper, "COMPOSE_"):
		r.fault(i.at, name+" changes which code runs or where it connects", "nothing: it cannot be set here")
	default:
		return true
	}
	return false
}

// isSecret says whether the bot's own configuration keeps a secret under the name.
func isSecret(name string) bool {
	return contains([]string{"DISCORD_TOKEN", "SLACK_APP_TOKEN", "SLACK_BOT_TOKEN",
		"ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY"}, strings.ToUpper(name))
}

func looksSecret(name string) bool {
	upper := strings.ToUpper(name)
	for _, part := range []string{"KEY", "TOKEN", "SECRET", "PASSW", "CREDENTIAL", "_SOCK"} {
		if strings.Contains(upper, part) {
			return true
		}
	}
	return false
}

// host is what the checks of paths ask of the machine.
type host struct {
	private []string // folders that no run may see
	real    func(string) (target string, socket, exists bool)
}

func readPaths(r *reader, s section, h host, out *spec.Spec) {
	out.Files = map[string]string{}
	for _, e := range r.pairs(s.get("files")) {
		content, ok := r.text(e)
		if !insideHome(e.at.Value) {
			r.fault(e.at, "files holds "+show(e.at.Value), "a path inside "+policy.HomeDir)
			continue
		}
		if ok {
			out.Files[e.at.Value] = content
		}
	}
	out.ReadOnly = []string{}
	for _, e := range r.list(s.get("read_only")) {
		p, ok := r.text(e)
		if ok && h.mountable(r, e, p) {
			out.ReadOnly = append(out.ReadOnly, p)
		}
	}
}

// mountable says whether a run may be shown a path of the host. Overlap with a
// private folder is refused both ways.
// Guarded by tests/config, cases runner-read-only-*.
func (h host) mountable(r *reader, i item, p string) bool {
	const right = "an absolute path outside of what belongs to the system, the bot or a person, such as /opt/tool"
	if !canonical(p) {
		r.fault(i.node, i.name+" holds "+show(p), "an absolute path without . or .. and without a slash at its end")
		return false
	}
	target, socket, exists := h.real(p)
	if exists && target != p {
		r.fault(i.node, fmt.Sprintf("%s holds %s, which leads to %s", i.name, show(p), show(target)), "the path itself, without symbolic links")
		return false
	}
	if exists && socket {
		r.fault(i.node, i.name+" holds "+show(p)+", which is a socket", right)
		return false
	}
	refused := append([]string{"/etc", "/run", "/var/run", "/proc", "/sys", "/dev", "/home", "/root",
		policy.WorkDir, policy.TempDir, policy.AgentDir, policy.DocsDir}, h.private...)
	for _, f := range refused {
		if within(p, f) || within(f, p) {
			r.fault(i.node, fmt.Sprintf("%s holds %s, which overlaps with %s", i.name, show(p), f), right)
			return false
		}
	}
	return true
}

// canonical says whether a path is absolute and the shortest form of itself.
func canonical(p string) bool { return path.IsAbs(p) && path.Clean(p) == p }

// within says whether p is the folder or lies in it.
func within(p, folder string) bool {
	return p == folder || folder == "/" || strings.HasPrefix(p, folder+"/")
}

func insideHome(p string) bool {
	return canonical(p) && p != policy.HomeDir && within(p, policy.HomeDir)
}
