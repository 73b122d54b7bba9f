//go:build amd64 || arm64

package probe

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"parlour/runner/policy"
)

// deviceKinds are devices that hosts may have, with what they would give.
func deviceKinds() []struct{ name, what string } {
	return []struct{ name, what string }{
		{"disk", "Open a disk of the host."},
		{"memory", "Open the host's physical memory or ports."},
		{"log", "Open the kernel's log device."},
		{"fuse", "Open /dev/fuse, which makes file systems."},
		{"kvm", "Open /dev/kvm, which makes virtual machines."},
		{"tunnel", "Open /dev/net/tun, which makes network interfaces."},
		{"loop", "Open /dev/loop-control, which turns files into disks."},
		{"vsock", "Open /dev/vsock, which reaches the machine below."},
		{"faults", "Open /dev/userfaultfd."},
		{"latency", "Open /dev/cpu_dma_latency, which keeps the processors awake."},
		{"screen", "Open the text screen of the host's console."},
	}
}

func deviceTrials() []trial {
	list := []trial{}
	for _, k := range deviceKinds() {
		list = append(list, trial{Attempt: named(k.name, k.what), target: "device " + k.name, try: func(p *intruder) said {
			return p.open(p.t.Devices[k.name], unix.O_RDONLY)
		}})
	}
	return append(list, trial{
		Attempt: named("make-node", "Make a device node of the host's memory or disk in the scratch folder and open it."),
		try: func(p *intruder) said {
			path := p.scratch("node")
			defer func() { _ = os.Remove(path) }()
			for _, d := range [][2]uint32{{unix.S_IFCHR, 1<<8 | 1}, {unix.S_IFBLK, 7 << 8}} {
				if err := unix.Mknod(path, d[0]|0o600, int(d[1])); err != nil {
					return refused(err)
				}
				if s := p.open(path, unix.O_RDONLY); s.Did {
					return s
				}
				_ = os.Remove(path)
			}
			return said{Why: "the node cannot be opened"}
		},
	})
}

func procTrials() []trial {
	victim := func(name string) func(*intruder) said {
		return func(p *intruder) said {
			return p.readAny(fmt.Sprintf("/proc/%d/%s", p.t.Victim, name), fmt.Sprintf("/proc/%d/%s", p.t.Bot, name))
		}
	}
	clauses := policy.Clauses()
	processes := clauses[2:]
	return []trial{
		opens("core-pattern", "Open for writing the kernel setting that starts a program of the host at a crash.", unix.O_WRONLY, "/proc/sys/kernel/core_pattern"),
		opens("settings", "Open other kernel settings for writing.", unix.O_WRONLY, "/proc/sys/kernel/modprobe", "/proc/sys/kernel/hotplug", "/proc/sys/vm/overcommit_memory",
			"/proc/sys/kernel/hostname", "/proc/sys/net/ipv4/ip_forward", "/proc/sys/fs/binfmt_misc/register", "/proc/sys/kernel/pid_max"),
		opens("sysrq", "Open the trigger that restarts the host.", unix.O_WRONLY, "/proc/sysrq-trigger"),
		opens("memory-image", "Open the image of the kernel's memory.", unix.O_RDONLY, "/proc/kcore"),
		{Attempt: named("kernel-addresses", "Read addresses of the kernel."), paths: []string{"/proc/kallsyms"}, try: func(p *intruder) said { return p.read("/proc/kallsyms") }, judge: showsAddresses},
		{Attempt: named("boot-arguments", "Read the host's boot arguments."), target: "bootline", try: func(p *intruder) said { return p.read("/proc/cmdline") },
			judge: func(s *stage, a said) (bool, string) {
				return strings.Contains(a.Got, s.bootLine), "the boot arguments are visible"
			}},
		{Attempt: named("mount-sources", "Learn from the list of mounts where the host's files lie."), target: "files", try: func(p *intruder) said {
			return p.readAny("/proc/self/mountinfo", "/proc/self/mounts", "/proc/1/mountinfo", "/proc/thread-self/mountinfo")
		}, judge: showsSources},
		{Attempt: named("own-path", "Learn from the run's own program where it lies on the host."), target: "files", tells: true, try: func(*intruder) said {
			path, err := os.Readlink("/proc/self/exe")
			if err != nil {
				return refused(err)
			}
			return got(path)
		}, judge: func(s *stage, a said) (bool, string) {
			return strings.Contains(a.Got, s.self), "the host's path is visible"
		}},
		{Attempt: named("keys", "Read the list of keys of the bot's user."), target: "key", try: func(p *intruder) said { return p.read("/proc/keys") },
			judge: func(s *stage, a said) (bool, string) {
				return strings.Contains(a.Got, s.KeyName), "the bot's key is listed"
			}},
		{Attempt: named("sockets", "Read which sockets the host has open."), target: "abstract", try: func(p *intruder) said {
			return p.readAny("/proc/net/unix", "/proc/self/net/unix", "/proc/1/net/unix")
		}, judge: func(s *stage, a said) (bool, string) {
			return strings.Contains(a.Got, s.Abstract), "the host's sockets are listed"
		}},
		{Attempt: named("shared-memory", "Read which shared memory the host has."), target: "shared", try: func(p *intruder) said { return p.read("/proc/sysvipc/shm") },
			judge: func(s *stage, a said) (bool, string) {
				return slicesField(a.Got, 1, strconv.Itoa(s.Shared)), "the host's shared memory is listed"
			}},
		{Attempt: Attempt{Name: "see", What: "See a process of the host in /proc.", Needs: processes}, target: "victim", try: everyCommand,
			judge: func(s *stage, a said) (bool, string) {
				return strings.Contains(a.Got, partVictim+"\x00"+s.Mark), "a process of the host is visible"
			}},
		{Attempt: Attempt{Name: "environment", What: "Read the environment of a process of the host.", Needs: clauses}, target: "victim", try: victim("environ")},
		{Attempt: Attempt{Name: "memory-map", What: "Read the memory map of a process of the host.", Needs: processes}, target: "victim", try: victim("maps"),
			judge: func(s *stage, a said) (bool, string) {
				return strings.Contains(a.Got, s.self), "the map names the host's program"
			}},
		{Attempt: Attempt{Name: "memory", What: "Open the memory of a process of the host.", Needs: processes}, target: "victim", try: func(p *intruder) said {
			return p.openAny(unix.O_RDWR, fmt.Sprintf("/proc/%d/mem", p.t.Victim), fmt.Sprintf("/proc/%d/mem", p.t.Bot))
		}},
		{Attempt: Attempt{Name: "id-map", What: "Write the run's own map of user ids.", Needs: clauses}, try: func(*intruder) said {
			return refused(os.WriteFile("/proc/self/uid_map", []byte("0 0 1\n"), 0))
		}},
		{Attempt: Attempt{Name: "spare-me", What: "Ask to be the last that is ended when memory runs out.", Needs: processes}, try: func(*intruder) said {
			return refused(os.WriteFile("/proc/self/oom_score_adj", []byte("-900"), 0))
		}},
	}
}

func sysTrials() []trial {
	return []trial{
		{Attempt: named("interfaces", "Read from /sys which network interfaces the host has."), target: "interfaces", try: func(p *intruder) said { return p.list("/sys/class/net") },
			judge: showsInterfaces},
		opens("settings", "Open a setting in /sys for writing.", unix.O_WRONLY, "/sys/power/state", "/sys/kernel/mm/transparent_hugepage/enabled", "/sys/kernel/uevent_helper",
			"/sys/bus/pci/rescan", "/sys/kernel/profiling", "/sys/module/printk/parameters/time"),
		opens("hardware", "Read what hardware the host has.", unix.O_RDONLY, "/sys/class/dmi/id/product_name", "/sys/devices/system/cpu/online", "/sys/block", "/sys/firmware", "/sys/hypervisor"),
		opens("tracing", "Open the kernel's tracing or debugging files.", unix.O_RDONLY, "/sys/kernel/tracing/trace", "/sys/kernel/debug/tracing/trace", "/sys/kernel/debug/sleep_time", "/sys/kernel/security/lsm"),
	}
}

func cgroupTrials() []trial {
	below := func(p *intruder, names ...string) []string {
		paths := []string{}
		for _, n := range names {
			paths = append(paths, filepath.Join(p.t.Cgroup, n))
		}
		return paths
	}
	return []trial{
		{Attempt: named("join", "Move itself into a control group of the host."), target: "cgroup", try: func(p *intruder) said {
			return p.openAny(unix.O_WRONLY, below(p, "cgroup.procs", "tasks")...)
		}},
		{Attempt: named("make", "Make a control group."), target: "cgroup", try: func(p *intruder) said {
			path := filepath.Join(p.t.Cgroup, p.mark+"-in")
			err := os.Mkdir(path, 0o755)
			if err == nil {
				_ = os.Remove(path)
			}
			return refused(err)
		}},
		{Attempt: named("release-agent", "Open the setting that names a program for the host to start."), target: "cgroup", try: func(p *intruder) said {
			return p.openAny(unix.O_WRONLY, below(p, "release_agent", "notify_on_release", "cgroup.kill", "cgroup.freeze")...)
		}},
		{Attempt: named("mount", "Mount the control groups anew."), try: func(p *intruder) said { return mountNew(p, "cgroup2") }},
		{Attempt: named("where", "Learn the host's name of the run's control group."), target: "cgrouppath", try: func(p *intruder) said { return p.read("/proc/self/cgroup") },
			judge: func(s *stage, a said) (bool, string) {
				return strings.Contains(a.Got, s.groupPath), "the host's control group is named"
			}},
	}
}

func (p *intruder) openAny(flags int, paths ...string) said {
	last := said{Why: "there is none"}
	for _, path := range paths {
		if last = p.open(path, flags); last.Did {
			return did("%s could be opened", path)
		}
	}
	return last
}

// everyCommand gives the arguments of every process that is visible.
func everyCommand(p *intruder) said {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return refused(err)
	}
	var all strings.Builder
	for _, e := range entries {
		if _, err := strconv.Atoi(e.Name()); err != nil {
			continue
		}
		text, _ := readStart("/proc/" + e.Name() + "/cmdline")
		if strings.Contains(text, p.mark) && !strings.Contains(text, partTry) {
			fmt.Fprintf(&all, "%s\n", text)
		}
	}
	return got(all.String())
}

// slicesField says whether a table has a row with this word in the column.
func slicesField(table string, column int, word string) bool {
	for line := range strings.Lines(table) {
		if f := strings.Fields(line); len(f) > column && f[column] == word {
			return true
		}
	}
	return false
}
