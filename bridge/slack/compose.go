package slack

import (
	"strings"

	"parlour/bridge/ask"
	"parlour/tiers"
)

// The notes of the adapter itself. They promise nothing that another part does.
const (
	noMemory = "I see only this one message, not the rest of the thread."
	unknown  = "Slack did not tell me who you are, so I could not know what you may ask. Please try again in a moment."
)

// compose makes the posts of an outcome. The last one ends with the receipt.
// Guarded by tests/contract TestSlackReceiptsSayLittle.
func (a *Adapter) compose(job ask.Job, ended ask.Ended, followUp bool) []string {
	text, _ := a.web.secrets.Redact(ended.Outcome.Text)
	var posts []string
	for _, p := range split(mrkdwn(text), textLimit) {
		if strings.TrimSpace(p.body) != "" {
			posts = append(posts, p.String())
		}
	}
	foot := receipt(ended)
	if followUp && ended.Outcome.Kind == ask.Answered {
		foot = "— " + noMemory + "\n" + foot
	}
	if ended.Outcome.Cause == ask.NotAllowed && job.Identity.Kind == tiers.UnknownKind {
		foot = unknown + "\n" + foot
	}
	if n := len(posts) - 1; n >= 0 && units(posts[n])+units(foot)+1 <= textLimit {
		posts[n] += "\n" + foot
		return posts
	}
	return append(posts, foot)
}

// receipt is the line that an asker sees: id, tier, runner and whether it ran in
// a sandbox. The rest is the operator's.
func receipt(ended ask.Ended) string {
	r := ended.Receipt
	words := []string{}
	if r.Tier != tiers.None {
		words = append(words, r.Tier.String())
	}
	switch {
	case r.Rung == "" || r.Rung == "none":
		words = append(words, "nothing was run")
	case r.Choice.Runner != "" && r.Rung == "plain":
		words = append(words, r.Choice.Runner, "not sandboxed")
	case r.Choice.Runner != "":
		words = append(words, r.Choice.Runner, "sandboxed")
	}
	return "— " + escape(visible(strings.Join(append(words, r.Job), " · ")))
}
