package runner

import (
	"bufio"
	"bytes"
	"encoding/json"
	"strings"

	"parlour/runner/spec"
)

// report is what an agent program says of its own run on standard output: the
// last answer, and whether it calls the run a success. It is a cross-check
// where the gateway saw the answer itself, and the source where it did not.
type report struct {
	answer string
	ended  bool   // it said that it has ended
	failed string // why it says that it failed; a body, not for chat
}

// maxLine bounds one line of a program's output, in bytes.
const maxLine = 16 << 20

// decode reads standard output in a runner's format. Lines that are not of the
// format are passed over: programs print warnings there.
func decode(format spec.Format, output string) report {
	read := map[spec.Format]func(*report, []byte){
		spec.ClaudeJSON: (*report).claude,
		spec.CodexJSON:  (*report).codex,
	}[format]
	if read == nil {
		return report{answer: output, ended: true}
	}
	var r report
	lines := bufio.NewScanner(strings.NewReader(output))
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		if line := bytes.TrimSpace(lines.Bytes()); len(line) > 0 && line[0] == '{' {
			read(&r, line)
		}
	}
	return r
}

// claude reads one event of --output-format stream-json.
func (r *report) claude(line []byte) {
	var e struct {
		Type    string
		Subtype string
		IsError bool `json:"is_error"`
		Result  string
	}
	if json.Unmarshal(line, &e) != nil || e.Type != "result" {
		return
	}
	r.ended = true
	if e.IsError || e.Subtype != "success" {
		r.failed = e.Subtype + ": " + e.Result
		return
	}
	r.answer = e.Result
}

// codex reads one event of --json. An error that it mends itself, by connecting
// again, looks like one that it does not; only the end of the turn tells.
// Guarded by TestDecode and tests/realcli TestCodexCallsAMendedFaultAnError.
func (r *report) codex(line []byte) {
	var e struct {
		Type    string
		Message string
		Item    struct{ Type, Text string }
		Error   struct{ Message string }
	}
	if json.Unmarshal(line, &e) != nil {
		return
	}
	switch {
	case e.Type == "item.completed" && e.Item.Type == "agent_message":
		r.answer = e.Item.Text
	case e.Type == "turn.completed":
		r.ended, r.failed = true, ""
	case e.Type == "turn.failed":
		r.ended, r.failed = true, "turn failed: "+e.Error.Message
	case e.Type == "error":
		r.failed = "error: " + e.Message
	}
}
