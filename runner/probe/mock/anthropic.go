package mock

// object is one JSON object.
type object map[string]any

func anthropic() dialect {
	return dialect{
		stream: messageEvents,
		whole:  message,
		fail: func(kind, text string) any {
			return object{"type": "error", "error": object{"type": kind, "message": text}}
		},
		broken: event{"error", object{"type": "error", "error": object{"type": "overloaded_error", "message": Leak}}},
	}
}

// blocks gives the content of a message as it is when complete.
func blocks(t Turn) []object {
	out := []object{}
	if t.Fault == Empty {
		return out
	}
	if t.Thinking != "" {
		out = append(out, object{"type": "thinking", "thinking": t.Thinking, "signature": "c2lnbmF0dXJl"})
	}
	if t.Text != "" {
		out = append(out, object{"type": "text", "text": t.Text})
	}
	for i, c := range t.Calls {
		kind := "tool_use"
		if c.Type != "" {
			kind = c.Type
		}
		out = append(out, object{"type": kind, "id": t.id("toolu", i), "name": c.Name, "input": c.input()})
	}
	return out
}

func message(t Turn) any {
	m := object{
		"id": t.id("msg"), "type": "message", "role": "assistant", "model": "mock", "content": blocks(t),
		"stop_reason": stopReason(t), "stop_sequence": nil, "organization": Leak,
	}
	if !t.NoUsage {
		m["usage"] = messageUsage(t.usage(), t.usage().Out)
	}
	return m
}

func stopReason(t Turn) string {
	switch {
	case t.Stop != "":
		return t.Stop
	case len(t.Calls) > 0:
		return "tool_use"
	}
	return "end_turn"
}

func messageUsage(u Usage, out int) object {
	return object{
		"input_tokens": u.In, "output_tokens": out,
		"cache_creation_input_tokens": u.CacheWrite, "cache_read_input_tokens": u.CacheRead,
		"service_tier": "standard",
	}
}

func messageEvents(t Turn) []event {
	start := object{
		"id": t.id("msg"), "type": "message", "role": "assistant", "model": "mock", "content": []object{},
		"stop_reason": nil, "stop_sequence": nil,
	}
	if !t.NoUsage {
		start["usage"] = messageUsage(t.usage(), 1)
	}
	events := []event{
		{"message_start", object{"type": "message_start", "message": start}},
		{"ping", object{"type": "ping"}},
	}
	for i, b := range blocks(t) {
		events = append(events, blockEvents(i, b, t.Pieces)...)
	}
	end := object{"type": "message_delta", "delta": object{"stop_reason": stopReason(t), "stop_sequence": nil}}
	if !t.NoUsage {
		end["usage"] = object{"output_tokens": t.usage().Out}
	}
	return append(events, event{"message_delta", end}, event{"message_stop", object{"type": "message_stop"}})
}

// blockEvents gives one block as a stream shows it: an empty one, then pieces.
func blockEvents(index int, b object, n int) []event {
	begin := object{}
	var deltas []object
	for k, v := range b {
		begin[k] = v
	}
	switch b["type"] {
	case "text":
		begin["text"] = ""
		for _, p := range pieces(b["text"].(string), n) {
			deltas = append(deltas, object{"type": "text_delta", "text": p})
		}
	case "thinking":
		begin["thinking"], begin["signature"] = "", ""
		for _, p := range pieces(b["thinking"].(string), n) {
			deltas = append(deltas, object{"type": "thinking_delta", "thinking": p})
		}
		deltas = append(deltas, object{"type": "signature_delta", "signature": b["signature"]})
	default:
		begin["input"] = object{}
		for _, p := range pieces(string(rawInput(b["input"])), n) {
			deltas = append(deltas, object{"type": "input_json_delta", "partial_json": p})
		}
	}
	events := []event{{"content_block_start", object{"type": "content_block_start", "index": index, "content_block": begin}}}
	for _, d := range deltas {
		events = append(events, event{"content_block_delta", object{"type": "content_block_delta", "index": index, "delta": d}})
	}
	return append(events, event{"content_block_stop", object{"type": "content_block_stop", "index": index}})
}
