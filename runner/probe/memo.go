package probe

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"parlour/runner/policy"
)

// Key says what a report is true for. A report of another key proves nothing.
type Key struct {
	Binary string // SHA-256 of the bot's own program
	Kernel string // its release and version, and the boot
	User   int
	Policy string // hash of the rung and of the policies that were tried
}

// NewKey gives the key of a rung on this host, for the program at the path.
func NewKey(self string, user int, r Rung) (Key, error) {
	k := Key{User: user}
	f, err := os.Open(self)
	if err != nil {
		return k, fmt.Errorf("probe: hash the program: %w", err)
	}
	defer func() { _ = f.Close() }()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return k, fmt.Errorf("probe: hash the program: %w", err)
	}
	k.Binary = hex.EncodeToString(sum.Sum(nil))
	var words []string
	for _, name := range []string{"osrelease", "version", "random/boot_id"} {
		text, err := os.ReadFile("/proc/sys/kernel/" + name)
		if err != nil {
			return k, fmt.Errorf("probe: ask for the kernel: %w", err)
		}
		words = append(words, strings.TrimSpace(string(text)))
	}
	k.Kernel = strings.Join(words, " ")
	tried := []string{r.Rung.String()}
	for _, e := range r.Policies {
		tried = append(tried, e.Hash())
	}
	all := sha256.Sum256([]byte(strings.Join(tried, "\n")))
	k.Policy = hex.EncodeToString(all[:])
	return k, nil
}

// Memo keeps reports in a folder, so that the battery runs once for each key.
type Memo struct{ Dir string }

// kept is a report as it lies in the folder. What an attempt is stands in the
// program, which is part of the key.
type kept struct {
	Key      Key           `json:"key"`
	Took     time.Duration `json:"took_ns"`
	Findings []keptFinding `json:"findings"`
}

type keptFinding struct {
	ID       string         `json:"id"`
	Network  policy.Network `json:"network"`
	Verdict  Verdict        `json:"verdict"`
	Why      string         `json:"why,omitempty"`
	Admitted bool           `json:"admitted,omitempty"`
}

func (m Memo) path(r policy.Rung) string { return filepath.Join(m.Dir, r.String()+".json") }

// Load gives the report of a rung that was kept for exactly this key.
// Guarded by tests/attacks TestAMemoOfAnotherKeyProvesNothing.
func (m Memo) Load(k Key, r policy.Rung) (Report, bool) {
	text, err := os.ReadFile(m.path(r))
	if err != nil {
		return Report{}, false
	}
	var stored kept
	if json.Unmarshal(text, &stored) != nil || stored.Key != k {
		return Report{}, false
	}
	attempts, made := map[string]Attempt{}, map[string]bool{}
	for _, a := range Attempts() {
		attempts[a.ID()] = a
	}
	report := Report{Rung: r, Available: true, Took: stored.Took}
	for _, f := range stored.Findings {
		a, known := attempts[f.ID]
		if !known {
			return Report{}, false
		}
		made[f.ID] = true
		report.Findings = append(report.Findings, Finding{Attempt: a, Network: f.Network, Verdict: f.Verdict, Why: f.Why, Admitted: f.Admitted})
	}
	return report, len(made) == len(attempts)
}

// Save keeps a report. A report without findings is not worth it.
func (m Memo) Save(k Key, r Report) error {
	if len(r.Findings) == 0 {
		return nil
	}
	stored := kept{Key: k, Took: r.Took}
	for _, f := range r.Findings {
		stored.Findings = append(stored.Findings, keptFinding{f.ID(), f.Network, f.Verdict, f.Why, f.Admitted})
	}
	text, err := json.Marshal(stored)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(m.Dir, 0o700); err != nil {
		return fmt.Errorf("probe: keep the report: %w", err)
	}
	f, err := os.CreateTemp(m.Dir, "new-")
	if err != nil {
		return fmt.Errorf("probe: keep the report: %w", err)
	}
	_, err = f.Write(text)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(f.Name(), m.path(r.Rung))
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return fmt.Errorf("probe: keep the report: %w", err)
	}
	return nil
}
