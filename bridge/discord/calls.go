package discord

import (
	"context"
	"errors"
	"net/http"
	"net/url"
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

func (c *client) channel(ctx context.Context, id string) (channel, error) {
	var got channel
	err := c.do(ctx, http.MethodGet, "/channels/"+id, nil, &got)
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

// thread makes a thread of a message and gives its id.
func (c *client) thread(ctx context.Context, in, message, name string) (string, error) {
	body := struct {
		Name    string `json:"name"`
		Archive int    `json:"auto_archive_duration"`
	}{name, 1440}
	var got struct {
		ID string `json:"id"`
	}
	err := c.do(ctx, http.MethodPost, "/channels/"+in+"/messages/"+message+"/threads", body, &got)
	if err == nil && !snowflake(got.ID) {
		got.ID = message
	}
	return got.ID, err
}

// after lists up to 100 messages that came after another.
func (c *client) after(ctx context.Context, in, message string) ([]posted, error) {
	var got []posted
	err := c.do(ctx, http.MethodGet, "/channels/"+in+"/messages?limit=100&after="+message, nil, &got)
	return got, err
}
