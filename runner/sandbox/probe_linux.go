//go:build amd64 || arm64

package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"parlour/runner/policy"
)

// measure builds the sandbox of a small read-only run on the rung, whose plan
// ends in a report.
func (e *Engine) measure(ctx context.Context, rung policy.Rung) measurement {
	f, err := e.facts()
	if err != nil {
		err = &StartError{"look at the host", err}
	} else {
		err = possible(f, rung)
	}
	caps := levels(rung, f.landlock, f.root)
	if grouped := caps; err == nil && rung == policy.RungFull && len(f.groups.places()) > 0 {
		grouped.Memory = policy.Enforced // for the run as a whole
		if f.groups.share(os.Getpid()) == nil && e.rehearse(ctx, grouped) == nil {
			return measurement{caps: grouped}
		}
	}
	if err == nil {
		err = e.rehearse(ctx, caps)
	}
	if err == nil {
		return measurement{caps: caps}
	}
	var failed *StartError
	if !errors.As(err, &failed) {
		failed = &StartError{"look at the host", err}
	}
	return measurement{passes: passing(err), absent: &policy.Absence{
		Rung: rung, Why: fmt.Sprintf("%s: %v", failed.Step, failed.Err), Cure: cure(rung, failed.Step, failed.Err, hints()),
	}}
}

// passing says whether an error is about what the bot has right now.
func passing(err error) bool {
	for _, e := range []error{unix.EMFILE, unix.ENFILE, unix.EAGAIN, unix.ENOMEM} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// possible says what a rung lacks before it is tried.
func possible(f facts, rung policy.Rung) error {
	switch {
	case rung == policy.RungBwrap && f.maker == "":
		return &StartError{stepMaker, errors.New(f.noMaker)}
	case rung == policy.RungLandlock && f.landlock == 0:
		return &StartError{stepLandlock, unix.ENOSYS}
	}
	return nil
}

// rehearse starts one run and waits for its end. Where the run has no network of
// its own it has none here: the address of the model may be in use.
func (e *Engine) rehearse(ctx context.Context, caps policy.Capabilities) error {
	wish := policy.Wish{Mode: policy.ReadOnly, Require: []policy.Clause{policy.Filesystem}, Limits: policy.Limits{
		Wall: probeTime, Memory: 1 << 30, Disk: 1 << 20, Files: 64, Processes: 64, OpenFiles: 64, Answer: 1 << 10,
	}}
	if caps.Rung != policy.RungLandlock {
		wish.Network = policy.ModelOnly
	}
	eff, err := policy.Narrow(wish, caps)
	if err != nil {
		return err
	}
	said := &bytes.Buffer{}
	run, err := e.enter(ctx, job{eff: eff, report: true, cmd: Command{Name: "probe", Path: e.cfg.Self, Env: []string{}, Stderr: said}})
	if err != nil {
		return complaint(caps.Rung, said.String(), err)
	}
	exit, err := run.Wait()
	if err == nil && exit.Code != 0 {
		err = fmt.Errorf("the child ended with status %d", exit.Code)
	}
	if err != nil {
		return &StartError{"end the rehearsal", err}
	}
	if wish.Network == policy.ModelOnly && run.Listener() == nil {
		return &StartError{"receive the listener", errors.New("the child passed none")}
	}
	return nil
}

// complaint gives bubblewrap's own words where it failed before the child began.
func complaint(rung policy.Rung, said string, err error) error {
	line, _, _ := strings.Cut(strings.TrimSpace(said), "\n")
	words, fromMaker := strings.CutPrefix(line, "bwrap: ")
	if rung != policy.RungBwrap || !fromMaker {
		return err
	}
	return &StartError{stepMake, errors.New(words)}
}

// The steps that are not the child's.
const (
	stepMaker    = "look for bubblewrap"
	stepMake     = "let bubblewrap make the box"
	stepLandlock = "look for Landlock"
)

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
func cure(rung policy.Rung, step string, err error, h host) string {
	denied := errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) || errors.Is(err, unix.ENOSPC)
	switch {
	case errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled):
		return "the measurement took longer than " + time.Duration(probeTime).String() + " or was ended: try again with less load"
	case step == stepMaker && h.root:
		return "run the bot as a normal user, or make the full rung possible"
	case step == stepMaker:
		return "install bubblewrap as a package of the system"
	case step == stepMake:
		return cureDenied(h)
	case step == stepLandlock:
		return "use a kernel with Landlock, and a container runtime that does not hide its calls"
	case rung == policy.RungLandlock && (strings.HasPrefix(step, "make folder") || strings.HasPrefix(step, "enter folder")):
		return "let TMPDIR name a folder that the bot can write and everybody can enter"
	case rung == policy.RungLandlock && strings.HasPrefix(step, "change user"):
		return "give the bot CAP_SETUID, CAP_SETGID, CAP_SETPCAP and CAP_CHOWN, or run it as a normal user"
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
