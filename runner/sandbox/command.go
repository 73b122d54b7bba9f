package sandbox

import (
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"parlour/runner/policy"
	"parlour/runner/sandbox/entry"
)

// Command is the program of one run.
type Command struct {
	Name string   // argv[0]
	Path string   // absolute host path; seen read-only at policy.AgentDir plus its base name
	Args []string // after argv[0]
	// Env is the whole environment. It must not be nil: elsewhere in Go a nil
	// environment means that of the bot.
	Env []string
	// Stdin is nil for /dev/null, or a regular file. Its rest is copied before
	// the start, so the program can neither wait on it nor reach the file.
	Stdin  *os.File
	Mounts []Mount
	// Files maps absolute paths inside policy.HomeDir to contents. They exist
	// before the start, belong to the run's user and have mode 0600.
	Files  map[string]string
	Stdout io.Writer // nil: dropped
	Stderr io.Writer // nil: dropped
}

// Mount shows one host file or folder in the box, read-only.
type Mount struct {
	Host   string // absolute path on the host
	Inside string // absolute path in the box
}

// inside is where the program itself is seen.
func (c Command) inside() string { return path.Join(policy.AgentDir, filepath.Base(c.Path)) }

// check refuses what can never be right, whatever the host. Guarded by
// tests/attacks TestNilEnvironmentIsRefused.
func (c Command) check() error {
	if c.Env == nil {
		return fmt.Errorf("the environment is nil, which would mean the bot's own")
	}
	if c.Name == "" || c.Name == entry.Name {
		return fmt.Errorf("argv[0] may not be %q", c.Name)
	}
	if !filepath.IsAbs(c.Path) || filepath.Clean(c.Path) != c.Path {
		return fmt.Errorf("path of the program is not absolute and clean: %q", c.Path)
	}
	seen := map[string]bool{}
	for _, v := range c.Env {
		name, _, ok := strings.Cut(v, "=")
		if !ok || name == "" {
			return fmt.Errorf("an environment entry has no name")
		}
		if seen[name] {
			return fmt.Errorf("environment variable %s is given twice", name)
		}
		seen[name] = true
	}
	for _, s := range append(append([]string{c.Name, c.Path}, c.Args...), c.Env...) {
		if strings.ContainsRune(s, 0) {
			return fmt.Errorf("an argument or environment entry holds a NUL")
		}
	}
	return c.checkFiles()
}

func (c Command) checkFiles() error {
	for p := range c.Files {
		if path.Clean(p) != p || !within(p, policy.HomeDir) || p == policy.HomeDir || strings.ContainsRune(p, 0) {
			return fmt.Errorf("file %q is not inside %s", p, policy.HomeDir)
		}
		for q := range c.Files {
			if p != q && within(p, q) {
				return fmt.Errorf("file %q cannot also be a folder for %q", q, p)
			}
		}
	}
	return nil
}

// within says whether p is root or lies below it. Both are clean.
func within(p, root string) bool {
	return p == root || root == "/" || strings.HasPrefix(p, root+"/")
}
