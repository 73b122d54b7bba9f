//go:build linux

package attacks_test

import (
	"crypto/rand"
	"encoding/hex"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"parlour/bridge/ask"
	"parlour/tests/house"
)

// TestNothingPlantedIsFound plants sentinels on the operator's side and lets the
// same program hunt for them twice: run plainly it finds all, so the hunt is
// real; run as a guest's agent it finds none.
func TestNothingPlantedIsFound(t *testing.T) {
	p := plant(t)
	require.GreaterOrEqual(t, len(p.all), 20)

	plain := exec.Command(p.program, slices.Concat(p.hints, []string{"--"})...)
	plain.Args[0] = "hunter"
	plain.Env, plain.Dir, plain.ExtraFiles = p.env, p.cwd, p.descriptors(t)
	found := lines(house.Run(t, plain).Out)
	require.ElementsMatch(t, p.all, found, "the hunt itself must find everything")

	boxed := p.house.Command("ask", "--json", "--manifests", p.house.Path("manifests"), "--state", p.state, "--", "find it")
	boxed.Env, boxed.Dir, boxed.ExtraFiles = p.env, p.cwd, p.descriptors(t)
	result := house.Run(t, boxed)
	ended := result.Ended(t)
	require.Equal(t, ask.Answered, ended.Outcome.Kind, "%+v %s", ended, result.Err)
	require.Equal(t, "hunted", ended.Outcome.Text, "nothing was found")
	require.Equal(t, "full", ended.Receipt.Rung)
}

func lines(out string) []string {
	found := strings.Split(strings.TrimSpace(out), "\n")
	return found[1:] // the first says that the hunt took place
}

// planted is a house full of sentinels.
type planted struct {
	house   *house.House
	all     []string
	env     []string
	cwd     string
	state   string
	program string
	hints   []string
	open    string // a file that is handed down open
}

func (p *planted) sentinel() string {
	random := make([]byte, 8)
	_, _ = rand.Read(random)
	s := "SENTINEL-" + hex.EncodeToString(random)
	p.all = append(p.all, s)
	return s
}

// descriptors gives two that a careless parent leaves open: a file and a pipe.
func (p *planted) descriptors(t *testing.T) []*os.File {
	file, err := os.Open(p.open)
	require.NoError(t, err)
	r, w, err := os.Pipe()
	require.NoError(t, err)
	_, err = w.WriteString(p.all[1] + "\n")
	require.NoError(t, err)
	require.NoError(t, w.Close())
	t.Cleanup(func() { _ = file.Close(); _ = r.Close() })
	return []*os.File{file, r}
}

func plant(t *testing.T) *planted {
	h := house.New(t)
	p := &planted{house: h}
	p.open = h.Write("open.txt", p.sentinel())
	_ = p.sentinel() // all[1]: what the pipe holds
	p.files(t)
	p.processes(t)
	p.sockets(t)
	p.install(t)
	return p
}

func (p *planted) files(t *testing.T) {
	h := p.house
	for _, name := range []string{
		"home/.claude/CLAUDE.md", "home/.claude.json", "home/.codex/AGENTS.md", "home/.agents/skills/x/SKILL.md", "home/.gitconfig",
		"home/.ssh/id_test", "home/.config/gh/hosts.yml", "work/project/AGENTS.md", "work/.env", "config.yaml",
	} {
		path := h.Write(name, "text "+p.sentinel()+"\n")
		p.hints = append(p.hints, "file="+path)
	}
	p.cwd = h.Path("work", "project")
	p.state = h.Path("state", "house")
	// A question of somebody else, as the journal keeps it.
	asked := h.Bot("ask", "--state", p.state, "what about "+p.sentinel()+"?")
	require.Equal(t, 0, asked.Code, asked.Err)
	p.hints = append(p.hints, "tree="+p.state)

	shm, err := os.CreateTemp("/dev/shm", "parlour-test-")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.Remove(shm.Name()); _ = shm.Close() })
	_, err = shm.WriteString(p.sentinel())
	require.NoError(t, err)
	p.hints = append(p.hints, "file="+shm.Name())
}

// processes plants in the bot's environment, and in the environment and the
// arguments of another process of the operator.
func (p *planted) processes(t *testing.T) {
	p.env = append(slices.Clone(p.house.Env), "DISCORD_TOKEN="+p.sentinel())
	other := exec.Command("sleep", "600")
	other.Args[0] = "sleep-" + p.sentinel()
	other.Path = "/bin/sleep"
	other.Env = []string{"ANTHROPIC_API_KEY=" + p.sentinel()}
	require.NoError(t, other.Start())
	t.Cleanup(func() { _ = other.Process.Kill(); _ = other.Wait() })
}

func (p *planted) sockets(t *testing.T) {
	abstract := "@parlour-test-" + filepath.Base(p.house.Dir) + hex.EncodeToString([]byte(t.TempDir()))[:8]
	for _, s := range []struct{ network, address string }{
		{"tcp", "127.0.0.1:0"}, {"tcp", "127.0.0.2:0"}, {"tcp", "[::1]:0"}, {"unix", p.house.Path("s.sock")}, {"unix", abstract},
	} {
		l, err := net.Listen(s.network, s.address)
		if err != nil && s.address == "[::1]:0" {
			continue // a host without IPv6
		}
		require.NoError(t, err)
		t.Cleanup(func() { _ = l.Close() })
		p.hints = append(p.hints, s.network+"="+l.Addr().String())
		go serve(l, p.sentinel())
	}
	udp, err := net.ListenPacket("udp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = udp.Close() })
	p.hints = append(p.hints, "udp="+udp.LocalAddr().String())
	answer := p.sentinel()
	go func() {
		buf := make([]byte, 64)
		for {
			_, from, err := udp.ReadFrom(buf)
			if err != nil {
				return
			}
			_, _ = udp.WriteTo([]byte(answer+"\n"), from)
		}
	}()
}

func serve(l net.Listener, line string) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		_, _ = conn.Write([]byte(line + "\n"))
		_ = conn.Close()
	}
}

// install puts the hunter under a path that is a sentinel itself.
func (p *planted) install(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	p.program = p.house.Link("bin-"+p.sentinel()+"/hunter", self)
	p.house.Install(house.StandIn{Name: "hunter", Binary: p.program, Args: p.hints})
}
