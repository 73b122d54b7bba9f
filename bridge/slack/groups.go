package slack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	slackgo "github.com/slack-go/slack"
)

const (
	groupsMethod = "usergroups.list"
	mostGroups   = 8 << 20          // bytes of an answer; more of it is not read, and nobody is in a group
	groupsRest   = 30 * time.Second // after an answer that will be the same again
	mostRest     = time.Minute      // that Slack can ask for
)

// roster is who is in which of the user groups that rules name. One answer of
// Slack serves everybody for a while, since Slack allows few such calls.
type roster struct {
	named  func(workspace string) []string
	belief time.Duration
	turn   chan struct{} // held while Slack is asked: one call at a time

	mu    sync.Mutex
	known membership
	until time.Time // Slack is not asked before
	why   error     // why not
}

// membership is one answer of Slack.
type membership struct {
	named []string // the groups that were looked for
	of    map[string][]string
	at    time.Time
}

func newRoster(cfg Config) *roster {
	return &roster{named: cfg.Groups, belief: cfg.Belief, turn: make(chan struct{}, 1)}
}

// groups gives the user groups of somebody that the rules of now name. Where no
// rule names one Slack is not asked. A failure means that nothing is known.
// Guarded by tests/contract TestSlackUserGroupsThatAreNotKnownGiveNothing.
func (d *door) groups(ctx context.Context, me self, user string) ([]string, error) {
	r := d.roster
	if r.named == nil {
		return nil, nil
	}
	named := r.named(me.team)
	if len(named) == 0 {
		return nil, nil
	}
	if held, ok := r.held(named, user); ok {
		return held, nil
	}
	select {
	case r.turn <- struct{}{}:
		defer func() { <-r.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if held, ok := r.held(named, user); ok {
		return held, nil // somebody else has asked meanwhile
	}
	if err := r.resting(); err != nil {
		return nil, err
	}
	asked := time.Now()
	of, err := d.web.membership(ctx, me, named)
	r.note(membership{named, of, asked}, err)
	if err != nil {
		return nil, err
	}
	return of[user], nil
}

// held gives what is remembered, if it is about these groups and not old.
// Guarded by tests/contract TestSlackUserGroupsAreAskedForRarely.
func (r *roster) held(named []string, user string) ([]string, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Since(r.known.at) >= r.belief {
		return nil, false
	}
	for _, id := range named {
		if !slices.Contains(r.known.named, id) {
			return nil, false // a rule is new
		}
	}
	return r.known.of[user], true
}

func (r *roster) resting() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Now().Before(r.until) {
		return r.why
	}
	return nil
}

func (r *roster) note(m membership, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil {
		r.known, r.until = m, time.Time{}
		return
	}
	pause := time.Duration(0)
	if limited, ok := errors.AsType[*limitedError](err); ok {
		pause = min(limited.wait, mostRest)
	} else if _, ok := errors.AsType[*PermanentError](err); ok {
		pause = groupsRest
	}
	r.until, r.why = time.Now().Add(pause), err
}

// listing is the answer of usergroups.list, as far as it is read. There is no
// name in it.
type listing struct {
	slackgo.SlackResponse
	Groups *[]group `json:"usergroups"`
}

type group struct {
	ID       string          `json:"id"`
	Team     string          `json:"team_id"`
	External bool            `json:"is_external"`
	Deleted  *int64          `json:"date_delete"` // also of one that is disabled
	Users    *[]string       `json:"users"`
	Count    json.RawMessage `json:"user_count"` // a number, or one in quotes
}

// membership asks Slack for the members of all user groups of the workspace, and
// keeps those of the groups that are named. The library's own call hides whether
// the answer is whole, and reads one of any size.
func (w *web) membership(ctx context.Context, me self, named []string) (map[string][]string, error) {
	got, err := w.listing(ctx, me)
	if err != nil {
		return nil, w.fault(groupsMethod, err)
	}
	of := map[string][]string{}
	for _, g := range *got.Groups {
		if !slices.Contains(named, g.ID) {
			continue
		}
		if !g.whole() {
			return nil, w.fault(groupsMethod, fmt.Errorf("the answer does not say all of %s", g.ID))
		}
		if !g.counts(me) || g.Users == nil {
			continue
		}
		for _, user := range *g.Users {
			if !slices.Contains(of[user], g.ID) {
				of[user] = append(of[user], g.ID)
			}
		}
	}
	return of, nil
}

// whole says whether the answer tells what is needed. Of a group without anybody
// Slack need not list the members.
func (g group) whole() bool {
	return g.Deleted != nil && (g.Users != nil || *g.Deleted != 0 || strings.Trim(string(g.Count), `"`) == "0")
}

// counts says whether a user group is one of the bot's own workspace, or of the
// organisation that it belongs to, and in use.
// Guarded by tests/contract TestSlackUserGroupsThatCountForNobody.
func (g group) counts(me self) bool {
	ours := g.Team == me.team || me.enterprise != "" && g.Team == me.enterprise
	return ours && !g.External && *g.Deleted == 0
}

func (w *web) listing(ctx context.Context, me self) (*listing, error) {
	base := slackgo.APIURL
	if w.cfg.API != "" {
		base = strings.TrimSuffix(w.cfg.API, "/") + "/"
	}
	form := url.Values{"include_users": {"true"}, "team_id": {me.team}} // the workspace, for a token of a whole organisation
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, base+groupsMethod, strings.NewReader(form.Encode()))
	if err != nil {
		return nil, errors.New("the address is not valid")
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Authorization", "Bearer "+w.cfg.BotToken.Reveal())
	resp, err := w.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	if err := refusedBy(resp); err != nil {
		return nil, err
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, mostGroups+1))
	switch {
	case err != nil:
		return nil, err
	case len(body) > mostGroups:
		return nil, fmt.Errorf("the answer is longer than %d MiB", mostGroups>>20)
	}
	return readListing(body)
}

// refusedBy reads the status of an answer as the library does for its own calls.
func refusedBy(resp *http.Response) error {
	if resp.StatusCode == http.StatusTooManyRequests {
		seconds, err := strconv.ParseInt(resp.Header.Get("Retry-After"), 10, 32)
		if err != nil {
			seconds = int64(defaultLimit / time.Second)
		}
		return &slackgo.RateLimitedError{RetryAfter: time.Duration(seconds) * time.Second}
	}
	if resp.StatusCode != http.StatusOK {
		return slackgo.StatusCodeError{Code: resp.StatusCode, Status: resp.Status}
	}
	return nil
}

// readListing reads an answer, and refuses one that is not whole.
func readListing(body []byte) (*listing, error) {
	var got listing
	if err := json.Unmarshal(body, &got); err != nil {
		return nil, errors.New("the answer does not read as a list of user groups")
	}
	if err := got.Err(); err != nil {
		return nil, err // in Slack's own word
	}
	switch {
	case !got.Ok || got.Groups == nil:
		return nil, errors.New("the answer holds no list of user groups")
	case got.ResponseMetadata.Cursor != "":
		return nil, errors.New("the answer holds only a part of the user groups")
	}
	return &got, nil
}
