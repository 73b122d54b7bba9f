package sandbox

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"parlour/runner/policy"
)

// Folders of the view that nothing given from outside may touch.
var untouchable = [...]string{"/proc", "/dev", "/sys", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", policy.WorkDir}

// maskable are the parts of /usr that belong to the operator, not to the
// distribution. They are empty in the box, but for mounts into them.
var maskable = [...]string{"/usr/local", "/usr/src"}

// generated are the files of /etc that the plan writes.
var generated = [...]string{"/etc/passwd", "/etc/group", "/etc/hosts", "/etc/nsswitch.conf"}

// checkRoots refuses writable folders that would hide or open a part of the view.
func checkRoots(roots []string) error {
	for _, root := range roots {
		if root == policy.WorkDir {
			continue
		}
		for _, fixed := range slices.Concat(untouchable[:], []string{"/usr", "/etc", policy.AgentDir, policy.DocsDir}) {
			if within(root, fixed) || within(fixed, root) {
				return fmt.Errorf("writable folder %s overlaps %s", root, fixed)
			}
		}
	}
	return nil
}

// checkMounts refuses a mount that hides a part of the view, opens one, or lies
// in another mount. program is where the agent's program is seen. Guarded by
// places_test.go.
func checkMounts(mounts []Mount, roots []string, program string) error {
	for i, m := range mounts {
		if !path.IsAbs(m.Host) || !path.IsAbs(m.Inside) || path.Clean(m.Inside) != m.Inside || strings.ContainsRune(m.Host+m.Inside, 0) {
			return fmt.Errorf("mount %q on %q: both must be absolute and clean", m.Host, m.Inside)
		}
		if fixed, bad := clash(m.Inside, roots, program); bad {
			return fmt.Errorf("mount on %s would touch %s", m.Inside, fixed)
		}
		for _, other := range mounts[:i] {
			if within(m.Inside, other.Inside) || within(other.Inside, m.Inside) {
				return fmt.Errorf("mounts on %s and %s overlap", m.Inside, other.Inside)
			}
		}
	}
	return nil
}

// clash names the fixed place that a mount on p would touch.
func clash(p string, roots []string, program string) (string, bool) {
	for _, fixed := range slices.Concat(untouchable[:], roots) {
		if within(p, fixed) || within(fixed, p) {
			return fixed, true
		}
	}
	for _, fixed := range slices.Concat(generated[:], []string{program}) {
		if within(p, fixed) || within(fixed, p) {
			return fixed, true
		}
	}
	if within("/usr", p) {
		return "/usr", true
	}
	if within(p, "/usr") {
		for _, m := range maskable {
			if within(p, m) && p != m {
				return "", false
			}
		}
		return "/usr", true
	}
	return "", false
}

// visible says whether a mount shows what the view shows at that path anyway.
func visible(m Mount) bool {
	if m.Host != m.Inside || !within(m.Host, "/usr") || m.Host == "/usr" {
		return false
	}
	for _, mask := range maskable {
		if within(m.Host, mask) {
			return false
		}
	}
	return true
}
