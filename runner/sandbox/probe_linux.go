//go:build amd64 || arm64

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"parlour/runner/policy"
)

// measure builds the box of a small read-only run with a model, whose plan ends
// in a report.
func (e *Engine) measure(ctx context.Context) policy.Capabilities {
	// A plain child can be held to its open files on every Linux.
	none := policy.Capabilities{OpenFiles: policy.Enforced}
	f, err := e.facts()
	if err == nil {
		err = e.rehearse(ctx, f.landlock)
	}
	if err == nil {
		return full(f.landlock)
	}
	var failed *StartError
	if !errors.As(err, &failed) {
		failed = &StartError{"look at the host", err}
	}
	none.Why = fmt.Sprintf("no sandbox can be built here: %s: %v", failed.Step, failed.Err)
	none.Cure = cure(failed.Step, failed.Err, hints())
	return none
}

// rehearse makes one box and waits for its end.
func (e *Engine) rehearse(ctx context.Context, landlock int) error {
	wish := policy.Wish{Mode: policy.ReadOnly, Network: policy.ModelOnly, Limits: policy.Limits{
		Wall: probeTime, Memory: 1 << 30, Disk: 1 << 20, Files: 64, Processes: 64, OpenFiles: 64, Answer: 1 << 10,
	}}
	eff, err := policy.Narrow(wish, full(landlock))
	if err != nil {
		return err
	}
	run, err := e.enter(ctx, job{eff: eff, report: true, cmd: Command{Name: "probe", Path: e.cfg.Self, Env: []string{}}})
	if err != nil {
		return err
	}
	exit, err := run.Wait()
	if err == nil && exit.Code != 0 {
		err = fmt.Errorf("the child ended with status %d", exit.Code)
	}
	if err != nil {
		return &StartError{"end the rehearsal", err}
	}
	if run.Listener() == nil {
		return &StartError{"receive the listener", errors.New("the child passed none")}
	}
	return nil
}

// host is what a cure depends on.
type host struct {
	root      bool
	container bool
	apparmor  string // kernel.apparmor_restrict_unprivileged_userns
	clone     string // kernel.unprivileged_userns_clone
	most      string // user.max_user_namespaces
}

func hints() host {
	read := func(name string) string {
		text, _ := os.ReadFile("/proc/sys/" + name) // a kernel without the setting has no limit of this kind
		return strings.TrimSpace(string(text))
	}
	_, docker := os.Stat("/.dockerenv")
	_, podman := os.Stat("/run/.containerenv")
	return host{
		root: os.Geteuid() == 0, container: docker == nil || podman == nil,
		apparmor: read("kernel/apparmor_restrict_unprivileged_userns"),
		clone:    read("kernel/unprivileged_userns_clone"),
		most:     read("user/max_user_namespaces"),
	}
}

// cure says what the operator can do about a failed step. It is pure; guarded by
// probe_test.go.
func cure(step string, err error, h host) string {
	denied := errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) || errors.Is(err, unix.ENOSPC)
	switch {
	case errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled):
		return "the measurement took longer than " + time.Duration(probeTime).String() + " or was ended: try again with less load"
	case errors.Is(err, unix.ENOSYS):
		return "use Linux 5.12 or newer, built with seccomp, and no outer filter that hides its calls"
	case strings.HasPrefix(step, "check the program"):
		return "make the bot's program readable and executable for everybody (chmod a+rx)"
	case strings.HasPrefix(step, "take a user id") || strings.HasPrefix(step, "look at the host"):
		return "mount /proc and leave a range of user ids free in /etc/passwd and /etc/subuid, or run the bot as a normal user"
	case strings.HasPrefix(step, "mount proc") && denied:
		return "the container masks /proc: start it with --security-opt systempaths=unconfined (docker) or --security-opt unmask=ALL (podman)"
	case denied:
		return cureDenied(h)
	}
	return "report this step; until it works here only the built-in documents can answer"
}

func cureDenied(h host) string {
	switch {
	case h.apparmor == "1" && !h.root:
		return "allow user namespaces: sysctl -w kernel.apparmor_restrict_unprivileged_userns=0, or an AppArmor profile for the bot with the rule userns"
	case h.clone == "0" && !h.root:
		return "allow user namespaces: sysctl -w kernel.unprivileged_userns_clone=1"
	case h.most == "0" && !h.root:
		return "allow user namespaces: sysctl -w user.max_user_namespaces=10000"
	case h.container:
		return "the container forbids namespaces: start it with --cap-add SYS_ADMIN --cap-add NET_ADMIN --security-opt seccomp=unconfined --security-opt apparmor=unconfined --security-opt systempaths=unconfined, or run the bot on the host"
	case h.root:
		return "give the bot CAP_SYS_ADMIN, CAP_NET_ADMIN, CAP_SETUID, CAP_SETGID, CAP_SETPCAP and CAP_CHOWN, or run it as a normal user on a host that permits user namespaces"
	}
	return "run the bot on a host that permits user namespaces, or as root"
}
