package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"parlour/bridge"
	"parlour/bridge/discord"
	"parlour/bridge/journal"
	"parlour/bridge/slack"
	"parlour/manifests"
	"parlour/tiers"
)

type serveCmd struct {
	Parallel int `default:"4" help:"Runs at a time."`
}

// grace is how long a run may go on after the bot was told to stop.
const grace = 20 * time.Second

// adapter is one chat platform as serving needs it.
type adapter interface {
	bridge.Sender
	Run(ctx context.Context) error
	Ready() (bool, string)
}

// Run serves the chat platforms that are configured until it is told to stop.
func (s *serveCmd) Run(ctx context.Context, p *process, c *cli) error {
	if s.Parallel < 1 {
		return bad("--parallel must be at least 1, not %d", s.Parallel)
	}
	h, err := p.open(c)
	if err != nil {
		return err
	}
	if _, err := consentIn(h.state).bound(h.set); err != nil {
		return err // before it is said that all waits
	}
	on, off := h.platforms()
	for _, why := range off {
		p.note("%s", why)
	}
	switch {
	case len(on) == 0:
		return bad("no chat platform is configured and may be used: nothing to serve")
	case h.book.Rules.Count(tiers.Owner) == 0:
		return bad("tiers/owner.yaml names nobody: a chat is not served without an owner; add your own user id")
	}
	if h.book.Rules.Count(tiers.Guest)+h.book.Rules.Count(tiers.Team) == 0 {
		p.note("warning: the manifests name nobody besides the owner; everybody else is refused")
	}
	j, err := journal.Open(ctx, journal.Config{Dir: h.state, Origin: journal.Serve, Now: time.Now})
	if err != nil {
		return err
	}
	defer func() { _ = j.Close() }()
	if err := h.nameAskers(); err != nil {
		return err
	}
	h.sweep()
	h.engine.Reserve(min(s.Parallel, spares))
	defer h.engine.Reserve(0)
	return h.serve(ctx, p, j, on, s.Parallel)
}

// warm makes the first sandbox of each tier before anybody asks. Where that fails
// the first question says why.
func (h *house) warm(ctx context.Context, by bridge.Delegate) {
	r, can := by.(interface {
		Warm(ctx context.Context, tier tiers.Tier) error
	})
	for _, t := range tiers.All() {
		if !can {
			return
		}
		if err := r.Warm(ctx, t); err != nil && ctx.Err() == nil {
			h.log.Debug("make a sandbox in advance", "tier", t, "err", err)
		}
	}
}

// spares is how many sandboxes wait for the next question of a kind. Each costs
// the bot a thread and nothing else.
const spares = 2

// platforms says which chat platforms are on, and why the others are off.
// Guarded by tests/journeys TestT13AChangedAddressOfAPlatformWaits.
func (h *house) platforms() (on []tiers.Platform, off []string) {
	t := h.cfg.tokens
	switch {
	case t.discord.Empty():
		off = append(off, "discord: off (no token: "+where(h.cfg.Discord.Token)+")")
	case h.closed[outletOfChat(tiers.Discord)] != "":
		off = append(off, "discord: off until you consent (bot accept-gains): "+h.closed[outletOfChat(tiers.Discord)])
	default:
		on = append(on, tiers.Discord)
	}
	switch {
	case t.slackApp.Empty():
		off = append(off, "slack: off (no app token: "+where(h.cfg.Slack.AppToken)+")")
	case t.slackBot.Empty():
		off = append(off, "slack: off (no bot token: "+where(h.cfg.Slack.BotToken)+")")
	case h.closed[outletOfChat(tiers.Slack)] != "":
		off = append(off, "slack: off until you consent (bot accept-gains): "+h.closed[outletOfChat(tiers.Slack)])
	default:
		on = append(on, tiers.Slack)
	}
	return on, off
}

// where says why there is no token. A file that holds none is a fault before.
func where(ref manifests.Ref) string {
	if ref.Env == "" {
		return "none is configured"
	}
	return ref.Env + " is not set"
}

// serve wires the bridge to the platforms and runs all of it until one part
// fails or ctx ends.
func (h *house) serve(ctx context.Context, p *process, j *journal.Journal, on []tiers.Platform, parallel int) error {
	senders := bridge.Senders{}
	var grants *bridge.Granting
	counted, probed, read, shown, err := metrics(func() float64 { return float64(grants.Holding()) })
	if err != nil {
		return err
	}
	rules, err := newReload(h, p, read)
	if err != nil {
		return err
	}
	outbox, err := bridge.NewOutbox(j, senders, counted, h.log)
	if err != nil {
		return err
	}
	if grants, err = granting(ctx, j, rules.book.Load, func() { rules.changed() }, h.log); err != nil {
		return err
	}
	book := grants.Book
	gate, err := bridge.NewGate(book, j, outbox)
	if err != nil {
		return err
	}
	adapters := map[tiers.Platform]adapter{}
	for _, platform := range on {
		a, err := h.connect(platform, gate, func(workspace string) (named, denied []string) { return book().Groups(workspace) })
		if err != nil {
			return badInput{err}
		}
		adapters[platform], senders[platform] = a, a
	}
	worker, err := bridge.NewWorker(bridge.WorkerConfig{
		Book: book, Journal: j, Delegate: h.runner, Outbox: outbox, Secrets: h.secrets, Aliases: h.aliases, Parallel: parallel, Grace: grace, Log: h.log,
	})
	if err != nil {
		return err
	}
	rules.changed = worker.Review
	var listener net.Listener
	if h.cfg.Listen != "" {
		if listener, err = (&net.ListenConfig{}).Listen(ctx, "tcp", h.cfg.Listen); err != nil {
			return bad("listen: %w", err)
		}
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return worker.Serve(ctx) })
	for platform, a := range adapters {
		group.Go(func() error { return ended(ctx, string(platform), a.Run(ctx)) })
	}
	if listener != nil {
		group.Go(func() error {
			return health(ctx, p, listener, adapters, []fmt.Stringer{named{"sandbox", h.proofs}, named{"manifests", rules}}, shown)
		})
	}
	group.Go(func() error {
		rules.serve(ctx)
		return nil
	})
	group.Go(aside(h.log, "make sandboxes in advance", func() { h.warm(ctx, book().Delegate) }))
	group.Go(aside(h.log, "escape battery", func() { h.proofs.prove(ctx, p, probed) }))
	p.note("starting %s; tiers: %d rules", platformNames(on), h.rules())
	return group.Wait()
}

func (h *house) rules() int {
	n := 0
	for _, t := range tiers.All() {
		n += h.book.Rules.Count(t)
	}
	return n
}

func platformNames(on []tiers.Platform) string {
	words := []string{}
	for _, p := range on {
		words = append(words, string(p))
	}
	return strings.Join(words, " and ")
}

// connect makes the adapter of a platform. groups gives the user groups that have
// a meaning at the time, and those that a block names.
func (h *house) connect(platform tiers.Platform, gate *bridge.Gate, groups func(workspace string) (named, denied []string)) (adapter, error) {
	if platform == tiers.Slack {
		return slack.New(slack.Config{
			AppToken: h.cfg.tokens.slackApp, BotToken: h.cfg.tokens.slackBot, API: h.cfg.Slack.API, Groups: groups,
		}, gate, h.log)
	}
	return discord.New(discord.Config{Token: h.cfg.tokens.discord, API: h.cfg.Discord.API, Redact: h.secrets}, gate, h.log)
}

// ended names the part that failed; the end of ctx is no failure.
func ended(ctx context.Context, part string, err error) error {
	if err == nil || ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("%s: %w", part, err)
}

// named is one line of health.
type named struct {
	name string
	fmt.Stringer
}

// String gives the line.
func (n named) String() string { return n.name + ": " + n.Stringer.String() }

// health answers /healthz, /readyz and /metrics on a listener of its own. Ready means that
// every platform that is on is connected; what is not says why.
func health(ctx context.Context, p *process, l net.Listener, adapters map[tiers.Platform]adapter, more []fmt.Stringer, metrics http.Handler) error {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprintln(w, "ok") })
	mux.Handle("GET /metrics", metrics)
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		code, lines := http.StatusOK, []string{}
		for _, platform := range []tiers.Platform{tiers.Discord, tiers.Slack} {
			a := adapters[platform]
			if a == nil {
				continue
			}
			ok, why := a.Ready()
			if !ok {
				code = http.StatusServiceUnavailable
			}
			lines = append(lines, fmt.Sprintf("%s: %s", platform, why))
		}
		for _, m := range more {
			lines = append(lines, m.String())
		}
		w.WriteHeader(code)
		_, _ = fmt.Fprintln(w, strings.Join(lines, "\n"))
	})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, BaseContext: func(net.Listener) context.Context { return ctx }}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	p.note("health on http://%s", l.Addr())
	if err := server.Serve(l); err != nil && !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
