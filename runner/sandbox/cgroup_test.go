//go:build linux && (amd64 || arm64)

package sandbox

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheBotsOwnGroupsAreFound(t *testing.T) {
	const (
		old = "32 31 0:29 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n" +
			"33 31 0:30 / /sys/fs/cgroup/pids rw,relatime - cgroup cgroup rw,pids\n"
		joint = "32 31 0:29 / /sys/fs/cgroup/all rw,relatime - cgroup cgroup rw,memory,pids\n"
		new   = "41 31 0:38 / /sys/fs/cgroup rw,relatime - cgroup2 cgroup2 rw,nsdelegate\n"
		other = "20 1 0:5 / /proc rw - proc proc rw\nbroken line\n"
	)
	for name, c := range map[string]struct {
		groups, mounts string
		want           hierarchies
	}{
		"version 1":             {"4:memory:/a/b\n8:pids:/\n", other + old, hierarchies{memory: "/sys/fs/cgroup/memory/a/b", pids: "/sys/fs/cgroup/pids"}},
		"version 1, together":   {"4:memory,pids:/a\n", joint, hierarchies{memory: "/sys/fs/cgroup/all/a", pids: "/sys/fs/cgroup/all/a"}},
		"version 2":             {"0::/system.slice/parlour.service\n", new, hierarchies{unified: "/sys/fs/cgroup/system.slice/parlour.service"}},
		"both, version 1 rules": {"4:memory:/a\n8:pids:/b\n0::/c\n", old + new, hierarchies{memory: "/sys/fs/cgroup/memory/a", pids: "/sys/fs/cgroup/pids/b"}},
		"half of version 1":     {"4:memory:/a\n", old, hierarchies{}},
		"half, and version 2":   {"4:memory:/a\n0::/c\n", old + new, hierarchies{unified: "/sys/fs/cgroup/c"}},
		"in a container": {"0::/docker/x/run\n", "41 31 0:38 /docker/x /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
			hierarchies{unified: "/sys/fs/cgroup/run"}},
		"outside of what is mounted": {"0::/other\n", "41 31 0:38 /docker/x /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n", hierarchies{}},
		"none":                       {"", other, hierarchies{}},
		"nothing mounted":            {"0::/a\n4:memory:/a\n8:pids:/\n", "", hierarchies{}},
	} {
		require.Equal(t, c.want, findHierarchies(c.groups, c.mounts), name)
	}
	require.Empty(t, hierarchies{}.places())
	require.Equal(t, []string{"/a"}, hierarchies{memory: "/a", pids: "/a"}.places(), "a group is made once")
}

// The kernel's own rules are not in these files: only what the bot does to them.
func TestADelegatedGroupHandsItsControllersOn(t *testing.T) {
	const bot = 4711
	for name, c := range map[string]struct {
		members, shared string
		fails           string
		moved           bool
	}{
		"alone":                   {"4711\n", "", "", true},
		"shared already":          {"", "cpu memory pids\n", "", false},
		"shared, and with others": {"1\n4711\n", "memory pids\n", "", false},
		"half shared":             {"4711\n", "memory\n", "", true},
		"with others":             {"4711\n4712\n", "", "not alone", false},
		"elsewhere":               {"", "", "not alone", false},
	} {
		dir := t.TempDir()
		leaf := filepath.Join(dir, botGroup)
		require.NoError(t, os.Mkdir(leaf, 0o755))
		for file, text := range map[string]string{"cgroup.procs": c.members, "cgroup.subtree_control": c.shared, botGroup + "/cgroup.procs": ""} {
			require.NoError(t, os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600))
		}
		err := hierarchies{unified: dir}.share(bot)
		if c.fails != "" {
			require.ErrorContains(t, err, c.fails, name)
		} else {
			require.NoError(t, err, name)
		}
		moved, err := os.ReadFile(filepath.Join(leaf, "cgroup.procs"))
		require.NoError(t, err)
		require.Equal(t, c.moved, string(moved) == "4711", name)
		shared, err := os.ReadFile(filepath.Join(dir, "cgroup.subtree_control"))
		require.NoError(t, err)
		require.Equal(t, c.moved, strings.HasPrefix(string(shared), "+memory +pids"), name)
	}
	require.NoError(t, hierarchies{memory: "/a", pids: "/b"}.share(bot), "version 1 needs nothing")
}
