package sandbox

import (
	"fmt"
	"io"
	"maps"
	"path"
	"path/filepath"
	"slices"
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
	// Stdin is what standard input holds, as a sealed file that ends; empty means
	// /dev/null. It is never a pipe or a terminal, so no program can wait on it.
	Stdin  []byte
	Mounts []Mount
	// Files maps absolute paths inside policy.HomeDir to contents. They exist
	// before the start, belong to the run's user and have mode 0600.
	Files map[string]string
	// Folders are absolute paths inside policy.HomeDir. They exist before the
	// start, empty, belong to the run's user and have mode 0700.
	Folders []string
	Stdout  io.Writer // nil: dropped
	Stderr  io.Writer // nil: dropped
}

// Mount shows one host file or folder in the box, read-only.
type Mount struct {
	Host   string // absolute path on the host
	Inside string // absolute path in the box
}

// inside is where the program itself is seen.
func (c Command) inside() string { return path.Join(policy.AgentDir, filepath.Base(c.Path)) }

// maxStdin is the most that a run may be given on standard input, in bytes.
const maxStdin = 16 << 20

// check refuses what can never be right, whatever the host. Guarded by
// tests/attacks TestNilEnvironmentIsRefused.
func (c Command) check() error {
	if c.Env == nil {
		return fmt.Errorf("the environment is nil, which would mean the bot's own")
	}
	if len(c.Stdin) > maxStdin {
		return fmt.Errorf("standard input would hold more than %d bytes", maxStdin)
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
	for _, p := range slices.Concat(slices.Collect(maps.Keys(c.Files)), c.Folders) {
		if path.Clean(p) != p || !within(p, policy.HomeDir) || p == policy.HomeDir || strings.ContainsRune(p, 0) {
			return fmt.Errorf("%q is not inside %s", p, policy.HomeDir)
		}
	}
	for p := range c.Files {
		for _, d := range c.Folders {
			if within(d, p) {
				return fmt.Errorf("file %q cannot also be a folder for %q", p, d)
			}
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
