//go:build linux

package attacks_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"parlour/runner/policy"
	"parlour/runner/sandbox"
)

// Scenario: on the Landlock rung everything of the host is there, and the agent
// tries to read, list, write and change it, with the bot's own files among it.
func TestLandlockRungKeepsTheHostsFiles(t *testing.T) {
	t.Parallel()
	r := newRung(t, policy.RungLandlock)
	folder := openFolder(t)
	secret, open := filepath.Join(folder, "secret"), filepath.Join(folder, "open")
	require.NoError(t, os.WriteFile(secret, []byte("the operator's"), 0o644))
	require.NoError(t, os.WriteFile(open, []byte("for all"), 0o666))
	require.NoError(t, os.Chmod(open, 0o666))
	require.NoError(t, os.Symlink(secret, filepath.Join(folder, "link")))
	for _, mode := range []policy.Mode{policy.ReadOnly, policy.WorkspaceWrite} {
		eff := r.policy(t, mode, policy.NetworkNone)
		require.Empty(t, report[map[string]string](t, r, eff, "read", secret, open, filepath.Join(folder, "link"), "/etc/passwd", "/etc/hostname",
			"/etc/ld.so.cache", "/proc/version", "/proc/cmdline", "/proc/mounts", "/proc/1/environ", "/proc/1/cmdline", "/proc/self/mountinfo",
			"/proc/self/environ", "/proc/self/cgroup", "/proc/net/tcp", "/proc/sys/kernel/hostname", "/sys/kernel/uevent_seqnum",
			"/usr/share/doc", "/dev/tty", "/dev/ptmx", "/proc/"+itoa(os.Getpid())+"/environ", "/proc/"+itoa(os.Getpid())+"/root"+secret))
		for at, names := range report[map[string][]string](t, r, eff, "list", "/", "/etc", "/tmp", "/home", "/root", "/proc", "/sys", "/dev", "/run",
			"/var", "/usr", "/usr/local", "/usr/share", folder, r.temp, "/dev/shm", "/proc/1/fd", "/proc/self/task") {
			require.Len(t, names, 1, "%s shows %v", at, names)
			require.Regexp(t, "^error: ", names[0], at)
		}
		for at, said := range report[map[string]string](t, r, eff, "write", secret, open, folder+"/new", r.temp+"/new", "/tmp/new", "/dev/shm/new",
			"/var/tmp/new", "/proc/self/oom_score_adj", "/proc/self/comm", "/proc/sys/kernel/core_pattern", "/dev/full", "/dev/zero", "../new") {
			require.NotEqual(t, "ok", said, at)
		}
		pretended := []string{"chmod " + open, "chmod " + secret, "chtimes " + open, "chtimes " + secret, "chtimes /dev/null", "chtimes /tmp", "chmod /dev/null", "chmod /tmp"}
		require.Subset(t, pretended, report[[]string](t, r, eff, "change", open, secret, "/dev/null", "/tmp"), "some calls answer success and do nothing")
	}
	for name, mode := range map[string]os.FileMode{secret: 0o644, open: 0o666} {
		info, err := os.Stat(name)
		require.NoError(t, err)
		require.Equal(t, mode, info.Mode().Perm())
		require.WithinDuration(t, time.Now(), info.ModTime(), time.Hour)
	}
	null, err := os.Stat("/dev/null")
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o666), null.Mode().Perm())
	require.Greater(t, null.ModTime().Year(), 1980)
	left, err := os.ReadDir(r.temp)
	require.NoError(t, err)
	require.Empty(t, left, "the folders of the runs are gone")
}

// The honest path: the run has a home, a temporary and a working folder, the
// files that were made for it, and copies of what it is shown.
func TestLandlockRungHasItsOwnPlaces(t *testing.T) {
	t.Parallel()
	r := newRung(t, policy.RungLandlock)
	private := filepath.Join(openFolder(t), "private")
	require.NoError(t, os.Mkdir(private, 0o700))
	document := filepath.Join(private, "index.db")
	require.NoError(t, os.WriteFile(document, []byte("the document, "), 0o644))
	cmd := sandbox.Command{Name: "sh", Path: "/bin/sh", Env: []string{"PATH=/usr/bin:/bin", "HOME=/home/agent", "TMPDIR=/tmp", "CONF=/home/agent/.conf", "X=/etc/x"},
		Args: []string{"-c", `cat ../docs/index.db "$HOME/f" "$CONF/g"; echo "$X"; echo a >"$HOME/a" && echo b >"$TMPDIR/b" && ls -A . && mkdir "$CONF/d" && mv "$HOME/a" "$CONF/d" && echo kept;
			(echo c >c) 2>/dev/null || echo none; (echo d >../docs/index.db) 2>/dev/null || echo unchanged`},
		Files:   map[string]string{"/home/agent/f": "a file, ", "/home/agent/.conf/g": "another\n"},
		Folders: []string{"/home/agent/.conf"},
		Mounts:  []sandbox.Mount{{Host: document, Inside: policy.DocsDir + "/index.db"}}}
	require.Equal(t, "the document, a file, another\n/etc/x\nkept\nnone\nunchanged\n", r.do(t, r.policy(t, policy.ReadOnly, policy.NetworkNone), cmd))
	require.Contains(t, r.do(t, r.policy(t, policy.WorkspaceWrite, policy.NetworkNone), cmd), "kept\nunchanged\n")

	// Some shells take the last of two values.
	home := r.do(t, r.policy(t, policy.ReadOnly, policy.NetworkNone),
		sandbox.Command{Name: "env", Path: "/usr/bin/env", Env: []string{"HOME=/root", "TMPDIR=/var/tmp"}})
	require.Regexp(t, `^HOME=`+regexp.QuoteMeta(r.temp)+`\S*\nTMPDIR=`+regexp.QuoteMeta(r.temp)+`\S*\n$`, home)

	folder, err := os.MkdirTemp("/var/tmp", "rung-") // a mount may not touch /tmp
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	require.NoError(t, os.Chmod(folder, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "a"), []byte("in its place"), 0o644))
	cmd = r.command("read", filepath.Join(folder, "a"))
	cmd.Mounts = []sandbox.Mount{{Host: folder, Inside: folder}}
	require.Contains(t, r.do(t, r.policy(t, policy.ReadOnly, policy.NetworkNone), cmd), "in its place")
	cmd.Mounts = []sandbox.Mount{{Host: folder, Inside: policy.DocsDir}}
	_, err = r.Start(t.Context(), r.policy(t, policy.ReadOnly, policy.NetworkNone), cmd)
	require.ErrorContains(t, err, "cannot be shown as /docs without a view")
}

// Scenario: the agent tries to become somebody, and to reach the bot and other
// runs, which are all in the same process tree.
func TestLandlockRungReachesNobody(t *testing.T) {
	t.Parallel()
	r := newRung(t, policy.RungLandlock)
	eff := r.policy(t, policy.ReadOnly, policy.NetworkNone)
	require.Empty(t, report[[]string](t, r, eff, "calls"))
	require.Empty(t, report[[]string](t, r, eff, "grandchild", "calls"))
	require.Empty(t, report[[]string](t, r, eff, "sockets"))
	got := report[boxedIdentity](t, r, eff, "identity")
	require.NotZero(t, got.UID)
	require.Zero(t, got.Capabilities)
	require.Equal(t, 1, got.NoNewPrivs)
	require.Equal(t, got.PID, got.Session)
	require.Equal(t, int(unix.SIGKILL), got.Tie, "it ends with its keeper")
	if os.Getuid() == 0 {
		require.False(t, got.Bounding)
		require.Equal(t, 0xeb, got.Securebits)
		require.Empty(t, got.Groups)
		require.NotEqual(t, os.Getuid(), got.UID)
	}
	other, out := r.start(t, eff, r.command("stay", "other"))
	out.await(t, "staying")
	victim := exec.Command(r.self, "stay", "victim")
	victim.Args[0] = boxedName
	require.NoError(t, victim.Start())
	t.Cleanup(func() { _ = victim.Process.Kill(); _ = victim.Wait() })
	pids := []string{"strangers", "1", itoa(os.Getpid()), itoa(os.Getppid()), itoa(victim.Process.Pid), itoa(other.PID())}
	require.Empty(t, report[[]string](t, r, eff, pids...))
	require.Empty(t, report[[]string](t, r, eff, append([]string{"grandchild"}, pids...)...))
	require.NoError(t, unix.Kill(other.PID(), 0))
}

// Scenario: two runs of a root bot at once. The second must be somebody else.
func TestLandlockRungGivesEachRunItsUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("a bot that is not root has one user id")
	}
	t.Parallel()
	r := newRung(t, policy.RungLandlock)
	eff := r.policy(t, policy.ReadOnly, policy.NetworkNone)
	seen := map[string]bool{"staying as 0": true}
	for range 8 {
		_, out := r.start(t, eff, r.command("stay", "users"))
		out.await(t, "\n")
		user := strings.TrimSpace(out.String())
		require.False(t, seen[user], user)
		seen[user] = true
	}
}

// Scenario: a run may use the model where the network is the host's. T3: what
// listens on the same port of another address is reached, and nothing else is.
func TestLandlockRungReachesOnePort(t *testing.T) {
	r := newRung(t, policy.RungLandlock)
	require.Equal(t, policy.Soft, r.caps.Network)
	_, err := policy.Narrow(policy.Wish{Mode: policy.ReadOnly, Network: policy.ModelOnly, Limits: boxLimits(),
		Require: []policy.Clause{policy.NetworkReach}}, r.caps)
	var refused *policy.RefusedError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, []policy.Clause{policy.NetworkReach}, refused.Missing)

	eff := r.policy(t, policy.ReadOnly, policy.ModelOnly)
	port := ":" + strings.Split(policy.BrokerAddr, ":")[1]
	targets, reached := []string{}, []string{}
	for _, at := range [][2]string{{"tcp", "127.0.0.1:0"}, {"tcp", "127.1." + itoa(os.Getpid()>>8&0xff) + "." + itoa(os.Getpid()&0xff) + port}, {"unix", filepath.Join(openFolder(t), "s")}, {"unix", "@parlour-rung-" + itoa(os.Getpid())}} {
		l, err := net.Listen(at[0], at[1])
		require.NoError(t, err)
		defer l.Close()
		targets = append(targets, at[0], l.Addr().String())
		if strings.HasSuffix(l.Addr().String(), port) {
			reached = append(reached, at[0]+" "+l.Addr().String())
		}
	}
	require.Equal(t, reached, report[[]string](t, r, eff, append([]string{"dial"}, targets...)...), "the gap that docs and text name, and no other")

	// The honest path, and a second run waits for the address instead of failing.
	first, out := r.start(t, eff, r.command("get", "http://"+policy.BrokerAddr+"/x"))
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = r.Start(ctx, eff, r.command("env"))
	require.ErrorIs(t, err, context.DeadlineExceeded)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		_, _ = io.WriteString(w, "heard "+q.URL.String())
	}))
	require.NoError(t, server.Listener.Close())
	server.Listener = first.Listener()
	server.Start()
	defer server.Close()
	_, err = first.Wait()
	require.NoError(t, err)
	require.Contains(t, out.String(), "heard /x")
	require.NotEmpty(t, report[[]string](t, r, eff, "args", "again"))
}

// Scenario: the bot's own processes are told apart from the run's: the keeper
// cannot be looked into, and it ends with the run.
func TestKeeperStandsAside(t *testing.T) {
	t.Parallel()
	r := newRung(t, policy.RungLandlock)
	run, out := r.start(t, r.policy(t, policy.ReadOnly, policy.NetworkNone), r.command("stay", mark(t)))
	out.await(t, "staying")
	status, err := os.ReadFile("/proc/" + itoa(run.PID()) + "/status")
	require.NoError(t, err)
	require.Contains(t, string(status), "Name:\tparlour-keeper\n")
	if os.Getuid() == 0 {
		fds, err := os.ReadDir("/proc/" + itoa(run.PID()) + "/fd")
		require.NoError(t, err)
		require.Len(t, fds, 2, "the program and the leash")
	} else {
		_, err := os.ReadDir("/proc/" + itoa(run.PID()) + "/fd")
		require.ErrorIs(t, err, os.ErrPermission, "not even the bot's own user looks into it")
	}
	run.Kill()
	exit, err := run.Wait()
	require.NoError(t, err)
	require.Equal(t, syscall.SIGKILL, exit.Signal)
	require.ErrorIs(t, unix.Kill(run.PID(), 0), unix.ESRCH)
}
