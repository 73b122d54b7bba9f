package local

import (
	"fmt"
	"strings"
	"time"

	"parlour/bridge/ask"
)

// Line prints a receipt in one line: tier, runner, why each other runner was
// skipped, sandbox, time, and the detail of a failure. It is for the operator's
// terminal; a chat shows less.
func Line(ended ask.Ended) string {
	r := ended.Receipt
	parts := []string{string(ended.Outcome.Kind), "tier " + r.Tier.String(), runnerPart(r.Choice)}
	if skipped := skippedPart(r.Choice.Skipped); skipped != "" {
		parts = append(parts, skipped)
	}
	parts = append(parts, "sandbox "+orNone(r.Rung))
	parts = append(parts, r.Notes...)
	if r.Choice.Model != "" {
		parts = append(parts, fmt.Sprintf("model %s, %d tokens", r.Choice.Model, r.Tokens))
	}
	if r.Redacted > 0 {
		parts = append(parts, fmt.Sprintf("secrets taken out: %d", r.Redacted))
	}
	parts = append(parts, "time "+r.Took.Round(time.Millisecond).String())
	if ended.Detail != "" {
		parts = append(parts, "detail: "+ended.Detail)
	}
	parts = append(parts, "job "+r.Job)
	return strings.ReplaceAll("receipt: "+strings.Join(parts, " · "), "\n", " ")
}

func runnerPart(c ask.Choice) string {
	switch {
	case c.Runner == "":
		return "runner none"
	case !c.Proven:
		return "runner " + c.Runner + " (unproven)"
	}
	return "runner " + c.Runner
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

func skippedPart(skips []ask.Skip) string {
	words := []string{}
	for _, s := range skips {
		words = append(words, s.Runner+": "+s.Reason)
	}
	if len(words) == 0 {
		return ""
	}
	return "skipped " + strings.Join(words, "; ")
}
