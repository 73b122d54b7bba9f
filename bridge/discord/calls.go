package discord

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// send is the body of a new message. Mentions are always there and always empty:
// where the field is absent Discord lets everybody be mentioned.
type send struct {
	Content      string     `json:"content"`
	Nonce        string     `json:"nonce"`
	EnforceNonce bool       `json:"enforce_nonce"`
	Mentions     mentions   `json:"allowed_mentions"`
	Flags        int        `json:"flags"`
	Reference    *reference `json:"message_reference,omitempty"`
}

// mentions lets nobody be mentioned, not even the author of the question.
type mentions struct {
	Parse       []string `json:"parse"`
	RepliedUser bool     `json:"replied_user"`
}

type reference struct {
	Message   string `json:"message_id"`
	MustExist bool   `json:"fail_if_not_exists"`
}

// flagNoEmbeds keeps Discord from fetching what a link in an answer names.
const flagNoEmbeds = 1 << 2

// newSend makes the body of a message. There is no other maker.
// Guarded by tests/contract TestDiscordAnswersMentionNobodyAndFetchNothing.
func newSend(content, nonce, replyTo string) send {
	s := send{
		Content: content, Nonce: nonce, EnforceNonce: true, Flags: flagNoEmbeds,
		Mentions: mentions{Parse: []string{}},
	}
	if replyTo != "" {
		s.Reference = &reference{Message: replyTo}
	}
	return s
}

// edit is the body of a changed message. Mentions and flags are as in a new one.
type edit struct {
	Content  string   `json:"content"`
	Mentions mentions `json:"allowed_mentions"`
	Flags    int      `json:"flags"`
}

// posted is a message of a channel, as far as it is read.
type posted struct {
	ID      string  `json:"id"`
	Content string  `json:"content"`
	Author  *author `json:"author"`
	Webhook string  `json:"webhook_id"`
}

// channel looks one channel up. An answer that does not say what is needed, or is
// about another channel, tells nothing.
// Guarded by tests/contract TestDiscordALookUpThatTellsNothingIsAFailedOne.
func (c *client) channel(ctx context.Context, id string) (channel, error) {
	var got struct {
		ID     string `json:"id"`
		Type   *int   `json:"type"`
		Guild  string `json:"guild_id"`
		Parent string `json:"parent_id"`
	}
	if err := c.do(ctx, http.MethodGet, "/channels/"+id, nil, &got); err != nil {
		return channel{}, err
	}
	switch {
	case got.ID != id:
		return channel{}, errors.New("the answer is about no channel or about another one")
	case got.Type == nil:
		return channel{}, errors.New("the answer does not say of what type the channel is")
	case got.Parent != "" && !snowflake(got.Parent):
		return channel{}, errors.New("the channel is in something without an id")
	}
	return channel{Type: *got.Type, Guild: got.Guild, Parent: got.Parent, known: true}, nil
}

// member is what Discord says of somebody in a guild.
type member struct {
	User  *author   `json:"user"`
	Roles *[]string `json:"roles"`
}

func (c *client) member(ctx context.Context, guild, user string) (member, error) {
	var got member
	err := c.do(ctx, http.MethodGet, "/guilds/"+guild+"/members/"+user, nil, &got)
	return got, err
}

func (c *client) post(ctx context.Context, in string, body send) error {
	return c.do(ctx, http.MethodPost, "/channels/"+in+"/messages", body, nil)
}

// postNamed is post for who needs the id of the new message.
func (c *client) postNamed(ctx context.Context, in string, body send) (string, error) {
	var got posted
	err := c.do(ctx, http.MethodPost, "/channels/"+in+"/messages", body, &got)
	if err == nil && !snowflake(got.ID) {
		err = errors.New("discord does not say which message it has posted")
	}
	return got.ID, err
}

func (c *client) edit(ctx context.Context, in, message, content string) error {
	body := edit{Content: content, Mentions: mentions{Parse: []string{}}, Flags: flagNoEmbeds}
	return c.do(ctx, http.MethodPatch, "/channels/"+in+"/messages/"+message, body, nil)
}

func (c *client) remove(ctx context.Context, in, message string) error {
	return c.do(ctx, http.MethodDelete, "/channels/"+in+"/messages/"+message, nil, nil)
}

// archive takes a thread of the bot's own out of everybody's list.
func (c *client) archive(ctx context.Context, thread string) error {
	body := struct {
		Archived bool `json:"archived"`
	}{true}
	return c.do(ctx, http.MethodPatch, "/channels/"+thread, body, nil)
}

// me gives the bot's own id.
func (c *client) me(ctx context.Context) (string, error) {
	var got author
	err := c.do(ctx, http.MethodGet, "/users/@me", nil, &got)
	if err == nil && !snowflake(got.ID) {
		err = errors.New("discord does not say who the bot is")
	}
	return got.ID, err
}

func (c *client) react(ctx context.Context, in, message, emoji string) error {
	return c.do(ctx, http.MethodPut, "/channels/"+in+"/messages/"+message+"/reactions/"+url.PathEscape(emoji)+"/@me", nil, nil)
}

func (c *client) typing(ctx context.Context, in string) error {
	return c.do(ctx, http.MethodPost, "/channels/"+in+"/typing", nil, nil)
}

// mostTyping is how long a typing notice is renewed at most.
const mostTyping = 5 * time.Minute

// keepTyping renews the typing notice until ctx ends or Discord refuses it.
func (c *client) keepTyping(ctx context.Context, in string, every time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, mostTyping)
	defer cancel()
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for c.typing(ctx, in) == nil {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// thread makes a thread of a message and gives its id, which is that of the
// message: whatever else the answer names is no place of this question.
func (c *client) thread(ctx context.Context, in, message, name string) (string, error) {
	body := struct {
		Name    string `json:"name"`
		Archive int    `json:"auto_archive_duration"`
	}{name, 1440}
	err := c.do(ctx, http.MethodPost, "/channels/"+in+"/messages/"+message+"/threads", body, nil)
	return message, err
}

const (
	onePage   = 100 // the most messages that Discord gives at a time
	mostPages = 10  // that are read to find what was posted
)

// after lists the messages that came after another, up to mostPages of them. On
// failure it gives what it has.
// Guarded by tests/contract TestDiscordAFloodHidesNothingThatWasPosted.
func (c *client) after(ctx context.Context, in, message string) ([]posted, error) {
	var all []posted
	for range mostPages {
		var page []posted
		path := fmt.Sprintf("/channels/%s/messages?limit=%d&after=%s", in, onePage, message)
		if err := c.do(ctx, http.MethodGet, path, nil, &page); err != nil {
			return all, err
		}
		all = append(all, page...)
		if len(page) < onePage {
			return all, nil
		}
		// A page holds what came right after, in no order that is relied on.
		last := slices.MaxFunc(page, func(a, b posted) int { return byAge(a.ID, b.ID) }).ID
		if !snowflake(last) || byAge(last, message) <= 0 {
			return all, errors.New("discord gives messages that it was not asked for")
		}
		message = last
	}
	return all, errFlooded
}

// errFlooded says that there are more messages than are read.
var errFlooded = fmt.Errorf("more than %d messages came since, the rest is not read", mostPages*onePage-1)

// byAge compares two ids: a later one is longer or, at one length, greater.
func byAge(a, b string) int {
	return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b))
}
