package broker

import (
	"slices"
	"strings"
)

// The parts of an answer of Anthropic Messages that reach the CLI.
type (
	anEvent struct {
		Type    string    `json:"type"`
		Message *anAnswer `json:"message,omitempty"`
		Index   *int      `json:"index,omitempty"`
		Block   *anPart   `json:"content_block,omitempty"`
		Delta   *anDelta  `json:"delta,omitempty"`
		Usage   *anUsage  `json:"usage,omitempty"`
		Error   *anError  `json:"error,omitempty"`
	}
	anAnswer struct {
		ID           string   `json:"id"`
		Type         string   `json:"type"`
		Role         string   `json:"role"`
		Model        string   `json:"model"`
		Content      []anPart `json:"content"`
		StopReason   *string  `json:"stop_reason"`
		StopSequence *string  `json:"stop_sequence"`
		Usage        *anUsage `json:"usage,omitempty"`
	}
	anPart struct {
		Type      string  `json:"type"`
		Text      *string `json:"text,omitempty"`
		Thinking  *string `json:"thinking,omitempty"`
		Signature *string `json:"signature,omitempty"`
		Data      string  `json:"data,omitempty"`
		ID        string  `json:"id,omitempty"`
		Name      string  `json:"name,omitempty"`
		Input     *node   `json:"input,omitempty"`
	}
	anDelta struct {
		Type         string  `json:"type,omitempty"`
		Text         *string `json:"text,omitempty"`
		Thinking     *string `json:"thinking,omitempty"`
		Signature    *string `json:"signature,omitempty"`
		PartialJSON  *string `json:"partial_json,omitempty"`
		StopReason   *string `json:"stop_reason,omitempty"`
		StopSequence *string `json:"stop_sequence,omitempty"`
	}
	anUsage struct {
		Input      *int `json:"input_tokens,omitempty"`
		Output     *int `json:"output_tokens,omitempty"`
		CacheWrite *int `json:"cache_creation_input_tokens,omitempty"`
		CacheRead  *int `json:"cache_read_input_tokens,omitempty"`
	}
	anError struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	}
)

// UnmarshalJSON reads any value, for inputs of tools.
func (n *node) UnmarshalJSON(data []byte) error {
	parsed, err := parseJSON(data)
	if err != nil {
		return err
	}
	*n = *parsed
	return nil
}

// anthropicTurn reads one answer of Anthropic Messages.
type anthropicTurn struct {
	acc   account
	grant Grant
	begun bool           // the message was
	open  map[int]string // the type of each block that is being written
	text  strings.Builder
}

func newAnthropicTurn(g Grant) turn {
	return &anthropicTurn{grant: g, open: map[int]string{}}
}

func (t *anthropicTurn) account() *account {
	t.acc.text = t.text.String()
	return &t.acc
}

// event relays an event whose type and parts are known here.
// Guarded by tests/attacks TestT18ACallOutsideTheSetIsNotRelayed.
func (t *anthropicTurn) event(data []byte) ([]byte, error) {
	var e anEvent
	if err := decode(data, &e); err != nil {
		return nil, err
	}
	if t.acc.done {
		return nil, errBroken
	}
	keep, err := t.take(&e)
	if err != nil || !keep {
		return nil, err
	}
	out, err := encode(e)
	if err != nil {
		return nil, errBroken
	}
	return frame(e.Type, out), nil
}

// take checks one event and takes from it what the account needs. It clears
// what does not belong to the event's type.
func (t *anthropicTurn) take(e *anEvent) (keep bool, err error) {
	if starts := e.Type == "message_start"; strings.HasPrefix(e.Type, "message_") && starts == t.begun {
		return false, errBroken
	}
	switch e.Type {
	case "ping":
		*e = anEvent{Type: e.Type}
	case "message_start":
		err = t.start(e)
	case "content_block_start":
		err = t.begin(e)
	case "content_block_delta":
		return t.delta(e)
	case "content_block_stop":
		if e.Index == nil || t.open[*e.Index] == "" {
			return false, errBroken
		}
		t.open[*e.Index] = "closed"
		*e = anEvent{Type: e.Type, Index: e.Index}
	case "message_delta":
		err = t.finish(e)
	case "message_stop":
		if t.acc.stop == "" {
			return false, errBroken
		}
		t.acc.done = true
		*e = anEvent{Type: e.Type}
	case "error":
		return false, &errUpstream{reason(e.Error)}
	default:
		t.acc.leaveOut(e.Type)
		return false, nil
	}
	return err == nil, err
}

func reason(e *anError) string {
	if e == nil {
		return ""
	}
	return knownReason(e.Type)
}

func (t *anthropicTurn) start(e *anEvent) error {
	if e.Message == nil || len(e.Message.Content) > 0 {
		return errBroken
	}
	t.begun = true
	e.Message.Content = []anPart{}
	t.use(e.Message.Usage)
	*e = anEvent{Type: e.Type, Message: e.Message.clean(t.grant)}
	return nil
}

// clean leaves the fixed parts of a message as they must be.
func (m *anAnswer) clean(g Grant) *anAnswer {
	m.Type, m.Role, m.Model = "message", "assistant", g.Model
	if !plainID.MatchString(m.ID) {
		m.ID = "msg"
	}
	return m
}

func (t *anthropicTurn) begin(e *anEvent) error {
	if e.Index == nil || e.Block == nil || t.open[*e.Index] != "" {
		return errBroken
	}
	if err := t.allow(e.Block); err != nil {
		return err
	}
	t.open[*e.Index] = e.Block.Type
	t.write(e.Block)
	*e = anEvent{Type: e.Type, Index: e.Index, Block: e.Block}
	return nil
}

// allow refuses every block but text, thinking and a granted tool.
func (t *anthropicTurn) allow(b *anPart) error {
	switch b.Type {
	case "text":
		if b.Text == nil {
			return errBroken
		}
		*b = anPart{Type: b.Type, Text: b.Text}
	case "thinking":
		*b = anPart{Type: b.Type, Thinking: orEmpty(b.Thinking), Signature: orEmpty(b.Signature)}
	case "redacted_thinking":
		*b = anPart{Type: b.Type, Data: b.Data}
	case "tool_use":
		if !slices.Contains(t.grant.Tools, b.Name) {
			return &ViolationError{word(b.Name)}
		}
		if !plainID.MatchString(b.ID) || b.Input == nil || b.Input.kind != kindObject {
			return errBroken
		}
		*b = anPart{Type: b.Type, ID: b.ID, Name: b.Name, Input: b.Input}
		t.acc.calls++
	default:
		return &ViolationError{word(orKind(b.Name, b.Type))}
	}
	return nil
}

func orEmpty(s *string) *string {
	if s == nil {
		s = new(string)
	}
	return s
}

func (t *anthropicTurn) write(b *anPart) {
	if b.Type == "text" {
		t.text.WriteString(*b.Text)
	}
}

// delta relays a piece that fits the block that it belongs to.
func (t *anthropicTurn) delta(e *anEvent) (bool, error) {
	if e.Index == nil || e.Delta == nil {
		return false, errBroken
	}
	d, kind := *e.Delta, t.open[*e.Index]
	out := anDelta{Type: d.Type}
	switch {
	case d.Type == "text_delta" && kind == "text" && d.Text != nil:
		t.text.WriteString(*d.Text)
		out.Text = d.Text
	case d.Type == "thinking_delta" && kind == "thinking" && d.Thinking != nil:
		out.Thinking = d.Thinking
	case d.Type == "signature_delta" && kind == "thinking" && d.Signature != nil:
		out.Signature = d.Signature
	case d.Type == "input_json_delta" && kind == "tool_use" && d.PartialJSON != nil:
		out.PartialJSON = d.PartialJSON
	case kind == "" || kind == "closed" || d.Type == "input_json_delta":
		return false, errBroken
	default:
		t.acc.leaveOut(d.Type)
		return false, nil
	}
	*e = anEvent{Type: e.Type, Index: e.Index, Delta: &out}
	return true, nil
}

func (t *anthropicTurn) finish(e *anEvent) error {
	if e.Delta == nil {
		return errBroken
	}
	t.use(e.Usage)
	t.acc.measured = e.Usage != nil && e.Usage.Output != nil
	if e.Delta.StopReason != nil {
		t.acc.stop = word(*e.Delta.StopReason)
	}
	*e = anEvent{
		Type: e.Type, Usage: e.Usage,
		Delta: &anDelta{StopReason: e.Delta.StopReason, StopSequence: e.Delta.StopSequence},
	}
	return nil
}

// use takes the numbers that are there; later ones count, since they are sums.
func (t *anthropicTurn) use(u *anUsage) {
	if u == nil {
		return
	}
	for _, f := range []struct {
		from *int
		to   *int
	}{
		{u.Input, &t.acc.usage.Input}, {u.Output, &t.acc.usage.Output},
		{u.CacheWrite, &t.acc.usage.CacheWrite}, {u.CacheRead, &t.acc.usage.CacheRead},
	} {
		if f.from != nil {
			*f.to = max(*f.to, sane(*f.from))
		}
	}
}

func (t *anthropicTurn) whole(data []byte) ([]byte, error) {
	var m anAnswer
	if err := decode(data, &m); err != nil {
		return nil, err
	}
	if m.Type != "message" || m.StopReason == nil {
		return nil, errBroken
	}
	if m.Content == nil {
		m.Content = []anPart{}
	}
	for i := range m.Content {
		if err := t.allow(&m.Content[i]); err != nil {
			return nil, err
		}
		t.write(&m.Content[i])
	}
	t.use(m.Usage)
	t.acc.measured = m.Usage != nil && m.Usage.Output != nil
	t.acc.stop, t.acc.done = word(*m.StopReason), true
	return encode(m.clean(t.grant))
}
