package slack

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	slackgo "github.com/slack-go/slack"

	"parlour/guardrail/secret"
)

const callTimeout = 10 * time.Second // one call of the Web API

// web is Slack's Web API, for one bot token.
type web struct {
	cfg     Config
	log     *slog.Logger
	http    *http.Client
	api     *slackgo.Client
	secrets secret.Redactor

	mu sync.Mutex
	me self // who the bot is, once Slack has told
}

func newWeb(cfg Config, redactor secret.Redactor, log *slog.Logger) *web {
	w := &web{cfg: cfg, log: log, secrets: redactor, http: client()}
	w.api = slackgo.New(cfg.BotToken.Reveal(), w.options()...)
	return w
}

func (w *web) options() []slackgo.Option {
	options := []slackgo.Option{
		slackgo.OptionAppLevelToken(w.cfg.AppToken.Reveal()),
		slackgo.OptionHTTPClient(w.http),
		slackgo.OptionLog(silent{}),
	}
	if w.cfg.API != "" {
		options = append(options, slackgo.OptionAPIURL(strings.TrimSuffix(w.cfg.API, "/")+"/"))
	}
	return options
}

// silent swallows what the library would print: it prints bodies.
type silent struct{}

// Output drops the line.
func (silent) Output(int, string) error { return nil }

// client takes no proxy from the environment and follows no redirect: a form
// with the token in it would be sent again to wherever it points.
func client() *http.Client {
	return &http.Client{
		Timeout: callTimeout,
		Transport: &http.Transport{
			DialContext:         (&net.Dialer{Timeout: callTimeout}).DialContext,
			TLSHandshakeTimeout: callTimeout,
			ForceAttemptHTTP2:   true,
			MaxIdleConnsPerHost: shards,
			IdleConnTimeout:     time.Minute,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// whoami asks Slack once who the bot is.
func (w *web) whoami(ctx context.Context) (self, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.me.user != "" {
		return w.me, nil
	}
	got, err := w.api.AuthTestContext(ctx)
	if err != nil {
		return self{}, w.fault("auth.test", err)
	}
	me := self{team: got.TeamID, enterprise: got.EnterpriseID, user: got.UserID, bot: got.BotID}
	if !validTeam(me.team) || !validUser(me.user) {
		return self{}, &PermanentError{Method: "auth.test", Code: "no workspace or no user in the answer"}
	}
	w.me = me
	w.log.Info("slack knows the bot", "team", me.team, "user", me.user)
	return me, nil
}

// react sets a reaction on the question, once and without insisting.
func (w *web) react(ctx context.Context, to address, name string) {
	err := w.api.AddReactionContext(ctx, name, slackgo.NewRefToMessage(to.channel, to.ts))
	if err == nil {
		return
	}
	if said, ok := errors.AsType[slackgo.SlackErrorResponse](err); ok && said.Err == "already_reacted" {
		return
	}
	w.log.Warn("slack reaction", "reaction", name, "err", w.fault("reactions.add", err))
}
