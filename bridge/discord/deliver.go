package discord

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"parlour/bridge/ask"
)

// mostParts bounds the messages of one answer; what is beyond is cut, and said.
const mostParts = 20

// mostRefusal bounds the delivery of a sentence, since the gate waits for it.
const mostRefusal = 15 * time.Second

// noMemory is what every answer ends with, as long as it is true.
const noMemory = "-# I do not remember this thread. Mention me again with the whole question."

// hourglass is the reaction that says: not now, and I have told you before.
const hourglass = "\u23F3"

// Deliver posts the outcome of a question: an answer in a thread of the
// question, anything else as a reply. It may be repeated after a crash: what
// Discord already holds is not posted again. Where Discord refuses for good the
// error is an *APIError that is Permanent.
// Guarded by tests/contract TestDiscordRedeliveryPostsNothingTwice.
func (a *Adapter) Deliver(ctx context.Context, job ask.Job, ended ask.Ended) error {
	a.typing.stop(job.Message)
	to, err := parseAddress(job.ReplyTo)
	if err != nil {
		return err
	}
	answered := ended.Outcome.Kind == ask.Answered
	most := a.cfg.Timing.Delivery
	if !answered {
		most = min(most, mostRefusal)
	}
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	if !answered {
		return a.refuse(ctx, to, job, ended)
	}
	where, held, err := a.open(ctx, to, job)
	var gone *APIError
	if errors.As(err, &gone) && gone.Code == codeUnknownMessage {
		a.log.Info("the question was deleted, its answer is not posted", "job", job.ID)
		return nil
	}
	if err != nil {
		return err
	}
	replyTo := ""
	if where == to.channel {
		replyTo = to.message
	}
	return a.postAll(ctx, where, replyTo, job.ID, a.answer(job, ended), held)
}

// open gives the channel that the answer goes to, and what the bot may have
// posted there before: an answer whose delivery was not noted. Where there can
// be no thread, it is the channel of the question.
func (a *Adapter) open(ctx context.Context, to address, job ask.Job) (where string, held []posted, err error) {
	if !to.thread {
		return to.channel, a.earlier(ctx, to.channel, to.message, job), nil
	}
	thread, err := a.rest.thread(ctx, to.channel, to.message, threadName(job.Question.Text))
	var refused *APIError
	switch {
	case err == nil:
		return thread, nil, nil
	case !errors.As(err, &refused) || !refused.Permanent() || refused.Code == codeUnknownMessage:
		return "", nil, err
	case refused.Code == codeHasThread:
		held, err := a.rest.after(ctx, to.message, to.message)
		if err != nil {
			a.log.Warn("what was posted before could not be read", "job", job.ID, "err", err)
		}
		return to.message, held, nil
	}
	a.log.Warn("no thread can be made here, the answer is a reply", "job", job.ID, "err", err)
	return to.channel, a.earlier(ctx, to.channel, to.message, job), nil
}

// recent is how long Discord is sure to know the nonce of a message again.
const recent = 2 * time.Minute

// earlier reads what came after the question, where a redelivery could be too
// late for the nonce to catch it.
func (a *Adapter) earlier(ctx context.Context, channel, message string, job ask.Job) []posted {
	if time.Since(job.At) < recent {
		return nil
	}
	held, err := a.rest.after(ctx, channel, message)
	if err != nil {
		a.log.Warn("what was posted before could not be read", "job", job.ID, "err", err)
	}
	return held
}

// postAll posts the parts of a text in their order, but for those that are there.
func (a *Adapter) postAll(ctx context.Context, where, replyTo, job string, parts []string, held []posted) error {
	for i, text := range parts {
		if at := slices.IndexFunc(held, func(p posted) bool { return p.is(text) }); at >= 0 {
			held = slices.Delete(held, at, at+1) // two parts may read the same
			continue
		}
		if err := a.rest.post(ctx, where, newSend(text, nonce(job, i), replyTo)); err != nil {
			return fmt.Errorf("post part %d of %d: %w", i+1, len(parts), err)
		}
		replyTo = "" // only the first part is a reply
	}
	return nil
}

// is says whether a bot has posted the text. Discord trims what it stores.
func (p posted) is(text string) bool {
	return p.Author != nil && p.Author.Bot && p.Webhook == "" && strings.TrimSpace(p.Content) == strings.TrimSpace(text)
}

// nonce names one part of one outcome: the same in every attempt to deliver it,
// so that Discord gives back the message that is there.
func nonce(job string, n int) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s/%d", job, n))
	return hex.EncodeToString(sum[:12])
}

// refuse says in one sentence why there is no answer. The same person is not
// told again and again: beyond the first time a stranger hears nothing, and who
// asks too much gets a reaction.
func (a *Adapter) refuse(ctx context.Context, to address, job ask.Job, ended ask.Ended) error {
	cause := ended.Outcome.Cause
	key := strings.Join([]string{string(cause), job.Person, to.channel}, " ")
	if (cause == ask.NotAllowed || cause == ask.TooFast) && !a.said.may(key, time.Now()) {
		if cause == ask.TooFast {
			return a.rest.react(ctx, to.channel, to.message, hourglass)
		}
		a.log.Debug("refused again, in silence", "job", job.ID)
		return nil
	}
	text := a.safe(ended.Outcome.Text) + "\n-# id " + job.ID
	held := a.earlier(ctx, to.channel, to.message, job)
	return a.postAll(ctx, to.channel, to.message, job.ID, []string{text}, held)
}

// safe is the last look at a text: no control characters, no secrets, nothing
// that Discord would act on. Secrets are looked for in the whole text, so that
// none is cut in two.
func (a *Adapter) safe(text string) string {
	text = plain(text)
	for _, r := range a.redact {
		text, _ = r.Redact(text)
	}
	return strings.TrimSpace(defuse(text))
}

// answer gives the messages of an answer: its text, that there is no memory, and
// a receipt in one line.
func (a *Adapter) answer(job ask.Job, ended ask.Ended) []string {
	parts := split(a.safe(ended.Outcome.Text), limit)
	foot := noMemory + "\n" + receipt(job, ended)
	if len(parts) > mostParts {
		left := 0
		for _, p := range parts[mostParts:] {
			left += units(p.body)
		}
		foot = fmt.Sprintf("-# Cut here: %d more characters do not fit into a chat.\n", left) + foot
		parts = parts[:mostParts]
	}
	texts := []string{}
	for _, p := range parts {
		if !p.blank() {
			texts = append(texts, p.String())
		}
	}
	if n := len(texts); n > 0 && units(texts[n-1])+1+units(foot) <= limit {
		texts[n-1] += "\n" + foot
		return texts
	}
	return append(texts, foot)
}

// receipt is what an asker may know of a run: nothing of the host.
func receipt(job ask.Job, ended ask.Ended) string {
	r := ended.Receipt
	words := []string{"id " + job.ID, r.Tier.String()}
	if r.Choice.Runner != "" {
		words = append(words, r.Choice.Runner)
	}
	// "full" is the one rung with a sandbox; what is not known to be one is none.
	if r.Rung == "full" {
		words = append(words, "sandboxed")
	} else {
		words = append(words, "not sandboxed")
	}
	return "-# " + strings.Join(words, " · ")
}
