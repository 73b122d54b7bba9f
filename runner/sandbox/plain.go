package sandbox

import (
	"os"
	"path/filepath"
	"strings"

	"parlour/runner/policy"
)

// plainFolder makes the folder of one plain run, with the three places that a
// box would have, and the files and folders of the command. It gives the way to
// remove it again, also where it fails.
func plainFolder(temp string, p *presence, cmd Command) (root string, remove func(), err error) {
	name, leave, err := p.enter()
	if err != nil {
		return "", func() {}, err
	}
	root = filepath.Join(temp, name)
	remove = func() { leave(os.RemoveAll(root) == nil) }
	if err := os.Mkdir(root, 0o700); err != nil {
		return "", remove, err
	}
	for _, place := range append([]string{policy.WorkDir, policy.HomeDir, policy.TempDir}, cmd.Folders...) {
		if err := os.MkdirAll(filepath.Join(root, place), 0o700); err != nil {
			return root, remove, err
		}
	}
	for name, content := range cmd.Files {
		p := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o700); err != nil {
			return root, remove, err
		}
		if err := os.WriteFile(p, []byte(content), 0o600); err != nil {
			return root, remove, err
		}
	}
	return root, remove, nil
}

// plainEnv turns values that name places of a box into places of the run's
// folder. HOME and TMPDIR always name it.
func plainEnv(env []string, root string) []string {
	out := []string{"HOME=" + filepath.Join(root, policy.HomeDir), "TMPDIR=" + filepath.Join(root, policy.TempDir)}
	for _, v := range env {
		name, value, _ := strings.Cut(v, "=")
		if name == "HOME" || name == "TMPDIR" {
			continue
		}
		for _, place := range []string{policy.WorkDir, policy.HomeDir, policy.TempDir} {
			if within(value, place) {
				value = filepath.Join(root, value)
				break
			}
		}
		out = append(out, name+"="+value)
	}
	return out
}
