package slack

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	slackgo "github.com/slack-go/slack"

	"parlour/bridge"
	"parlour/bridge/ask"
)

// mostClearing bounds how long the progress is being taken away.
const mostClearing = 10 * time.Second

// metaProgress is the kind of metadata on a post that shows progress.
const metaProgress = "parlour_progress"

// inProgress ends such a post, with the job's id before it, for where Slack
// shows no metadata. No receipt ends so.
const inProgress = " · in progress"

// Report shows in the thread that a question is worked on: by one post, which
// the next report edits. It makes one attempt and does not wait for Slack; what
// Slack refuses for good is not asked for again.
// Guarded by tests/contract TestSlackProgressIsOnePostThatIsEdited and
// TestSlackALimitOnTheProgressHoldsUpNothing.
func (a *Adapter) Report(ctx context.Context, job ask.Job, p ask.Progress) error {
	to, err := parseAddress(job.ReplyTo)
	if err != nil {
		return err
	}
	return a.boards.Report(job.ID, func(b *bridge.Board) error {
		err := a.report(ctx, to, job, b, a.working(job.ID, p))
		_, b.Off = errors.AsType[*PermanentError](err)
		return err
	})
}

// working is the text of a post that shows progress.
func (a *Adapter) working(job string, p ask.Progress) string {
	text, _ := a.web.secrets.Redact(ask.Working(p))
	return escape(visible(text)) + progressFoot(job)
}

func progressFoot(job string) string { return "\n— " + job + inProgress }

func (a *Adapter) report(ctx context.Context, to address, job ask.Job, b *bridge.Board, text string) error {
	if b.Message == "" {
		if err := a.find(ctx, to, job, b); err != nil {
			return err
		}
	}
	options := append(quietly(text), slackgo.MsgOptionMetadata(slackgo.SlackMetadata{
		EventType: metaProgress, EventPayload: map[string]any{metaJob: job.ID},
	}))
	if b.Message != "" {
		_, _, _, err := a.web.api.UpdateMessageContext(ctx, to.channel, b.Message, options...)
		return a.web.fault("chat.update", err)
	}
	_, ts, err := a.web.api.PostMessageContext(ctx, to.channel, append(options, slackgo.MsgOptionTS(to.thread))...)
	if err == nil && !stamp.MatchString(ts) {
		err = errors.New("the answer names no message")
	}
	err = a.web.fault("chat.postMessage", err)
	_, passing := errors.AsType[*passingError](err)
	if b.Unsure = passing; err == nil {
		b.Message = ts
	}
	return err
}

// find looks once for a post that an earlier process, or a report that was cut
// off, may have left in the thread.
func (a *Adapter) find(ctx context.Context, to address, job ask.Job, b *bridge.Board) error {
	if _, fresh := a.door.fresh.get(job.Message); fresh {
		b.Fresh = true
	}
	if b.Fresh && !b.Unsure {
		return nil
	}
	d := delivery{adapter: a, to: to, job: job.ID, sent: map[int]bool{}}
	if err := d.lookup(ctx); err != nil {
		return err
	}
	if len(d.shown) > 0 {
		b.Message = d.shown[0]
	}
	return nil
}

// shows says whether a post of the bot shows that the job is worked on. A part of
// an answer is none: it has metadata of its own, or ends with a receipt.
// Guarded by tests/contract TestSlackAnAnswerIsNeverTakenForProgress.
func shows(m slackgo.Message, job string) bool {
	if m.Metadata.EventType != "" {
		return m.Metadata.EventType == metaProgress && m.Metadata.EventPayload[metaJob] == job
	}
	text := strings.TrimSpace(m.Text)
	return strings.HasSuffix(text, progressFoot(job)) && strings.Count(text, "\n") == 1
}

// clear takes the progress away once the outcome is posted, or never will be.
// Failing to is no failure of the delivery.
func (d *delivery) clear(ctx context.Context, board bridge.Board) {
	if permanent, ok := errors.AsType[*PermanentError](d.err); d.err != nil && !(ok && permanent.Permanent()) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, mostClearing)
	defer cancel()
	var faults error
	if board.Unsure || d.unsure {
		faults = d.lookup(ctx)
	}
	if board.Message != "" && !slices.Contains(d.shown, board.Message) {
		d.shown = append(d.shown, board.Message)
	}
	for _, ts := range d.shown {
		_, _, err := d.adapter.web.api.DeleteMessageContext(ctx, d.to.channel, ts)
		if said, ok := errors.AsType[slackgo.SlackErrorResponse](err); ok && said.Err == "message_not_found" {
			continue
		}
		faults = errors.Join(faults, d.adapter.web.fault("chat.delete", err))
	}
	if faults != nil {
		d.adapter.log.Warn("the progress could not be taken away", "job", d.job, "err", faults)
		return
	}
	d.adapter.boards.Cleared(d.job)
}
