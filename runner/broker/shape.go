package broker

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
)

// shape reads a request by an allow-list and remembers what does not fit it. It
// keeps no text of the request but names that look like names.
type shape struct {
	grant   Grant
	faults  []string
	removed []string // tools
	dropped []string // fields
}

// maxFaults is how many faults of one request are told apart.
const maxFaults = 8

func (s *shape) refuse(path, what string) {
	if len(s.faults) < maxFaults {
		s.faults = append(s.faults, path+": "+what)
	}
}

// drop remembers a field that is known and left out.
func (s *shape) drop(path string) {
	if !slices.Contains(s.dropped, path) {
		s.dropped = append(s.dropped, path)
	}
}

// remove remembers a tool that is not offered to the model.
func (s *shape) remove(tool string) { s.removed = append(s.removed, word(tool)) }

// granted says whether the run may use a tool.
func (s *shape) granted(tool string) bool { return slices.Contains(s.grant.Tools, tool) }

var wordLike = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]{0,47}$`)

// word gives a name that may be printed: the sandbox chose it, so anything but
// a short word is left out.
func word(s string) string {
	if wordLike.MatchString(s) {
		return s
	}
	return "(odd name)"
}

// object is a JSON object whose fields are taken one by one. What was not taken
// at the end is refused.
type object struct {
	*shape
	path string
	left map[string]*node
}

func (s *shape) object(n *node, path string) *object {
	o := &object{shape: s, path: path, left: map[string]*node{}}
	if n == nil || n.kind != kindObject {
		s.refuse(path, "not an object")
		return o
	}
	for i, name := range n.names {
		o.left[name] = n.items[i]
	}
	return o
}

// at gives the path of a field.
func (o *object) at(name string) string {
	if o.path == "" {
		return name
	}
	return o.path + "." + name
}

// take removes a field and gives it, nil where it is absent.
func (o *object) take(name string) *node {
	n := o.left[name]
	delete(o.left, name)
	return n
}

// value gives a field that is there and not null, nil else.
func (o *object) value(name string) *node {
	if n := o.take(name); n != nil && n.kind != kindNull {
		return n
	}
	return nil
}

// leave takes fields that are known and not passed on.
func (o *object) leave(names ...string) {
	for _, name := range names {
		if o.take(name) != nil {
			o.drop(o.at(name))
		}
	}
}

// ignore takes fields of no meaning, without a word in the receipt.
func (o *object) ignore(names ...string) {
	for _, name := range names {
		o.take(name)
	}
}

// end refuses every field that nothing has taken.
func (o *object) end() {
	names := make([]string, 0, len(o.left))
	for name := range o.left {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		o.refuse(o.at(word(name)), "unknown field")
	}
}

// text gives a field that must be text.
func (o *object) text(name string) string {
	n := o.take(name)
	if n == nil || n.kind != kindText {
		o.refuse(o.at(name), "not text")
		return ""
	}
	return n.text
}

// maybe gives a text that may be absent or null.
func (o *object) maybe(name string) string {
	if n := o.value(name); n != nil {
		if n.kind == kindText {
			return n.text
		}
		o.refuse(o.at(name), "not text")
	}
	return ""
}

// one gives a text that must be one of a few words.
func (o *object) one(name string, words ...string) string {
	got := o.text(name)
	return o.among(name, got, words)
}

// maybeOne is one, for a field that may be absent or null.
func (o *object) maybeOne(name string, words ...string) string {
	got := o.maybe(name)
	if got == "" {
		return ""
	}
	return o.among(name, got, words)
}

func (o *object) among(name, got string, words []string) string {
	if !slices.Contains(words, got) {
		o.refuse(o.at(name), "unknown value "+word(got))
		return ""
	}
	return got
}

var plainID = regexp.MustCompile(`^[A-Za-z0-9_-]{1,128}$`)

// id gives an id that only ties blocks of this request together.
func (o *object) id(name string) string {
	got := o.text(name)
	if !plainID.MatchString(got) {
		o.refuse(o.at(name), "not an id")
		return ""
	}
	return got
}

// flag gives a yes or no that may be absent or null.
func (o *object) flag(name string) *bool {
	n := o.value(name)
	if n == nil {
		return nil
	}
	if n.kind != kindBool {
		o.refuse(o.at(name), "not true or false")
		return nil
	}
	return &n.yes
}

// yes is flag with absent as no.
func (o *object) yes(name string) bool {
	f := o.flag(name)
	return f != nil && *f
}

// count gives a whole number from 1 on that may be absent: then it is 0.
func (o *object) count(name string) int {
	n := o.value(name)
	if n == nil {
		return 0
	}
	v, err := strconv.Atoi(n.text)
	if n.kind != kindNumber || err != nil || v < 1 {
		o.refuse(o.at(name), "not a whole number above zero")
		return 0
	}
	return v
}

// between gives a number within bounds, nil where it is absent.
func (o *object) between(name string, low, high float64) *float64 {
	n := o.value(name)
	if n == nil {
		return nil
	}
	v, err := strconv.ParseFloat(n.text, 64)
	if n.kind != kindNumber || err != nil || v < low || v > high {
		o.refuse(o.at(name), fmt.Sprintf("not a number from %g to %g", low, high))
		return nil
	}
	return &v
}

// list gives the items of a list that may be absent or null.
func (o *object) list(name string) []*node {
	n := o.value(name)
	if n == nil {
		return nil
	}
	if n.kind != kindList {
		o.refuse(o.at(name), "not a list")
		return nil
	}
	return n.items
}

// schema gives a tool's own JSON schema. It may point into itself only.
func (o *object) schema(name string) *node {
	n := o.value(name)
	if n == nil || n.kind != kindObject {
		o.refuse(o.at(name), "not an object")
		return nil
	}
	if pointsOut(n) {
		o.refuse(o.at(name), "a reference out of the schema")
		return nil
	}
	return n
}

func pointsOut(n *node) bool {
	for i, item := range n.items {
		if n.kind == kindObject && (n.names[i] == "$ref" || n.names[i] == "$dynamicRef") &&
			item.kind == kindText && (item.text == "" || item.text[0] != '#') {
			return true
		}
		if pointsOut(item) {
			return true
		}
	}
	return false
}

func index(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }
