package slack

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	slackgo "github.com/slack-go/slack"
)

// PermanentError says that Slack has refused a call and would refuse it again:
// the token, the scopes, the channel or the text must change first.
type PermanentError struct {
	Method string // the Web API method
	Code   string // Slack's own word, such as channel_not_found
}

// Error names the method and Slack's word for the fault.
func (e *PermanentError) Error() string { return fmt.Sprintf("slack refused %s: %s", e.Method, e.Code) }

// Permanent says whether an outcome that is refused so will never be taken. A
// fault of the token or its scopes is the operator's to change, and then it may.
func (e *PermanentError) Permanent() bool {
	return !e.aboutToken() && !strings.HasPrefix(e.Code, missingScope)
}

// aboutToken says whether the fault is one of a token or its scopes, so that
// nothing at all will work.
func (e *PermanentError) aboutToken() bool {
	return slices.Contains([]string{
		"invalid_auth", "account_inactive", "not_authed", "token_revoked", "token_expired",
		"not_allowed_token_type", "team_access_not_granted", "org_login_required",
	}, e.Code)
}

const missingScope = "missing_scope"

// limitedError says that Slack wants a pause.
type limitedError struct {
	method string
	wait   time.Duration
}

// Error names the pause.
func (e *limitedError) Error() string {
	return fmt.Sprintf("slack limits the rate of %s for %s", e.method, e.wait)
}

// passingError is a fault that may be over at the next try. A call that failed
// so may still have had its effect.
type passingError struct {
	method string
	cause  error // its text is redacted
}

// Error names the method and the cause.
func (e *passingError) Error() string { return fmt.Sprintf("slack %s: %v", e.method, e.cause) }

// Unwrap gives the cause, whose text is redacted.
func (e *passingError) Unwrap() error { return e.cause }

// defaultLimit is the pause where Slack names none.
const defaultLimit = 5 * time.Second

// fault classifies an error of the library and takes secrets out of it. What
// Slack says with ok:false is permanent, but for the words that say otherwise.
func (w *web) fault(method string, err error) error {
	if err == nil {
		return nil
	}
	if limited, ok := errors.AsType[*slackgo.RateLimitedError](err); ok {
		return &limitedError{method, max(limited.RetryAfter, time.Second)}
	}
	if said, ok := errors.AsType[slackgo.SlackErrorResponse](err); ok {
		return w.said(method, said)
	}
	status, ok := errors.AsType[slackgo.StatusCodeError](err)
	switch {
	case ok && status.Code == http.StatusTooManyRequests:
		return &limitedError{method, defaultLimit}
	case ok && lasting(status.Code):
		return &PermanentError{method, fmt.Sprintf("HTTP %d", status.Code)}
	}
	return &passingError{method, w.redacted(err)}
}

func (w *web) said(method string, said slackgo.SlackErrorResponse) error {
	code, _ := w.secrets.Redact(said.Err)
	switch code {
	case "ratelimited", "rate_limited":
		return &limitedError{method, defaultLimit}
	case "internal_error", "fatal_error", "service_unavailable", "request_timeout", "accesslimited", "team_added_to_org":
		return &passingError{method, errors.New(code)}
	case missingScope:
		code += " (needed: " + said.Needed + ")"
	}
	return &PermanentError{method, code}
}

func lasting(status int) bool {
	return status >= 300 && status < 500 && status != http.StatusRequestTimeout
}

// ticket is the single-use secret in the address of a socket.
var ticket = regexp.MustCompile(`(wss?://[^\s?"]*)\?[^\s"]*`)

// redacted keeps what an error is and rewrites what it says: addresses of
// sockets hold tickets, and nothing vouches that a token is in no other text.
func (w *web) redacted(err error) error {
	text := ticket.ReplaceAllString(err.Error(), "$1")
	text, _ = w.secrets.Redact(text)
	for _, is := range []error{context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, is) {
			return fmt.Errorf("%s (%w)", text, is)
		}
	}
	return errors.New(text)
}

// backoff is the pause after the n-th failure in a row.
func backoff(n int, most time.Duration) time.Duration {
	return min(most, (250*time.Millisecond)<<min(n, 10))
}
