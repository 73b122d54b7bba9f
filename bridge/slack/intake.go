package slack

import (
	"context"
	"encoding/json"
	"errors"
	"hash/fnv"
	"log/slog"
	"sync"
	"time"

	"github.com/slack-go/slack/socketmode"

	"parlour/bridge"
	"parlour/tiers"
)

const (
	ackTimeout   = 2 * time.Second
	reactTimeout = 5 * time.Second
)

const (
	shards     = 16 // people whose posts are taken in side by side
	shardQueue = 64 // posts of a shard that may wait
)

// door takes posts in.
type door struct {
	web     *web
	intake  Intake
	log     *slog.Logger
	queues  [shards]chan arrival
	workers sync.WaitGroup
	errands sync.WaitGroup // reactions on their way

	accounts *memory[string, known]
	roster   *roster
	gestures *memory[string, string] // client_msg_id -> id of the first message of that gesture
	askers   *memory[string, string] // thread -> who asked in it
	fresh    *memory[string, bool]   // messages that nothing was posted for yet
	bots     *memory[string, bool]   // bots of which the log was told
}

func newDoor(w *web, intake Intake, log *slog.Logger) *door {
	d := &door{
		web: w, intake: intake, log: log, roster: newRoster(w.cfg),
		accounts: newMemory[string, known](remembered), gestures: newMemory[string, string](remembered),
		askers: newMemory[string, string](remembered), fresh: newMemory[string, bool](remembered), bots: newMemory[string, bool](remembered),
	}
	for i := range d.queues {
		d.queues[i] = make(chan arrival, shardQueue)
	}
	return d
}

// open starts to take posts in. close lets those in hand be stored; whoever
// calls arrive must have ended before.
func (d *door) open(ctx context.Context) {
	for _, queue := range d.queues {
		d.workers.Go(func() {
			for x := range queue {
				d.take(ctx, x)
			}
		})
	}
}

func (d *door) close() {
	for _, queue := range d.queues {
		close(queue)
	}
}

// arrival is an envelope that waits to be taken in.
type arrival struct {
	payload []byte
	event   string // Slack's id of the event; a repetition has the same
	attempt int
	ack     func()
}

// arrive puts an envelope into the queue of its person, so that one person's
// posts keep their order and nobody waits for another's. It never blocks: what
// has no room is not acknowledged, and Slack sends it again.
func (d *door) arrive(ctx context.Context, client *socketmode.Client, req *socketmode.Request) {
	var p payload
	if err := json.Unmarshal(req.Payload, &p); err != nil {
		p = payload{} // convert says so
	}
	id := req.EnvelopeID
	x := arrival{payload: req.Payload, event: p.EventID, attempt: req.RetryAttempt, ack: sync.OnceFunc(func() {
		ctx, cancel := context.WithTimeout(ctx, ackTimeout)
		defer cancel()
		if err := client.AckCtx(ctx, id, nil); err != nil {
			d.log.Debug("slack acknowledgement", "err", err)
		}
	})}
	h := fnv.New32a()
	_, _ = h.Write([]byte(p.Event.User))
	select {
	case d.queues[h.Sum32()%shards] <- x:
	default:
		d.log.Warn("slack posts come faster than they are stored; this one is left to be sent again", "event", x.event)
	}
}

// take takes one envelope in and acknowledges it once nothing of it can be lost.
// Guarded by tests/contract TestSlackAcknowledgesOnlyWhatIsStored.
func (d *door) take(ctx context.Context, x arrival) {
	log := d.log.With("event", x.event)
	if x.attempt > 0 {
		log.Info("slack sends an event again", "attempt", x.attempt)
	}
	me, err := d.web.whoami(ctx)
	if err != nil {
		log.Error("slack does not say who the bot is; the event is left to be sent again", "err", err)
		return
	}
	q, why := convert(x.payload, me, d.asker)
	if why != "" {
		d.ignore(me, x, why)
		x.ack()
		return
	}
	who := d.look(ctx, me, q)
	if who.identity.Kind == tiers.Bot {
		d.ignore(me, x, who.why)
		x.ack()
		return
	}
	if who.why != "" {
		log.Debug("slack sender has less right", "user", q.user, "why", who.why)
	}
	m := q.message(me, who)
	if q.shared {
		log.Debug("the channel is shared with another organisation: at most guest", "channel", q.channel)
	}
	m.ID = d.gesture(q, m.ID)
	d.accept(ctx, x, q, m)
}

func (d *door) accept(ctx context.Context, x arrival, q question, m bridge.Message) {
	log := d.log.With("event", x.event, "message", m.ID)
	accepted, err := d.intake.Accept(context.WithValue(ctx, claimKey{}, claim{m.ID, x.ack}), m)
	switch {
	case errors.Is(err, bridge.ErrEmpty):
		log.Debug("slack post ignored", "why", "it holds no question")
	case err != nil:
		log.Error("the message was not stored; Slack will send it again", "err", d.web.redacted(err))
		return
	case accepted.Duplicate:
		log.Debug("slack post was known already")
	case accepted.Ended == nil:
		d.askers.put(q.threadKey(), q.user)
		d.fresh.put(m.ID, true)
		d.errands.Go(func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reactTimeout)
			defer cancel()
			d.web.react(ctx, address{q.channel, q.thread, q.ts}, "eyes")
		})
	}
	x.ack()
}

// claimKey carries the claim of an envelope to Deliver, which the gate calls for
// a message that ends at once.
type claimKey struct{}

type claim struct {
	message string
	ack     func()
}

// committed acknowledges the envelope of a message whose outcome is delivered
// while it is being accepted: an outcome to deliver is one that is stored. It
// says whether nothing can have been posted for the message before.
func (d *door) committed(ctx context.Context, message string) bool {
	if c, ok := ctx.Value(claimKey{}).(claim); ok && c.message == message {
		c.ack()
		return true
	}
	_, fresh := d.fresh.take(message)
	return fresh
}

// gesture gives the id under which a post is stored. Slack may tell one gesture
// of a person as two posts with different times.
func (d *door) gesture(q question, id string) string {
	if q.clientID == "" {
		return id
	}
	key := q.channel + " " + q.user + " " + q.clientID
	if d.gestures.first(key, id) {
		return id
	}
	then, _ := d.gestures.get(key)
	return then
}

func (d *door) asker(thread string) string {
	user, _ := d.askers.get(thread)
	return user
}

// ignore says why an event was not used. The first post of each bot is told
// aloud, since an operator may wonder why that one is not answered.
func (d *door) ignore(me self, x arrival, why string) {
	log := d.log.With("event", x.event, "why", why)
	var p payload
	if err := json.Unmarshal(x.payload, &p); err != nil {
		p = payload{}
	}
	switch bot := p.Event.User + " " + p.Event.Bot; {
	case p.Type == "app_rate_limited":
		log.Warn("slack holds events back: there are too many for this app")
	case why == reasonBot && p.Event.User != me.user && d.bots.first(bot, true):
		log.Info("posts of this bot are never answered", "user", p.Event.User, "bot", p.Event.Bot)
	default:
		log.Debug("slack post ignored")
	}
}
