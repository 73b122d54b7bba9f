package slack

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	slackgo "github.com/slack-go/slack"

	"parlour/bridge/ask"
	"parlour/tiers"
)

const (
	deliverBudget = 3 * time.Minute  // everything that one outcome may take
	tries         = 6                // of one post
	mostBackoff   = 15 * time.Second // between two of them
	refusalEvery  = 10 * time.Minute // one refusal in words for a person in a channel
	lookBack      = 10               // pages of a thread that are read to find what was posted
)

// Deliver posts an outcome as a reply in the thread of its question. It returns
// nil only when Slack has all of it. What may have been posted before is looked
// up in the thread first, so a delivery that is repeated posts nothing twice.
// Then what Report has shown is taken away.
//
// A *PermanentError says that no repetition will help. It may be called before
// Run, and after it has ended; then it does not wait for a better moment.
// Guarded by tests/contract TestSlackRedeliveryPostsOnce.
func (a *Adapter) Deliver(ctx context.Context, job ask.Job, ended ask.Ended) error {
	if a.stopped.Load() {
		defer a.web.http.CloseIdleConnections()
	}
	if job.Identity.Platform != tiers.Slack {
		return fmt.Errorf("slack: a question from %q is not for this adapter", job.Identity.Platform)
	}
	fresh := a.door.committed(ctx, job.Message)
	to, err := parseAddress(job.ReplyTo)
	if err != nil {
		return err
	}
	board := a.boards.Close(job.ID)
	d := delivery{adapter: a, to: to, job: job.ID, sent: map[int]bool{}, unsure: !fresh}
	if job.Attempt > 0 {
		defer d.clear(ctx, board)
	}
	if a.repeats(job, ended) {
		a.web.react(ctx, to, "no_entry_sign")
		return nil
	}
	d.posts = a.compose(job, ended, to.followUp())
	posting, cancel := context.WithTimeout(ctx, deliverBudget)
	defer cancel()
	d.err = d.all(posting)
	a.health.token(d.err)
	return d.err
}

// repeats says whether a refusal would only say again what the same person was
// just told in the same channel. It is shown as a reaction instead, so that
// nobody can make the bot fill a channel.
func (a *Adapter) repeats(job ask.Job, ended ask.Ended) bool {
	if ended.Outcome.Cause != ask.NotAllowed {
		return false
	}
	key, now := job.Person+" "+job.Place.Channel, time.Now()
	if last, ok := a.refusals.get(key); ok && now.Sub(last) < refusalEvery {
		return true
	}
	a.refusals.put(key, now)
	return false
}

// delivery is one outcome on its way.
type delivery struct {
	adapter *Adapter
	to      address
	job     string
	posts   []string
	sent    map[int]bool // posts that are in the thread
	unsure  bool         // there may be posts in the thread that are not in sent
	shown   []string     // posts in the thread that show progress
	err     error        // how it went
}

func (d *delivery) all(ctx context.Context) error {
	for i := range d.posts {
		if err := d.one(ctx, i); err != nil {
			return fmt.Errorf("post %d of %d: %w", i+1, len(d.posts), err)
		}
	}
	return nil
}

// one posts one part, with bounded patience. Parts keep their order.
func (d *delivery) one(ctx context.Context, i int) error {
	for n := 0; ; n++ {
		err := d.try(ctx, i)
		if err == nil {
			return nil
		}
		if _, permanent := errors.AsType[*PermanentError](err); permanent || n+1 == tries {
			return err
		}
		if !d.wait(ctx, n, err) {
			return err
		}
	}
}

// wait pauses before the next try. It is false where there is no time for it.
func (d *delivery) wait(ctx context.Context, n int, err error) bool {
	pause := backoff(n, mostBackoff)
	if limited, ok := errors.AsType[*limitedError](err); ok {
		pause = limited.wait
	}
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < pause {
		return false
	}
	d.adapter.log.Debug("slack delivery waits", "job", d.job, "pause", pause, "err", err)
	return d.adapter.pause(ctx, pause)
}

func (d *delivery) try(ctx context.Context, i int) error {
	if d.unsure {
		if err := d.lookup(ctx); err != nil {
			return err
		}
	}
	if d.sent[i] {
		return nil
	}
	err := d.post(ctx, i)
	_, passing := errors.AsType[*passingError](err)
	d.unsure = passing // the post may be there although its answer was lost
	if err == nil {
		d.sent[i] = true
	}
	return err
}

// The metadata by which a post of the bot is known again.
const (
	metaType = "parlour_answer"
	metaJob  = "job"
	metaPart = "part"
)

// quietly are the options of every text that is posted or edited: what is escaped
// stays so, nobody is mentioned and nothing is fetched.
func quietly(text string) []slackgo.MsgOption {
	return []slackgo.MsgOption{
		slackgo.MsgOptionText(text, false),
		slackgo.MsgOptionDisableLinkUnfurl(),
		slackgo.MsgOptionDisableMediaUnfurl(),
		slackgo.MsgOptionLinkNames(false),
	}
}

func (d *delivery) post(ctx context.Context, i int) error {
	_, ts, err := d.adapter.web.api.PostMessageContext(ctx, d.to.channel, append(quietly(d.posts[i]),
		slackgo.MsgOptionTS(d.to.thread),
		slackgo.MsgOptionMetadata(slackgo.SlackMetadata{EventType: metaType, EventPayload: map[string]any{metaJob: d.job, metaPart: i}}),
	)...)
	if err == nil && ts == "" {
		return &passingError{"chat.postMessage", errors.New("the answer names no message")}
	}
	return d.adapter.web.fault("chat.postMessage", err)
}

// lookup reads the thread from the question on. Where Slack does not let the bot
// read it, the answer is posted all the same: twice is better than never.
func (d *delivery) lookup(ctx context.Context) error {
	me, err := d.adapter.web.whoami(ctx)
	if err != nil {
		return err
	}
	d.shown = nil
	query := slackgo.GetConversationRepliesParameters{
		ChannelID: d.to.channel, Timestamp: d.to.thread, Oldest: d.to.ts, Inclusive: true, Limit: 200, IncludeAllMetadata: true,
	}
	for range lookBack {
		replies, more, next, err := d.adapter.web.api.GetConversationRepliesContext(ctx, &query)
		if err != nil {
			err = d.adapter.web.fault("conversations.replies", err)
			if _, permanent := errors.AsType[*PermanentError](err); !permanent {
				return err
			}
			d.adapter.log.Warn("slack does not show the thread; an answer may be posted twice", "job", d.job, "err", err)
			break
		}
		for _, m := range replies {
			d.recognize(me, m)
		}
		if !more || next == "" {
			break
		}
		query.Cursor = next
	}
	d.unsure = false
	return nil
}

// recognize notes a post of this outcome. Only the bot's own posts count, since
// any app can write any metadata. Where a post has none, the receipt tells, and
// the post with it is the last.
// Guarded by tests/contract TestSlackAPostOfAnotherOutcomeIsNotTakenForThisOne.
func (d *delivery) recognize(me self, m slackgo.Message) {
	if m.User != me.user && (me.bot == "" || m.BotID != me.bot) {
		return
	}
	if m.Metadata.EventType == metaType && m.Metadata.EventPayload[metaJob] == d.job {
		if i, ok := m.Metadata.EventPayload[metaPart].(float64); ok {
			d.sent[int(i)] = true
		}
	}
	if shows(m, d.job) {
		d.shown = append(d.shown, m.Timestamp)
		return
	}
	if m.Metadata.EventType == "" && strings.HasSuffix(strings.TrimSpace(m.Text), " · "+d.job) {
		for i := range d.posts {
			d.sent[i] = true
		}
	}
}
