package manifests

import (
	"encoding/json"
	"fmt"
)

// Schema gives the JSON Schema of tier files, for editors. It is made from the
// tables by which the loader knows the keys. What the loader refuses beyond
// forms, such as an id in two tiers, no schema can say.
func Schema() ([]byte, error) {
	top := schemaOf(mappingOf(tierKeys()...))
	top["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	top["title"] = "Parlour tier manifest"
	top["description"] = "Read again while the bot serves: less right is in force at once, more after bot accept-gains."
	out, err := json.MarshalIndent(top, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("write the schema: %w", err)
	}
	return append(out, '\n'), nil
}

func schemaOf(s shape) map[string]any {
	switch s.kind {
	case "mapping":
		return mappingSchema(s.keys)
	case "list":
		out := map[string]any{"type": []string{"array", "null"}, "items": schemaOf(*s.of)}
		if s.least > 0 {
			out["type"], out["minItems"] = "array", s.least
		}
		return out
	case "word":
		return map[string]any{"enum": s.words}
	case "id": // Discord's ids may stand without quotes, which makes them numbers
		return map[string]any{"type": []string{"string", "integer"}, "pattern": s.form}
	case "text":
		return map[string]any{"type": "string", "pattern": s.form}
	case "time":
		return map[string]any{"type": "string", "format": "date-time"}
	case "duration":
		return map[string]any{"type": "string", "pattern": `^([0-9]+(\.[0-9]+)?(h|ms|m|s))+$`}
	case "size":
		return map[string]any{"type": "string", "pattern": `^[0-9]+(\.[0-9]+)?(KiB|MiB|GiB)$`}
	case "whole":
		return map[string]any{"type": "integer", "minimum": s.least}
	}
	return map[string]any{"type": "boolean"}
}

func mappingSchema(keys []key) map[string]any {
	properties, required := map[string]any{}, []string{}
	for _, k := range keys {
		one := schemaOf(k.value)
		if k.what != "" {
			one["description"] = k.what
		}
		properties[k.name] = one
		if k.must {
			required = append(required, k.name)
		}
	}
	out := map[string]any{"type": []string{"object", "null"}, "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		out["type"], out["required"] = "object", required
	}
	return out
}
