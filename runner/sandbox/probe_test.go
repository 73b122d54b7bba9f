//go:build linux && (amd64 || arm64)

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
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
		require.Contains(t, cure(c.step, c.err, c.host), c.want, "%s: %v", c.step, c.err)
	}
}

func TestTheChildsTalkIsUnderstood(t *testing.T) {
	require.NoError(t, outcome([]byte("X")))
	require.NoError(t, outcome([]byte("LX")))
	var failed *StartError
	for said, step := range map[string]string{
		"": "start", "L": "start", "XX": "start", "Xjunk": "start", "junk": "start", "E": "start",
		"Emount /\x001\x00operation not permitted": "mount /",
		"LEpivot\x000\x00it worked":                "pivot",
		"LXEexec /agent/x\x002\x00no such file":    "exec /agent/x",
	} {
		require.ErrorAs(t, outcome([]byte(said)), &failed, said)
		require.Equal(t, step, failed.Step, said)
	}
	require.ErrorIs(t, outcome([]byte("XEexec\x002\x00no such file")), unix.ENOENT)
}
