//go:build linux && (amd64 || arm64)

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"parlour/runner/policy"
)

func TestEveryFailureHasItsCure(t *testing.T) {
	for _, c := range []struct {
		step string
		err  error
		host host
		want string
	}{
		{"start the child", unix.EPERM, host{apparmor: "1"}, "kernel.apparmor_restrict_unprivileged_userns=0"},
		{"mount /", unix.EACCES, host{apparmor: "1"}, "kernel.apparmor_restrict_unprivileged_userns=0"},
		{"start the child", unix.EPERM, host{clone: "0"}, "kernel.unprivileged_userns_clone=1"},
		{"start the child", unix.ENOSPC, host{most: "0"}, "user.max_user_namespaces"},
		{"start the child", fmt.Errorf("fork: %w", unix.EPERM), host{container: true}, "--cap-add SYS_ADMIN"},
		{"start the child", unix.EPERM, host{root: true}, "CAP_SYS_ADMIN"},
		{"start the child", unix.EPERM, host{}, "permits user namespaces"},
		{"mount proc", unix.EPERM, host{container: true}, "systempaths=unconfined"},
		{"clone mount /usr", unix.ENOSYS, host{}, "Linux 5.12"},
		{"check the program", errors.New("mode"), host{}, "chmod a+rx"},
		{"take a user id", errors.New("none"), host{}, "subuid"},
		{"start", context.DeadlineExceeded, host{}, "less load"},
		{"try to undo mount", errors.New("it worked"), host{}, "report this step"},
	} {
		require.Contains(t, cure(policy.RungFull, c.step, c.err, c.host), c.want, "%s: %v", c.step, c.err)
	}
}

func TestEachRungThatIsMissingHasItsCure(t *testing.T) {
	for _, c := range []struct {
		rung policy.Rung
		step string
		err  error
		host host
		want string
	}{
		{policy.RungBwrap, stepMaker, errors.New("not installed"), host{}, "install bubblewrap"},
		{policy.RungBwrap, stepMaker, errors.New("root"), host{root: true}, "normal user"},
		{policy.RungBwrap, stepMake, errors.New("No permissions"), host{container: true}, "--cap-add SYS_ADMIN"},
		{policy.RungLandlock, stepLandlock, unix.ENOSYS, host{}, "kernel with Landlock"},
		{policy.RungLandlock, "make folder /tmp/x", unix.EACCES, host{}, "TMPDIR"},
		{policy.RungLandlock, "enter folder /tmp/x/work", unix.EACCES, host{root: true}, "TMPDIR"},
		{policy.RungLandlock, "change user", unix.EPERM, host{root: true, container: true}, "CAP_SETUID"},
	} {
		require.Contains(t, cure(c.rung, c.step, c.err, c.host), c.want, "%s %s: %v", c.rung, c.step, c.err)
	}
}

func TestBubblewrapsOwnWordsAreTold(t *testing.T) {
	cause := errors.New("the child died")
	require.ErrorContains(t, complaint(policy.RungBwrap, "bwrap: No permissions to create new namespace\nmore\n", cause),
		"let bubblewrap make the box: No permissions to create new namespace")
	for rung, said := range map[policy.Rung]string{policy.RungBwrap: "parlour sandbox: mount: no\n", policy.RungFull: "bwrap: x"} {
		require.Equal(t, cause, complaint(rung, said, cause))
	}
}

func TestSummaryPutsTheStrongestFirst(t *testing.T) {
	missing := func(rung policy.Rung, why string) measurement {
		return measurement{absent: &policy.Absence{Rung: rung, Why: why, Cure: "cure " + rung.String()}}
	}
	held := func(rung policy.Rung) measurement { return measurement{caps: levels(rung, 7, false)} }
	full, bwrap, landlock := policy.RungFull, policy.RungBwrap, policy.RungLandlock

	got := summary([]measurement{held(full), held(bwrap), missing(landlock, "x")})
	require.Equal(t, full, got.Rung)
	require.Empty(t, got.Why, "nothing is better")
	require.Empty(t, got.Cure)
	require.Len(t, got.Lower, 1)
	require.Equal(t, bwrap, got.Lower[0].Rung)

	got = summary([]measurement{missing(full, "x"), missing(bwrap, "y"), held(landlock)})
	require.Equal(t, landlock, got.Rung)
	require.Equal(t, "no rung full: x; no rung bwrap: y", got.Why)
	require.Equal(t, "cure full", got.Cure)
	require.Len(t, got.Absent, 2)

	got = summary([]measurement{missing(full, "x"), held(bwrap), missing(landlock, "x")})
	require.Equal(t, "no rung full: x", got.Why, "a weaker one is not the reason")

	got = summary([]measurement{missing(full, "x"), missing(bwrap, "x"), missing(landlock, "z")})
	require.Equal(t, policy.RungNone, got.Rung)
	require.Equal(t, policy.Enforced, got.OpenFiles)
	require.Equal(t, "no rung full, bwrap: x; no rung landlock: z", got.Why)
}

func TestTheChildsTalkIsUnderstood(t *testing.T) {
	require.NoError(t, (&talk{said: []byte("X")}).outcome())
	require.NoError(t, (&talk{said: []byte("LX")}).outcome())
	require.NoError(t, (&talk{said: []byte("LWX")}).outcome())
	var failed *StartError
	for said, step := range map[string]string{
		"": "start", "L": "start", "LW": "start", "WLX": "start", "XX": "start", "Xjunk": "start", "junk": "start", "E": "start",
		"Emount /\x001\x00operation not permitted": "mount /",
		"LEpivot\x000\x00it worked":                "pivot",
		"LXEexec /agent/x\x002\x00no such file":    "exec /agent/x",
	} {
		require.ErrorAs(t, (&talk{said: []byte(said)}).outcome(), &failed, said)
		require.Equal(t, step, failed.Step, said)
	}
	require.ErrorIs(t, (&talk{said: []byte("XEexec\x002\x00no such file")}).outcome(), unix.ENOENT)
}

func TestAFailureThatMayPassIsNotKept(t *testing.T) {
	calls := 0
	get := once(func() (int, error) {
		if calls++; calls == 1 {
			return 0, unix.EMFILE
		}
		return calls, nil
	})
	_, err := get()
	require.ErrorIs(t, err, unix.EMFILE)
	for range 2 {
		v, err := get()
		require.NoError(t, err)
		require.Equal(t, 2, v)
	}
	require.True(t, passing(&StartError{"open the output", unix.EMFILE}))
	require.True(t, passing(&StartError{"start the child", unix.EAGAIN}))
	require.False(t, passing(&StartError{"mount /", unix.EPERM}))
	require.False(t, passing(nil))
}
