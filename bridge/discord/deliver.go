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

	"parlour/bridge"
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
// question, anything else as a reply, or in the thread where there is one. Then
// it takes away what Report has shown. It may be repeated after a crash: what
// Discord already holds is not posted again. Where Discord refuses for good the
// error is Permanent.
// Guarded by tests/contract TestDiscordRedeliveryPostsNothingTwice and
// TestDiscordProgressIsGoneAfterTheOutcome.
func (a *Adapter) Deliver(ctx context.Context, job ask.Job, ended ask.Ended) error {
	a.typing.stop(job.Message)
	to, err := parseAddress(job.ReplyTo)
	if err != nil {
		return err
	}
	most := a.cfg.Timing.Delivery
	if ended.Outcome.Kind != ask.Answered {
		most = min(most, mostRefusal)
	}
	posting, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	d := delivery{Adapter: a, to: to, job: job, board: a.boards.Close(job.ID)}
	if ended.Outcome.Kind == ask.Answered {
		err = d.answer(posting, a.answer(job, ended))
	} else {
		err = d.refuse(posting, ended)
	}
	var gone *APIError
	if errors.As(err, &gone) && gone.Code == codeUnknownMessage {
		a.log.Info("the question was deleted, its outcome is not posted", "job", job.ID)
		d.deleted, err = true, nil
	}
	if err == nil || errors.As(err, &gone) && gone.Permanent() {
		d.clear(ctx) // what is left to say is said, or never will be
	}
	return err
}

// delivery is one outcome on its way.
type delivery struct {
	*Adapter
	to      address
	job     ask.Job
	board   bridge.Board
	where   string   // the channel that the outcome goes to; empty: not known yet
	held    []posted // what stood there before
	read    bool     // held was read
	deleted bool     // the question is gone
}

// answer posts the parts of an answer.
func (d *delivery) answer(ctx context.Context, parts []string) error {
	if err := d.open(ctx, d.rest); err != nil {
		return err
	}
	return d.postAll(ctx, parts)
}

// open finds the channel that the outcome goes to, and what the bot may have
// posted there before: an answer whose delivery was not noted, or progress that
// outlived its bot. Where there can be no thread, it is the channel of the
// question.
func (d *delivery) open(ctx context.Context, rest *client) error {
	if !d.to.thread {
		d.beside(ctx, rest)
		return nil
	}
	thread, err := rest.thread(ctx, d.to.channel, d.to.message, threadName(d.job.Question.Text))
	var refused *APIError
	switch {
	case err == nil:
		d.where, d.read = thread, true // it is new, so it is empty
		return nil
	case !errors.As(err, &refused) || !refused.lasting() || refused.Code == codeUnknownMessage:
		return err
	case refused.Code == codeHasThread:
		d.look(ctx, rest, d.to.message, d.to.message)
		return nil
	}
	d.log.Warn("no thread can be made here, the answer is a reply", "job", d.job.ID, "err", err)
	d.beside(ctx, rest)
	return nil
}

// recent is how long Discord is sure to know the nonce of a message again.
const recent = 2 * time.Minute

// beside makes the channel of the question the place. What came after the
// question is read where a redelivery could be too late for the nonce to catch it.
func (d *delivery) beside(ctx context.Context, rest *client) {
	if d.where = d.to.channel; time.Since(d.job.At) >= recent {
		d.look(ctx, rest, d.to.channel, d.to.message)
	}
}

// look reads what stands in a channel after a message. What was read before a
// fault counts: it stands there.
func (d *delivery) look(ctx context.Context, rest *client, channel, message string) {
	held, err := rest.after(ctx, channel, message)
	if err != nil {
		d.log.Warn("what was posted before could not be read", "job", d.job.ID, "err", err)
	}
	d.where, d.held, d.read = channel, held, err == nil || errors.Is(err, errFlooded)
}

// replyTo is the message to which the first post replies: in a thread there is none.
func (d *delivery) replyTo() string {
	if d.where == d.to.channel {
		return d.to.message
	}
	return ""
}

// postAll posts the parts of a text in their order, but for those that are there.
func (d *delivery) postAll(ctx context.Context, parts []string) error {
	held, err := d.mine(ctx, d.rest, func(p posted) bool { return slices.ContainsFunc(parts, p.is) })
	if err != nil {
		return err
	}
	replyTo := d.replyTo()
	for i, text := range parts {
		if at := slices.IndexFunc(held, func(p posted) bool { return p.is(text) }); at >= 0 {
			held = slices.Delete(held, at, at+1) // two parts may read the same
			continue
		}
		if err := d.rest.post(ctx, d.where, newSend(text, nonce(d.job.ID, i), replyTo)); err != nil {
			return fmt.Errorf("post part %d of %d: %w", i+1, len(parts), err)
		}
		replyTo = "" // only the first part is a reply
	}
	return nil
}

// mine gives the bot's own messages among those that were read. Another bot may
// post anything, and Discord may let this one delete what others posted.
// Guarded by tests/contract TestDiscordWhatAnotherBotPostsIsNotTakenForTheAnswer.
func (d *delivery) mine(ctx context.Context, rest *client, which func(posted) bool) ([]posted, error) {
	var found []posted
	for _, p := range d.held {
		if which(p) {
			found = append(found, p)
		}
	}
	if len(found) == 0 {
		return nil, nil
	}
	own, err := d.self(ctx, rest)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(found, func(p posted) bool { return p.Author.ID != own }), nil
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
func (d *delivery) refuse(ctx context.Context, ended ask.Ended) error {
	cause := ended.Outcome.Cause
	key := strings.Join([]string{string(cause), d.job.Person, d.to.channel}, " ")
	if (cause == ask.NotAllowed || cause == ask.TooFast) && !d.said.may(key, time.Now()) {
		if cause == ask.TooFast {
			return d.rest.react(ctx, d.to.channel, d.to.message, hourglass)
		}
		d.log.Debug("refused again, in silence", "job", d.job.ID)
		return nil
	}
	text := d.safe(ended.Outcome.Text) + "\n-# id " + d.job.ID
	if d.hasThread(ctx) {
		return d.answer(ctx, []string{text})
	}
	d.beside(ctx, d.rest)
	return d.postAll(ctx, []string{text})
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
	return "-# " + strings.Join(append(words, ask.Held(r)), " · ")
}
