// Package discord is the adapter of Discord: a mention of the bot, a reply to it
// or a direct message becomes a message for the one gate, and its outcome is
// posted in a thread of the question.
//
// It decides nothing about people: ids go in, the gate answers. It never looks
// at names, never lets an answer mention anybody, and never acknowledges a
// message that is not stored. Bots, webhooks and system messages are not handed
// on. It reads no message that is not addressed to the bot, keeps no history and
// needs no privileged intent.
//
// Only the gateway connection is the library's. Requests are the package's own,
// since the library's cannot be interrupted, retry without limit and carry the
// token in their errors.
package discord

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"parlour/bridge"
	"parlour/bridge/ask"
	"parlour/guardrail/secret"
)

// Config is what an operator sets.
type Config struct {
	Token  secret.Value    // the bot's token, without the word Bot
	API    string          // another origin in place of https://discord.com; empty: that one
	Redact secret.Redactor // a last look at every text that is posted; the token is always taken out
	Timing Timing
}

// Timing bounds how long the adapter waits. A zero field takes the default that
// stands beside it.
type Timing struct {
	Hello    time.Duration // 30s: from dialling to READY
	Silence  time.Duration // 90s: without any frame the connection counts as dead
	Backoff  time.Duration // 1s: before the second attempt to connect; doubles up to five minutes
	Identify time.Duration // 5s: between two new sessions
	Request  time.Duration // 10s: one request
	Delivery time.Duration // 2m: one delivery with all its retries
	Typing   time.Duration // 8s: between two typing notices
	Quiet    time.Duration // 10m: between two refusals of the same person in the same place
	Stop     time.Duration // 5s: for storing what has already arrived when the bot stops
}

// Intake is the one gate.
type Intake interface {
	Accept(ctx context.Context, m bridge.Message) (bridge.Accepted, error)
}

// Adapter connects one bot account. It implements bridge.Sender.
type Adapter struct {
	cfg    Config
	log    *slog.Logger
	intake Intake
	rest   *client
	hasty  *client // for what is shown beside: no retries, no waits
	boards *bridge.Boards
	redact []secret.Redactor
	places *places
	queue  *queue
	typing *notices
	said   *quiet
	budget *budget
	state  state
	once   atomic.Bool
}

var (
	_ bridge.Sender   = (*Adapter)(nil)
	_ bridge.Reporter = (*Adapter)(nil)
	_ bridge.Looker   = (*Adapter)(nil)
)

// mostBoards bounds the questions of which the shown progress is remembered.
const mostBoards = 10_000

// New checks the configuration. It does not connect.
func New(cfg Config, intake Intake, log *slog.Logger) (*Adapter, error) {
	if intake == nil || log == nil {
		return nil, errors.New("discord: an intake and a log are required")
	}
	token := strings.TrimPrefix(strings.TrimSpace(cfg.Token.Reveal()), "Bot ")
	if token == "" {
		return nil, errors.New("discord: the token is empty")
	}
	if strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, errors.New("discord: the token holds a character that no token holds")
	}
	origin, err := parseOrigin(cfg.API)
	if err != nil {
		return nil, err
	}
	own, err := secret.NewRedactor(secret.New(token))
	if err != nil {
		return nil, errors.New("discord: the token is too short to be one")
	}
	cfg.Token, cfg.Timing = secret.New(token), cfg.Timing.withDefaults()
	a := &Adapter{
		cfg: cfg, log: log, intake: intake, redact: []secret.Redactor{cfg.Redact, own},
		rest: newClient(origin, cfg.Token, cfg.Timing.Request), boards: bridge.NewBoards(mostBoards),
		typing: newNotices(), said: newQuiet(cfg.Timing.Quiet), budget: newBudget(cfg.Timing.Identify),
	}
	a.places, a.hasty = newPlaces(a.rest), a.rest.inHaste()
	a.queue = newQueue(a.take)
	return a, nil
}

// parseOrigin reads the API setting. Plain http is for the loopback only, since
// the token goes there.
func parseOrigin(api string) (*url.URL, error) {
	if api == "" {
		return &url.URL{Scheme: "https", Host: "discord.com"}, nil
	}
	u, err := url.Parse(strings.TrimSuffix(api, "/"))
	switch {
	case err != nil, u.Host == "", u.User != nil, u.RawQuery != "", u.Fragment != "":
		return nil, errors.New("discord.api must be an address like https://proxy.example")
	case u.Scheme == "https", u.Scheme == "http" && loopback(u.Hostname()):
		return u, nil
	}
	return nil, errors.New("discord.api must be https, or http to this machine")
}

func loopback(host string) bool { return host == "127.0.0.1" || host == "::1" || host == "localhost" }

func (t Timing) withDefaults() Timing {
	for _, f := range []struct {
		field *time.Duration
		value time.Duration
	}{
		{&t.Hello, 30 * time.Second}, {&t.Silence, 90 * time.Second}, {&t.Backoff, time.Second},
		{&t.Identify, 5 * time.Second}, {&t.Request, 10 * time.Second}, {&t.Delivery, 2 * time.Minute},
		{&t.Typing, 8 * time.Second}, {&t.Quiet, 10 * time.Minute}, {&t.Stop, 5 * time.Second},
	} {
		if *f.field <= 0 {
			*f.field = f.value
		}
	}
	return t
}

// take brings one event through the gate. The reaction that tells the person so
// comes after the gate has stored the message, never before.
// Guarded by tests/contract TestDiscordReactsOnlyAfterTheCommit.
func (a *Adapter) take(ctx context.Context, e event) {
	log := a.log.With("message", e.ID, "channel", e.ChannelID)
	at, err := a.places.find(ctx, e)
	if err != nil {
		log.Warn("the channel could not be looked up: rules for its parent do not match, and nobody is more than guest", "err", err)
	}
	m, drop := convert(a.state.self(), e, at)
	if drop != "" {
		log.Debug("not handed on", "why", drop)
		return
	}
	expected := a.typing.expect(m.ID)
	accepted, err := a.intake.Accept(ctx, m)
	if expected && (err != nil || accepted.Duplicate || accepted.Ended != nil) {
		a.typing.stop(m.ID)
	}
	switch {
	case errors.Is(err, bridge.ErrEmpty):
		log.Debug("not handed on", "why", "no question")
	case err != nil:
		log.Error("accept", "err", err)
	case accepted.Duplicate:
		log.Debug("not handed on", "why", "accepted before", "job", accepted.Job.ID)
	case accepted.Ended == nil:
		log.Debug("accepted", "job", accepted.Job.ID)
		a.boards.Expect(accepted.Job.ID)
		a.acknowledge(ctx, accepted.Job)
	}
}

// acknowledge tells the person that the question is stored: a reaction, and a
// typing notice until the outcome is delivered. Failing to is no failure.
func (a *Adapter) acknowledge(ctx context.Context, job ask.Job) {
	to, err := parseAddress(job.ReplyTo)
	if err != nil {
		a.log.Error("acknowledge", "job", job.ID, "err", err)
		return
	}
	react := func(ctx context.Context) {
		if err := a.rest.react(ctx, to.channel, to.message, eyes); err != nil && ctx.Err() == nil {
			a.log.Debug("no reaction", "job", job.ID, "err", err)
		}
	}
	a.typing.start(ctx, job.Message, react, func(ctx context.Context) { a.rest.keepTyping(ctx, to.channel, a.cfg.Timing.Typing) })
}

// eyes is the reaction that says: stored, and being worked on.
const eyes = "\U0001F440"

// Ready says whether the bot hears Discord, and why it does not. The sentence is
// for the operator and names no secret.
func (a *Adapter) Ready() (bool, string) {
	return a.state.ready(time.Now(), a.cfg.Timing.Silence)
}

// FatalError means that Discord closed the connection for a reason that no
// reconnecting can cure.
type FatalError struct{ Code int }

// Error names the reason in words.
func (e *FatalError) Error() string {
	why, known := map[int]string{
		4004: "the token is not valid",
		4010: "the shard is not valid",
		4011: "the bot is in so many guilds that it needs sharding, which is not supported",
		4012: "the version of the gateway is not supported any more",
		4013: "the intents are not valid",
		4014: "an intent is not allowed for this bot",
	}[e.Code]
	if !known {
		why = "Discord refuses this bot"
	}
	return fmt.Sprintf("discord: %s (close code %d)", why, e.Code)
}

func fatal(code int) bool { return code == 4004 || code >= 4010 && code <= 4014 }
