package sandbox

import (
	"testing"

	"github.com/stretchr/testify/require"
)

var usualRoots = []string{"/home/agent", "/tmp", "/work"}

func TestMountsCannotTouchTheView(t *testing.T) {
	for _, inside := range []string{
		"/", "/usr", "/usr/bin", "/usr/bin/sh", "/usr/lib/x", "/usr/local", "/usr/src", "/bin", "/bin/sh", "/lib/x",
		"/proc", "/proc/1", "/dev", "/dev/null", "/sys", "/etc", "/etc/passwd", "/etc/hosts", "/etc/passwd/x",
		"/work", "/work/x", "/home", "/home/agent", "/home/agent/.ssh", "/tmp", "/tmp/x", "/agent", "/agent/prog", "/agent/prog/x",
		"relative", "/docs/../etc/passwd", "/docs/", "", "/docs\x00",
	} {
		err := checkMounts([]Mount{{Host: "/srv/data", Inside: inside}}, usualRoots, "/agent/prog")
		require.Error(t, err, inside)
	}
	require.Error(t, checkMounts([]Mount{{Host: "srv", Inside: "/docs/x"}}, usualRoots, "/agent/prog"))
}

func TestMountsBesideTheViewAreFine(t *testing.T) {
	for _, inside := range []string{
		"/docs", "/docs/index.db", "/opt/claude", "/usr/local/lib/node", "/usr/src/x", "/etc/ssl", "/agent/helper",
		"/home/op/.local/share", "/tmpx", "/workx", "/srv",
	} {
		require.NoError(t, checkMounts([]Mount{{Host: "/srv/data", Inside: inside}}, usualRoots, "/agent/prog"), inside)
	}
}

func TestMountsCannotLieInEachOther(t *testing.T) {
	for _, pair := range [][2]string{{"/docs", "/docs/x"}, {"/docs/x", "/docs"}, {"/docs", "/docs"}} {
		mounts := []Mount{{"/a", pair[0]}, {"/b", pair[1]}}
		require.Error(t, checkMounts(mounts, usualRoots, "/agent/prog"))
	}
	require.NoError(t, checkMounts([]Mount{{"/a", "/docs/a"}, {"/b", "/docs/ab"}}, usualRoots, "/agent/prog"))
}

func TestOnlyWhatShowsAnywayIsLeftOut(t *testing.T) {
	require.True(t, visible(Mount{"/usr/lib/node", "/usr/lib/node"}))
	require.False(t, visible(Mount{"/usr/lib/node", "/usr/lib/other"}))
	require.False(t, visible(Mount{"/usr/local/lib/node", "/usr/local/lib/node"}))
	require.False(t, visible(Mount{"/usr", "/usr"}))
	require.False(t, visible(Mount{"/opt/x", "/opt/x"}))
}

func TestWritableFoldersCannotOpenTheView(t *testing.T) {
	for _, root := range []string{"/", "/usr", "/usr/local/x", "/etc", "/etc/x", "/proc/x", "/dev/shm", "/agent", "/docs/x", "/work/x", "/bin", "/lib64/x"} {
		require.Error(t, checkRoots([]string{root}), root)
	}
	require.NoError(t, checkRoots([]string{"/home/agent", "/tmp", "/work", "/var/cache/x"}))
}

func TestCommandsAreChecked(t *testing.T) {
	good := func() Command {
		return Command{Name: "x", Path: "/usr/bin/x", Args: []string{"a"}, Env: []string{"A=1", "B="},
			Files: map[string]string{"/home/agent/.x/y": "", "/home/agent/.xy": ""}}
	}
	require.NoError(t, good().check())
	for name, spoil := range map[string]func(*Command){
		"nil environment":    func(c *Command) { c.Env = nil },
		"no name":            func(c *Command) { c.Name = "" },
		"the child's name":   func(c *Command) { c.Name = "parlour-sandbox-child" },
		"relative program":   func(c *Command) { c.Path = "bin/x" },
		"unclean program":    func(c *Command) { c.Path = "/usr/bin/../x" },
		"variable unnamed":   func(c *Command) { c.Env = []string{"=1"} },
		"variable bare":      func(c *Command) { c.Env = []string{"A"} },
		"variable twice":     func(c *Command) { c.Env = []string{"A=1", "A=2"} },
		"NUL in an argument": func(c *Command) { c.Args = []string{"a\x00b"} },
		"NUL in a variable":  func(c *Command) { c.Env = []string{"A=\x00"} },
		"file outside":       func(c *Command) { c.Files = map[string]string{"/tmp/x": ""} },
		"file climbs":        func(c *Command) { c.Files = map[string]string{"/home/agent/../x": ""} },
		"file is home":       func(c *Command) { c.Files = map[string]string{"/home/agent": ""} },
		"file is a folder":   func(c *Command) { c.Files = map[string]string{"/home/agent/a": "", "/home/agent/a/b": ""} },
	} {
		c := good()
		spoil(&c)
		require.Error(t, c.check(), name)
	}
}
