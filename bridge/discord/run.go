package discord

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/bwmarrin/discordgo"

	"parlour/tiers"
)

// Run keeps the bot connected until ctx ends, then stores what has already
// arrived and disconnects. It gives a *FatalError where connecting again cannot
// help. It may be called once.
//
// What is said while no connection is up, and cannot be resumed, is not heard
// and not answered later.
func (a *Adapter) Run(ctx context.Context) error {
	if !a.once.CompareAndSwap(false, true) {
		return errors.New("discord: Run was called before")
	}
	// What has arrived is stored even when the bot is told to stop meanwhile.
	taking, stopTaking := context.WithCancel(context.WithoutCancel(ctx))
	defer stopTaking()
	a.queue.open(taking)
	err := a.stayConnected(ctx)
	a.state.down("stopped")
	a.stop(stopTaking)
	if errors.Is(err, ctx.Err()) && ctx.Err() != nil {
		return nil
	}
	return err
}

// stop waits for what is on its way, within limits.
func (a *Adapter) stop(stopTaking context.CancelFunc) {
	stored := a.queue.close(a.cfg.Timing.Stop)
	stopTaking()
	if !stored && !a.queue.close(a.cfg.Timing.Stop) {
		a.log.Warn("some messages were not stored before the stop")
	}
	a.typing.running.Wait()
	a.rest.http.CloseIdleConnections()
}

// mostBackoff is the longest pause between two attempts to connect.
const mostBackoff = 5 * time.Minute

// steady is how long a connection must have lasted for the next pause to be
// short again.
const steady = time.Minute

// stayConnected connects again and again. After an ordinary end the session is
// resumed once, so that Discord repeats what was missed; else a new one is made.
func (a *Adapter) stayConnected(ctx context.Context) error {
	var l *link
	pause := a.cfg.Timing.Backoff
	for {
		began := time.Now()
		err := a.connect(ctx, &l)
		a.state.down(reason(err))
		var end *FatalError
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if errors.As(err, &end) {
			return err
		}
		resume := l != nil
		a.log.Warn("discord connection lost", "err", err, "lasted", time.Since(began).Round(time.Millisecond), "resume", resume)
		if resume {
			continue
		}
		if time.Since(began) >= steady {
			pause = a.cfg.Timing.Backoff
		}
		if err := sleep(ctx, pause/2+rand.N(pause/2+1)); err != nil {
			return err
		}
		pause = min(2*pause, mostBackoff)
	}
}

func reason(err error) string {
	if err == nil {
		return "stopped"
	}
	return err.Error()
}

// connect brings one connection up and stays until it ends. It leaves the link
// in place where its session may be resumed.
func (a *Adapter) connect(ctx context.Context, at **link) error {
	l, resuming := *at, *at != nil
	*at = nil
	if !resuming {
		if err := sleep(ctx, a.budget.wait(time.Now())); err != nil {
			return err
		}
		fresh, err := newLink(a)
		if err != nil {
			return err
		}
		l = fresh
		a.budget.spend(time.Now())
	}
	began := time.Now()
	a.state.frame(began)
	if err := l.open(ctx); err != nil {
		l.kill()
		return err
	}
	err := a.watch(ctx, l)
	switch {
	case ctx.Err() != nil:
		l.close(2 * time.Second)
	case errors.Is(err, errEnded) && (!resuming || time.Since(began) >= steady):
		*at = l
	default:
		l.kill()
	}
	return err
}

// watch waits for the end of a connection and is the one who declares it dead
// where the library does not notice.
func (a *Adapter) watch(ctx context.Context, l *link) error {
	t := a.cfg.Timing
	tick := time.NewTicker(max(min(t.Silence, t.Hello)/10, time.Millisecond))
	defer tick.Stop()
	opened := time.Now()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-l.ended:
			return errEnded
		case now := <-tick.C:
			if !a.state.isUp() && now.Sub(opened) > t.Hello {
				return errNoReady
			}
			if a.state.silentFor(now) > t.Silence {
				return errSilent
			}
		}
	}
}

// hear is called by the library's reader for every event, in order. It must not
// wait for anything.
func (a *Adapter) hear(e *discordgo.Event) {
	now := time.Now()
	a.state.event(now)
	switch e.Type {
	case "READY":
		a.greet(e)
	case "RESUMED":
		a.state.up("")
		a.log.Info("discord session resumed")
	case "MESSAGE_CREATE":
		a.receive(e.RawData)
	}
}

func (a *Adapter) greet(e *discordgo.Event) {
	ready, ok := e.Struct.(*discordgo.Ready)
	if !ok || ready.User == nil || !snowflake(ready.User.ID) {
		a.log.Error("discord is ready without saying who the bot is")
		return
	}
	a.state.up(ready.User.ID)
	a.log.Info("discord is ready", "bot", ready.User.ID, "guilds", len(ready.Guilds))
}

// receive queues a message that is addressed to the bot. Edits never come here:
// a question is what was sent first.
func (a *Adapter) receive(raw []byte) {
	e, err := decode(raw)
	if err != nil {
		a.log.Warn("a message could not be read", "err", err)
		return
	}
	self := a.state.self()
	if unaddressed(self, e) != "" {
		return
	}
	if e.kind() != tiers.Person {
		a.ignore(e)
		return
	}
	if text, _ := question(self, e); text == "" {
		a.empty(e)
		return
	}
	if !a.queue.push(e) {
		a.log.Error("too many messages wait, one is dropped", "message", e.ID, "channel", e.ChannelID)
	}
}

// ignore says once for each bot and webhook that it is not answered, since
// silence would send an operator searching.
func (a *Adapter) ignore(e event) {
	log := a.log.With("author", e.Author.ID, "message", e.ID)
	if a.said.may("ignored "+e.Author.ID, time.Now()) {
		log.Info("bots and webhooks are never answered")
		return
	}
	log.Debug("not handed on", "why", "not a person")
}

// empty says now and then that a message without a single letter came, since it
// looks the same whether there was only an attachment or the bot may not read.
func (a *Adapter) empty(e event) {
	log := a.log.With("message", e.ID, "why", "no question")
	if e.Content == "" && a.said.may("empty", time.Now()) {
		log.Warn("a message for the bot came without any text: an attachment alone, or the bot may not read it")
		return
	}
	log.Debug("not handed on")
}
