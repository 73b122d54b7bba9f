package broker

import (
	"slices"
	"strings"
)

// The parts of an answer of OpenAI Responses that reach the CLI.
type (
	oaEvent struct {
		Type         string    `json:"type"`
		Sequence     *int      `json:"sequence_number,omitempty"`
		Response     *oaAnswer `json:"response,omitempty"`
		OutputIndex  *int      `json:"output_index,omitempty"`
		ContentIndex *int      `json:"content_index,omitempty"`
		SummaryIndex *int      `json:"summary_index,omitempty"`
		ItemID       string    `json:"item_id,omitempty"`
		Item         *oaResult `json:"item,omitempty"`
		Part         *oaPiece  `json:"part,omitempty"`
		Delta        *string   `json:"delta,omitempty"`
		Text         *string   `json:"text,omitempty"`
		Refusal      *string   `json:"refusal,omitempty"`
		Arguments    *string   `json:"arguments,omitempty"`
		Input        *string   `json:"input,omitempty"`
		Code         string    `json:"code,omitempty"` // of an error, which is not relayed
	}
	oaAnswer struct {
		ID         string        `json:"id"`
		Object     string        `json:"object"`
		CreatedAt  float64       `json:"created_at"`
		Status     string        `json:"status"`
		Model      string        `json:"model"`
		Output     []oaResult    `json:"output"`
		Incomplete *oaIncomplete `json:"incomplete_details"`
		Error      *oaError      `json:"error"`
		Usage      *oaUsage      `json:"usage"`
	}
	oaIncomplete struct {
		Reason string `json:"reason"`
	}
	oaError struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	}
	oaResult struct {
		ID        string     `json:"id"`
		Type      string     `json:"type"`
		Status    string     `json:"status,omitempty"`
		Role      string     `json:"role,omitempty"`
		Phase     string     `json:"phase,omitempty"`
		Content   *[]oaPiece `json:"content,omitempty"`
		Summary   *[]oaPiece `json:"summary,omitempty"`
		Encrypted *string    `json:"encrypted_content,omitempty"`
		CallID    string     `json:"call_id,omitempty"`
		Namespace string     `json:"namespace,omitempty"`
		Name      string     `json:"name,omitempty"`
		Arguments *string    `json:"arguments,omitempty"`
		Input     *string    `json:"input,omitempty"`
	}
	oaPiece struct {
		Type        string    `json:"type"`
		Text        *string   `json:"text,omitempty"`
		Refusal     *string   `json:"refusal,omitempty"`
		Annotations *[]string `json:"annotations,omitempty"` // always empty
	}
	oaUsage struct {
		Input         int         `json:"input_tokens"`
		InputDetails  *oaCached   `json:"input_tokens_details,omitempty"`
		Output        *int        `json:"output_tokens"`
		OutputDetails *oaThoughts `json:"output_tokens_details,omitempty"`
		Total         int         `json:"total_tokens"`
	}
	oaCached struct {
		Cached int `json:"cached_tokens"`
	}
	oaThoughts struct {
		Reasoning int `json:"reasoning_tokens"`
	}
)

// openaiTurn reads one answer of OpenAI Responses.
type openaiTurn struct {
	acc   account
	grant Grant
	open  map[int]string // output index -> the type of the item there
	items []oaResult     // those that are complete
}

func newOpenAITurn(g Grant) turn { return &openaiTurn{grant: g, open: map[int]string{}} }

func (t *openaiTurn) account() *account {
	if t.acc.done {
		t.acc.text = said(t.items)
	}
	return &t.acc
}

// said gives the text of the answer: what is not marked as a comment on the way.
func said(items []oaResult) string {
	var final, all []string
	for _, it := range items {
		if it.Type != "message" || it.Content == nil {
			continue
		}
		var b strings.Builder
		for _, p := range *it.Content {
			for _, text := range []*string{p.Text, p.Refusal} {
				if text != nil {
					b.WriteString(*text)
				}
			}
		}
		all = append(all, b.String())
		if it.Phase != "commentary" {
			final = append(final, b.String())
		}
	}
	if len(final) > 0 {
		all = final
	}
	return strings.Join(all, "\n\n")
}

// event relays an event whose type and parts are known here.
// Guarded by tests/attacks TestT18ACallOutsideTheSetIsNotRelayed.
func (t *openaiTurn) event(data []byte) ([]byte, error) {
	var e oaEvent
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

func (t *openaiTurn) take(e *oaEvent) (keep bool, err error) {
	switch e.Type {
	case "response.created", "response.in_progress":
		err = t.progress(e)
	case "response.output_item.added", "response.output_item.done":
		err = t.result(e)
	case "response.completed", "response.incomplete":
		err = t.finish(e)
	case "response.failed":
		return false, &errUpstream{e.Response.reason()}
	case "error":
		return false, &errUpstream{knownReason(e.Code)}
	default:
		return t.piece(e)
	}
	return err == nil, err
}

func (a *oaAnswer) reason() string {
	if a == nil || a.Error == nil {
		return ""
	}
	return knownReason(a.Error.Code)
}

func (t *openaiTurn) progress(e *oaEvent) error {
	if e.Response == nil {
		return errBroken
	}
	*e = oaEvent{Type: e.Type, Sequence: e.Sequence, Response: e.Response}
	return t.answer(e.Response)
}

// answer checks the whole of an answer as far as it is there.
func (t *openaiTurn) answer(a *oaAnswer) error {
	for i := range a.Output {
		if err := t.allow(&a.Output[i]); err != nil {
			return err
		}
	}
	if a.Output == nil {
		a.Output = []oaResult{}
	}
	if !plainID.MatchString(a.ID) {
		a.ID = "resp"
	}
	a.Object, a.Model, a.Status, a.Error = "response", t.grant.Model, word(a.Status), nil
	if a.Incomplete != nil {
		a.Incomplete.Reason = word(a.Incomplete.Reason)
	}
	return nil
}

func (t *openaiTurn) result(e *oaEvent) error {
	if e.Item == nil || e.OutputIndex == nil {
		return errBroken
	}
	if err := t.allow(e.Item); err != nil {
		return err
	}
	t.open[*e.OutputIndex] = e.Item.Type
	if strings.HasSuffix(e.Type, ".done") {
		t.keep(*e.Item)
	}
	*e = oaEvent{Type: e.Type, Sequence: e.Sequence, OutputIndex: e.OutputIndex, Item: e.Item}
	return nil
}

func (t *openaiTurn) keep(it oaResult) {
	if it.Type == "function_call" || it.Type == "custom_tool_call" {
		t.acc.calls++
	}
	t.items = append(t.items, it)
}

// allow refuses every item but messages, reasoning and a granted tool.
func (t *openaiTurn) allow(it *oaResult) error {
	out := oaResult{ID: it.ID, Type: it.Type, Status: it.Status}
	if !plainID.MatchString(out.ID) {
		out.ID = "item"
	}
	if out.Status != "" {
		out.Status = word(out.Status)
	}
	switch it.Type {
	case "message":
		out.Role, out.Content = "assistant", onlyPieces(it.Content, "output_text", "refusal")
		if it.Phase == "commentary" || it.Phase == "final_answer" {
			out.Phase = it.Phase
		}
	case "reasoning":
		out.Summary, out.Content, out.Encrypted = onlyPieces(it.Summary, "summary_text"), it.Content, it.Encrypted
		if it.Content != nil {
			out.Content = onlyPieces(it.Content, "reasoning_text")
		}
	case "function_call", "custom_tool_call":
		if !slices.Contains(t.grant.Tools, qualified(it.Namespace, it.Name)) {
			return &ViolationError{word(qualified(it.Namespace, it.Name))}
		}
		if !plainID.MatchString(it.CallID) {
			return errBroken
		}
		out.CallID, out.Namespace, out.Name, out.Arguments, out.Input = it.CallID, it.Namespace, it.Name, it.Arguments, it.Input
	default:
		return &ViolationError{word(orKind(it.Name, it.Type))}
	}
	*it = out
	return nil
}

// onlyPieces keeps the pieces of the given types. It never gives nil.
func onlyPieces(in *[]oaPiece, types ...string) *[]oaPiece {
	out := []oaPiece{}
	if in == nil {
		return &out
	}
	for _, p := range *in {
		if slices.Contains(types, p.Type) {
			out = append(out, *p.clean())
		}
	}
	return &out
}

// clean leaves the text of a piece; annotations name what the provider fetched.
func (p *oaPiece) clean() *oaPiece {
	out := &oaPiece{Type: word(p.Type), Text: p.Text, Refusal: p.Refusal}
	if p.Type == "output_text" {
		out.Annotations = &[]string{}
	}
	return out
}

func (t *openaiTurn) finish(e *oaEvent) error {
	a := e.Response
	if a == nil {
		return errBroken
	}
	*e = oaEvent{Type: e.Type, Sequence: e.Sequence, Response: a}
	if err := t.end(a); err != nil {
		return err
	}
	t.acc.stop, t.acc.done = "completed", true
	if e.Type == "response.incomplete" {
		t.acc.stop = "incomplete"
		if a.Incomplete != nil {
			t.acc.stop = a.Incomplete.Reason
		}
	}
	return nil
}

// end takes the account of a finished answer.
func (t *openaiTurn) end(a *oaAnswer) error {
	if err := t.answer(a); err != nil {
		return err
	}
	if len(t.items) == 0 {
		for _, it := range a.Output {
			t.keep(it)
		}
	}
	if u := a.Usage; u != nil && u.Output != nil {
		t.acc.measured = true
		t.acc.usage = Usage{Input: sane(u.Input), Output: sane(*u.Output)}
		if u.InputDetails != nil {
			t.acc.usage.CacheRead = sane(u.InputDetails.Cached)
			t.acc.usage.Input = max(t.acc.usage.Input-t.acc.usage.CacheRead, 0)
		}
	}
	return nil
}

// piece relays a part of an item that was allowed before and is of the right
// type for it.
func (t *openaiTurn) piece(e *oaEvent) (bool, error) {
	owner, known := pieceOwner(e.Type)
	if !known {
		t.acc.leaveOut(e.Type)
		return false, nil
	}
	if e.OutputIndex == nil || t.open[*e.OutputIndex] != owner {
		return false, errBroken
	}
	out := oaEvent{
		Type: e.Type, Sequence: e.Sequence, OutputIndex: e.OutputIndex, ContentIndex: e.ContentIndex, SummaryIndex: e.SummaryIndex,
		Delta: e.Delta, Text: e.Text, Refusal: e.Refusal, Arguments: e.Arguments, Input: e.Input,
	}
	if plainID.MatchString(e.ItemID) {
		out.ItemID = e.ItemID
	}
	if e.Part != nil {
		out.Part = e.Part.clean()
	}
	*e = out
	return true, nil
}

// pieceOwner gives the type of item to which a kind of event belongs.
func pieceOwner(event string) (string, bool) {
	switch event {
	case "response.content_part.added", "response.content_part.done", "response.output_text.delta",
		"response.output_text.done", "response.refusal.delta", "response.refusal.done":
		return "message", true
	case "response.reasoning_text.delta", "response.reasoning_text.done", "response.reasoning_summary_part.added",
		"response.reasoning_summary_part.done", "response.reasoning_summary_text.delta", "response.reasoning_summary_text.done":
		return "reasoning", true
	case "response.function_call_arguments.delta", "response.function_call_arguments.done":
		return "function_call", true
	case "response.custom_tool_call_input.delta", "response.custom_tool_call_input.done":
		return "custom_tool_call", true
	}
	return "", false
}

func (t *openaiTurn) whole(data []byte) ([]byte, error) {
	var a oaAnswer
	if err := decode(data, &a); err != nil {
		return nil, err
	}
	switch {
	case a.Status == "failed":
		return nil, &errUpstream{a.reason()}
	case a.Status != "completed" && a.Status != "incomplete":
		return nil, errBroken
	}
	if err := t.end(&a); err != nil {
		return nil, err
	}
	t.acc.stop, t.acc.done = a.Status, true
	if a.Incomplete != nil {
		t.acc.stop = a.Incomplete.Reason
	}
	return encode(a)
}
