package broker

import (
	"encoding/base64"
	"strings"
)

// The parts of Anthropic Messages that leave this machine. What has no field
// here cannot be sent.
type (
	anRequest struct {
		Model         string      `json:"model"`
		MaxTokens     int         `json:"max_tokens"`
		Metadata      *anMetadata `json:"metadata,omitempty"`
		System        []anBlock   `json:"system,omitempty"`
		Messages      []anMessage `json:"messages"`
		Tools         []anTool    `json:"tools,omitempty"`
		ToolChoice    *anChoice   `json:"tool_choice,omitempty"`
		Thinking      *anThinking `json:"thinking,omitempty"`
		Temperature   *float64    `json:"temperature,omitempty"`
		TopP          *float64    `json:"top_p,omitempty"`
		TopK          int         `json:"top_k,omitempty"`
		StopSequences []string    `json:"stop_sequences,omitempty"`
		Stream        bool        `json:"stream"`
	}
	anMetadata struct {
		UserID string `json:"user_id"`
	}
	anMessage struct {
		Role    string    `json:"role"`
		Content []anBlock `json:"content"`
	}
	anBlock struct {
		Type      string    `json:"type"`
		Text      *string   `json:"text,omitempty"`
		Thinking  *string   `json:"thinking,omitempty"`
		Signature *string   `json:"signature,omitempty"`
		Data      string    `json:"data,omitempty"`
		ID        string    `json:"id,omitempty"`
		Name      string    `json:"name,omitempty"`
		Input     *node     `json:"input,omitempty"`
		ToolUseID string    `json:"tool_use_id,omitempty"`
		Content   []anBlock `json:"content,omitempty"`
		IsError   bool      `json:"is_error,omitempty"`
		Source    *anSource `json:"source,omitempty"`
		Cache     *anCache  `json:"cache_control,omitempty"`
	}
	anSource struct {
		Type      string `json:"type"`
		MediaType string `json:"media_type"`
		Data      string `json:"data"`
	}
	anCache struct {
		Type string `json:"type"`
	}
	anTool struct {
		Name        string   `json:"name"`
		Description string   `json:"description,omitempty"`
		InputSchema *node    `json:"input_schema"`
		Cache       *anCache `json:"cache_control,omitempty"`
	}
	anChoice struct {
		Type     string `json:"type"`
		Name     string `json:"name,omitempty"`
		Parallel *bool  `json:"disable_parallel_tool_use,omitempty"`
	}
	anThinking struct {
		Type   string `json:"type"`
		Budget int    `json:"budget_tokens,omitempty"`
	}
)

// leastThinking is the smallest budget that the provider takes.
const leastThinking = 1024

// billing begins the text block in which claude names itself and its version to
// the provider.
const billing = "x-anthropic-billing-header:"

// anthropicForm reads the parts of a request to Anthropic Messages.
type anthropicForm struct{ *shape }

// anthropicRequest rebuilds one request to Anthropic Messages.
// Guarded by tests/attacks TestT4OnlyTheAllowListLeaves.
func anthropicRequest(form *shape, root *node, most int) (any, bool) {
	s := anthropicForm{form}
	o := s.object(root, "")
	o.text("model") // whatever is asked: the grant's model is used
	r := anRequest{Model: s.grant.Model, MaxTokens: clamp(o.count("max_tokens"), most)}
	if s.grant.Asker != "" {
		r.Metadata = &anMetadata{s.grant.Asker}
	}
	r.System = s.system(o.value("system"))
	r.Messages = s.messages(o.list("messages"))
	r.Tools = s.anthropicTools(o.list("tools"))
	r.ToolChoice = s.anthropicChoice(o.value("tool_choice"), len(r.Tools))
	r.Thinking = s.thinking(o.value("thinking"), r.MaxTokens)
	r.Temperature, r.TopP = o.between("temperature", 0, 1), o.between("top_p", 0, 1)
	r.TopK = o.count("top_k")
	for i, n := range o.list("stop_sequences") {
		if n.kind != kindText || i >= 8 {
			o.refuse("stop_sequences", "not a few texts")
			break
		}
		r.StopSequences = append(r.StopSequences, n.text)
	}
	r.Stream = o.yes("stream")
	// Known to be sent by claude, and of no use here: what the provider would
	// store, speed up or bill otherwise, and who the client says it is.
	o.leave("metadata", "context_management", "output_config", "service_tier", "speed")
	o.end()
	return r, r.Stream
}

// clamp gives the tokens that are asked for, within the limit.
func clamp(asked, most int) int {
	if asked == 0 {
		return most
	}
	return min(asked, most)
}

func (s anthropicForm) system(n *node) []anBlock {
	if n == nil {
		return nil
	}
	var out []anBlock
	for _, b := range s.blocks(n, "system", "text") {
		if b.Text != nil && strings.HasPrefix(*b.Text, billing) {
			s.drop("system.billing")
			continue
		}
		out = append(out, b)
	}
	return out
}

// messages reads the conversation. Newer models of claude get reminders as
// messages of the role system in the middle; they become the user's, which is
// less authority, and never stand between a tool call and its result.
func (s anthropicForm) messages(items []*node) []anMessage {
	var out []anMessage
	var held []anBlock
	for i, n := range items {
		m := s.message(n, index("messages", i))
		switch {
		case m.Role == "system" && len(out) > 0 && out[len(out)-1].Role == "user":
			out[len(out)-1].Content = append(out[len(out)-1].Content, m.Content...)
		case m.Role == "system":
			held = append(held, m.Content...)
		case m.Role == "user":
			m.Content = append(m.Content, held...)
			out, held = append(out, m), nil
		default:
			out = append(out, m)
		}
	}
	if len(held) > 0 {
		out = append(out, anMessage{"user", held})
	}
	if len(out) == 0 {
		s.refuse("messages", "none")
	}
	return out
}

func (s anthropicForm) message(n *node, path string) anMessage {
	o := s.object(n, path)
	m := anMessage{Role: o.one("role", "user", "assistant", "system")}
	content := o.take("content")
	switch m.Role {
	case "assistant":
		m.Content = s.blocks(content, o.at("content"), "text", "thinking", "redacted_thinking", "tool_use")
	case "system":
		m.Content = s.blocks(content, o.at("content"), "text")
		o.leave("output_config")
	default:
		m.Content = s.blocks(content, o.at("content"), "text", "image", "document", "tool_result")
	}
	o.end()
	return m
}

// blocks reads a text, or a list of blocks of the given types.
func (s anthropicForm) blocks(n *node, path string, types ...string) []anBlock {
	switch {
	case n == nil:
		s.refuse(path, "missing")
		return nil
	case n.kind == kindText:
		return []anBlock{{Type: "text", Text: &n.text}}
	case n.kind != kindList:
		s.refuse(path, "neither text nor a list")
		return nil
	}
	out := make([]anBlock, 0, len(n.items))
	for i, item := range n.items {
		out = append(out, s.block(item, index(path, i), types))
	}
	return out
}

func (s anthropicForm) block(n *node, path string, types []string) anBlock {
	o := s.object(n, path)
	b := anBlock{Type: o.one("type", types...)}
	switch b.Type {
	case "text":
		text := o.text("text")
		b.Text = &text
		s.cited(o)
	case "thinking":
		thinking, signature := o.text("thinking"), o.text("signature")
		b.Thinking, b.Signature = &thinking, &signature
	case "redacted_thinking":
		b.Data = o.text("data")
	case "image":
		b.Source = s.source(o.take("source"), o.at("source"), "image/png", "image/jpeg", "image/gif", "image/webp")
	case "document":
		b.Source = s.source(o.take("source"), o.at("source"), "application/pdf")
	case "tool_use":
		s.toolUse(o, &b)
	case "tool_result":
		b.ToolUseID, b.IsError = o.id("tool_use_id"), o.yes("is_error")
		if content := o.value("content"); content != nil {
			b.Content = s.blocks(content, o.at("content"), "text", "image", "document")
		}
	default:
		return anBlock{} // refused; its fields say nothing more
	}
	b.Cache = s.cache(o.value("cache_control"), o.at("cache_control"))
	o.end()
	return b
}

// cited takes the citations of a text that the model wrote before. They can
// only be empty, since no source of citations is let through.
func (s anthropicForm) cited(o *object) {
	if len(o.list("citations")) > 0 {
		o.refuse(o.at("citations"), "not empty")
	}
}

func (s anthropicForm) toolUse(o *object, b *anBlock) {
	b.ID, b.Name = o.id("id"), o.text("name")
	if !o.granted(b.Name) {
		o.refuse(o.at("name"), "a tool that is not granted")
	}
	b.Input = o.take("input")
	if b.Input == nil || b.Input.kind != kindObject {
		o.refuse(o.at("input"), "not an object")
	}
	// Who called it: the model itself, and nothing that runs at the provider.
	if c := o.value("caller"); c != nil {
		caller := o.object(c, o.at("caller"))
		caller.one("type", "direct")
		caller.end()
	}
}

// source reads data that is part of the request. A URL or a file of the
// operator's account is no such thing.
func (s anthropicForm) source(n *node, path string, media ...string) *anSource {
	o := s.object(n, path)
	src := &anSource{Type: o.one("type", "base64"), MediaType: o.one("media_type", media...), Data: o.text("data")}
	if _, err := base64.StdEncoding.DecodeString(src.Data); err != nil {
		o.refuse(o.at("data"), "not base64")
	}
	o.end()
	return src
}

func (s anthropicForm) cache(n *node, path string) *anCache {
	if n == nil {
		return nil
	}
	o := s.object(n, path)
	c := &anCache{o.one("type", "ephemeral")}
	o.leave("ttl", "scope") // the longer kinds cost more
	o.end()
	return c
}

// anthropicTools gives the tools that the grant allows. The others, and all
// that the provider itself would run, are counted and left out unread.
func (s anthropicForm) anthropicTools(items []*node) []anTool {
	var out []anTool
	seen := map[string]bool{}
	for i, n := range items {
		o := s.object(n, index("tools", i))
		kind, name := o.maybe("type"), o.maybe("name")
		if kind != "" && kind != "custom" || !s.granted(name) || seen[name] {
			s.remove(orKind(name, kind))
			continue
		}
		seen[name] = true
		t := anTool{Name: name, Description: o.maybe("description"), InputSchema: o.schema("input_schema")}
		t.Cache = s.cache(o.value("cache_control"), o.at("cache_control"))
		o.leave("defer_loading", "strict", "eager_input_streaming")
		o.end()
		out = append(out, t)
	}
	return out
}

func orKind(name, kind string) string {
	if name == "" {
		return kind
	}
	return name
}

func (s anthropicForm) anthropicChoice(n *node, tools int) *anChoice {
	if n == nil {
		return nil
	}
	o := s.object(n, "tool_choice")
	c := &anChoice{Type: o.one("type", "auto", "any", "tool", "none"), Parallel: o.flag("disable_parallel_tool_use")}
	if c.Type == "tool" {
		if c.Name = o.text("name"); !s.granted(c.Name) {
			o.refuse("tool_choice.name", "a tool that is not granted")
		}
	}
	o.end()
	if tools == 0 {
		return nil
	}
	return c
}

// thinking fits the budget into the tokens of the answer, half of which stay
// for the answer itself.
func (s anthropicForm) thinking(n *node, most int) *anThinking {
	if n == nil {
		return nil
	}
	o := s.object(n, "thinking")
	t := &anThinking{Type: o.one("type", "enabled", "adaptive", "disabled")}
	budget := o.count("budget_tokens")
	o.leave("display")
	o.end()
	if t.Type != "enabled" {
		return t
	}
	if t.Budget = clamp(budget, most/2); t.Budget < leastThinking {
		return nil
	}
	return t
}
