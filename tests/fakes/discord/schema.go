package discord

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// schema is Discord's own description of its HTTP API. It knows the words of
// JSON Schema that the description uses for bodies, and refuses a body whose
// description uses another word.
type schema struct{ root map[string]any }

func loadSchema(path string) (*schema, error) {
	if path == "" {
		return nil, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	s := &schema{}
	if err := json.Unmarshal(text, &s.root); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if s.at("/channels/{channel_id}/messages", "post") == nil {
		return nil, fmt.Errorf("%s: not the description of Discord", path)
	}
	return s, nil
}

// at gives the schema of a route's JSON body.
func (s *schema) at(path, method string) any {
	var v any = s.root
	for _, key := range []string{"paths", path, method, "requestBody", "content", "application/json", "schema"} {
		m, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = m[key]
	}
	return v
}

// check says what is wrong with a body. A nil schema finds nothing.
func (s *schema) check(method, path string, body []byte) error {
	if s == nil {
		return nil
	}
	rule := s.at(path, strings.ToLower(method))
	if rule == nil {
		return fmt.Errorf("%s %s has no body in the description", method, path)
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return fmt.Errorf("not JSON: %w", err)
	}
	return s.valid(rule, v, "body")
}

// The words that are checked here, and those that say nothing about a value.
func words() []string {
	return []string{
		"$ref", "type", "properties", "required", "additionalProperties", "items", "minItems", "maxItems", "uniqueItems",
		"minLength", "maxLength", "pattern", "minimum", "maximum", "enum", "const", "oneOf", "anyOf", "allOf", "maxProperties",
		"description", "title", "format", "contentEncoding", "deprecated", "default", "examples",
	}
}

func (s *schema) valid(rule any, v any, at string) error {
	r, ok := rule.(map[string]any)
	if !ok {
		return fmt.Errorf("%s: the description is not readable", at)
	}
	for word := range r {
		if !slices.Contains(words(), word) && !strings.HasPrefix(word, "x-") {
			return fmt.Errorf("%s: the description uses %q, which is not checked", at, word)
		}
	}
	if ref, ok := r["$ref"].(string); ok {
		return s.valid(s.named(ref), v, at)
	}
	return errors.Join(ofType(r, v, at), equal(r, v, at), s.combined(r, v, at), s.content(r, v, at))
}

func (s *schema) named(ref string) any {
	var v any = s.root
	for _, key := range strings.Split(strings.TrimPrefix(ref, "#/"), "/") {
		m, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = m[key]
	}
	return v
}

func ofType(r map[string]any, v any, at string) error {
	allowed, there := r["type"]
	if !there {
		return nil
	}
	list, ok := allowed.([]any)
	if !ok {
		list = []any{allowed}
	}
	for _, t := range list {
		if is(t, v) {
			return nil
		}
	}
	return fmt.Errorf("%s: must be %v", at, allowed)
}

func is(t, v any) bool {
	switch v := v.(type) {
	case nil:
		return t == "null"
	case bool:
		return t == "boolean"
	case string:
		return t == "string"
	case []any:
		return t == "array"
	case map[string]any:
		return t == "object"
	case json.Number:
		_, err := v.Int64()
		return t == "number" || t == "integer" && err == nil
	}
	return false
}

func equal(r map[string]any, v any, at string) error {
	same := func(want any) bool {
		if n, ok := v.(json.Number); ok {
			f, err := n.Float64()
			return err == nil && f == want
		}
		return reflect.DeepEqual(want, v)
	}
	if enum, ok := r["enum"].([]any); ok && !slices.ContainsFunc(enum, same) {
		return fmt.Errorf("%s: must be one of %v", at, enum)
	}
	if want, ok := r["const"]; ok && !same(want) {
		return fmt.Errorf("%s: must be %v", at, want)
	}
	return nil
}

func (s *schema) combined(r map[string]any, v any, at string) error {
	if all, ok := r["allOf"].([]any); ok {
		for _, rule := range all {
			if err := s.valid(rule, v, at); err != nil {
				return err
			}
		}
	}
	for _, word := range []string{"oneOf", "anyOf"} {
		rules, ok := r[word].([]any)
		if !ok {
			continue
		}
		fits, why := 0, error(nil)
		for _, rule := range rules {
			if err := s.valid(rule, v, at); err == nil {
				fits++
			} else {
				why = err
			}
		}
		if fits == 0 || word == "oneOf" && fits > 1 {
			return fmt.Errorf("%s: fits %d of %s: %w", at, fits, word, why)
		}
	}
	return nil
}

func (s *schema) content(r map[string]any, v any, at string) error {
	switch v := v.(type) {
	case string:
		return text(r, v, at)
	case json.Number:
		f, _ := v.Float64()
		return between(r, f, "minimum", "maximum", at)
	case []any:
		return s.list(r, v, at)
	case map[string]any:
		return s.fields(r, v, at)
	}
	return nil
}

func between(r map[string]any, n float64, low, high, at string) error {
	if least, ok := r[low].(float64); ok && n < least {
		return fmt.Errorf("%s: %s is %v", at, low, least)
	}
	if most, ok := r[high].(float64); ok && n > most {
		return fmt.Errorf("%s: %s is %v", at, high, most)
	}
	return nil
}

func text(r map[string]any, v, at string) error {
	if pattern, ok := r["pattern"].(string); ok {
		re, err := regexp.Compile(pattern)
		if err != nil {
			return fmt.Errorf("%s: the pattern of the description is not readable: %w", at, err)
		}
		if !re.MatchString(v) {
			return fmt.Errorf("%s: must match %s", at, pattern)
		}
	}
	if r["format"] == "snowflake" && (v == "" || strings.Trim(v, "0123456789") != "") {
		return fmt.Errorf("%s: must be an id", at)
	}
	return between(r, float64(utf8.RuneCountInString(v)), "minLength", "maxLength", at)
}

func (s *schema) list(r map[string]any, v []any, at string) error {
	if err := between(r, float64(len(v)), "minItems", "maxItems", at); err != nil {
		return err
	}
	for i, item := range v {
		if rule, ok := r["items"]; ok {
			if err := s.valid(rule, item, fmt.Sprintf("%s[%d]", at, i)); err != nil {
				return err
			}
		}
		if r["uniqueItems"] == true && slices.ContainsFunc(v[:i], func(o any) bool { return reflect.DeepEqual(o, item) }) {
			return fmt.Errorf("%s: item %d stands there twice", at, i)
		}
	}
	return nil
}

func (s *schema) fields(r map[string]any, v map[string]any, at string) error {
	required, _ := r["required"].([]any)
	for _, name := range required {
		if _, there := v[name.(string)]; !there {
			return fmt.Errorf("%s: %v is missing", at, name)
		}
	}
	known, _ := r["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(v)) {
		rule, there := known[name]
		if !there {
			rule = r["additionalProperties"]
		}
		switch rule.(type) {
		case nil:
		case bool:
			if rule == false {
				return fmt.Errorf("%s: %s is not known", at, name)
			}
		default:
			if err := s.valid(rule, v[name], at+"."+name); err != nil {
				return err
			}
		}
	}
	return between(r, float64(len(v)), "minProperties", "maxProperties", at)
}
