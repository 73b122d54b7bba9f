package broker

import (
	"encoding/base64"
	"strings"
)

// The parts of OpenAI Responses that leave this machine. What has no field here
// cannot be sent.
type (
	oaRequest struct {
		Model           string       `json:"model"`
		Instructions    string       `json:"instructions,omitempty"`
		Input           []oaItem     `json:"input"`
		Tools           []oaTool     `json:"tools,omitempty"`
		ToolChoice      string       `json:"tool_choice,omitempty"`
		Parallel        *bool        `json:"parallel_tool_calls,omitempty"`
		Reasoning       *oaReasoning `json:"reasoning,omitempty"`
		Text            *oaText      `json:"text,omitempty"`
		Include         []string     `json:"include,omitempty"`
		MaxOutputTokens int          `json:"max_output_tokens"`
		Store           bool         `json:"store"` // always false
		Safety          string       `json:"safety_identifier,omitempty"`
		CacheKey        string       `json:"prompt_cache_key,omitempty"`
		Stream          bool         `json:"stream"`
	}
	oaItem struct {
		Type      string    `json:"type"`
		ID        string    `json:"id,omitempty"` // of reasoning only
		Role      string    `json:"role,omitempty"`
		Phase     string    `json:"phase,omitempty"`
		Content   *[]oaPart `json:"content,omitempty"`
		Summary   *[]oaPart `json:"summary,omitempty"`
		Encrypted string    `json:"encrypted_content,omitempty"`
		CallID    string    `json:"call_id,omitempty"`
		Namespace string    `json:"namespace,omitempty"`
		Name      string    `json:"name,omitempty"`
		Arguments *string   `json:"arguments,omitempty"`
		Input     *string   `json:"input,omitempty"`
		Output    *oaOutput `json:"output,omitempty"`
	}
	oaPart struct {
		Type     string  `json:"type"`
		Text     *string `json:"text,omitempty"`
		Refusal  *string `json:"refusal,omitempty"`
		ImageURL string  `json:"image_url,omitempty"` // data: only
		Detail   string  `json:"detail,omitempty"`
	}
	oaTool struct {
		Type        string    `json:"type"`
		Name        string    `json:"name"`
		Description string    `json:"description,omitempty"`
		Strict      *bool     `json:"strict,omitempty"`
		Parameters  *node     `json:"parameters,omitempty"`
		Format      *oaFormat `json:"format,omitempty"`
	}
	oaFormat struct {
		Type       string `json:"type"`
		Syntax     string `json:"syntax,omitempty"`
		Definition string `json:"definition,omitempty"`
	}
	oaReasoning struct {
		Effort  string `json:"effort,omitempty"`
		Summary string `json:"summary,omitempty"`
	}
	oaText struct {
		Verbosity string `json:"verbosity,omitempty"`
	}
)

// oaOutput is a tool's output: a text, or parts.
type oaOutput struct {
	text  string
	parts []oaPart
}

// MarshalJSON writes a text or a list.
func (o *oaOutput) MarshalJSON() ([]byte, error) {
	if o.parts != nil {
		return encode(o.parts)
	}
	return encode(o.text)
}

// openaiForm reads the parts of a request to OpenAI Responses.
type openaiForm struct{ *shape }

// openaiRequest rebuilds one request to OpenAI Responses. Nothing is stored,
// nothing runs in the background, and nothing of the account is named.
// Guarded by tests/attacks TestT4OnlyTheAllowListLeaves.
func openaiRequest(form *shape, root *node, most int) (any, bool) {
	s := openaiForm{form}
	o := s.object(root, "")
	o.text("model") // whatever is asked: the grant's model is used
	r := oaRequest{
		Model: s.grant.Model, Instructions: o.maybe("instructions"), Input: s.input(o.take("input")),
		Tools: s.openaiTools(o.list("tools"), "tools"), ToolChoice: o.maybeOne("tool_choice", "auto", "none", "required"),
		Parallel: o.flag("parallel_tool_calls"), Reasoning: s.reasoning(o.value("reasoning")), Text: s.textOptions(o.value("text")),
		MaxOutputTokens: clamp(o.count("max_output_tokens"), most),
		Safety:          s.grant.Asker, CacheKey: s.grant.Cache,
		Stream: o.yes("stream"),
	}
	if len(r.Tools) == 0 {
		r.ToolChoice, r.Parallel = "", nil
	}
	for _, n := range o.list("include") {
		if n.kind != kindText || n.text != "reasoning.encrypted_content" {
			o.refuse("include", "unknown value "+word(n.text))
			continue
		}
		r.Include = []string{n.text}
	}
	o.flag("store")
	if o.yes("background") {
		o.refuse("background", "runs at the provider after the run")
	}
	o.leave("prompt_cache_key", "prompt_cache_retention", "client_metadata", "metadata", "user", "safety_identifier",
		"service_tier", "stream_options")
	o.end()
	return r, r.Stream
}

func (s openaiForm) input(n *node) []oaItem {
	var out []oaItem
	switch {
	case n == nil:
		s.refuse("input", "missing")
	case n.kind == kindText:
		out = append(out, oaItem{Type: "message", Role: "user", Content: &[]oaPart{{Type: "input_text", Text: &n.text}}})
	case n.kind != kindList:
		s.refuse("input", "neither text nor a list")
	default:
		for i, item := range n.items {
			if it, keep := s.item(item, index("input", i)); keep {
				out = append(out, it)
			}
		}
	}
	if len(out) == 0 {
		s.refuse("input", "nothing to answer")
	}
	return out
}

// item reads one item of the conversation. Items that bring tools are taken out
// and their tools counted; references to what the provider stores are refused.
func (s openaiForm) item(n *node, path string) (oaItem, bool) {
	o := s.object(n, path)
	it := oaItem{Type: "message"}
	if o.left["type"] != nil || o.left["role"] == nil {
		it.Type = o.one("type", "message", "reasoning", "function_call", "function_call_output",
			"custom_tool_call", "custom_tool_call_output", "additional_tools")
	}
	o.ignore("status") // of an earlier answer
	switch it.Type {
	case "message":
		o.ignore("id")
		s.readMessage(o, &it)
	case "reasoning":
		s.readReasoning(o, &it)
	case "function_call":
		o.ignore("id")
		s.readCall(o, &it)
		arguments := o.text("arguments")
		it.Arguments = &arguments
	case "custom_tool_call":
		o.ignore("id")
		s.readCall(o, &it)
		input := o.text("input")
		it.Input = &input
	case "function_call_output", "custom_tool_call_output":
		o.ignore("id")
		it.CallID, it.Output = o.id("call_id"), s.readOutput(o)
	case "additional_tools":
		s.openaiTools(o.list("tools"), o.at("tools"), "")
		return oaItem{}, false
	default:
		return oaItem{}, false // refused; its fields say nothing more
	}
	o.end()
	return it, true
}

func (s openaiForm) readMessage(o *object, it *oaItem) {
	it.Role = o.one("role", "user", "assistant", "developer", "system")
	it.Phase = o.maybeOne("phase", "commentary", "final_answer")
	types := []string{"input_text", "input_image"}
	if it.Role == "assistant" {
		types = []string{"output_text", "refusal", "input_text"}
	}
	n := o.take("content")
	if n != nil && n.kind == kindText {
		it.Content = &[]oaPart{{Type: types[0], Text: &n.text}}
		return
	}
	it.Content = s.parts(n, o.at("content"), types...)
}

func (s openaiForm) readReasoning(o *object, it *oaItem) {
	if n := o.value("id"); n != nil && n.kind == kindText && plainID.MatchString(n.text) && strings.HasPrefix(n.text, "rs_") {
		it.ID = n.text // the provider's own, which belongs to the encrypted text
	}
	it.Summary = &[]oaPart{}
	if n := o.value("summary"); n != nil {
		it.Summary = s.parts(n, o.at("summary"), "summary_text")
	}
	if n := o.value("content"); n != nil {
		it.Content = s.parts(n, o.at("content"), "reasoning_text")
	}
	it.Encrypted = o.maybe("encrypted_content")
}

func (s openaiForm) readCall(o *object, it *oaItem) {
	it.CallID, it.Name, it.Namespace = o.id("call_id"), o.text("name"), o.maybe("namespace")
	if !o.granted(qualified(it.Namespace, it.Name)) {
		o.refuse(o.at("name"), "a tool that is not granted")
	}
}

// qualified is how a grant names a tool of a namespace.
func qualified(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "." + name
}

func (s openaiForm) readOutput(o *object) *oaOutput {
	n := o.take("output")
	if n != nil && n.kind == kindText {
		return &oaOutput{text: n.text}
	}
	return &oaOutput{parts: *s.parts(n, o.at("output"), "input_text", "input_image")}
}

// parts reads a list of parts of the given types. It never gives nil.
func (s openaiForm) parts(n *node, path string, types ...string) *[]oaPart {
	out := []oaPart{}
	if n == nil || n.kind != kindList {
		s.refuse(path, "not a list")
		return &out
	}
	for i, item := range n.items {
		out = append(out, s.part(item, index(path, i), types))
	}
	return &out
}

func (s openaiForm) part(n *node, path string, types []string) oaPart {
	o := s.object(n, path)
	p := oaPart{Type: o.one("type", types...)}
	switch p.Type {
	case "":
		return p // refused; its fields say nothing more
	case "input_image":
		p.ImageURL, p.Detail = o.text("image_url"), o.maybeOne("detail", "auto", "low", "high", "original")
		if !inlineImage(p.ImageURL) {
			o.refuse(o.at("image_url"), "not an image within the request")
		}
	case "refusal":
		text := o.text("refusal")
		p.Refusal = &text
	case "output_text":
		o.ignore("logprobs")
		if len(o.list("annotations")) > 0 {
			o.drop("annotations")
		}
		fallthrough
	default:
		text := o.text("text")
		p.Text = &text
	}
	o.end()
	return p
}

// inlineImage says whether an address holds the image itself.
func inlineImage(url string) bool {
	rest, ok := strings.CutPrefix(url, "data:image/")
	kind, data, found := strings.Cut(rest, ";base64,")
	if !ok || !found || kind != "png" && kind != "jpeg" && kind != "gif" && kind != "webp" {
		return false
	}
	_, err := base64.StdEncoding.DecodeString(data)
	return err == nil
}

// openaiTools gives the tools that the grant allows. The others, whole
// namespaces of them, and all that the provider itself would run, are counted
// and left out unread.
func (s openaiForm) openaiTools(items []*node, path string, namespace ...string) []oaTool {
	var out []oaTool
	seen := map[string]bool{}
	for i, n := range items {
		o := s.object(n, index(path, i))
		kind, name := o.maybe("type"), o.maybe("name")
		if inner := o.value("tools"); kind == "namespace" && inner != nil && len(namespace) < 3 {
			s.openaiTools(inner.items, o.at("tools"), append(namespace, name)...)
			continue
		}
		known := kind == "function" || kind == "custom"
		if len(namespace) > 0 || !known || !s.granted(name) || seen[name] {
			s.remove(qualified(strings.Trim(strings.Join(namespace, "."), "."), orKind(name, kind)))
			continue
		}
		seen[name] = true
		out = append(out, s.readTool(o, kind, name))
	}
	return out
}

func (s openaiForm) readTool(o *object, kind, name string) oaTool {
	t := oaTool{Type: kind, Name: name, Description: o.maybe("description")}
	if kind == "function" {
		t.Strict, t.Parameters = o.flag("strict"), o.schema("parameters")
	} else if f := o.value("format"); f != nil {
		format := s.object(f, o.at("format"))
		t.Format = &oaFormat{
			Type: format.one("type", "text", "grammar"), Syntax: format.maybeOne("syntax", "lark", "regex"),
			Definition: format.maybe("definition"),
		}
		format.end()
	}
	o.leave("defer_loading")
	o.end()
	return t
}

// reasoning lowers the dearer efforts to the middle one.
func (s openaiForm) reasoning(n *node) *oaReasoning {
	if n == nil {
		return nil
	}
	o := s.object(n, "reasoning")
	r := &oaReasoning{
		Effort:  o.maybeOne("effort", "none", "minimal", "low", "medium", "high", "xhigh", "max", "ultra"),
		Summary: o.maybeOne("summary", "auto", "concise", "detailed", "none"),
	}
	switch r.Effort {
	case "high", "xhigh", "max", "ultra":
		s.drop("reasoning.effort above medium")
		r.Effort = "medium"
	}
	o.leave("context")
	o.end()
	if r.Summary == "none" {
		r.Summary = ""
	}
	if *r == (oaReasoning{}) {
		return nil
	}
	return r
}

func (s openaiForm) textOptions(n *node) *oaText {
	if n == nil {
		return nil
	}
	o := s.object(n, "text")
	t := &oaText{Verbosity: o.maybeOne("verbosity", "low", "medium", "high")}
	if f := o.value("format"); f != nil {
		format := o.object(f, "text.format")
		format.one("type", "text")
		format.end()
	}
	o.end()
	if *t == (oaText{}) {
		return nil
	}
	return t
}
