package discord

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"parlour/bridge"
	"parlour/bridge/ask"
)

// mostClearing bounds how long the progress is being taken away.
const mostClearing = 10 * time.Second

// progressPart takes the place of a part's number in the nonce of the progress.
const progressPart = -1

// inProgress ends every message that shows progress, and no other: with the
// job's id before it, which no model and no asker knows beforehand.
const inProgress = " · in progress"

// Report shows that a question is worked on, where its outcome will be: by one
// message, which the next report edits. It makes one attempt and does not wait
// for Discord; what it refuses for good is not asked for again.
// Guarded by tests/contract TestDiscordProgressIsOneMessageThatIsEdited and
// TestDiscordALimitOnTheProgressHoldsUpNothing.
func (a *Adapter) Report(ctx context.Context, job ask.Job, p ask.Progress) error {
	to, err := parseAddress(job.ReplyTo)
	if err != nil {
		return err
	}
	return a.boards.Report(job.ID, func(b *bridge.Board) error {
		err := a.report(ctx, to, job, b, a.safe(ask.Working(p))+progressFoot(job.ID))
		var refused *APIError
		b.Off = errors.As(err, &refused) && refused.lasting()
		return err
	})
}

func (a *Adapter) report(ctx context.Context, to address, job ask.Job, b *bridge.Board, text string) error {
	if b.Message != "" {
		return a.hasty.edit(ctx, b.Place, b.Message, text)
	}
	d := delivery{Adapter: a, to: to, job: job, board: *b}
	if err := d.open(ctx, a.hasty); err != nil {
		b.Unsure = true // the thread may be there
		return err
	}
	b.Place = d.where
	left, err := d.left(ctx, a.hasty)
	if err != nil {
		return err
	}
	if len(left) > 0 { // of a bot that died over the same question
		b.Message = left[0]
		return a.hasty.edit(ctx, b.Place, b.Message, text)
	}
	b.Message, err = a.hasty.postNamed(ctx, b.Place, newSend(text, nonce(job.ID, progressPart), d.replyTo()))
	b.Unsure = err != nil
	return err
}

func progressFoot(job string) string { return "\n-# id " + job + inProgress }

// shows says whether a bot shows with the message that the job is worked on. It
// is never a part of an answer: those end with a receipt or fill a message.
// Guarded by tests/contract TestDiscordAnAnswerIsNeverTakenForProgress.
func (p posted) shows(job string) bool {
	text := strings.TrimSpace(p.Content)
	return p.Author != nil && p.Author.Bot && p.Webhook == "" && strings.HasSuffix(text, progressFoot(job)) && strings.Count(text, "\n") == 1
}

// left gives the bot's own messages that show progress, among those that were read.
func (d *delivery) left(ctx context.Context, rest *client) ([]string, error) {
	mine, err := d.mine(ctx, rest, func(p posted) bool { return p.shows(d.job.ID) && snowflake(p.ID) })
	var ids []string
	for _, p := range mine {
		ids = append(ids, p.ID)
	}
	return ids, err
}

// self gives the bot's own id, which the gateway tells later than it is needed.
func (a *Adapter) self(ctx context.Context, rest *client) (string, error) {
	if own := a.state.self(); own != "" {
		return own, nil
	}
	return rest.me(ctx)
}

// hasThread says whether the question has a thread already, so that the sentence
// goes where the progress was.
func (d *delivery) hasThread(ctx context.Context) bool {
	switch {
	case !d.to.thread || d.job.Attempt == 0:
		return false
	case d.board.Place != "":
		return d.board.Place == d.to.message
	case d.known():
		return false
	}
	_, err := d.rest.channel(ctx, d.to.message)
	return err == nil
}

// known says whether all that may be shown is on the board.
func (d *delivery) known() bool { return d.board.Fresh && !d.board.Unsure }

// clear takes the progress away. Failing to is no failure of the delivery.
func (d *delivery) clear(ctx context.Context) {
	if d.job.Attempt == 0 {
		return // nothing was worked on
	}
	ctx, cancel := context.WithTimeout(ctx, mostClearing)
	defer cancel()
	d.lookAgain(ctx)
	ids, err := d.left(ctx, d.rest)
	for _, id := range ids {
		err = errors.Join(err, d.takeAway(ctx, d.where, id))
	}
	if known := d.board.Message; known != "" && !slices.Contains(ids, known) {
		err = errors.Join(err, d.takeAway(ctx, d.board.Place, known))
	}
	if d.deleted && (len(ids) > 0 || d.board.Place == d.to.message) {
		err = errors.Join(err, d.archiveOwn(ctx))
	}
	if err != nil {
		d.log.Warn("the progress could not be taken away", "job", d.job.ID, "err", err)
		return
	}
	d.boards.Cleared(d.job.ID)
}

// lookAgain reads the place anew where something may be shown that is not known.
func (d *delivery) lookAgain(ctx context.Context) {
	switch {
	case d.known():
	case d.deleted, d.where == "" && d.hasThread(ctx):
		d.look(ctx, d.rest, d.to.message, d.to.message) // a thread outlives its question
	case d.board.Unsure || !d.read:
		if d.where == "" {
			d.where = d.to.channel
		}
		d.look(ctx, d.rest, d.where, d.to.message)
	}
}

// takeAway deletes one message. One that is gone already is no fault.
func (d *delivery) takeAway(ctx context.Context, where, id string) error {
	err := d.rest.remove(ctx, where, id)
	var gone *APIError
	if errors.As(err, &gone) && gone.Code == codeUnknownMessage {
		return nil
	}
	return err
}

// archiveOwn closes the thread that was made for a question that is gone. Where
// others write in it, Discord opens it again.
func (d *delivery) archiveOwn(ctx context.Context) error {
	err := d.rest.archive(ctx, d.to.message)
	var refused *APIError
	if errors.As(err, &refused) && refused.lasting() {
		return nil // there is none, or it is not the bot's to close
	}
	return err
}
