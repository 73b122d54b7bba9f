package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path"
	"slices"
)

// Effective is the policy of one run. The sandbox is built from it and the
// guardrail text is printed from it. The zero Effective permits no run.
type Effective struct {
	mode      Mode
	network   Network
	tools     []Tool
	documents []string
	scratch   []string
	writable  []string
	limits    Limits
	caps      Capabilities
	notes     []string
}

// Mode gives the file-effect mode.
func (e Effective) Mode() Mode { return e.mode }

// Network gives what the run can reach.
func (e Effective) Network() Network { return e.network }

// Tools gives the tools that the agent is offered, sorted.
func (e Effective) Tools() []Tool { return slices.Clone(e.tools) }

// Documents gives the document sets that the run may read, sorted.
func (e Effective) Documents() []string { return slices.Clone(e.documents) }

// Scratch gives the folders that are writable in every mode and vanish with
// the run: canonical, sorted, none inside another.
func (e Effective) Scratch() []string { return slices.Clone(e.scratch) }

// Writable gives every folder that the run can write, Scratch included.
func (e Effective) Writable() []string { return slices.Clone(e.writable) }

// Limits gives the bounds of the run.
func (e Effective) Limits() Limits { return e.limits }

// LimitList gives the bounds with how well each is enforced, in a fixed order.
func (e Effective) LimitList() []Limit { return e.limits.list(e.caps, e.network) }

// Rung gives the kind of sandbox.
func (e Effective) Rung() Rung { return e.caps.Rung }

// Level says how well the host enforces a clause in this run.
func (e Effective) Level(c Clause) Level { return e.caps.level(c, e.network) }

// MemoryLevel says how well the host holds the run to its memory.
func (e Effective) MemoryLevel() Level { return e.caps.Memory }

// Landlock gives the kernel's Landlock ABI, 0 where the second wall is missing.
func (e Effective) Landlock() int { return e.caps.Landlock }

// Notes gives what was lowered or is missing, one sentence each.
func (e Effective) Notes() []string { return slices.Clone(e.notes) }

// Why says why the rung is not better; empty on the full rung.
func (e Effective) Why() string { return e.caps.Why }

// Cure says what the operator can do about Why.
func (e Effective) Cure() string { return e.caps.Cure }

// String gives the whole policy in one line. Equal policies print equal lines
// and different ones differ; Hash covers exactly this line.
func (e Effective) String() string {
	l := e.limits
	return fmt.Sprintf("rung=%s mode=%s network=%s tools=%q documents=%q writable=%q scratch=%q "+
		"levels=[%s %s %s] landlock=%d "+
		"limits=[wall=%s stall=%s memory=%d/%s disk=%d/%s files=%d processes=%d/%s open_files=%d/%s answer=%d model_requests=%d output_tokens=%d] notes=%q why=%q",
		e.Rung(), e.mode, e.network, e.tools, e.documents, e.writable, e.scratch,
		e.Level(Filesystem), e.Level(NetworkReach), e.Level(Processes), e.caps.Landlock,
		l.Wall, l.Stall, l.Memory, e.caps.Memory, l.Disk, e.caps.Disk, l.Files, l.Processes, e.caps.ProcessCount,
		l.OpenFiles, e.caps.OpenFiles, l.Answer, l.ModelRequests, l.OutputTokens, e.notes, e.caps.Why)
}

// Hash gives the hex SHA-256 of String.
func (e Effective) Hash() string {
	sum := sha256.Sum256([]byte(e.String()))
	return hex.EncodeToString(sum[:])
}

func cleanPath(p string) (string, bool) {
	if !path.IsAbs(p) {
		return "", false
	}
	return path.Clean(p), true
}
