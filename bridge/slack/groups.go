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
	named  func(workspace string) (named, denied []string)
	belief time.Duration

	mu      sync.Mutex
	known   membership
	until   time.Time // Slack is not asked before
	why     error     // why not
	call    *call     // the one that is on its way; nil: there is none
	stopped bool      // no further one begins
}

// call is one question to Slack. Answer and error are there once it is done.
type call struct {
	done   chan struct{}
	stop   func()
	answer membership
	err    error
}

// membership is one answer of Slack. A group that a block names is read widely:
// whoever is listed in any group with its id is in it, and where the answer does
// not tell all of it, nobody is known not to be.
type membership struct {
	named  []string            // the groups that were looked for in order to give
	denied []string            // and to deny
	gives  map[string][]string // by user
	denies map[string][]string
	unsure map[string]error // by group
	at     time.Time
}

func newRoster(cfg Config) *roster { return &roster{named: cfg.Groups, belief: cfg.Belief} }

// groups gives the user groups of somebody that the rules of now name. Where no
// rule names one Slack is not asked. A failure means that nothing is known. A
// call outlasts who waits for it, so that a slow Slack is known all the same to
// those who come later.
// Guarded by tests/contract TestSlackUserGroupsThatAreNotKnownGiveNothing and
// TestSlackASlowListOfUserGroupsIsKnownToTheNext.
func (d *door) groups(ctx context.Context, me self, user string) ([]string, error) {
	r := d.roster
	if r.named == nil {
		return nil, nil
	}
	all, denied := r.named(me.team)
	if len(all) == 0 {
		return nil, nil
	}
	named := slices.DeleteFunc(slices.Clone(all), func(id string) bool { return slices.Contains(denied, id) })
	for {
		known, c, err := r.ask(ctx, named, denied, func(ctx context.Context) (membership, error) { return d.web.membership(ctx, me, named, denied) })
		switch {
		case err != nil:
			return nil, err
		case c == nil:
			return known.of(user, denied)
		}
		select {
		case <-c.done:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if c.err != nil {
			return nil, c.err
		}
		if c.answer.covers(named, denied) {
			return c.answer.of(user, denied)
		}
	}
}

// ask gives what is known of these groups while it is not old. Else it begins a
// call, or joins the one that is on its way.
// Guarded by tests/contract TestSlackUserGroupsAreAskedForRarely.
func (r *roster) ask(ctx context.Context, named, denied []string, list func(context.Context) (membership, error)) (membership, *call, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case time.Since(r.known.at) < r.belief && r.known.covers(named, denied):
		return r.known, nil, nil
	case r.call != nil:
		return membership{}, r.call, nil
	case r.stopped:
		return membership{}, nil, errors.New("the adapter has stopped")
	case time.Now().Before(r.until):
		return membership{}, nil, r.why
	case ctx.Err() != nil:
		return membership{}, nil, ctx.Err()
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
	c := &call{done: make(chan struct{}), stop: cancel}
	r.call = c
	go func() {
		defer cancel()
		defer close(c.done)
		c.answer, c.err = list(ctx)
		r.note(c.answer, c.err)
	}()
	return membership{}, c, nil
}

// close ends the call that is on its way, and waits for it.
func (r *roster) close() {
	r.mu.Lock()
	r.stopped = true
	c := r.call
	r.mu.Unlock()
	if c != nil {
		c.stop()
		<-c.done
	}
}

// covers says whether the answer is about these groups. Where a rule is new it
// is not.
func (m membership) covers(named, denied []string) bool {
	return within(named, m.named) && within(denied, m.denied)
}

func within(list, of []string) bool {
	return !slices.ContainsFunc(list, func(id string) bool { return !slices.Contains(of, id) })
}

// of gives the groups of somebody.
func (m membership) of(user string, denied []string) ([]string, error) {
	held := slices.Clone(m.gives[user])
	for _, id := range denied {
		if err := m.unsure[id]; err != nil {
			return nil, err
		}
		if slices.Contains(m.denies[user], id) {
			held = append(held, id)
		}
	}
	return held, nil
}

// note keeps an answer, or for how long Slack is left alone.
func (r *roster) note(m membership, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.call = nil
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
func (w *web) membership(ctx context.Context, me self, named, denied []string) (membership, error) {
	m := membership{named: named, denied: denied, gives: map[string][]string{}, denies: map[string][]string{}, unsure: map[string]error{}}
	m.at = time.Now()
	got, err := w.listing(ctx, me, len(denied) > 0)
	if err != nil {
		return membership{}, w.fault(groupsMethod, err)
	}
	for _, g := range *got.Groups {
		switch {
		case slices.Contains(denied, g.ID):
			m.deny(g)
		case !slices.Contains(named, g.ID):
		case !g.whole():
			return membership{}, w.fault(groupsMethod, fmt.Errorf("the answer does not say all of %s", g.ID))
		case g.counts(me) && g.Users != nil:
			add(m.gives, g)
		}
	}
	for _, id := range denied {
		if !slices.ContainsFunc(*got.Groups, func(g group) bool { return g.ID == id }) {
			m.unsure[id] = fmt.Errorf("a block names the user group %s, which is not in Slack's list", id)
		}
	}
	return m, nil
}

// deny reads a group that a block names: whoever has it, and whether it is in use,
// its members are those who are denied.
// Guarded by tests/contract TestSlackABlockedUserGroupIsReadWidely.
func (m *membership) deny(g group) {
	if !g.told() {
		m.unsure[g.ID] = fmt.Errorf("a block names the user group %s, and Slack does not list all who are in it", g.ID)
	}
	if g.Users != nil {
		add(m.denies, g)
	}
}

func add(to map[string][]string, g group) {
	for _, user := range *g.Users {
		if !slices.Contains(to[user], g.ID) {
			to[user] = append(to[user], g.ID)
		}
	}
}

// told says whether a group lists as many members as it counts.
func (g group) told() bool {
	if len(g.Count) == 0 || string(g.Count) == "null" {
		return g.Users != nil
	}
	n, err := strconv.Atoi(strings.Trim(string(g.Count), `"`))
	return err == nil && n >= 0 && (n == 0 || g.Users != nil && n <= len(*g.Users))
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

// listing gives the list. Where disabled groups count, they are asked for.
func (w *web) listing(ctx context.Context, me self, disabled bool) (*listing, error) {
	base := slackgo.APIURL
	if w.cfg.API != "" {
		base = strings.TrimSuffix(w.cfg.API, "/") + "/"
	}
	form := url.Values{"include_users": {"true"}, "team_id": {me.team}} // the workspace, for a token of a whole organisation
	if disabled {
		form.Set("include_disabled", "true")
	}
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
