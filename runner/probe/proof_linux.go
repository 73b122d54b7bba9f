//go:build amd64 || arm64

package probe

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// random gives a word that nobody guesses.
func random() string {
	b := make([]byte, 16)
	_, _ = rand.Read(b) // never fails, by its contract
	return hex.EncodeToString(b)
}

// tag gives a word that only who has the key can say, another for each matter:
// whoever hears one learns no other.
func tag(key, matter string) string {
	m := hmac.New(sha256.New, []byte(key))
	_, _ = m.Write([]byte(matter)) // never fails, by its contract
	return hex.EncodeToString(m.Sum(nil)[:16])
}

// sign gives what the run says to a listener, so that nobody else can say it.
func (p *intruder) sign(attempt string) string { return tag(p.t.Token, attempt) + " " + attempt }

// renew gives the next run a secret of its own, and forgets what was heard.
func (s *stage) renew() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Token = random()
	clear(s.hits)
}

// hit keeps what a listener was told, if the run of now said it. Other users
// of the host can reach the listeners too. Guarded by tests/attacks
// TestAnotherUserCannotMakeTheBatteryLie.
func (s *stage) hit(line string) {
	said, attempt, _ := strings.Cut(strings.TrimSpace(line), " ")
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.Token != "" && hmac.Equal([]byte(said), []byte(tag(s.Token, attempt))) {
		s.hits[attempt] = true
	}
}

func (s *stage) heard(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hits[name]
}

// marker is the variable by which a process shows that it is of the run. The
// environment of a process is for its own user alone, unlike its arguments.
func marker(token string) string { return "PARLOUR_PROBE_RUN=" + tag(token, partHold) }

// owner is whose a process is.
type owner int8

const (
	foreign owner = iota // nobody's of the run
	unknown              // it looks like one of the run, and cannot be asked
	ours                 // it has the run's secret
)

// ownerOf asks a process whose it is. The words in its arguments are known to
// everybody, so they make it a candidate and prove nothing.
func (s *stage) ownerOf(pid int) owner {
	at := filepath.Join("/proc", strconv.Itoa(pid))
	text, _ := os.ReadFile(filepath.Join(at, "cmdline"))
	if !strings.Contains(string(text), "\x00"+partHold+"\x00"+s.Mark+"\x00") {
		return foreign
	}
	pairs, err := os.ReadFile(filepath.Join(at, "environ"))
	if err == nil {
		for pair := range strings.SplitSeq(string(pairs), "\x00") {
			if hmac.Equal([]byte(pair), []byte(marker(s.Token))) {
				return ours
			}
		}
		return foreign
	}
	// A bot that is not root has runs of its own user alone.
	if user, there := userOf(at); there && (os.Geteuid() == 0 || user == os.Geteuid()) {
		return unknown
	}
	return foreign
}

// userOf gives the real user of a process, and whether it is still there.
func userOf(at string) (int, bool) {
	text, _ := os.ReadFile(filepath.Join(at, "status"))
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == "Uid:" {
			user, err := strconv.Atoi(f[1])
			return user, err == nil
		}
	}
	return 0, false
}

// endAll ends what should not live, and gives how many processes of the run
// there were, and how many of which nobody can tell.
func (s *stage) endAll() (living, unsure int) {
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		// Opened before it is asked: what is ended is what was asked, even
		// where the number goes to another process meanwhile.
		fd, err := unix.PidfdOpen(pid, 0)
		switch s.ownerOf(pid) {
		case ours:
			living++
			if err != nil {
				_ = unix.Kill(pid, unix.SIGKILL)
			} else {
				_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
			}
		case unknown:
			unsure++
		}
		if err == nil {
			_ = unix.Close(fd)
		}
	}
	return living, unsure
}
