package runner

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"parlour/runner/spec"
)

// The lines of codex 0.171.0 and claude 2.1.332.
const (
	codexBegin  = `{"type":"thread.started","thread_id":"01a22daa"}` + "\n" + `{"type":"item.completed","item":{"id":"item_0","type":"error","message":"Model metadata for x not found."}}` + "\n" + `{"type":"turn.started"}` + "\n"
	codexAgain  = `{"type":"error","message":"Reconnecting... 1/2 (stream disconnected before completion: stream closed before response.completed)"}` + "\n"
	codexSaid   = `{"type":"item.completed","item":{"id":"item_1","type":"agent_message","text":"fine"}}` + "\n"
	codexEnd    = `{"type":"turn.completed","usage":{"input_tokens":10,"output_tokens":7}}` + "\n"
	codexError  = `{"type":"error","message":"exceeded retry limit, last status: 429"}` + "\n"
	codexFailed = `{"type":"turn.failed","error":{"message":"exceeded retry limit, last status: 429"}}` + "\n"
	claudeSaid  = `{"type":"result","subtype":"success","is_error":false,"result":"fine"}` + "\n"
	claudeNo    = `{"type":"result","subtype":"success","is_error":true,"result":"API Error: 429"}` + "\n"
	claudeMax   = `{"type":"result","subtype":"error_max_turns","is_error":false}` + "\n"
)

func TestDecode(t *testing.T) {
	for name, c := range map[string]struct {
		format spec.Format
		output string
		want   report
	}{
		"text":                       {spec.Text, "fine", report{answer: "fine", ended: true}},
		"codex":                      {spec.CodexJSON, codexBegin + codexSaid + codexEnd, report{answer: "fine", ended: true}},
		"codex connects again":       {spec.CodexJSON, codexBegin + codexAgain + codexAgain + codexSaid + codexEnd, report{answer: "fine", ended: true}},
		"codex gives up":             {spec.CodexJSON, codexBegin + codexAgain + codexError + codexFailed, report{ended: true, failed: "turn failed: exceeded retry limit, last status: 429"}},
		"codex breaks off":           {spec.CodexJSON, codexBegin + codexSaid + codexError, report{answer: "fine", failed: "error: exceeded retry limit, last status: 429"}},
		"codex fails after the turn": {spec.CodexJSON, codexBegin + codexSaid + codexEnd + codexError, report{answer: "fine", ended: true, failed: "error: exceeded retry limit, last status: 429"}},
		"codex is cut":               {spec.CodexJSON, codexBegin + codexSaid, report{answer: "fine"}},
		"codex says nothing":         {spec.CodexJSON, codexBegin + codexEnd, report{ended: true}},
		"claude":                     {spec.ClaudeJSON, "a warning\n" + claudeSaid, report{answer: "fine", ended: true}},
		"claude fails":               {spec.ClaudeJSON, claudeNo, report{ended: true, failed: "success: API Error: 429"}},
		"claude runs out of turns":   {spec.ClaudeJSON, claudeMax, report{ended: true, failed: "error_max_turns: "}},
		"claude is cut":              {spec.ClaudeJSON, strings.TrimSuffix(claudeSaid, "}\n"), report{}},
	} {
		require.Equal(t, c.want, decode(c.format, c.output), name)
	}
}
