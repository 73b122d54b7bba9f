package slack

import (
	"regexp"
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
		return append(unsigned(posts[:n]), posts[n]+"\n"+foot)
	}
	return append(unsigned(posts), foot)
}

// signature is how a post ends that could be read as one with a receipt or with
// progress: a dot between blanks, and words. The joiners that visible keeps may
// be lost on the way through Slack, so they hide nothing here.
var signature = regexp.MustCompile(`(^|[^\pL\pN])·([^·\n]*[\s\x{85}\pZ\x{200c}\x{200d}]*)$`)

// unsigned makes posts without a receipt of their own end like none: by such an
// end the bot knows its posts again where Slack shows no metadata.
// Guarded by tests/contract TestSlackAnAnswerEndsLikeNoReceiptButItsOwn.
func unsigned(posts []string) []string {
	for i, p := range posts {
		posts[i] = signature.ReplaceAllString(p, "$1•$2")
	}
	return posts
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
	case r.Choice.Runner != "":
		words = append(words, r.Choice.Runner, ask.Held(r))
	}
	return "— " + escape(visible(strings.Join(append(words, r.Job), " · ")))
}
