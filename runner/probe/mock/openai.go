package mock

import (
	"encoding/json"
	"maps"
)

// rawInput gives the JSON of a call's input.
func rawInput(v any) json.RawMessage {
	raw, _ := v.(json.RawMessage)
	return raw
}

func openai() dialect {
	failed := response(Turn{NoUsage: true}, "failed", nil)
	failed["error"] = object{"code": "server_error", "message": Leak}
	return dialect{
		stream: responseEvents,
		whole: func(t Turn) any {
			return response(t, ending(t), items(t))
		},
		fail: func(kind, text string) any {
			return object{"error": object{"type": kind, "code": kind, "message": text, "param": nil}}
		},
		broken: event{"response.failed", object{"type": "response.failed", "response": failed}},
	}
}

// ending gives the status with which a response ends.
func ending(t Turn) string {
	if t.Stop != "" {
		return "incomplete"
	}
	return "completed"
}

func response(t Turn, status string, output []object) object {
	if output == nil {
		output = []object{}
	}
	r := object{
		"id": t.id("resp"), "object": "response", "created_at": 1, "status": status, "model": "mock",
		"output": output, "error": nil, "incomplete_details": nil, "user": Leak, "store": false,
	}
	if t.Stop != "" && status == "incomplete" {
		r["incomplete_details"] = object{"reason": t.Stop}
	}
	if u := t.usage(); !t.NoUsage && status != "in_progress" {
		r["usage"] = object{
			"input_tokens": u.In, "input_tokens_details": object{"cached_tokens": u.CacheRead},
			"output_tokens": u.Out, "output_tokens_details": object{"reasoning_tokens": 0}, "total_tokens": u.In + u.Out,
		}
	}
	return r
}

func items(t Turn) []object {
	out := []object{}
	if t.Fault == Empty {
		return out
	}
	if t.Thinking != "" {
		out = append(out, object{
			"id": t.id("rs"), "type": "reasoning", "encrypted_content": "ZW5jcnlwdGVk",
			"summary": []object{{"type": "summary_text", "text": t.Thinking}},
		})
	}
	if t.Text != "" {
		out = append(out, object{
			"id": t.id("msg"), "type": "message", "role": "assistant", "status": "completed",
			"content": []object{{"type": "output_text", "text": t.Text, "annotations": []object{}}},
		})
	}
	for i, c := range t.Calls {
		out = append(out, c.item(t.id("fc", i), t.id("call", i)))
	}
	return out
}

func (c Call) item(id, call string) object {
	it := object{
		"id": id, "call_id": call, "status": "completed",
		"type": "function_call", "name": c.Name,
	}
	if c.Custom {
		it["type"], it["input"] = "custom_tool_call", c.Input
	} else {
		it["arguments"] = string(c.input())
	}
	if c.Type != "" {
		it["type"] = c.Type
	}
	if c.Namespace != "" {
		it["namespace"] = c.Namespace
	}
	return it
}

func responseEvents(t Turn) []event {
	s := &sequence{}
	s.add("response.created", object{"response": response(t, "in_progress", nil)})
	s.add("response.in_progress", object{"response": response(t, "in_progress", nil)})
	all := items(t)
	for i, it := range all {
		begin := maps.Clone(it)
		if it["type"] == "message" {
			begin["content"], begin["status"] = []object{}, "in_progress"
		}
		s.add("response.output_item.added", object{"output_index": i, "item": begin})
		s.deltas(t, i, it)
		s.add("response.output_item.done", object{"output_index": i, "item": it})
	}
	s.add("response."+ending(t), object{"response": response(t, ending(t), all)})
	return s.events
}

// sequence numbers the events of a stream.
type sequence struct{ events []event }

func (s *sequence) add(name string, data object) {
	data["type"], data["sequence_number"] = name, len(s.events)
	s.events = append(s.events, event{name, data})
}

// deltas gives what a stream shows between the beginning and the end of an item.
func (s *sequence) deltas(t Turn, i int, it object) {
	at := func() object { return object{"output_index": i, "item_id": it["id"], "obfuscation": "xyz"} }
	switch it["type"] {
	case "message":
		part := object{"type": "output_text", "text": "", "annotations": []object{}}
		s.add("response.content_part.added", merged(at(), object{"content_index": 0, "part": part}))
		for _, p := range pieces(t.Text, t.Pieces) {
			s.add("response.output_text.delta", merged(at(), object{"content_index": 0, "delta": p, "logprobs": []object{}}))
		}
		s.add("response.output_text.done", merged(at(), object{"content_index": 0, "text": t.Text}))
	case "function_call":
		s.add("response.function_call_arguments.delta", merged(at(), object{"delta": it["arguments"]}))
		s.add("response.function_call_arguments.done", merged(at(), object{"arguments": it["arguments"]}))
	case "custom_tool_call":
		s.add("response.custom_tool_call_input.delta", merged(at(), object{"delta": it["input"]}))
	}
}

func merged(a, b object) object {
	maps.Copy(a, b)
	return a
}
