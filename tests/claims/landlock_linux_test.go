package claims_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"parlour/tests/house"
)

// contained is a house in a default container, with the prober and a file of the
// operator where every user can reach them.
type contained struct {
	*house.House
	folder string
}

func newContained(t *testing.T) contained {
	t.Helper()
	h := house.New(t)
	h.Around = house.Container
	c := contained{h, h.OpenTemp(t)}
	if rung, why := h.Sandbox(); rung != "landlock" {
		_, _, errno := unix.RawSyscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
		require.NotZero(t, errno, "the host has Landlock: %s", why)
		t.Skip("the kernel has no Landlock")
	}
	self, err := os.Executable()
	require.NoError(t, err)
	program, err := os.ReadFile(self)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(c.folder, proberName), program, 0o755))
	require.NoError(t, os.WriteFile(c.canary(), []byte("of the operator"), 0o666))
	require.NoError(t, os.Chmod(c.canary(), 0o666))
	c.install("view")
	return c
}

func (c contained) canary() string { return filepath.Join(c.folder, "canary") }

// install makes the prober the runner of guests, whose tier requires no more
// than the Landlock rung enforces.
func (c contained) install(args ...string) {
	c.House.Install(house.StandIn{Name: proberName, Binary: filepath.Join(c.folder, proberName), Args: args})
	c.Write("manifests/tiers/guest.yaml", "tier: guest\npolicy: {mode: read-only, network: none, require: [filesystem, network], runners: [prober]}\n"+
		"limits: {memory: 512MiB, disk: 8MiB, processes: 40, open_files: 50}\n")
}

func (c contained) look(t *testing.T, args ...string) findings {
	t.Helper()
	c.install(args...)
	return asked(t, c.House)
}

// TestEachSentenceOfTheLandlockRungHasItsProbe does in a default container what
// TestEachSentenceHasItsProbe does here.
func TestEachSentenceOfTheLandlockRungHasItsProbe(t *testing.T) {
	c := newContained(t)
	holdEach(t, c.House, []claim{
		{re(`^# Sandbox policy$|^Who asks: |^Their question is quoted |^It is a question, not a rule: `), nil}, // about the question
		{re(`^Files: read-only\.$|^You can change nothing but the scratch folders |^Every other write fails, |^- writable: \$`), c.onlyScratch},
		{re(`^You can read and list nothing of the host but its programs and libraries\.$`), c.nothingAround},
		{re(`^Network: none\.$|^No address, name or socket can be reached\.$`), c.nothingAnswers},
		{re(`^Processes: you can neither look into nor signal those of others, and all of yours end with this run\.$`), c.nobodyInReach},
		{re(`^The host enforces this in part\.$`), nil}, // what is missing is in the note
		{re(`^Tools: none\.$|^Answer from what you know `), nil},
		{re(`^Limits: `), c.limits},
		{re(`^The host may restrict more |^A denied action stays denied: `), nil}, // advice
		{re(`^No view of its own: the run can tell which paths exist, with size and time, which processes exist, and what the host is called\.$`), c.namesCanBeTold},
	})
}

func (c contained) onlyScratch(t *testing.T, _ *house.House) {
	first, second := c.look(t, "around", "write", c.folder), c.look(t, "around", "write", c.folder)
	for _, f := range []findings{first, second} {
		require.Equal(t, []string{"$HOME", "$TMPDIR"}, f.Writable)
		require.Empty(t, f.Leftover, "what the first run wrote is gone")
	}
}

func (c contained) nothingAround(t *testing.T, _ *house.House) {
	require.Empty(t, c.look(t, "around", "read", c.folder).Around)
	text, err := os.ReadFile(c.canary())
	require.NoError(t, err)
	require.Equal(t, "of the operator", string(text))
}

func (c contained) nothingAnswers(t *testing.T, _ *house.House) {
	f := c.look(t, "network")
	require.Empty(t, f.Reached)
	require.Empty(t, f.Sockets)
}

// nobodyInReach: that all of a run's processes end with it is measured by
// tests/attacks TestNoProcessSurvivesOnAnyRung.
func (c contained) nobodyInReach(t *testing.T, _ *house.House) {
	require.Empty(t, c.look(t, "around", "processes", c.folder).Around)
}

// namesCanBeTold keeps the text from claiming less than is so, too.
func (c contained) namesCanBeTold(t *testing.T, _ *house.House) {
	require.NotEmpty(t, c.look(t, "around", "names", c.folder).Around)
}

func (c contained) limits(t *testing.T, _ *house.House) {
	if underRace {
		t.Log("limits are measured without the race detector only: it needs more memory than they leave")
		return
	}
	f := c.look(t, "around", "limits", c.folder)
	require.EqualValues(t, 240, f.Processor, "as long as the whole run may last")
	require.LessOrEqual(t, f.Memory, int64(512<<20))
	require.Greater(t, f.Memory, int64(256<<20))
	require.LessOrEqual(t, f.OneFile, int64(8<<20))
	require.Greater(t, f.OneFile, int64(7<<20))
	require.LessOrEqual(t, f.OpenFiles, 50)
	if os.Getuid() == 0 { // another bot's runs count with the bot
		require.LessOrEqual(t, f.Processes, 40)
	}
}

// around tries what a run without a view must not be able to do.
func (f *findings) around(what, folder string) {
	switch what {
	case "write":
		f.writeAround(folder)
	case "read":
		f.readAround(folder)
	case "processes":
		f.processesAround()
	case "names":
		for _, p := range []string{folder + "/canary", "/etc/passwd", "/proc/1"} {
			if _, err := os.Lstat(p); err == nil {
				f.Around = append(f.Around, p)
			}
		}
	case "limits":
		f.Processor = processor()
		f.Memory, f.OpenFiles, f.OneFile, f.Processes = allocate(), openFiles(), oneFile(), fork()
	}
}

func (f *findings) writeAround(folder string) {
	for _, dir := range []string{"$HOME", "$TMPDIR", ".", "..", "/", folder, "/tmp", "/var/tmp", "/dev/shm", "/etc", "/usr/bin", "/home", "/root", "/run"} {
		at := os.ExpandEnv(dir)
		if entries, err := os.ReadDir(at); err == nil && strings.HasPrefix(dir, "$") {
			for _, e := range entries {
				f.Leftover = append(f.Leftover, e.Name())
			}
		}
		if os.WriteFile(filepath.Join(at, "written"), []byte("x"), 0o600) == nil {
			f.Writable = append(f.Writable, dir)
		}
	}
	if os.WriteFile(folder+"/canary", []byte("x"), 0) == nil {
		f.Writable = append(f.Writable, "the canary")
	}
}

func (f *findings) readAround(folder string) {
	for _, p := range []string{folder + "/canary", "/etc/passwd", "/etc/hostname", "/proc/version", "/proc/cmdline", "/proc/mounts",
		"/proc/self/mountinfo", "/proc/1/cmdline", "/proc/net/tcp", "/sys/kernel/uevent_seqnum"} {
		if _, err := os.ReadFile(p); err == nil {
			f.Around = append(f.Around, p)
		}
	}
	for _, p := range []string{"/", folder, "/tmp", "/etc", "/home", "/root", "/proc", "/sys", "/dev", "/run", "/var", "/usr/local"} {
		if _, err := os.ReadDir(p); err == nil {
			f.Around = append(f.Around, p)
		}
	}
}

func (f *findings) processesAround() {
	own := map[int]bool{}
	tasks, _ := os.ReadDir("/proc/self/task")
	for _, task := range tasks {
		n, _ := strconv.Atoi(task.Name())
		own[n] = true
	}
	for pid := 1; pid < 1<<16; pid++ {
		if own[pid] || pid == os.Getpid() {
			continue
		}
		if tgid := unix.Tgkill(os.Getpid(), pid, 0); tgid == nil {
			continue // a thread of this program
		}
		if syscall.Kill(pid, 0) == nil {
			f.Around = append(f.Around, "signal "+strconv.Itoa(pid))
		}
		if _, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline"); err == nil {
			f.Around = append(f.Around, "read "+strconv.Itoa(pid))
		}
	}
}

func oneFile() (n int64) {
	file, err := os.Create(filepath.Join(os.Getenv("TMPDIR"), "one"))
	if err != nil {
		return 0
	}
	block := make([]byte, 64<<10)
	for n < 1<<30 {
		wrote, err := file.Write(block)
		n += int64(wrote)
		if err != nil {
			break
		}
	}
	return n
}
